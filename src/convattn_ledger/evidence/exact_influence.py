"""Attention convolutions in exact rational arithmetic, with matrices `[keys, queries]`.

As in `exact_attention`, a positive rational base stands for e, so that integer scores give rational
weights. Written apart from the library, in NumPy arrays of Python objects.
"""

from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Int, Shaped

from convattn_ledger.evidence.exact_attention import BASE


def exact_column_softmax(
    scores: Int[np.ndarray, "keys queries"],
    mask: Bool[np.ndarray, "keys queries"] | None = None,
    base: Fraction = BASE,
) -> Shaped[np.ndarray, "keys queries"]:
    """base^s, zero where masked, over the sum of its column, as fractions.

    Raises:
        ZeroDivisionError: For a column that is masked everywhere: 0/0.

    >>> scores, mask = np.array([[0], [1], [5]]), np.array([[True], [True], [False]])
    >>> [str(weight) for weight in exact_column_softmax(scores, mask, Fraction(2)).ravel()]
    ['1/3', '2/3', '0']
    """
    powers = np.array([[base ** int(score) for score in row] for row in scores], object)
    if mask is not None:
        powers = powers * mask
    return powers / (powers.sum(axis=0, keepdims=True) + Fraction(0))


def exact_influence_convolution(
    matrices: Shaped[np.ndarray, "size keys queries"],
    x: Shaped[np.ndarray, "keys in_channels"],
    theta: Shaped[np.ndarray, "size in_channels out_channels"],
) -> Shaped[np.ndarray, "queries out_channels"]:
    """Σ_k A_kᵀ x Θ_k in Python's numbers (A19 eq. 4).

    >>> matrices = np.array([[[0, 1], [1, 0]]])
    >>> exact_influence_convolution(matrices, np.array([[1], [2]]), np.array([[[10]]])).tolist()
    [[20], [10]]
    """
    x = np.asarray(x).astype(object)
    terms = [
        np.asarray(matrix).astype(object).T @ x @ np.asarray(parameter).astype(object)
        for matrix, parameter in zip(matrices, theta, strict=True)
    ]
    return np.sum(terms, axis=0)
