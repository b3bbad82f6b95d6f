"""Certificates of what commutes with the shifts of a grid (A19, Section 2.1)."""

from typing import Any

import numpy as np

from convattn.bounds.flattened_kernel import exact_rank
from convattn_ledger.structures.shift_matrices import commutant_system, shift_matrix, unit_shifts


def commutant_body(grid: tuple[int, ...], boundary: str) -> dict[str, Any]:
    """The dimension of the matrices that commute with the unit shifts of a grid.

    Args:
        grid: Nodes on each axis, nine in all at most.
        boundary: `"bare"` or `"torus"`.

    >>> commutant_body((2,), "bare")["dimension"]
    1
    """
    shifts = unit_shifts(len(grid))
    matrices = np.stack([shift_matrix(grid, d, torus=boundary == "torus") for d in shifts])
    unknowns = matrices.shape[1] ** 2
    return {
        "grid": list(grid),
        "boundary": boundary,
        "shifts": [list(shift) for shift in shifts],
        "dimension": unknowns - exact_rank(commutant_system(matrices)),
    }
