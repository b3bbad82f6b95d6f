"""Self-attention in exact rational arithmetic, for identities that hold for every base.

exp enters softmax only through e^(s+t) = e^s·e^t, so an identity between softmax weights holds
with any positive base in place of e. With a rational base and integer scores everything is a
fraction. Written apart from the library, in NumPy arrays of Python objects.
"""

from fractions import Fraction

import numpy as np
from jaxtyping import Int, Shaped

BASE = Fraction(3, 2)


def exact_softmax(
    scores: Int[np.ndarray, "queries keys"], base: Fraction = BASE
) -> Shaped[np.ndarray, "queries keys"]:
    """base^s over the sum of its row, as fractions.

    Raises:
        ValueError: For scores that are not integers, or a base that is not above zero.

    >>> exact_softmax(np.array([[0, 1]]), Fraction(2)).tolist()
    [[Fraction(1, 3), Fraction(2, 3)]]
    """
    scores = np.asarray(scores)
    if scores.dtype.kind not in "iu" or base <= 0:
        raise ValueError(
            f"scores.dtype={scores.dtype} and base={base}, but expected integers and a positive "
            "fraction, so that every weight is rational"
        )
    powers = np.array([[base ** int(score) for score in row] for row in scores], object)
    return powers / powers.sum(axis=1, keepdims=True)


def exact_self_attention(
    tokens: Int[np.ndarray, "keys features"],
    scores: Int[np.ndarray, "queries keys"],
    value: Int[np.ndarray, "features out_features"],
    base: Fraction = BASE,
) -> Shaped[np.ndarray, "queries out_features"]:
    """softmax(A) X W_val of C20 eq. 1, with `base` for e.

    >>> tokens, scores = np.array([[0], [3]]), np.array([[0, 1]])
    >>> exact_self_attention(tokens, scores, np.array([[1]]), Fraction(2)).tolist()
    [[Fraction(2, 1)]]
    """
    values = np.asarray(tokens).astype(object) @ np.asarray(value).astype(object)
    return exact_softmax(scores, base) @ values
