"""Scaled dot-product attention: bi-affine attention with Λ of rank at most D (A19 eq. 9).

    Λ_k = Λ_key Λ_queryᵀ / √D,

with Λ_key `[P', D]` and Λ_query `[Q', D]`. Eq. 9 prints no √D: it is part of one of the two
factors there, which changes no set of matrices. These are exactly the Λ of rank at most D, so that
eq. 9 restricts nothing once D ≥ min(P', Q'). It saves parameters iff (P' + Q')D < P'Q'; and as
(Λ_key G, Λ_query G⁻ᵀ) has the same product for every invertible G, D² of the (P' + Q')D are
redundant: these Λ form a set of dimension (P' + Q' - D)D for D ≤ min(P', Q').

With biases, (x'Λ_key + 1⊗c)(y'Λ_query + 1⊗a)ᵀ/√D has all four terms of eq. 8: μ = Λ_key a,
ν = Λ_query c, ξ = c·a, all over √D. The key's bias c is in ν and ξ alone, which the softmax over
the keys does not see.
"""

import math
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from convattn.operators.arrays import accumulation_dtype
from convattn.operators.attention import HIGHEST
from convattn.structures.bi_affine import BiAffine, augmented_matrix


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ScaledDotProduct:
    """The maps of keys and queries of every head.

    Attributes:
        key: Λ_key, `[heads, P', D]`.
        query: Λ_query, `[heads, Q', D]`.
        key_bias, query_bias: c and a, `[heads, D]` or None.
        scaled: Whether to divide by √D.

    Source: A19 eq. 9.
    """

    key: Num[Array, "heads key_features width"]
    query: Num[Array, "heads query_features width"]
    key_bias: Num[Array, "heads width"] | None = None
    query_bias: Num[Array, "heads width"] | None = None
    scaled: bool = field(default=True, metadata={"static": True})


def scaled_dot_product_scores(
    keys: Num[Array, "batch keys key_features"],
    queries: Num[Array, "batch queries query_features"],
    parameters: ScaledDotProduct,
) -> Num[Array, "batch heads keys queries"]:
    """(x'_m Λ_key + c)·(y'_n Λ_query + a) / √D; self-attention where both inputs are the same.

    Returns:
        Scores in at least float32, or integers for integers that are not scaled.

    Raises:
        ValueError: Where the maps take other numbers of features, or differ in heads or D.

    Source: A19 eq. 9 and Section 3.3.

    >>> maps = ScaledDotProduct(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 4)))
    >>> scaled_dot_product_scores(jnp.array([[[3.0]]]), jnp.array([[[5.0]]]), maps).tolist()
    [[[[30.0]]]]
    """
    key, query = parameters.key, parameters.query
    if key.shape[::2] != query.shape[::2]:
        raise ValueError(
            f"key.shape={key.shape} and query.shape={query.shape}, but both should have as many "
            "heads (first axis) and the same width D (last axis)"
        )
    for entries, weight, name in ((keys, key, "keys"), (queries, query, "queries")):
        if entries.shape[-1] != weight.shape[1]:
            raise ValueError(
                f"{name}.shape={entries.shape}, but their map of shape {weight.shape} takes "
                f"{weight.shape[1]} features"
            )
    dtype = accumulation_dtype(keys, queries, key, query)

    def project(entries: Array, weight: Array, bias: Array | None) -> Array:
        operands = entries.astype(dtype), weight.astype(dtype)
        projected = jnp.einsum("btf,hfd->bhtd", *operands, precision=HIGHEST)
        return projected if bias is None else projected + bias.astype(dtype)[:, None, :]

    left = project(keys, key, parameters.key_bias)
    right = project(queries, query, parameters.query_bias)
    scores = jnp.einsum("bhmd,bhnd->bhmn", left, right, precision=HIGHEST)
    return scores / math.sqrt(key.shape[-1]) if parameters.scaled else scores


def as_bi_affine(parameters: ScaledDotProduct) -> BiAffine:
    """The same scores as bi-affine attention: Λ, and with biases μ, ν and ξ.

    Returns:
        Parameters in at least float32; integers stay integers where nothing is scaled.

    Source: A19 eqs. 8 and 9.

    >>> maps = ScaledDotProduct(jnp.array([[[2]]]), jnp.array([[[3]]]), scaled=False)
    >>> as_bi_affine(maps).bilinear.tolist()
    [[[6]]]
    """
    dtype = accumulation_dtype(parameters.key, parameters.query)
    scale = math.sqrt(parameters.key.shape[-1]) if parameters.scaled else None

    def product(formula: str, left: Array | None, right: Array | None) -> Array | None:
        if left is None or right is None:
            return None
        operands = left.astype(dtype), right.astype(dtype)
        result = jnp.einsum(formula, *operands, precision=HIGHEST)
        return result if scale is None else result / scale

    return BiAffine(
        product("hpd,hqd->hpq", parameters.key, parameters.query),
        product("hpd,hd->hp", parameters.key, parameters.query_bias),
        product("hqd,hd->hq", parameters.query, parameters.key_bias),
        product("hd,hd->h", parameters.key_bias, parameters.query_bias),
    )


def as_scaled_dot_product(
    parameters: BiAffine, key_features: int, query_features: int
) -> ScaledDotProduct:
    """Any bi-affine attention as a dot product of width min(P', Q') + 1, without any rounding.

    One side is mapped to itself with a one appended, the other by the augmented matrix of eq. 8.

    >>> from convattn.structures.bi_affine import bi_affine
    >>> maps = as_scaled_dot_product(bi_affine(offset=jnp.array([7])), 3, 1)
    >>> maps.key.shape, maps.query.shape, maps.scaled
    ((1, 3, 2), (1, 1, 2), False)
    """
    whole = augmented_matrix(parameters, key_features, query_features)
    if query_features > key_features:
        whole = whole.swapaxes(1, 2)
    width = whole.shape[2]
    same = jnp.broadcast_to(jnp.eye(width, dtype=whole.dtype), (len(whole), width, width))
    mapped, itself = (whole[:, :-1], whole[:, -1]), (same[:, :-1], same[:, -1])
    keys, queries = (itself, mapped) if query_features > key_features else (mapped, itself)
    return ScaledDotProduct(keys[0], queries[0], keys[1], queries[1], scaled=False)
