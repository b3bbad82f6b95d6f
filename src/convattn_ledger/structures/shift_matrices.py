"""A19's shift matrices written out as integers, on the bare grid and on the torus.

They are made from the definition alone, apart from `ShiftBasis`, which never writes them down, and
serve to state what holds of them exactly.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
from jaxtyping import Int

from convattn.operators.shifts import Shift


def shift_matrix(
    grid: Sequence[int], shift: Sequence[int], *, torus: bool = False
) -> Int[np.ndarray, "nodes nodes"]:
    """(A_d)_mn = [n - m = d], row-major; on the torus n - m is taken modulo the sides.

    >>> shift_matrix((3,), (1,)).tolist()
    [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    """
    sides, target = np.array(grid), np.array(shift)
    nodes = np.array(list(product(*map(range, grid))))
    differences = nodes[None] - nodes[:, None]
    if torus:
        return ((differences - target) % sides == 0).all(-1).astype(np.int64)
    return (differences == target).all(-1).astype(np.int64)


def all_shifts(grid: Sequence[int], *, torus: bool = False) -> list[Shift]:
    """Every d whose shift matrix is not zero, once: Π(2n_i - 1) on the bare grid, Πn_i on a torus.

    >>> len(all_shifts((2, 3))), len(all_shifts((2, 3), torus=True))
    (15, 6)
    """
    return list(product(*(range(0 if torus else 1 - n, n) for n in grid)))


def unit_shifts(axes: int) -> list[Shift]:
    """One step forth and one back on each axis.

    >>> unit_shifts(1)
    [(1,), (-1,)]
    """
    rows = np.eye(axes, dtype=int)
    return [tuple(int(step) for step in sign * row) for row in rows for sign in (1, -1)]


def commutant_system(
    matrices: Int[np.ndarray, "shifts nodes nodes"],
) -> Int[np.ndarray, "equations unknowns"]:
    """The equations ΦA_k - A_kΦ = 0 in the entries of Φ, row-major.

    >>> commutant_system(shift_matrix((2,), (1,))[None]).tolist()
    [[0, 0, -1, 0], [1, 0, 0, -1], [0, 0, 0, 0], [0, 0, 1, 0]]
    """
    unit = np.eye(matrices.shape[1], dtype=np.int64)
    return np.concatenate([np.kron(unit, a.T) - np.kron(a, unit) for a in matrices])
