"""Bi-affine attention: a score that is affine in the key and affine in the query (A19 eq. 8).

For every head, with keys x' `[M, P']` and queries y' `[N, Q']`,

    A = x' Λ y'ᵀ + (x'μ) ⊗ 1_N + 1_M ⊗ (y'ν) + ξ 1_M ⊗ 1_N,

which is one bilinear form of the rows with a one appended,

    A_mn = (x'_m, 1) [[Λ, μ], [νᵀ, ξ]] (y'_n, 1)ᵀ.

Claim A19.biaffine has its rank, and the terms that a softmax does not see.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from convattn.operators.arrays import accumulation_dtype, as_array
from convattn.operators.attention import HIGHEST

AXES = {
    "bilinear": ("heads", "key_features", "query_features"),
    "key_weight": ("heads", "key_features"),
    "query_weight": ("heads", "query_features"),
    "offset": ("heads",),
}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BiAffine:
    """Ξ = ⟨ξ, μ, ν, Λ⟩ of every head; None is zero and costs nothing. `bi_affine` checks.

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
    offset: Num[Array, " heads"] | None = None


def bi_affine(
    bilinear: Any = None, key_weight: Any = None, query_weight: Any = None, offset: Any = None
) -> BiAffine:
    """The parameters of bi-affine attention, checked against one another.

    Arguments are the fields of `BiAffine`; at least one of them.

    >>> bi_affine(bilinear=jnp.ones((2, 3, 4)), key_weight=jnp.ones((2, 3))).key_weight.shape
    (2, 3)
    """
    values = zip(AXES, (bilinear, key_weight, query_weight, offset), strict=True)
    terms = {name: as_array(value, name) for name, value in values if value is not None}
    if not terms:
        raise ValueError(
            "bi_affine was given no parameter, but expected at least one of "
            f"{', '.join(AXES)}; for equal scores pass offset=zeros(heads)"
        )
    sizes: dict[str, int] = {}
    for name, array in terms.items():
        expected = ", ".join(f"{axis}={sizes.get(axis, 'any')}" for axis in AXES[name])
        if array.ndim != len(AXES[name]) or any(
            sizes.setdefault(axis, size) != size
            for axis, size in zip(AXES[name], array.shape, strict=True)
        ):
            raise ValueError(
                f"{name}.shape={array.shape}, but expected ({expected}); a single head needs a "
                "leading axis of length one"
            )
    return BiAffine(**terms)


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

    Source: A19 eq. 8.

    >>> xi = bi_affine(jnp.array([[[2]]]), jnp.array([[10]]), jnp.array([[100]]), jnp.array([1000]))
    >>> bi_affine_scores(jnp.array([[[1], [2]]]), jnp.array([[[3]]]), xi)[0, 0].tolist()
    [[1316], [1332]]
    """
    terms = jax.tree.leaves(parameters)
    dtype = accumulation_dtype(keys, queries, *terms)

    def product(formula: str, *factors: Array) -> Array:
        return jnp.einsum(formula, *(array.astype(dtype) for array in factors), precision=HIGHEST)

    scores = jnp.zeros((len(keys), len(terms[0]), keys.shape[1], queries.shape[1]), dtype)
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
