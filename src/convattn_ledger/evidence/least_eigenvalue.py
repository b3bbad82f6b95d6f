"""A certain lower bound on the least eigenvalue of a symmetric integer matrix.

G - μI is positive definite if and only if all pivots of its LDLᵀ elimination are positive. The
elimination runs in ball arithmetic, so a pivot counts as positive only if its whole ball is, and μ
is a number of float64, which a ball holds exactly. How μ was guessed does not matter.
"""

import numpy as np
from flint import arb, ctx
from jaxtyping import Int

PRECISION = 320  # bits


def exceeds(matrix: Int[np.ndarray, "n n"], number: float) -> bool:
    """Whether matrix - number·I is certainly positive definite.

    >>> exceeds(np.array([[2, 1], [1, 2]]), 0.999), exceeds(np.array([[2, 1], [1, 2]]), 1.0)
    (True, False)
    """
    size = len(matrix)
    with ctx.workprec(PRECISION):
        rows = [[arb(int(entry)) for entry in line] for line in matrix]
        for index in range(size):
            rows[index][index] -= arb(number)
        for pivot in range(size):
            head = rows[pivot]
            if not head[pivot] > 0:
                return False
            for below in range(pivot + 1, size):
                line = rows[below]
                factor = line[pivot] / head[pivot]
                for column in range(below, size):  # the lower triangle mirrors the upper one
                    line[column] -= factor * head[column]
                for column in range(pivot + 1, below):
                    line[column] = rows[column][below]
    return True


def least_eigenvalue(matrix: Int[np.ndarray, "n n"]) -> float:
    """μ > 0 with λ_min ≥ μ for certain, and μ within one part in a thousand of λ_min as computed.

    Raises:
        ValueError: For what is not symmetric and integer, and where no μ > 0 is found.

    >>> 0.998 < least_eigenvalue(np.array([[2, 1], [1, 2]])) < 1
    True
    """
    if matrix.dtype.kind not in "iu" or (matrix != matrix.T).any():
        raise ValueError(
            f"a matrix of dtype {matrix.dtype} was given, but expected a symmetric one of integers"
        )
    guess = float(np.linalg.eigvalsh(matrix.astype(np.float64))[0]) * (1 - 2.0**-10)
    if not guess > 0 or not exceeds(matrix, guess):
        raise ValueError(
            f"no positive lower bound on the least eigenvalue of this {len(matrix)} × "
            f"{len(matrix)} matrix: it is singular, or nearly so (computed: {guess:.3g})"
        )
    return guess
