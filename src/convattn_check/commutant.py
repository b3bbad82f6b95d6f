"""Commutant: which matrices commute with the shifts of a grid."""

from itertools import product
from math import prod

from convattn_check import reading as read
from convattn_check.claims import Facts, require_claim
from convattn_check.elimination import eliminate
from convattn_check.reject import require

MOST_AXES = 3
MOST_NODES = 9  # the system has as many unknowns as pairs of nodes
MOST_SHIFTS = 16
BOUNDARIES = ("bare", "torus")

Shift = tuple[int, ...]


def check_commutant(claim: str, value: object) -> str:
    """The solutions of Phi A_d = A_d Phi, for every d given, are a space of this dimension.

    (A_d)_mn = 1 if n - m = d, else 0: on the bare grid a shift ends at the border, on a torus it
    goes round. Entry (m, n) of Phi A_d - A_d Phi is Phi_m,n-d - Phi_m+d,n, with no term where
    its index leaves the grid. The dimension is that over the rationals, and so over the reals and
    every field of characteristic 0.
    """
    body = read.fields(value, "body", ("grid", "boundary", "shifts", "dimension"))
    grid = tuple(read.integers(body["grid"], "grid", None, 1, MOST_NODES))
    require(
        1 <= len(grid) <= MOST_AXES,
        "range",
        f"the grid has {len(grid)} axes, expected 1 to {MOST_AXES}",
    )
    nodes = prod(grid)
    require(nodes <= MOST_NODES, "range", f"{nodes} nodes, expected up to {MOST_NODES}")
    torus = read.string(body["boundary"], "boundary", BOUNDARIES) == "torus"
    shifts = [
        tuple(read.integers(item, f"shifts[{index}]", len(grid), -MOST_NODES, MOST_NODES))
        for index, item in enumerate(read.items(body["shifts"], "shifts"))
    ]
    require(
        1 <= len(shifts) <= MOST_SHIFTS and len(set(shifts)) == len(shifts),
        "range",
        f"{len(shifts)} shifts, expected 1 to {MOST_SHIFTS}, all different",
    )
    stated = read.integer(body["dimension"], "dimension", 0, nodes * nodes)
    equations = commuting_equations(grid, shifts, torus)
    dimension = nodes * nodes - (eliminate(equations)[0] if equations else 0)
    require(
        stated == dimension,
        "commutant",
        f"dimension {stated}, computed {dimension}, of the matrices that commute with the "
        f"{len(shifts)} shifts",
    )
    require_claim(
        Facts(
            "commutant",
            claim,
            nodes=nodes,
            boundary=str(body["boundary"]),
            unit_shifts=set(shifts) == set(unit_shifts(len(grid))),
            dimension=stated,
        )
    )
    where = f"the {'torus' if torus else 'bare grid'} {'x'.join(map(str, grid))}"
    names = ", ".join(str(list(shift)) for shift in shifts)
    space = "the multiples of the identity alone"
    if dimension > 1:
        space = f"a space of dimension {dimension}"
    return f"on {where} the real matrices that commute with the shifts {names} are {space}"


def unit_shifts(axes: int) -> list[Shift]:
    """One step forth and one back on each axis.

    >>> unit_shifts(2)
    [(1, 0), (-1, 0), (0, 1), (0, -1)]
    """
    return [
        tuple(step if axis == other else 0 for other in range(axes))
        for axis in range(axes)
        for step in (1, -1)
    ]


def commuting_equations(grid: Shift, shifts: list[Shift], torus: bool) -> list[list[int]]:
    """Rows over the entries of Phi, row-major; those that say 0 = 0 or repeat another are left out.

    >>> commuting_equations((2,), [(1,)], False)  # Phi_00 = Phi_11, Phi_10 = 0
    [[0, 0, -1, 0], [1, 0, 0, -1], [0, 0, 1, 0]]
    """
    nodes = list(product(*map(range, grid)))
    index = {node: number for number, node in enumerate(nodes)}

    def moved(node: Shift, shift: Shift, sign: int) -> int | None:
        steps = [p + sign * d for p, d in zip(node, shift, strict=True)]
        if torus:
            steps = [step % side for step, side in zip(steps, grid, strict=True)]
        return index.get(tuple(steps))

    rows: dict[Shift, list[int]] = {}
    for shift in shifts:
        for m, n in product(nodes, nodes):
            row = [0] * len(nodes) ** 2
            before, after = moved(n, shift, -1), moved(m, shift, 1)
            if before is not None:
                row[index[m] * len(nodes) + before] += 1
            if after is not None:
                row[after * len(nodes) + index[n]] -= 1
            if any(row):
                rows[tuple(row)] = row
    return list(rows.values())
