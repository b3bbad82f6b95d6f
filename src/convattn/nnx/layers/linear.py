"""Linear maps X W + b: how they begin, and gradients summed in float32, in half precision too.

*How they begin.* PyTorch's default, which is what the authors' code of C20 leaves its maps at: a
map of n inputs begins with weights, and a bias, that are uniform in ±1/√n, of variance 1/(3n). (The
authors build on a BERT whose maps would begin with N(0, 0.02²), but nothing in their models calls
for that.) DeiT's maps begin with weights N(0, 0.02²) and biases zero; timm draws from the normal
distribution cut off at ±2, a hundred deviations away, which is the normal distribution itself. Its
convolutions, the learned projection of the patches among them, begin as PyTorch leaves them
(Touvron et al. 2021; Wightman 2019, timm, `vision_transformer.py`).

*Gradients.* The gradient of b is a sum over all tokens. In bfloat16, where it would be taken by
itself, 256 + 1 is 256 again, so that the sum of n equal terms stands still. So the product comes in
float32, the bias is added in float32, and the result is rounded once.

The derivative is written down, because the one that JAX works out would multiply the float32
cotangent of the product with the half-precision operands, and so run both products of the backward
pass in float32. Here they are products of halves, with sums in float32, and the parameters' are
rounded nowhere.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array
from jax.nn.initializers import Initializer
from jax.typing import DTypeLike
from jaxtyping import Float

from convattn.nnx.layers.compute import product_precision, with_bias

DEVIATION = 0.02


class Linear(nnx.Linear):
    """`nnx.Linear` with a bias; in half precision with gradients in reverse mode only.

    >>> def total(layer):
    ...     return layer(jnp.ones((25600, 2))).astype(jnp.float32).sum()
    >>> float(nnx.grad(total)(Linear(2, 1, dtype=jnp.bfloat16, rngs=nnx.Rngs(0))).bias[0])
    25600.0
    """

    def __call__(
        self, inputs: Float[Array, "*lead features"], out_sharding: Any = None
    ) -> Float[Array, "*lead out_features"]:
        """X W + b in this map's dtype."""
        is_wide = self.dtype is None or jnp.dtype(self.dtype).itemsize >= 4
        if is_wide or self.bias is None:
            # One product of matrices: with more axes XLA's CPU kernels take longer.
            rows = super().__call__(inputs.reshape(-1, inputs.shape[-1]), out_sharding)
            return rows.reshape(*inputs.shape[:-1], rows.shape[-1])
        return _half_affine(inputs.astype(self.dtype), self.kernel[...], self.bias[...])


@jax.custom_vjp
def _half_affine(
    inputs: Float[Array, "*lead features"],
    kernel: Float[Array, "features out_features"],
    bias: Float[Array, " out_features"],
) -> Float[Array, "*lead out_features"]:
    """X W + b in the dtype of X, with W rounded to it, and a sum in float32 that is rounded once.

    >>> halves = jnp.ones((1, 300), jnp.bfloat16)
    >>> float(_half_affine(halves, jnp.ones((300, 1)), jnp.ones(1))[0, 0])  # of 301
    300.0
    """
    product = _wide_product("...d,de->...e", inputs, kernel.astype(inputs.dtype))
    return with_bias(product, bias.astype(product.dtype)).astype(inputs.dtype)


def _wide_product(formula: str, *operands: Array) -> Array:
    """A product of halves with its sums in float32."""
    return jnp.einsum(formula, *operands, preferred_element_type=jnp.float32)


def forward(inputs: Array, kernel: Array, bias: Array) -> tuple[Array, tuple[Array, ...]]:
    """The map, and what its derivative needs."""
    return _half_affine(inputs, kernel, bias), (inputs, kernel, bias)


def backward(residuals: tuple[Array, ...], cotangent: Array) -> tuple[Array, ...]:
    """Of X, W and b, each in its own dtype."""
    inputs, kernel, bias = residuals
    back = _wide_product("...e,de->...d", cotangent, kernel.astype(inputs.dtype))
    products = _wide_product("...d,...e->de", inputs, cotangent)
    total = cotangent.sum(axis=tuple(range(cotangent.ndim - 1)), dtype=jnp.float32)
    return back.astype(inputs.dtype), products.astype(kernel.dtype), total.astype(bias.dtype)


_half_affine.defvjp(forward, backward)


def uniform_within(inputs: int) -> Initializer:
    """Numbers that are uniform in ±1/√inputs.

    >>> numbers = uniform_within(4)(jax.random.key(0), (1000,), jnp.float32)
    >>> 0.45 < float(jnp.abs(numbers).max()) <= 0.5
    True
    """
    limit = 1 / math.sqrt(max(inputs, 1))

    def draw(
        key: Array, shape: Sequence[Any], dtype: Any = jnp.float32, out_sharding: Any = None
    ) -> Array:
        return jax.random.uniform(key, shape, dtype, -limit, limit, out_sharding=out_sharding)

    return draw


def linear(
    inputs: int, outputs: int, *, rngs: nnx.Rngs, dtype: DTypeLike, normal: bool = False
) -> Linear:
    """A linear map with a bias; parameters in float32, computed in `dtype`.

    Args:
        normal: Weights N(0, 0.02²) and a bias of zeros; otherwise both uniform in ±1/√inputs.

    >>> linear(2, 3, rngs=nnx.Rngs(0), dtype=jnp.float32, normal=True).bias[...].tolist()
    [0.0, 0.0, 0.0]
    """
    uniform = uniform_within(inputs)
    return Linear(
        inputs,
        outputs,
        dtype=dtype,
        precision=product_precision(dtype),
        kernel_init=nnx.initializers.normal(DEVIATION) if normal else uniform,
        bias_init=nnx.initializers.zeros_init() if normal else uniform,
        rngs=rngs,
    )


def normal_parameter(rngs: nnx.Rngs, *shape: int) -> Any:
    """A parameter in float32 of numbers drawn from N(0, 0.02²)."""
    return nnx.Param(DEVIATION * jax.random.normal(rngs.params(), shape, jnp.float32))


def zero_parameter(*shape: int) -> Any:
    """A parameter in float32 that is zero."""
    return nnx.Param(jnp.zeros(shape, jnp.float32))
