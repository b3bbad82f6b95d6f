"""Certificates of identities: sizes and entries for the formulas that the checker holds."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from convattn_check.formulas import FORMULAS
from convattn_ledger.certificates.canonical import rational
from convattn_ledger.rational_matrices import fractions, rational_matrix

Entries = Any  # the numbers of a tensor, or its grid
# The size of every index of the formulas, as "k2 m13", and what the identity does not fix.
Case = tuple[str, dict[str, Entries]]
Cases = dict[tuple[str, str], Case]
LEAK = Fraction(1, 3)


def identity_bodies() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Claim, name, statement and body of every identity that the checker holds."""
    for cases in (_structure_cases(), _self_attentive_cases(), _border_cases()):
        for (claim, name), (sizes, entries) in cases.items():
            identity = FORMULAS[claim, name]
            fixed = {
                tensor: kind if isinstance(kind, str) else list(kind)
                for tensor, (_, kind) in identity.tensors.items()
            }
            body = {
                "identity": name,
                "sizes": {word[0]: int(word[1:]) for word in sizes.split()},
                "tensors": {tensor: entries.get(tensor, kind) for tensor, kind in fixed.items()},
                "definitions": list(identity.definitions),
                "equal": [list(pair) for pair in identity.equal],
                "differ": [list(pair) for pair in identity.differ],
            }
            yield claim, name, f"{identity.meaning[0].upper()}{identity.meaning[1:]}.", body


def _grid(
    sides: Sequence[int],
    shifts: Sequence[Sequence[int]],
    border: str = "zero",
    *,
    stride: int = 1,
    leak: Fraction | None = None,
) -> dict[str, Any]:
    """The matrices of a grid's shifts, as the checker builds them.

    >>> _grid((2,), [(1,)])
    {'border': 'zero', 'grid': [2], 'shifts': [[1]], 'stride': 1}
    """
    fields: dict[str, Any] = {
        "border": border,
        "grid": list(sides),
        "shifts": [list(shift) for shift in shifts],
        "stride": stride,
    }
    return fields if leak is None else fields | {"leak": rational(leak)}


def _numbers(matrix: Sequence[Sequence[Fraction | int]]) -> list[str]:
    """A matrix, row by row."""
    return [rational(entry) for row in matrix for entry in row]


def _structure_cases() -> Cases:
    """Andreoli's identities; every index has another size wherever it may."""
    family = [
        [int(a == b) + 2 * int(b == a + 1) + int((a, b) == (5, 0)) for b in range(6)]
        for a in range(6)
    ]
    dual = fractions(rational_matrix(family).inv().transpose())
    cycle = [[int((a - b) % 5 in (1, 4)) for b in range(5)] for a in range(5)]
    unit = [[int(a == b) for b in range(5)] for a in range(5)]
    pairs = [(cycle[a][b], unit[a][b], a, b) for a in range(5) for b in range(5)]
    network = [Fraction(edge + one, 3) for edge, one, _, _ in pairs]
    laplacian = [one - Fraction(edge, 2) for edge, one, _, _ in pairs]
    rows, columns = [(-1,), (1,)], [(-2,), (0,), (2,)]  # dilation two on both axes
    cuboid = [first + second for first, second in product(rows, columns)]
    return {
        ("A19.mixed", "rank"): ("k2 r3 s2 t2 g2 x3 y2 e12", {}),
        ("A19.prop1", "inverse"): (
            "k6 l6 s2 t3 x2",
            {"a": _numbers(family), "c": _numbers(dual)},
        ),
        ("A19.prop2", "linear_map"): ("k2 m3 n4 p2 q3", {}),
        ("A19.prop2", "every_map"): ("k6 l6 m2 n3 p2 q3", {}),
        ("A19.prop2", "one_by_one"): ("k1 m3 n3 p2 q4", {}),
        ("A19.prop3", "composition"): ("k2 m3 n2 p2 q3 l3 o2 r2 h6", {}),
        ("A19.prop3", "bare_grid_composite"): (
            "d1 e1 m2 n2 o2",
            {"F": _grid((2,), [(-1,)]), "B": _grid((2,), [(1,)])},
        ),
        ("A19.reductions", "grouped"): ("k2 m3 n2 g2 h2 p2 q3 w4 z6", {}),
        ("A19.reductions", "depthwise"): ("k3 m2 n3 p2 q4", {}),
        ("A19.reductions", "controlled"): ("h2 k3 m2 n3 p2 q2", {}),
        ("A19.orders", "orders"): ("b2 k2 m3 n2 p2 q3", {}),
        ("A19.grid", "cuboid"): (
            "i2 j3 k6 a4 b4 c5 d5 q20 m20",
            {"U": _grid((4,), rows), "V": _grid((5,), columns), "E": _grid((4, 5), cuboid)},
        ),
        ("A19.grid", "stride"): (
            "z1 r6 q20 m20 k4",
            {
                "R": _grid((4, 5), [(0, 0)], stride=2),
                "E": _grid((4, 5), list(product((0, 1), repeat=2))),
                "G": _grid((4, 5), list(product((0, 1), repeat=2)), stride=2),
            },
        ),
        ("A19.graph", "chebyshev"): ("a2 b2 c2", {}),
        ("A19.graph", "gcn"): (
            "a5 b5",
            {"A": _numbers(cycle), "G": _numbers([network]), "L": _numbers([laplacian])},
        ),
        ("A19.attention", "masking"): (
            "m3 n2",
            {"h": _numbers([[1, 0], [1, 1], [0, 1]])},
        ),
        ("A19.biaffine", "forms"): ("m3 n2 p2 q4", {}),
        ("A19.gat", "redundant"): ("m4 n3", {}),
        ("A19.transformer", "key_query"): ("k2 m3 n2 p2 q3 d2", {}),
        ("A19.transformer", "output"): ("k3 m3 n2 p2 q3 d2 e6", {}),
        ("A19.shiftheads", "sum"): (
            "h5 g5 k2 l3 m4 n4 p2 q3",
            {
                "E": _grid((4,), [(-1,), (0,), (1,)]),
                "J": _numbers([[int(h == k) for k in range(2)] for h in range(5)]),
                "K": _numbers([[int(h == k + 2) for k in range(3)] for h in range(5)]),
            },
        ),
    }


def _self_attentive_cases() -> Cases:
    """Barkan's identities."""
    taps = list(product((-1, 0, 1), (0, 1)))  # 3 x 2 filters
    line = [(-1,), (0,), (1,)]
    rows = [[Fraction(a, 6) for a in row] for row in ([1, 2, 3], [4, 1, 1], [2, 2, 2], [1, 1, 4])]
    columns = [[Fraction(a, 6) for a in row] for row in ([3, 2, 4], [1, 3, 1], [2, 1, 1])]

    def halves(width: int, gap: int) -> dict[str, Entries]:
        total = 2 * width + gap
        left = [[int(q == a) for q in range(total)] for a in range(width)]
        right = [[int(q == a + width + gap) for q in range(total)] for a in range(width)]
        return {
            "J": _grid((total,), line),
            "S": _grid((width,), line),
            "l": _numbers(left),
            "r": _numbers(right),
        }

    return {
        ("B19.lemma1", "one_by_one"): (
            "f2 d3 j10 k10 l1 m1",
            {"E": _grid((2, 5), [(0, 0)]), "G": _grid((2, 5), [(1, 1)])},
        ),
        ("B19.softmax", "row_sums"): ("i4 j3 d2", {"A": _numbers(rows)}),
        ("B19.softmax", "column_sums"): ("i3 j3 d2", {"A": _numbers(columns)}),
        ("B19.sa2d", "heads"): ("c3 q2 k4 o2 f3 e6", {}),
        ("B19.sa2d", "even"): ("h4 g2 d3 e3 i2 o3", {}),
        ("B19.sac", "limit"): (
            "a1 q12 k12 d6 i2 o3",
            {"N": _grid((3, 4), [(0, 0)], "nearest"), "E": _grid((3, 4), taps)},
        ),
        ("B19.sac", "two_heads"): (
            "a1 q12 k12 j12 d6 i2 o3",
            {
                "L": _grid((3, 4), [(0, 0)], "leaky", leak=LEAK),
                "E": _grid((3, 4), taps),
                "c": [rational(1 / (1 - LEAK))],
                "f": [rational(LEAK / (1 - LEAK) / 12)],
            },
        ),
        ("B19.msac", "scales"): ("l3 q4 o2 f3 e6", {}),
        ("B19.language", "causal"): (
            "q5 k5 j5 d2 l3 i2 o2",
            {"E": _grid((5,), [(-1,), (0,)]), "F": _grid((5,), line)},
        ),
        ("B19.cross", "seam"): ("d3 q8 k8 a4 b4", halves(4, 0)),
        ("B19.cross", "gap"): ("d3 q9 k9 a4 b4", halves(4, 1)),
    }


def _border_cases() -> Cases:
    """The identities of this project's own claims, on bare grids."""
    taps = list(product((-1, 0, 1), repeat=2))
    wide = list(product((-2, -1, 0, 1, 2), repeat=2))
    gain = 1 / (1 - LEAK)
    # On two nodes with taps -1, 0, 1 the sums inside are w_0 + w_1 and w_-1 + w_0.
    kernel, inside = [Fraction(3), Fraction(5), Fraction(3)], Fraction(8)
    missing = gain * LEAK * sum(kernel) / 2 + (sum(kernel) - inside) / 2
    return {
        ("S.separable", "separable"): ("i3 j4", {}),
        ("S.separable", "layer"): ("q2 i3 r3 j2 c2", {}),
        ("S.boundary", "edge"): (
            "d25 q12 k12 i2 o2",
            {"N": _grid((3, 4), wide, "nearest"), "E": _grid((3, 4), wide, "edge")},
        ),
        ("S.boundary", "mean"): (
            "d9 q12 k12 i2 o2",
            {
                "L": _grid((3, 4), taps, "leaky", leak=LEAK),
                "M": _grid((3, 4), taps, "mean"),
                "c": [rational(gain)],
                "f": [rational(gain * LEAK / 12)],
            },
        ),
        ("S.padding", "constant_sums"): (
            "d3 q2 k2",
            {
                "E": _grid((2,), [(-1,), (0,), (1,)]),
                "L": _grid((2,), [(-1,), (0,), (1,)], "leaky", leak=LEAK),
                "W": _numbers([kernel]),
                "t": [rational(inside)],
                "c": [rational(gain)],
                "f": [rational(missing)],
            },
        ),
        ("S.registers", "pairs"): _register_pairs((3, 3), taps),
        ("S.lemma3", "shared_map"): _shared_rows(),
        ("S.linear", "hankel"): ("a3 b3 c3 i3 j3 k3", {}),
        ("S.linear", "register"): ("a2 b3 i3 j3", {}),
        ("S.causal", "fixed"): ("j3", {}),
        ("S.causal", "counted"): (
            "d3 q5 k5 r3 p3 i2 o2",
            {
                "E": _grid((5,), [(-2,), (-1,), (0,)]),
                "l": _numbers([[int(q == r + 2) for q in range(5)] for r in range(3)]),
                "R": _numbers(
                    [[LEAK ** int(q >= 2 - d) / (q + 1) for q in range(5)] for d in range(3)]
                ),
                "v": _numbers([[Fraction(1, q + 1) for q in range(5)]]),
                "t": [rational(1 / LEAK - 1)],
                "c": [rational(gain)],
                "f": [rational(gain * LEAK)],
            },
        ),
    }


def _register_pairs(sides: tuple[int, int], taps: Sequence[tuple[int, ...]]) -> Case:
    """S.registers: a register beside the tokens has 1 or 3 times the weight that they have."""
    nodes, ratio = list(product(*map(range, sides))), 1 / LEAK - 1
    rows = []
    for share in (1, 3):
        for tap, query in product(taps, nodes):
            target = tuple(q + d for q, d in zip(query, tap, strict=True))
            row = [1 + (node == target) * len(nodes) * (1 + share) * ratio for node in nodes]
            total = sum(row) + share * len(nodes)
            rows += [rational(Fraction(weight) / total) for weight in row]
    return (
        "j2 d9 q9 k9 i2 o2",
        {
            "E": _grid(sides, taps),
            "A": rows,
            "t": [rational(Fraction(len(nodes) * (1 + share))) for share in (1, 3)],
            "r": [rational(ratio)],
            "g": [rational(Fraction(len(nodes) * share)) for share in (1, 3)],
            "c": [rational(factor / (1 - LEAK)) for factor in (-1, 2)],
        },
    )


def _shared_rows() -> Case:
    """S.lemma3 at the two inner nodes of four, with finite relative scores.

    A head with the weights w_-1, w_0, w_1 at the shifts -1, 0, 1 and 1 at all others has the same
    sum at both queries; four such heads span the matrices of the shifts.
    """
    weights = [(1, 1, 1), (2, 1, 1), (1, 3, 1), (1, 2, 5)]
    heads = [
        [
            Fraction(head[k - q + 1] if abs(k - q) <= 1 else 1, sum(head) + 1)
            for q in (1, 2)
            for k in range(4)
        ]
        for head in weights
    ]
    # At each query three shifts and one other key: four equations for four heads.
    rows = rational_matrix([head[:4] for head in heads]).transpose()
    targets = rational_matrix([[int(k == key) for key in range(3)] for k in range(4)])
    maps = fractions(rows.solve(targets).transpose())
    return (
        "h4 q2 p2 r4 k4 d3 i2 o3",
        {
            "A": [rational(x) for head in heads for x in head],
            "P": _numbers(maps),
            "E": _grid((4,), [(-1,), (0,), (1,)]),
            "l": _numbers([[0, 1, 0, 0], [0, 0, 1, 0]]),
        },
    )
