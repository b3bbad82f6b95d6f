"""How near a map comes to the truth: mass inside the field, and rank correlation."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import rankdata

TIES = 1e-5  # of the largest number of a map: what is nearer counts as equal


@dataclass(frozen=True, eq=False)
class Scores:
    """Of one method, an entry a case; NaN where a number is not defined.

    Attributes:
        inside: The fraction of the map inside the field; NaN for a map of zeros, and for a field
            of all tokens.
        jacobian: Spearman's correlation with the exact derivatives' absolute values.
        product: The same with those of derivative × input.
        blank: Whether the map is of zeros.
    """

    inside: Float[np.ndarray, " cases"]
    jacobian: Float[np.ndarray, " cases"]
    product: Float[np.ndarray, " cases"]
    blank: Bool[np.ndarray, " cases"]


def score(
    maps: Float[np.ndarray, "cases tokens"],
    field: Bool[np.ndarray, "cases tokens"],
    jacobian: Float[np.ndarray, "cases tokens"],
    product: Float[np.ndarray, "cases tokens"],
) -> Scores:
    """Compare nonnegative maps with the truth.

    Raises:
        ValueError: If a map has a number that is negative or not finite.
    """
    if not (np.isfinite(maps).all() and (maps >= 0).all()):
        raise ValueError("a map holds negative numbers, or NaN; expected absolute values")
    inside = np.where(field.all(axis=1), np.nan, fraction_inside(maps, field))
    blank = np.logical_not(maps.any(axis=1))
    return Scores(inside, rank_correlation(maps, jacobian), rank_correlation(maps, product), blank)


def fraction_inside(
    maps: Float[np.ndarray, "cases tokens"], field: Bool[np.ndarray, "cases tokens"]
) -> Float[np.ndarray, " cases"]:
    """The fraction of each map inside the field; NaN for a map of zeros.

    >>> fraction_inside(np.array([[1.0, 2.0, 1.0]]), np.array([[True, True, False]])).tolist()
    [0.75]
    """
    with np.errstate(invalid="ignore"):
        return np.where(field, maps, 0).sum(axis=1) / maps.sum(axis=1)


def rank_correlation(
    maps: Float[np.ndarray, "cases tokens"], truth: Float[np.ndarray, "cases tokens"]
) -> Float[np.ndarray, " cases"]:
    """Spearman's, ties at their mean rank; 0 for a constant map, NaN for a constant truth.

    >>> rank_correlation(np.array([[1.0, 2.0, 9.0]]), np.array([[0.0, 1.0, 2.0]])).round(6).tolist()
    [1.0]
    """
    first, second = (_centred_ranks(each) for each in (maps, truth))
    scales = np.linalg.norm(first, axis=1), np.linalg.norm(second, axis=1)
    product = scales[0] * scales[1]
    correlation = (first * second).sum(axis=1) / np.where(product > 0, product, 1)
    return np.where(scales[1] > 0, correlation, np.nan)


def _centred_ranks(numbers: np.ndarray) -> np.ndarray:
    largest = np.abs(numbers).max(axis=1, keepdims=True)
    levels = np.rint(numbers / np.where(largest > 0, largest, 1) / TIES)
    ranks = rankdata(levels, axis=1)
    return ranks - ranks.mean(axis=1, keepdims=True)
