"""Graph attention networks: masked bi-affine attention without Λ (A19, Section 3.2).

With z = xΘ_k, the scores of head k are μ_k·z_m + ν_k·z_n + ξ_k, masked by the graph, put through a
leaky ReLU and the softmax over the keys; y sums A_kᵀ z over the heads.

Claim A19.gat says what the leaky ReLU does to the mask and to the terms with ν and ξ.

In the terms of the networks' authors, who write e_ij = LeakyReLU(aᵀ[W h_i ‖ W h_j]) for node i
attending to node j: W = Θᵀ, the first half of a is ν, the second μ, ξ = 0 and slope = 0.2. They
concatenate the heads in inner layers, which is the sum too, for Θ_k laid into the k-th block of
wider zero matrices.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Num

from convattn.operators.arrays import accumulation_dtype, as_array
from convattn.operators.attention import HIGHEST
from convattn_ledger.structures.attention_convolution import self_attention_convolution
from convattn_ledger.structures.bi_affine import BiAffine, bi_affine_scores
from convattn_ledger.structures.masking import Blank, column_softmax, masked_scores


def leaky_relu(scores: Num[Array, "*shape"], slope: float) -> Num[Array, "*shape"]:
    """s where s ≥ 0, slope·s elsewhere; -∞ stays -∞.

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


def through_parameter(
    parameters: BiAffine, theta: Num[Array, "heads in_channels out_channels"]
) -> BiAffine:
    """Bi-affine attention on xΘ_k written as bi-affine attention on x.

    (xΘ)Λ(xΘ)ᵀ = x(ΘΛΘᵀ)xᵀ and (xΘ)μ = x(Θμ): so a(xΘ_k, xΘ_k; Ξ_k), which A19 calls a variant of
    self-attention, is self-attention with parameters tied to Θ_k.

    >>> from convattn_ledger.structures.bi_affine import bi_affine
    >>> tied = through_parameter(bi_affine(key_weight=jnp.array([[3]])), jnp.array([[[2], [5]]]))
    >>> tied.key_weight.tolist()
    [[6, 15]]
    """

    def tied(formula: str, part: Array | None, *thetas: Array) -> Array | None:
        if part is None:
            return None
        dtype = accumulation_dtype(part, theta)
        operands = (each.astype(dtype) for each in (part, *thetas))
        return jnp.einsum(formula, *operands, precision=HIGHEST)

    return BiAffine(
        tied("kqr,kpq,ksr->kps", parameters.bilinear, theta, theta),
        tied("kq,kpq->kp", parameters.key_weight, theta),
        tied("kq,kpq->kp", parameters.query_weight, theta),
        parameters.offset,
    )


def graph_attention(
    x: Any,
    mask: Bool[Array | np.ndarray, "nodes nodes"],
    theta: Any,
    parameters: BiAffine,
    *,
    slope: float = 0.2,
    blank: Blank = "refuse",
) -> Num[Array, "batch nodes out_channels"]:
    """A layer of a graph attention network, before its nonlinearity.

    It is the self-attention convolution whose mechanism is the softmax over the keys of
    LeakyReLU(μ_k·z_m + ν_k·z_n + ξ_k + H), with parameters tied to Θ_k by `through_parameter`.

    Args:
        x: `[batch, nodes, P]`.
        mask: True at (m, n) where node m may influence node n; usually with self-loops. The batch
            and the heads share it.
        theta: Θ, `[heads, P, Q]`.
        parameters: μ and ν `[heads, Q]`, ξ `[heads]`. See `bi_affine`.
        slope: Of the leaky ReLU.
        blank: What a node without any neighbour means; see `column_softmax`.

    Source: A19, Section 3.2; Veličković et al. 2018, eqs. 1 to 4.

    >>> from convattn_ledger.structures.bi_affine import bi_affine
    >>> equal = bi_affine(key_weight=jnp.zeros((1, 1)))
    >>> mask = jnp.array([[True, True], [False, True]])
    >>> graph_attention([[[2.0], [4.0]]], mask, [[[1.0]]], equal).tolist()
    [[[2.0], [3.0]]]
    """
    tied = through_parameter(parameters, as_array(theta, "theta"))

    def mechanism(keys: Array, queries: Array) -> Array:
        scores = masked_scores(bi_affine_scores(keys, queries, tied), mask)
        return column_softmax(leaky_relu(scores, slope), mask, blank=blank)

    return self_attention_convolution(x, mechanism, theta)
