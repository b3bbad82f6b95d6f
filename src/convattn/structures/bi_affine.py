"""Bi-affine attention: a score that is affine in the key and affine in the query (A19 eq. 8).

For every head, with keys x' `[M, P']` and queries y' `[N, Q']`,

    A = x' Λ y'ᵀ + (x'μ) ⊗ 1_N + 1_M ⊗ (y'ν) + ξ 1_M ⊗ 1_N,

which is one bilinear form of the rows with a one appended,

    A_mn = (x'_m, 1) [[Λ, μ], [νᵀ, ξ]] (y'_n, 1)ᵀ.

So the rank of A is at most that of this (P'+1) × (Q'+1) matrix, whatever M and N, and Ξ is
determined by the scores as soon as the rows (x'_m, 1) span R^(P'+1) and the (y'_n, 1) R^(Q'+1).
The term with ν is constant along each column and the one with ξ everywhere: the softmax over the
keys sees neither. Under the softmax over the queries μ and ξ vanish instead.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from convattn.operators.arrays import accumulation_dtype, as_array
from convattn.operators.attention import HIGHEST


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BiAffine:
    """Ξ = ⟨ξ, μ, ν, Λ⟩ of every head; None is zero and costs nothing.

    `bi_affine` checks what it is given.

    Attributes:
        bilinear: Λ, `[heads, P', Q']`.
        key_weight: μ, `[heads, P']`.
        query_weight: ν, `[heads, Q']`.
        offset: ξ, `[heads]`.

    Source: A19 Definition 5.
    """

    bilinear: Num[Array, "heads key_features query_features"] | None = None
    key_weight: Num[Array, "heads key_features"] | None = None
    query_weight: Num[Array, "heads query_features"] | None = None
    offset: Num[Array, "heads"] | None = None


def bi_affine(
    bilinear: Any = None, key_weight: Any = None, query_weight: Any = None, offset: Any = None
) -> BiAffine:
    """The parameters of bi-affine attention, checked against one another.

    Arguments are the fields of `BiAffine`; at least one of them.

    Raises:
        ValueError: Where nothing is given, or the shapes do not fit together.

    >>> bi_affine(bilinear=jnp.ones((2, 3, 4)), key_weight=jnp.ones((2, 3))).key_weight.shape
    (2, 3)
    """
    given = {
        name: as_array(value, name)
        for name, value in (
            ("bilinear", bilinear),
            ("key_weight", key_weight),
            ("query_weight", query_weight),
            ("offset", offset),
        )
        if value is not None
    }
    axes = {
        "bilinear": ("heads", "key_features", "query_features"),
        "key_weight": ("heads", "key_features"),
        "query_weight": ("heads", "query_features"),
        "offset": ("heads",),
    }
    if not given:
        raise ValueError(
            "bi_affine was given no parameter, but expected at least one of "
            f"{', '.join(axes)}; for equal scores pass offset=zeros(heads)"
        )
    sizes: dict[str, int] = {}
    for name, array in given.items():
        expected = ", ".join(f"{axis}={sizes.get(axis, 'any')}" for axis in axes[name])
        fits = array.ndim == len(axes[name]) and all(
            sizes.setdefault(axis, size) == size
            for axis, size in zip(axes[name], array.shape, strict=True)
        )
        if not fits:
            raise ValueError(
                f"{name}.shape={array.shape}, but expected ({expected}); a single head needs a "
                "leading axis of length one"
            )
    return BiAffine(**given)


def bi_affine_scores(
    keys: Num[Array, "batch keys key_features"],
    queries: Num[Array, "batch queries query_features"],
    parameters: BiAffine,
) -> Num[Array, "batch heads keys queries"]:
    """A(x', y'; Ξ)_mn = Σ_pq Λ_pq x'_mp y'_nq + Σ_p μ_p x'_mp + Σ_q ν_q y'_nq + ξ, for every head.

    Args:
        keys, queries: x' and y'.
        parameters: From `bi_affine`.

    Returns:
        Scores in at least float32, or integers for integers.

    Raises:
        ValueError: Where Ξ was made for other numbers of features, is empty, or its terms do not
            fit together.

    Source: A19 eq. 8.

    >>> xi = bi_affine(jnp.array([[[2]]]), jnp.array([[10]]), jnp.array([[100]]), jnp.array([1000]))
    >>> bi_affine_scores(jnp.array([[[1], [2]]]), jnp.array([[[3]]]), xi)[0, 0].tolist()
    [[1316], [1332]]
    """
    terms = [part for part in jax.tree.leaves(parameters) if part is not None]
    if not terms:
        raise ValueError("parameters has no term, but expected at least one; see bi_affine")
    check_parameters(parameters)
    check_features(keys, parameters.bilinear, parameters.key_weight, 1, "keys")
    check_features(queries, parameters.bilinear, parameters.query_weight, 2, "queries")
    dtype = accumulation_dtype(keys, queries, *terms)
    keys, queries = keys.astype(dtype), queries.astype(dtype)

    def product(formula: str, *factors: Array) -> Array:
        factors = tuple(factor.astype(dtype) for factor in factors)
        return jnp.einsum(formula, *factors, precision=HIGHEST)

    shape = (keys.shape[0], terms[0].shape[0], keys.shape[1], queries.shape[1])
    scores = jnp.zeros(shape, dtype)
    if parameters.bilinear is not None:
        projected = product("bmp,hpq->bhmq", keys, parameters.bilinear)
        scores = product("bhmq,bnq->bhmn", projected, queries)
    if parameters.key_weight is not None:
        scores += product("bmp,hp->bhm", keys, parameters.key_weight)[..., :, None]
    if parameters.query_weight is not None:
        scores += product("bnq,hq->bhn", queries, parameters.query_weight)[..., None, :]
    if parameters.offset is not None:
        scores += parameters.offset.astype(dtype)[:, None, None]
    return scores


def check_parameters(parameters: BiAffine) -> BiAffine:
    """A `BiAffine` that was put together without `bi_affine`, checked as `bi_affine` does.

    Raises:
        ValueError: As `bi_affine`.

    >>> check_parameters(BiAffine(offset=jnp.zeros(2))).offset.shape
    (2,)
    """
    return bi_affine(
        parameters.bilinear, parameters.key_weight, parameters.query_weight, parameters.offset
    )


def check_features(
    entries: Array, bilinear: Array | None, weight: Array | None, axis: int, name: str
) -> None:
    """Whether x' or y' has the number of features that Ξ was made for.

    Raises:
        ValueError: With both numbers.
    """
    for part, where in ((bilinear, axis), (weight, 1)):
        if part is not None and part.shape[where] != entries.shape[-1]:
            raise ValueError(
                f"{name}.shape={entries.shape}, but the parameters have shape {part.shape} and "
                f"take {part.shape[where]} features of the {name}; keys come first in bi-affine "
                "attention, then queries"
            )


def augmented_matrix(
    parameters: BiAffine, key_features: int, query_features: int
) -> Num[Array, "heads key_features_and_one query_features_and_one"]:
    """[[Λ, μ], [νᵀ, ξ]]: eq. 8 as a bilinear form of rows with a one appended.

    >>> augmented_matrix(bi_affine(offset=jnp.array([7])), 1, 2)[0].tolist()
    [[0, 0, 0], [0, 0, 7]]
    """
    terms = jax.tree.leaves(check_parameters(parameters))
    dtype = jnp.result_type(*terms)
    whole = jnp.zeros((terms[0].shape[0], key_features + 1, query_features + 1), dtype)
    if parameters.bilinear is not None:
        whole = whole.at[:, :-1, :-1].set(parameters.bilinear.astype(dtype))
    if parameters.key_weight is not None:
        whole = whole.at[:, :-1, -1].set(parameters.key_weight.astype(dtype))
    if parameters.query_weight is not None:
        whole = whole.at[:, -1, :-1].set(parameters.query_weight.astype(dtype))
    if parameters.offset is not None:
        whole = whole.at[:, -1, -1].set(parameters.offset.astype(dtype))
    return whole
