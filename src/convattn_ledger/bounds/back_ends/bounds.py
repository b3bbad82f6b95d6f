"""How far any back end's result, and any of its gradients, can be from the exact ones.

One a priori bound holds for dense, separable, shift, chunked and dot_product alike, and for
windowed where its windows leave nothing out. So two back ends differ by at most the sum of the
bounds for the dtypes in which they ran.

*Majorants.* Let B and ΔB bound the weights and their errors (`weight_rounding`), g⁺ the gains, and
bars be absolute values. Values, and the gradients of tokens and maps, are sums of products that are
linear in the weights. So they are bounded by the same sums of magnitudes,

    G = Σ_h g⁺_h B_h |X||V_h||O_h|,   and the transposes of its derivatives at |Y'|,

Y' the cotangent. Their error has two parts: the same sum with ΔB in place of B, and the roundings
of sums and products, e^ρ - 1 times the sum with B + ΔB. With dA = Σ_b g⁺_h |Y'||O_h|ᵀ|V_h|ᵀ|X|ᵀ,
which is what reaches the weights, softmax passes back at most

    D_k = B_k (dA_k + R),                          R = Σ_j B_j dA_j,
    ΔD_k = ΔB_k (dA_k + R + ΔR) + B_k ΔR,          ΔR = Σ_j ΔB_j dA_j,

off by ΔD and by e^ρ - 1 times D + ΔD. A back end that writes a row as c everywhere and A - c at a
few keys passes back through c as well, at most c(2 Σ dA + N R). Scores pass this on to the
parameters (`scores.py`), gains their own cotangent.

*Roundings.* ρ = γ_n and the error of the gain. n counts what lies on the longest path, whatever the
order in which maps, keys, heads and axes are summed. With F, V, O the widths of tokens, values and
results, H heads, N keys, Q queries, T entries, batch b and n_s of `score_roundings`:

- values: H(F + V + N + T) + V + 32, which a fused map and a sum over heads and keys at once need;
- tokens and maps: H(Q + O) + b(Q + N) more;
- parameters of scores and gains: bQ(N + F + V + O) + 2(N + T + n_s) + 64 more, for sums over
  images, queries and keys at once; and bHQN more where content scores have tables, which all
  heads share.

Then come the bias, and the cast to the dtype of the result or of the parameter. A parameter that is
narrower than the sums and used several times gathers its cotangents in its own dtype: Q + T + H +
16 roundings there. u is that of the least precise dtype in which anything is computed, float32 at
the least.

*Assumed.* exp, log and log1p are within four units in the last place; products are taken at the
highest precision, as sums of products in any order; nothing overflows; the parameters of one
encoding have one dtype. Sinusoids in float64 count as exact. A product that underflows is off by
less than the smallest normal number, and all of them together by less than `underflow` adds up:
that number times the lengths of all sums and the magnitudes that can multiply it.
"""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float, Num

from convattn.encodings.layer import AttentionLayer
from convattn.operators.arrays import promoted
from convattn.operators.patches import patchify, unpatchify
from convattn.operators.roundoff import gamma, unit_roundoff
from convattn.operators.shifts import TokenGrid
from convattn_ledger.bounds.back_ends.paths import (
    Roundings,
    count_roundings,
    gradient_majorants,
    value_majorants,
)
from convattn_ledger.bounds.saturation_error import require_zero_ring

INFLATION = 1 + 2.0**-20  # the majorants are evaluated in float64, which rounds as well


def value_bound(
    layer: AttentionLayer,
    images: Any,
    *,
    border: str = "zeros",
    dtype: DTypeLike | None = None,
) -> Float[np.ndarray, "batch *out_space out_channels"]:
    """A bound on |apply_attention(layer, images) - exact|, entry by entry, for any back end.

    Args:
        layer, images: Concrete; their numbers count as exact.
        border: As in `apply_attention`.
        dtype: Of the layer and the images under test; None takes what they are.

    Returns:
        float64.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention(jnp.ones((3, 1, 1)))
    >>> bool((value_bound(layer, jnp.ones((1, 5, 1))) < 1e-4).all())
    True
    """
    layer, images = _in_dtype(layer, images, dtype)
    grid, roundings = prepare(layer, images, border)
    result = jnp.result_type(images, *([] if layer.dtype is None else [layer.dtype]))
    last = 2 * (gamma(1, roundings.unit) + gamma(1, unit_roundoff(_at_least_float(result))))
    floor = subnormal(result, roundings)
    with jax.enable_x64(True):
        return np.asarray(evaluate_values(wide(layer), wide(images), grid, roundings, last, floor))


def gradient_bounds(
    layer: AttentionLayer,
    images: Any,
    cotangent: Num[Array, "batch *out_space out_channels"],
    *,
    border: str = "zeros",
    dtype: DTypeLike | None = None,
) -> tuple[AttentionLayer, Float[Array, "batch *space channels"]]:
    """Bounds on the errors of the gradients of Σ cotangent · apply_attention(layer, images).

    Args:
        Those of `value_bound`, and
        cotangent: Of the shape of the result; its numbers count as exact.

    Returns:
        A tree like `(layer, images)`, of float64.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention(jnp.ones((3, 1, 1)))
    >>> of_layer, of_images = gradient_bounds(layer, jnp.ones((1, 5, 1)), jnp.ones((1, 5, 1)))
    >>> of_layer.output.shape, of_images.shape
    ((4, 1, 1), (1, 5, 1))
    """
    layer, images = _in_dtype(layer, images, dtype)
    grid, roundings = prepare(layer, images, border)
    entries = len(getattr(layer.encoding, "offsets", ()))
    uses = math.prod(grid.queries) + entries + layer.heads + 16
    both = layer, images
    last = jax.tree.map(lambda leaf: gamma(uses, unit_roundoff(_at_least_float(leaf.dtype))), both)
    floor = jax.tree.map(lambda leaf: uses * subnormal(leaf.dtype, roundings), both)
    with jax.enable_x64(True):
        primals = *wide(both), wide(cotangent)
        return _evaluate_gradients(*primals, grid, roundings, last, floor)


@partial(jax.jit, static_argnames="grid")
def evaluate_values(
    layer: AttentionLayer,
    images: Float[Array, "batch *space channels"],
    grid: TokenGrid,
    roundings: Roundings,
    last: float | Array,
    floor: float | Array,
) -> Float[Array, "batch *out_space out_channels"]:
    """The bound, `last` being the error of bias and cast, and `floor` what the cast loses."""
    tokens = patchify(images, layer.patch_size)
    pair, underflow = value_majorants(layer, tokens, grid, roundings)
    majorant, error = (array.reshape(*tokens.shape[:-1], -1) for array in pair)
    largest = majorant
    if layer.bias is not None:
        largest += jnp.broadcast_to(jnp.abs(layer.bias), majorant.shape)
    bound = error + underflow
    return to_images(INFLATION * (bound + last * (largest + bound)) + floor, layer)


@partial(jax.jit, static_argnames="grid")
def _evaluate_gradients(
    layer: AttentionLayer,
    images: Float[Array, "batch *space channels"],
    cotangent: Float[Array, "batch *out_space out_channels"],
    grid: TokenGrid,
    roundings: Roundings,
    last: tuple[AttentionLayer, float | Array],
    floor: tuple[AttentionLayer, float | Array],
) -> tuple[AttentionLayer, Float[Array, "batch *space channels"]]:
    """The bounds, `last` and `floor` being those of each leaf."""
    tokens = patchify(images, layer.patch_size)
    into = _token_cotangent(jnp.abs(cotangent), layer, grid)
    (majorants, errors), underflow = gradient_majorants(layer, tokens, into, grid, roundings)

    def bound(majorant: Array, error: Array, last: float | Array, floor: float | Array) -> Array:
        total = error + underflow
        return INFLATION * (total + last * (majorant + total)) + floor

    of_layer, of_tokens = jax.tree.map(bound, majorants, errors, last, floor)
    return of_layer, unpatchify(of_tokens, layer.patch_size)


def _in_dtype(
    layer: AttentionLayer, images: Any, dtype: DTypeLike | None
) -> tuple[AttentionLayer, Array]:
    """Both, cast to the dtype unless it is None; integer images stay as they are."""
    images = jnp.asarray(images)
    if dtype is None:
        return layer, images
    if jnp.issubdtype(images.dtype, jnp.inexact):
        images = images.astype(dtype)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), layer), images


def wide(tree: Any) -> Any:
    """Every array in float64."""
    return jax.tree.map(lambda leaf: np.asarray(leaf).astype(np.float64), tree)


def prepare(layer: AttentionLayer, images: Array, border: str) -> tuple[TokenGrid, Roundings]:
    """The grid, and what is rounded."""
    require_zero_ring(layer)
    grid = layer.token_grid(images.shape[1:-1], border)
    dtypes = {images.dtype, *(leaf.dtype for leaf in jax.tree.leaves(layer))}
    computed = {promoted(dtype, jnp.float32) for dtype in dtypes}
    unit = max(unit_roundoff(dtype) for dtype in computed)
    tiny = max(float(jnp.finfo(dtype).tiny) for dtype in computed)
    features = images.shape[-1] * math.prod(layer.patch_size)
    return grid, count_roundings(layer, grid, images.shape[0], features, unit, tiny)


def to_images(
    tokens: Float[Array, "batch *grid features"], layer: AttentionLayer
) -> Float[Array, "batch *space channels"]:
    """The images that a layer makes of the tokens of its result."""
    images = unpatchify(tokens, layer.output_patch_size)
    return images[(slice(None), *(slice(None, None, step) for step in layer.subsampling))]


def _token_cotangent(
    cotangent: Float[Array, "batch *out_space out_channels"], layer: AttentionLayer, grid: TokenGrid
) -> Float[Array, "batch queries out_features"]:
    """The cotangents of the tokens, zero where the stride leaves a pixel out."""
    features = cotangent.shape[-1] * math.prod(layer.output_patch_size)
    shape = (cotangent.shape[0], *grid.queries, features)
    transposed = jax.vjp(lambda tokens: to_images(tokens, layer), jnp.zeros(shape))[1]
    (into,) = transposed(cotangent)
    return into.reshape(shape[0], -1, features)


def _at_least_float(dtype: DTypeLike) -> np.dtype:
    """The dtype, or float32 for integers."""
    return jnp.dtype(dtype if jnp.issubdtype(dtype, jnp.inexact) else jnp.float32)


def subnormal(dtype: DTypeLike, roundings: Roundings) -> float:
    """What the cast to a dtype loses below its normal numbers."""
    return max(float(jnp.finfo(_at_least_float(dtype)).smallest_subnormal), roundings.tiny)
