"""How far an exact layer computed in floating point can be from the convolution that it is.

The bound is a priori: it follows from the dtypes, the sizes and the operands, before anything is
computed. Let u_s be the unit roundoff of the dtype of the scores, u_a of the one in which
`apply_attention` sums (both at least float32), u_p of the one in which the maps are stored, u_r of
the result's, and γ_n = n·u/(1 - n·u). exp counts as eight roundings.

1. *Scores.* Each is off by at most e, and they lie within S of each other (`score_error`), that of
   a register included, which is one of the N keys of the softmax. So the argument of exp is off by
   E = e + u_s(S + 2e).
2. *Softmax.* The N exponentials, their sum and the quotient (two roundings, if it is a product with
   a reciprocal) make each weight a(1 + η) with
   1 + η ≤ e^(2E) (1 + 8u_s)/(1 - 8u_s) · (1 + 2u_s)/(1 - γ_N). Gains add a factor of their own.
3. *Maps* are Σ_δ C_hδ M_δ. The coefficients and the sum over the T offsets cost 1 + γ_(T+4) in the
   dtype of the scores, relative to Σ_δ |C_hδ||M_δ|; storing costs 1 + u_p.
4. *Products.* A sum of n products, in any order, is off by at most γ_n Σ|·||·|; the lengths n are
   those of `contraction_lengths`.
5. *Bias and cast* cost (1 + u_a)(1 + u_r).
6. *A ring filled with the mean* of n pixels costs 1 + γ_(n+1) more, relative to the mean of |X|.

Let Π be the product of these factors. Then |computed - exact| ≤ (Π - 1)·G with the majorant
G = Σ_h g_h A_h |X| Σ_δ |C_hδ||M_δ| + |b| (downwards too, since 1 - 1/Π ≤ Π - 1). G itself is
evaluated in float64 on nonnegative numbers; its own relative error, Π - 1 in float64, is far below
the 2⁻²⁰ by which it is inflated.

*Underflow.* Weights do not underflow: where e^(-S)/N leaves the normal numbers there is no bound. A
product in the subnormal range, or an operand there that is read as zero, is off by at most the
smallest normal number, and passes through at most three sums; `underflow_bound` adds that up.

*Back ends.* The count is that of `dense`. It covers `shift` as well where T + 4 ≤ N
(`convattn_ledger.evidence.fast_layers` shows it); `convattn_ledger.bounds.back_ends` covers all
of them.

*Causal masks.* A query sees n ≤ N keys, in G as in the layer. All of the above grows with the
number of keys, and masked terms are zeros, which no sum rounds: the bound with N serves every
query, of `shift` where T(1/ε - 1) ≥ 1 as well, as n ≥ T.

*Assumed.* Nothing overflows: the exact result and the bound stay below the dtype's largest number.
Matrix products are sums of products in the pinned precision (no TF32, no Strassen), which `convattn
audit` measures.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Float

from convattn.bounds.score_error import layer_score_error
from convattn.encodings.layer import AttentionLayer
from convattn.encodings.majorants import ScoreError
from convattn.fast.application import layer_features
from convattn.operators.arrays import accumulation_dtype
from convattn.operators.attention import contraction_lengths, place_single_map
from convattn.operators.roundoff import EXP_ERROR, gamma, unit_roundoff
from convattn.operators.shifts import TokenGrid


def layer_error_bound(
    layer: AttentionLayer,
    images: Any,
    majorant: Float[np.ndarray, "batch *space out_channels"],
    *,
    maps_are_exact: bool = False,
) -> Float[np.ndarray, "batch *space out_channels"]:
    """A bound on |apply_attention(layer, images) - conv(images, kernel, bias)|, entry by entry.

    Args:
        layer: From `conv_to_attention`, exact form, in the dtype under test.
        images: As they are given to `apply_attention`; they count as exact.
        majorant: G, from `majorant_of`.
        maps_are_exact: Whether neither computing nor storing the maps rounded anything.

    Returns:
        float64.
    """
    images = jnp.asarray(images)
    grid = layer.token_grid(images.shape[1:-1])
    result = jnp.result_type(images, layer.dtype or images.dtype)
    working = accumulation_dtype(result)
    scores = layer_score_error(layer, grid)
    exponent = scores.absolute + unit_roundoff(scores.dtype) * (scores.range + 2 * scores.absolute)
    smallest = math.exp(-scores.range - 2 * exponent) / softmax_keys(layer, grid)
    if layer.content is not None:
        raise ValueError("the layer has content scores, but the bound covers positions only")
    if smallest < 2 * float(jnp.finfo(scores.dtype).tiny):
        raise ValueError(
            f"weights as small as {smallest:.1e} underflow in {scores.dtype}: there is no bound; "
            "use a larger leak or a wider dtype"
        )
    relative = relative_error(layer, grid, scores, exponent, working, result, maps_are_exact)
    relative += (1 + relative) * fill_error(layer, images.shape[1:-1], working)
    absolute = underflow_bound(layer, images, grid, working, result, maps_are_exact)
    return relative * majorant * (1 + 2.0**-20) + absolute


def softmax_keys(layer: AttentionLayer, grid: TokenGrid) -> int:
    """The keys over which a row is normalised: the tokens, and the register if there is one."""
    return grid.number_of_keys + (layer.register is not None)


def fill_error(layer: AttentionLayer, image_size: Sequence[int], working: DTypeLike) -> float:
    """How far what fills the ring may be off: for a mean of n pixels γ_(n+1) of the mean of |X|."""
    if layer.padding is None or layer.padding.fill != "MEAN":
        return 0.0
    return gamma(math.prod(image_size) + 1, unit_roundoff(working))


def relative_error(
    layer: AttentionLayer,
    grid: TokenGrid,
    scores: ScoreError,
    exponent: float,
    working: DTypeLike,
    result: DTypeLike,
    maps_are_exact: bool,
) -> float:
    """Π - 1 of the derivation, summed as logarithms: 1 + 2⁻⁵³ would be 1 in float64."""
    u_s, u_a = unit_roundoff(scores.dtype), unit_roundoff(working)
    keys = softmax_keys(layer, grid)
    total = 2 * exponent + 2 * math.atanh(EXP_ERROR * u_s)
    total += math.log1p(2 * u_s) - math.log1p(-gamma(keys, u_s)) + scores.gain
    if not maps_are_exact:
        offsets = len(layer.encoding.offsets)  # type: ignore[attr-defined]
        total += math.log1p(gamma(offsets + 4, u_s))
        total += math.log1p(unit_roundoff(maps_dtype(layer)))
    for length in contraction_lengths(layer.value, layer.output, layer.heads, keys):
        total += math.log1p(gamma(length, u_a))
    return math.expm1(total + math.log1p(u_a) + math.log1p(unit_roundoff(result)))


def underflow_bound(
    layer: AttentionLayer,
    images: Any,
    grid: TokenGrid,
    working: DTypeLike,
    result: DTypeLike,
    maps_are_exact: bool,
) -> float:
    """What products in the subnormal range, subnormal maps and the last cast can add.

    With x, v, o the largest entries of X, W_val and W_out and g the sum of the gains, an entry of
    XW_val is off by f·tiny(1+x)(1+v), one of A_h X W_val by 3·N·f·tiny(1+x)(1+v)(1+g), and the
    result by 5 (and with its roundings by 8) times the product of the lengths and of (1+o) with it.
    """
    keys, tiny = grid.number_of_keys, float(jnp.finfo(working).tiny)
    gains = layer.encoding.head_gains(keys)
    gain = layer.heads if gains is None else 2 * float(gains.sum())
    value, output = place_single_map(layer.value, layer.output)
    largest = float(np.abs(np.asarray(images)).max(initial=0))
    absolute = 8 * tiny * (1 + largest) * (1 + gain)
    absolute *= math.prod(contraction_lengths(value, output, layer.heads, keys))
    for part in (value, output):
        absolute *= 1 + (1.0 if part is None else float(np.abs(np.asarray(part)).max()))
    absolute += tiny + max(tiny, float(jnp.finfo(result).smallest_subnormal))
    if not maps_are_exact:
        stored = max(tiny, float(jnp.finfo(maps_dtype(layer)).smallest_subnormal))
        absolute += stored * gain * (layer_features(layer) or 1) * largest
    return absolute


def maps_dtype(layer: AttentionLayer) -> np.dtype:
    """The dtype in which the value and output maps are stored; the bias may have another."""
    return jnp.result_type(*(part for part in (layer.value, layer.output) if part is not None))
