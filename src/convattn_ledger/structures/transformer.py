"""The Transformer's layer as A19's attention convolution (A19 eqs. 7, 9 and 10).

Its scores are those of eq. 8 with Λ of rank at most D (eq. 9),

    Λ_k = Λ_key Λ_queryᵀ / √D,

with Λ_key `[P', D]` and Λ_query `[Q', D]`. Eq. 9 prints no √D: it is part of one of the two
factors there, which changes no set of matrices. With biases, (x'Λ_key + 1⊗c)(y'Λ_query + 1⊗a)ᵀ/√D
has all four terms of eq. 8: μ = Λ_key a, ν = Λ_query c, ξ = c·a, all over √D. The key's bias c is
in ν and ξ alone, which the softmax over the keys does not see.

The heads are concatenated and mapped: with Θ_O `[Q, K·D]` cut into blocks `[Q, D]`,

    [h_1, …, h_K] Θ_Oᵀ = Σ_k h_k Θ_O,kᵀ = Σ_k A_kᵀ x (Θ_value,k Θ_O,kᵀ),

which is eq. 7 with Θ_k = Θ_value,k Θ_O,kᵀ (eq. 10): exactly the Θ_k of rank at most D.

`ContentScores` holds Λ_query, Λ_key, a and c; its scores, and the weights of
`convattn.operators.attention`, are `[heads, queries, keys]`: the transposes of A19's A_k.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Num

from convattn.encodings.layer import ContentScores
from convattn.operators.arrays import accumulation_dtype
from convattn.operators.attention import HIGHEST
from convattn_ledger.structures.attention_convolution import Mechanism, softmax_mechanism
from convattn_ledger.structures.bi_affine import BiAffine


class AttentionConvolution(NamedTuple):
    """What `self_attention_convolution` takes."""

    mechanism: Mechanism
    theta: Array


def as_bi_affine(content: ContentScores) -> BiAffine:
    """The scores of a layer as bi-affine attention: Λ, and with biases μ, ν and ξ.

    Returns:
        Parameters in at least float32; integers stay integers where nothing is scaled.

    Source: A19 eqs. 8 and 9.

    >>> query, key = jnp.array([[[3]]]), jnp.array([[[2]]])
    >>> as_bi_affine(ContentScores(query, key, scaled=False)).bilinear.tolist()
    [[[6]]]
    """
    key, query = content.key, content.query
    dtype = accumulation_dtype(key, query)

    def product(formula: str, left: Array | None, right: Array | None) -> Array | None:
        if left is None or right is None:
            return None
        operands = left.astype(dtype), right.astype(dtype)
        result = jnp.einsum(formula, *operands, precision=HIGHEST)
        return result / math.sqrt(key.shape[-1]) if content.scaled else result

    return BiAffine(
        product("hpd,hqd->hpq", key, query),
        product("hpd,hd->hp", key, content.query_bias),
        product("hqd,hd->hq", query, content.key_bias),
        product("hd,hd->h", content.key_bias, content.query_bias),
    )


def parameter_from_maps(
    value: Num[Array, "heads in_channels width"], output: Num[Array, "heads width out_channels"]
) -> Num[Array, "heads in_channels out_channels"]:
    """Θ_k = Θ_value,k Θ_O,kᵀ, from Θ_value and the transposed blocks of Θ_O.

    Source: A19 eq. 10.

    >>> parameter_from_maps(jnp.array([[[1], [2]]]), jnp.array([[[10, 100]]])).tolist()
    [[[10, 100], [20, 200]]]
    """
    dtype = accumulation_dtype(value, output)
    return jnp.matmul(value.astype(dtype), output.astype(dtype), precision=HIGHEST)


def as_attention_convolution(
    content: ContentScores,
    value: Num[Array, "heads in_channels width"],
    output: Num[Array, "heads width out_channels"],
    mask: Bool[Array | np.ndarray, "keys queries"] | None = None,
) -> AttentionConvolution:
    """A Transformer layer as mechanism and parameter of a self-attention convolution.

    Args:
        content, value, output: As the layer has them.
        mask: As in `column_softmax`, keys first.

    Source: A19 eqs. 7, 9 and 10.

    >>> content = ContentScores(jnp.zeros((1, 2, 3)), jnp.zeros((1, 2, 3)))
    >>> as_attention_convolution(content, jnp.ones((1, 2, 4)), jnp.ones((1, 4, 5))).theta.shape
    (1, 2, 5)
    """
    if content.tables is not None:
        raise ValueError(
            "content.tables is not None, but the scores of A19 eq. 9 depend on what keys and "
            "queries hold alone; take the tables away, or put positions into the tokens"
        )
    mechanism = softmax_mechanism(
        lambda keys, queries: content.scores(queries, keys).swapaxes(-2, -1), mask
    )
    return AttentionConvolution(mechanism, parameter_from_maps(value, output))
