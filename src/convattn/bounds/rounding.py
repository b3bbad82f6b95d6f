"""How far a layer computed in floating point can be from the layer in exact arithmetic.

The bound is a priori: it follows from the dtypes, the sizes and the operands, before anything
is computed. Let u_a be the unit roundoff of the dtype in which `apply_attention` sums (at least
float32), u_p of the one in which the maps are stored, u_r of the result's, and γ_n = n·u_a/(1 -
n·u_a).

1. *Scores.* If each score is off by at most e, relative to a shift common to the row, and |s - max| ≤ S
   for the weights that count, the argument of exp is off by E = e + u_a·S.
2. *Softmax.* exp is assumed to have a relative error of at most 8·u_a (four units in the last place);
   sum and division add γ_N and u_a. So each weight is a(1 + η) with
   1 + η ≤ e^(2E) (1 + 8u_a)/(1 - 8u_a) · (1 + u_a)/(1 - γ_N).
3. *Maps* are stored as M(1 + μ), |μ| ≤ u_p, where storing rounds at all.
4. *Products.* A sum of n products, in any order, is off by at most γ_n Σ|·||·|; the lengths n are those of
   `contraction_lengths`.
5. *Bias and cast* add (1 + u_a)(1 + u_r).

Together |computed - exact| ≤ (Π - 1)·G with the majorant G = Σ_h A_h|X||M_h| + |b|, and an underflow
term. G is evaluated in float64, whose own relative error on sums of nonnegative terms is far below
the 2⁻²⁰ by which it is inflated. Matrix products are assumed to be sums of products in the pinned
precision (no TF32, no Strassen); `convattn audit` measures that.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Float

from convattn.application import apply_attention
from convattn.arrays import accumulation_dtype
from convattn.attention import contraction_lengths
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.scalar import ScalarEncoding
from convattn.layer import AttentionLayer
from convattn.shifts import TokenGrid

EXP_ERROR = 8  # in units of roundoff: four units in the last place
ASSUMPTION = (
    "exp, log and log1p are within 4 units in the last place; matrix products are sums of products "
    "in the pinned precision"
)


def unit_roundoff(dtype: DTypeLike) -> float:
    """Half the distance from one to the next number, such as 2⁻²⁴ in float32, 2⁻⁸ in bfloat16.

    >>> [int(-np.log2(unit_roundoff(d))) for d in ("float64", "float32", "bfloat16", "float16")]
    [53, 24, 8, 11]
    """
    return float(jnp.finfo(dtype).eps) / 2


def gamma(count: int, roundoff: float) -> float:
    """γ_n = n·u/(1 - n·u).

    **Raises:** `ValueError` where n·u ≥ 1, so that nothing can be said.
    """
    if count * roundoff >= 1:
        raise ValueError(
            f"{count} roundings of relative size {roundoff} exceed one, so there is no bound; use "
            "a wider dtype"
        )
    return count * roundoff / (1 - count * roundoff)


@dataclass(frozen=True)
class ScoreError:
    """How exactly the scores of an encoding are computed.

    **Fields:** `absolute`: e of the module's derivation; `range`: S. `gain`: the relative error of
    the head gains.
    """

    absolute: float
    range: float
    gain: float


def score_error(layer: AttentionLayer, grid: TokenGrid, roundoff: float) -> ScoreError:
    """The error of the positional scores.

    One-hot scores are exact: integers times a power of two. A leaky bias has M(N) =
    log1p(N·(1-ε)/ε), five roundings relative to M(N); a scalar score h·log t has a stored
    logarithm and a product.

    **Raises:** `ValueError` for an encoding that this derivation does not cover.
    """
    encoding = layer.encoding
    if isinstance(encoding, BiasEncoding) and encoding.leak is not None:
        leak = float(encoding.leak)
        height = math.log1p(grid.number_of_keys * (1 - leak) / leak)
        return ScoreError((EXP_ERROR + 5) * roundoff * height, height, 0.0)
    if isinstance(encoding, ScalarEncoding):
        bases = np.abs(np.asarray(encoding.log_bases, np.float64)).max()
        height = float(np.asarray(encoding.exponents, np.float64).max() * bases)
        error = (EXP_ERROR + 3) * roundoff * height
        terms = len(encoding.offsets) + 1
        return ScoreError(error, height, math.expm1(error) + gamma(terms + EXP_ERROR, roundoff))
    if isinstance(encoding, BiasEncoding):
        return ScoreError(0.0, 0.0, 0.0)
    raise ValueError(
        f"no rounding bound is derived for {type(encoding).__name__}; one-hot layers are compared "
        "exactly instead"
    )


def layer_error_bound(
    layer: AttentionLayer,
    images: Any,
    majorant: Float[np.ndarray, "batch *space out_channels"],
    *,
    maps_are_exact: bool = False,
) -> Float[np.ndarray, "batch *space out_channels"]:
    """A bound on |apply_attention(layer, images) - the same in exact arithmetic|, entry by entry.

    **Arguments:**

    - `layer`: from `conv_to_attention`, exact form, in the dtype under test.
    - `images`: as they are given to `apply_attention`; they count as exact.
    - `majorant`: G, from `majorant_of` on the same layer built in float64.
    - `maps_are_exact`: whether storing the maps in the layer's dtype rounded nothing.

    **Returns:** float64.

    **Raises:** `ValueError` where the dtype is too narrow for any bound.
    """
    images = jnp.asarray(images)
    result = jnp.result_type(images, layer.dtype or images.dtype)
    working = accumulation_dtype(result)
    roundoff = unit_roundoff(working)
    stored = 0.0 if maps_are_exact else unit_roundoff(layer.dtype or result)

    sides = tuple(n // p for n, p in zip(images.shape[1:-1], layer.patch_size, strict=True))
    grid = TokenGrid(sides, layer.ring)
    scores = score_error(layer, grid, roundoff)
    exponent = 2 * (scores.absolute + roundoff * scores.range)
    factor = math.exp(exponent) * (1 + EXP_ERROR * roundoff) / (1 - EXP_ERROR * roundoff)
    factor *= (1 + roundoff) / (1 - gamma(grid.number_of_keys, roundoff))
    factor *= (1 + scores.gain) * (1 + stored)
    lengths = contraction_lengths(layer.value, layer.output, layer.heads, grid.number_of_keys)
    for length in lengths:
        factor *= 1 + gamma(length, roundoff)
    factor *= (1 + roundoff) ** 2 * (1 + unit_roundoff(result))
    underflow = math.prod(lengths) * float(jnp.finfo(working).tiny)
    underflow += float(jnp.finfo(result).smallest_subnormal)
    return (factor - 1) * majorant * (1 + 2.0**-20) + underflow * (1 + majorant)


def majorant_of(
    layer: AttentionLayer, images: Any
) -> Float[np.ndarray, "batch *space out_channels"]:
    """G = Σ_h A_h |X| |M_h| + |b|, in float64, for a layer whose maps count as exact."""
    wide = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), layer)
    absolute = {
        name: None if getattr(wide, name) is None else jnp.abs(getattr(wide, name))
        for name in ("value", "output", "bias")
    }
    positive = replace(wide, **absolute)
    magnitude = jnp.abs(jnp.asarray(images).astype(jnp.float64))
    return np.asarray(jax.jit(apply_attention)(positive, magnitude))
