"""Whether a row of weights factors over the axes: whether it is u(k_1)·v(k_2)."""

import numpy as np
from jaxtyping import Shaped


def mixed_difference(
    rows: Shaped[np.ndarray, "rows columns"],
) -> Shaped[np.ndarray, "smaller_rows smaller_columns"]:
    """w(i, j)·w(i+1, j+1) - w(i, j+1)·w(i+1, j): zero everywhere iff positive w is a product.

    >>> mixed_difference(np.outer([1, 2], [3, 5])).tolist(), mixed_difference(np.eye(2)).tolist()
    ([[0]], [[1.0]])
    """
    return rows[:-1, :-1] * rows[1:, 1:] - rows[:-1, 1:] * rows[1:, :-1]
