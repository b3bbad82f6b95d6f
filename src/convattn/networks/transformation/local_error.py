"""How far a convolution, and the attention in its place, can be from the exact convolution.

With the nonnegative majorants

    G = |W| * |x|,    H = G + 2ε/(1-ε)·mean(|x|)·Σ_δ|W_δ|,

the mean over all N keys, u the unit roundoff of the dtype of x, and n the number of products that
an entry sums, each is off by at most

- *convolution*: γ_n G, n products summed in any order, as on a CPU;
- *attention*: the Π - 1 of `convattn.bounds.rounding`, times H, plus what underflows. That bound
  covers the back end `shift` where T + 16 ≤ N and N(1/ε - 1) ≥ 1, T the number of offsets, and
  `dense` always; it is measured with the one that is covered.

Subnormal products and operands add less than 4·n·tiny(1 + max|W|)(1 + max|x|), tiny the smallest
normal number of float32 whatever the dtype; those of attention, whose maps are at most T/(1-ε)
times max|W|, what `bounds.rounding` has for its lengths.

*G is computed in float32* whatever the dtype: a sum of n nonnegative products of operands that were
each rounded to it is too small by at most γ_(n+3), for which it is inflated. All else is in
float64.
"""

import math
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from convattn.bounds.rounding import relative_error
from convattn.bounds.score_error import score_error
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.networks.transformation.convolution import Convolution
from convattn.networks.transformation.evaluation import COMPILE_QUICKLY
from convattn.operators.attention import contraction_lengths
from convattn.operators.roundoff import gamma, gamma_or_infinite, unit_roundoff

SINGLE, TINY = 2.0**-24, 2.0**-126  # of float32, in which G is computed
INFLATION = 1 + 2.0**-20
MARGIN = 16  # more keys than offsets, from where the bound covers the back end `shift`


class Coefficients(NamedTuple):
    """Off by at most relative·(G + spread·Σ_k |x_k| Σ_δ |W_δ|) + floor·(1 + max|W|)(1 + max|x|).

    Attributes:
        relative, spread, floor: As in this sum.
    """

    relative: float
    spread: float
    floor: float


def _number_of_products(convolution: Convolution) -> int:
    """n: the taps times the channels of a group."""
    return math.prod(convolution.kernel_shape[:-1])


def number_of_transposed_products(convolution: Convolution) -> int:
    """How many products an entry sums, or one of the transposed convolution, whichever is more."""
    *taps, inputs, outputs = convolution.kernel_shape
    return math.prod(taps) * max(inputs, outputs // convolution.groups)


def of_convolution(convolution: Convolution, terms: int = 0) -> Coefficients:
    """γ_n G; infinite where n roundings in the dtype may be anything.

    Args:
        terms: n, where other sums are meant than those of its own outputs.
    """
    count = terms or _number_of_products(convolution)
    relative = gamma_or_infinite(count, unit_roundoff(convolution.layer_dtype))
    return Coefficients(relative, 0.0, 4 * (count + 2) * TINY)


def of_attention(convolution: Convolution, layer: AttentionLayer) -> Coefficients | None:
    """(Π - 1) H, or None where no bound is derived: the limit form, heads of low rank, and below
    float32, or where weights underflow.
    """
    encoding, dtype = layer.encoding, convolution.layer_dtype
    exact = isinstance(encoding, BiasEncoding) and encoding.uniform_weight is not None
    if not exact or layer.dtype != dtype or dtype not in (jnp.float32, jnp.float64):
        return None
    uniform_weight = float(encoding.uniform_weight)  # type: ignore[attr-defined]
    grid = layer.token_grid(convolution.layer_image_size)
    keys, score = grid.number_of_keys, score_error(encoding, grid)
    exponent = score.absolute + unit_roundoff(score.dtype) * (score.range + 2 * score.absolute)
    if math.exp(-score.range - 2 * exponent) / keys < 2 * TINY:
        return None
    relative = relative_error(layer, grid, score, exponent, dtype, dtype, False)
    spread = 2 * uniform_weight / (1 - uniform_weight) / keys * (1 + 2 * gamma(keys + 16, SINGLE))
    size = math.prod(convolution.kernel_size) / (1 - uniform_weight)
    lengths = math.prod(contraction_lengths(layer.value, layer.output, layer.heads, keys))
    return Coefficients(
        relative * INFLATION, spread, 16 * TINY * lengths * (1 + layer.heads) * (1 + size)
    )


def covered_backend(convolution: Convolution, layer: AttentionLayer) -> str:
    """`"shift"` where the bound covers it, else `"dense"`."""
    encoding = layer.encoding
    uniform_weight = encoding.uniform_weight if isinstance(encoding, BiasEncoding) else None
    keys = layer.token_grid(convolution.layer_image_size).number_of_keys
    if uniform_weight is None or len(encoding.offsets) + MARGIN > keys:  # type: ignore[attr-defined]
        return "dense"
    return "shift" if keys * (1 / float(uniform_weight) - 1) >= 1 else "dense"


class Magnitudes(NamedTuple):
    """What the bounds of a convolution on given images are made of.

    Attributes:
        absolute: G, inflated, in the layout of the convolution's outputs.
        everywhere: Σ_k |x_k| Σ_δ |W_δ|, in a shape that goes with it.
        largest: (1 + max|W|)(1 + max|x|).
    """

    absolute: Float[np.ndarray, "..."]
    everywhere: Float[np.ndarray, "..."]
    largest: float

    @classmethod
    def of(cls, convolution: Convolution, images: Any, kernel: Any) -> "Magnitudes":
        """Those on the operands of the convolution."""
        sizes = [np.abs(np.asarray(operand)).astype(np.float32) for operand in (images, kernel)]
        options = {**convolution.parameters, "preferred_element_type": None}
        single = replace(convolution, name="", dtype=np.dtype(np.float32), parameters=options)
        with jax.enable_x64(False):  # one program, whatever the network is in
            sums, everywhere = map(np.asarray, _sums_of(single, *sizes))
        inflated = 1 + 2 * gamma(_number_of_products(convolution) + 16, SINGLE)
        tallest = [float(operand.max(initial=0)) for operand in sizes]
        return cls(
            sums.astype(np.float64) * inflated,
            everywhere.astype(np.float64),
            math.prod(1 + size for size in tallest),
        )

    def error(self, coefficients: Coefficients) -> Float[np.ndarray, "..."]:
        """What `Coefficients` says, entry by entry."""
        relative, spread, floor = coefficients
        total = self.absolute if spread == 0 else self.absolute + spread * self.everywhere
        with np.errstate(invalid="ignore"):  # infinity times zero: no bound
            return relative * total + floor * self.largest


@partial(jax.jit, static_argnums=0, compiler_options=COMPILE_QUICKLY)
def _sums_of(convolution: Convolution, images: Array, kernel: Array) -> tuple[Array, Array]:
    """G, not inflated, and what `_mean_terms` says, in one program."""
    absolute = lax.conv_general_dilated_p.bind(images, kernel, **convolution.parameters)
    return absolute, _mean_terms(convolution, images, kernel)


def _mean_terms(convolution: Convolution, images: Array, kernel: Array) -> Array:
    """Σ_k |x_k| Σ_δ |W_δ| for each image and output channel, one pixel in the layout of outputs.

    Sums of nonnegative float32 numbers: N·(in/groups) and K² terms, too small by less than the
    inflation that `of_attention` puts on its factor.
    """
    axes, groups = len(convolution.kernel_size), convolution.groups
    total = convolution.images(images).sum(axis=tuple(range(1, axes + 1)))
    taps = convolution.kernel(kernel).sum(axis=tuple(range(axes)))
    inputs, outputs = taps.shape
    total = total.reshape(len(total), groups, inputs)
    taps = taps.reshape(inputs, groups, outputs // groups)
    terms = jnp.einsum("bgi,igo->bgo", total, taps, precision="highest")
    terms = terms.reshape(len(total), outputs)
    return convolution.result(jnp.expand_dims(terms, tuple(range(1, axes + 1))))
