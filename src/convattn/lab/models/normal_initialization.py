"""How DeiT's linear maps begin: weights N(0, 0.02²), and biases zero.

timm draws from the normal distribution cut off at ±2, a hundred deviations away, which is the
normal distribution itself. Its convolutions, the learned projection of the patches among them,
begin as PyTorch leaves them: `convattn.lab.models.initialization`.

Source: Touvron et al. 2021; Wightman 2019, timm, `vision_transformer.py`.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax
from jax.typing import DTypeLike

from convattn.lab.models.linear import Linear

DEVIATION = 0.02


def normal_parameter(rngs: nnx.Rngs, *shape: int) -> Any:
    """A parameter in float32 of numbers drawn from N(0, 0.02²).

    >>> numbers = normal_parameter(nnx.Rngs(0), 100, 100)[...]
    >>> 0.019 < float(numbers.std()) < 0.021
    True
    """
    return nnx.Param(DEVIATION * jax.random.normal(rngs.params(), shape, jnp.float32))


def zero_parameter(*shape: int) -> Any:
    """A parameter in float32 that is zero."""
    return nnx.Param(jnp.zeros(shape, jnp.float32))


def normal_linear(
    inputs: int, outputs: int, *, rngs: nnx.Rngs, dtype: DTypeLike, precision: lax.Precision
) -> Linear:
    """A linear map with a bias; parameters in float32, computed in `dtype`.

    >>> how = {"rngs": nnx.Rngs(0), "dtype": jnp.float32, "precision": lax.Precision.HIGHEST}
    >>> normal_linear(2, 3, **how).bias[...].tolist()
    [0.0, 0.0, 0.0]
    """
    return Linear(
        inputs,
        outputs,
        dtype=dtype,
        precision=precision,
        kernel_init=nnx.initializers.normal(DEVIATION),
        bias_init=nnx.initializers.zeros_init(),
        rngs=rngs,
    )
