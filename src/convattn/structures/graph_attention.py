"""Graph attention networks: masked bi-affine attention without Λ (A19, Section 3.2).

With z = xΘ_k, the scores of head k are μ_k·z_m + ν_k·z_n + ξ_k, masked by the graph, put through a
leaky ReLU and the softmax over the keys; y sums A_kᵀ z over the heads.

The leaky ReLU keeps the mask iff its slope is positive: -∞·slope = -∞. A plain ReLU turns -∞ into
0, which is a score like any other; applied before the mask it would do no harm. Without it, ν and ξ
are redundant, and A_mn ∝ mask_mn·e^(μ·z_m): a graph convolution with weighted nodes. With it, ν
matters, but since it is increasing every query still ranks its keys by μ·z_m.

In the terms of the networks' authors, who write e_ij = LeakyReLU(aᵀ[W h_i ‖ W h_j]) for node i
attending to node j: W = Θᵀ, the first half of a is ν, the second μ, ξ = 0 and slope = 0.2.
"""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Num

from convattn.operators.arrays import accumulation_dtype, as_array, promoted
from convattn.operators.attention import HIGHEST
from convattn.structures.bi_affine import BiAffine, check_parameters
from convattn.structures.masking import Blank, column_softmax, masked_scores

Combination = Literal["sum", "mean", "concatenate"]


def leaky_relu(scores: Num[Array, "*shape"], slope: float) -> Num[Array, "*shape"]:
    """s where s ≥ 0, slope·s elsewhere; -∞ stays -∞.

    Raises:
        ValueError: Unless 0 < slope ≤ 1, as another slope loses the mask.

    Source: A19, Section 3.2 and its footnote 3.

    >>> leaky_relu(jnp.array([-jnp.inf, -5.0, 3.0]), 0.2).tolist()
    [-inf, -1.0, 3.0]
    """
    if not 0 < slope <= 1:
        raise ValueError(
            f"slope={slope}, but expected to lie in (0, 1]: at 0 a masked score of -∞ would become "
            "0 or NaN, below 0 it would become +∞; for a plain ReLU apply it before the mask"
        )
    return jnp.where(scores >= 0, scores, slope * scores)


def graph_attention_matrices(
    mapped: Any,
    mask: Bool[Array | np.ndarray, "nodes nodes"] | Bool[Array | np.ndarray, "batch nodes nodes"],
    parameters: BiAffine,
    *,
    slope: float | None = 0.2,
    blank: Blank = "refuse",
) -> Float[Array, "batch heads nodes nodes"]:
    """A_k, `[keys, queries]`: softmax over the keys of LeakyReLU(μ_k·z_m + ν_k·z_n + ξ_k + H).

    Args:
        mapped: z = xΘ_k for every head, `[batch, heads, nodes, Q]`.
        mask: True at (m, n) where node m may influence node n; usually with self-loops. One graph
            for the whole batch, `[nodes, nodes]`, or one for each of its members; the heads share
            it.
        parameters: μ and ν `[heads, Q]`, ξ `[heads]`; no Λ. See `bi_affine`.
        slope: Of the leaky ReLU; None leaves it out.
        blank: What a node without any neighbour means; see `column_softmax`.

    Raises:
        ValueError: For parameters with Λ, without μ and ν, or of other sizes, and for a mask of
            another shape or of floats.

    Source: A19, Section 3.2; Veličković et al. 2018, eqs. 1 to 3.

    >>> from convattn.structures.bi_affine import bi_affine
    >>> parameters = bi_affine(key_weight=jnp.zeros((1, 1)))
    >>> mask = jnp.array([[True, True], [False, True]])
    >>> graph_attention_matrices(jnp.ones((1, 1, 2, 1)), mask, parameters)[0, 0].tolist()
    [[1.0, 0.5], [0.0, 0.5]]
    """
    mapped, parameters = as_array(mapped, "mapped"), check_parameters(parameters)
    if mapped.ndim != 4:
        raise ValueError(
            f"mapped.shape={mapped.shape}, but expected (batch, heads, nodes, out_channels)"
        )
    mask = _with_head_axis(mask, mapped.shape[0], mapped.shape[2])
    weights = (parameters.key_weight, parameters.query_weight)
    given = [part for part in weights if part is not None]
    if parameters.bilinear is not None or not given:
        raise ValueError(
            "graph attention takes μ (key_weight) and ν (query_weight) and no Λ (bilinear); for "
            "Λ ≠ 0 use bi_affine_scores and column_softmax"
        )
    if any(part.shape != mapped.shape[1::2] for part in given):
        raise ValueError(
            f"key_weight and query_weight have shapes {[part.shape for part in given]}, but "
            f"expected {mapped.shape[1::2]}: heads and channels of x Θ, not of x"
        )
    dtype = promoted(accumulation_dtype(mapped, *given), jnp.float32)
    mapped = mapped.astype(dtype)
    scores = jnp.zeros((*mapped.shape[:3], mapped.shape[2]), dtype)
    for weight, axis in zip(weights, (-1, -2), strict=True):
        if weight is not None:
            term = jnp.einsum("bkmq,kq->bkm", mapped, weight.astype(dtype), precision=HIGHEST)
            scores += jnp.expand_dims(term, axis)
    if parameters.offset is not None:
        scores += parameters.offset.astype(dtype)[:, None, None]
    scores = masked_scores(scores, mask)
    if slope is not None:
        scores = leaky_relu(scores, slope)
    return column_softmax(scores, mask, blank=blank)


def graph_attention(
    x: Any,
    mask: Bool[Array | np.ndarray, "nodes nodes"] | Bool[Array | np.ndarray, "batch nodes nodes"],
    theta: Any,
    parameters: BiAffine,
    *,
    slope: float | None = 0.2,
    combination: Combination = "sum",
    blank: Blank = "refuse",
) -> Num[Array, "batch nodes channels"]:
    """A layer of a graph attention network, before its nonlinearity.

    Arguments are as in `graph_attention_matrices`, and those below.

    Args:
        x: `[batch, nodes, P]`.
        theta: Θ, `[heads, P, Q]`.
        combination: "sum" is A19 eq. 7; "concatenate" (head by head) and "mean" are what the
            networks' authors do in inner and in last layers. Concatenation is the sum too, for Θ_k
            laid into the k-th block of wider zero matrices.

    Raises:
        ValueError: As `graph_attention_matrices`, and for x and Θ that do not fit together.

    Source: A19, Section 3.2; Veličković et al. 2018, eqs. 4 to 6.

    >>> from convattn.structures.bi_affine import bi_affine
    >>> x, mask = jnp.array([[[2.0], [4.0]]]), jnp.ones((2, 2), bool)
    >>> parameters = bi_affine(key_weight=jnp.zeros((1, 1)))
    >>> graph_attention(x, mask, jnp.ones((1, 1, 1)), parameters)[0, :, 0].tolist()
    [3.0, 3.0]
    """
    if combination not in ("sum", "mean", "concatenate"):
        raise ValueError(
            f"combination={combination!r}, but expected 'sum', 'mean' or 'concatenate'"
        )
    x, theta = as_array(x, "x"), as_array(theta, "theta")
    if x.ndim != 3 or theta.ndim != 3 or x.shape[2] != theta.shape[1]:
        raise ValueError(
            f"x.shape={x.shape} and theta.shape={theta.shape}, but expected (batch, nodes, "
            "in_channels) and (heads, in_channels, out_channels); add a batch axis with x[None]"
        )
    dtype = accumulation_dtype(x, theta)
    mapped = jnp.einsum("bmp,kpq->bkmq", x.astype(dtype), theta.astype(dtype), precision=HIGHEST)
    matrices = graph_attention_matrices(mapped, mask, parameters, slope=slope, blank=blank)
    heads = jnp.einsum(
        "bkmn,bkmq->bnkq", matrices, mapped.astype(matrices.dtype), precision=HIGHEST
    )
    if combination == "concatenate":
        batch, nodes, count, channels = heads.shape
        return heads.reshape(batch, nodes, count * channels)  # -1 would divide an empty batch
    return heads.sum(axis=2) if combination == "sum" else heads.mean(axis=2)


def _with_head_axis(mask: Array | np.ndarray, batch: int, nodes: int) -> Array | np.ndarray:
    """As it broadcasts to `[batch, heads, nodes, nodes]`; a concrete mask stays concrete."""
    shape = np.shape(mask)
    if shape == (nodes, nodes):
        return mask
    if shape != (batch, nodes, nodes):
        raise ValueError(
            f"mask.shape={shape}, but expected {(nodes, nodes)}, one graph for the whole batch, "
            f"or {(batch, nodes, nodes)}, one for each of its members; the heads share it"
        )
    return mask[:, None] if isinstance(mask, jax.core.Tracer) else np.asarray(mask)[:, None]


def through_parameter(
    parameters: BiAffine, theta: Num[Array, "heads in_channels out_channels"]
) -> BiAffine:
    """Bi-affine attention on xΘ_k written as bi-affine attention on x.

    (xΘ)Λ(xΘ)ᵀ = x(ΘΛΘᵀ)xᵀ and (xΘ)μ = x(Θμ): so a(xΘ_k, xΘ_k; Ξ_k), which A19 calls a variant of
    self-attention, is self-attention with parameters tied to Θ_k.

    >>> from convattn.structures.bi_affine import bi_affine
    >>> tied = through_parameter(bi_affine(key_weight=jnp.array([[3]])), jnp.array([[[2], [5]]]))
    >>> tied.key_weight.tolist()
    [[6, 15]]
    """

    def pulled(formula: str, part: Array | None, *thetas: Array) -> Array | None:
        if part is None:
            return None
        dtype = accumulation_dtype(part, theta)
        operands = (each.astype(dtype) for each in (part, *thetas))
        return jnp.einsum(formula, *operands, precision=HIGHEST)

    return BiAffine(
        pulled("kqr,kpq,ksr->kps", parameters.bilinear, theta, theta),
        pulled("kq,kpq->kp", parameters.key_weight, theta),
        pulled("kq,kpq->kp", parameters.query_weight, theta),
        parameters.offset,
    )
