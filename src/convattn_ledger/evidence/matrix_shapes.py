"""Whether a printed product of matrices can be formed at all."""

from collections.abc import Sequence
from itertools import pairwise

Shape = tuple[int, int]


def transposed(shape: Shape) -> Shape:
    """The shape of the transpose.

    >>> transposed((2, 3))
    (3, 2)
    """
    return shape[1], shape[0]


def product_shape(*shapes: Shape) -> Shape | None:
    """The shape of a product of matrices, or None where two neighbours do not fit.

    >>> product_shape((1, 2), (2, 5)), product_shape((1, 2), (5, 2))
    ((1, 5), None)
    """
    if any(left[1] != right[0] for left, right in pairwise(shapes)):
        return None
    return shapes[0][0], shapes[-1][1]


def is_score(*products: Sequence[Shape]) -> bool:
    """Whether every product can be formed and is one number, as a sum of scores must be.

    >>> is_score([(1, 2), (2, 1)], [(1, 3), (3, 3), (3, 1)]), is_score([(1, 2), (2, 3)])
    (True, False)
    """
    return all(product_shape(*factors) == (1, 1) for factors in products)
