"""The mixed product a∘b = Σ_k a_k ⊗ b_k of two families of tensors, and its rank (A19 eq. 1).

**Claim.** rank(a∘b) ≤ Σ_k rank(a_k) rank(b_k), where the rank of a tensor is the least number of
terms in a sum of outer products of vectors.

**Proof.** Write a_k = Σ_r u_kr and b_k = Σ_s v_ks with rank(a_k) and rank(b_k) outer products of
vectors. The outer product is bilinear, so a∘b = Σ_k Σ_r Σ_s u_kr ⊗ v_ks, and u_kr ⊗ v_ks is again
an outer product of vectors, |S| + |T| of them. There are Σ_k rank(a_k) rank(b_k) terms. ∎

`rank_one_terms` writes these terms down. A decomposition is a tuple of matrices, one for each axis
of the tensor: row r of each holds the vectors of term r.

Arrays of Python objects (`fractions.Fraction`, unbounded integers) stay in NumPy, exactly; all
others go through JAX.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from convattn.operators.arrays import accumulation_dtype, as_array

Tensor = Array | np.ndarray


def mixed_product(a: Any, b: Any, *, precision: lax.Precision = lax.Precision.HIGHEST) -> Tensor:
    """a∘b = Σ_k a_k ⊗ b_k.

    Args:
        a: `[K, *S]`.
        b: `[K, *T]`; S and T may be empty. If either is a NumPy array of objects, both are taken as
            such.

    Returns:
        `[*S, *T]`, of dtype `result_type(a, b)`, summed in at least float32.

    Raises:
        ValueError: For families of different lengths.

    Source: A19 eq. 1.

    >>> mixed_product([[1, 0], [0, 1]], [[5, 6, 7], [8, 9, 10]]).tolist()
    [[5, 6, 7], [8, 9, 10]]
    """
    if _holds_objects(a) or _holds_objects(b):
        rows, columns = np.asarray(a, object), np.asarray(b, object)
        _check_lengths(rows.shape, columns.shape)
        return np.tensordot(rows, columns, axes=(0, 0))
    left, right = as_array(a, "a"), as_array(b, "b")
    _check_lengths(left.shape, right.shape)
    result = jnp.result_type(left, right)
    dtype = accumulation_dtype(result)
    product = jnp.tensordot(left.astype(dtype), right.astype(dtype), (0, 0), precision=precision)
    return product.astype(result)


def rank_one_terms(a: Sequence[Sequence[Any]], b: Sequence[Sequence[Any]]) -> tuple[Tensor, ...]:
    """A decomposition of a∘b from one of each a_k and b_k, as in the proof above.

    Args:
        a: For each k the decomposition of a_k, a matrix `[R_k, S_i]` for each axis i.
        b: Likewise `[Q_k, T_j]`.

    Returns:
        For each axis of S, then of T, a matrix of Σ_k R_k Q_k rows.

    Raises:
        ValueError: For families of different lengths or none, and decompositions whose axes do not
            agree.

    Source: A19 Section 1.1.

    >>> a = [([[1], [2]], [[3], [4]])]  # one tensor of shape (1, 1), two terms: 1·3 + 2·4
    >>> b = [([[10]],)]
    >>> [factor.tolist() for factor in rank_one_terms(a, b)]
    [[[1], [2]], [[3], [4]], [[10], [10]]]
    """
    if len(a) != len(b) or not a:
        raise ValueError(
            f"a has {len(a)} decompositions and b {len(b)}, but both should have one for each k, "
            "and at least one"
        )
    joined = []
    for left, right in zip(a, b, strict=True):
        first, second = _factors(left, "a"), _factors(right, "b")
        rows, columns = first[0].shape[0], second[0].shape[0]
        joined.append(
            [factor[np.repeat(np.arange(rows), columns)] for factor in first]
            + [factor[np.tile(np.arange(columns), rows)] for factor in second]
        )
    widths = {tuple(factor.shape[1] for factor in factors) for factors in joined}
    if len(widths) != 1:
        raise ValueError(
            f"the tensors a_k ⊗ b_k have the shapes {sorted(widths)}, but expected one"
        )
    return tuple(_concatenate(axis) for axis in zip(*joined, strict=True))


def sum_of_terms(factors: Sequence[Any]) -> Tensor:
    """The tensor of a decomposition: Σ_r of the outer product of row r of every factor.

    Raises:
        ValueError: For no factors, or factors that differ in their number of rows.

    >>> sum_of_terms(([[1, 0], [0, 1]], [[5, 6], [7, 8]])).tolist()
    [[5, 6], [7, 8]]
    """
    matrices = _factors(factors, "factors")
    partial = matrices[0]
    for factor in matrices[1:]:
        partial = partial[..., None] * factor.reshape(
            factor.shape[0], *[1] * (partial.ndim - 1), factor.shape[1]
        )
    return partial.sum(axis=0)


def _holds_objects(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == object


def _check_lengths(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    if not left or not right or left[0] != right[0]:
        raise ValueError(
            f"a.shape={left} and b.shape={right}, but both should begin with K, the number of terms"
        )


def _factors(decomposition: Sequence[Any], name: str) -> list[Tensor]:
    """The matrices of a decomposition, checked."""
    matrices = [
        factor if _holds_objects(factor) else as_array(factor, name) for factor in decomposition
    ]
    rows = {factor.shape[0] if factor.ndim == 2 else None for factor in matrices}
    if len(rows) != 1 or None in rows:
        raise ValueError(
            f"{name} has factors of shapes {[factor.shape for factor in matrices]}, but expected "
            "one matrix for each axis, all with one row for each term"
        )
    return matrices


def _concatenate(parts: Sequence[Tensor]) -> Tensor:
    if any(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate([np.asarray(part, object) for part in parts])
    return jnp.concatenate(parts)
