"""One given kernel: its F, and heads whose values do not know how many keys there are.

F has the entry W_(Pδ+q-p)[i, j] in row (p, q, i, j) and column δ (lower_bound.py). A row depends on
p and q through s = q - p alone, and Π (P - |s_a|) pairs have the same s: one of them stands for
all.

A head has at a query whose offsets are all keys, one of N, the row (Σ_δ c_δ S_δ + u J) / Z with Z =
Σ_δ c_δ + u, the same for every N (attention.py, with u0 = u and u1 = 0), and the value map Z Σ_δ'
V_δ' M_δ' (values.py), M_δ the maps of the convolution, whose entries are F's column δ. So the heads
together put F X at the offsets and F x / N at every key, where

    X_δ'δ = Σ_h V_hδ' c_hδ,      x_δ' = Σ_h V_hδ' u_h.

"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import lcm, prod

from convattn_check import reading as read
from convattn_check.attention import Attention, Offset, require_realizable
from convattn_check.claims import Facts
from convattn_check.convolution import Axis, kernel_entry
from convattn_check.reject import require
from convattn_check.values import read_values

MOST_OFFSETS = 128
MOST_ROWS = 2**14
FIELDS = ("kernel_size", "patch_size", "in_channels", "out_channels", "kernel", "heads")
HEAD_FIELDS = ("attention", "values")


@dataclass(frozen=True)
class GivenKernel:
    """A kernel of integers, flat in the order HWIO, and its sizes."""

    axes: Sequence[Axis]
    channels: tuple[int, int]
    entries: Sequence[int]

    def offsets(self) -> list[Offset]:
        """The token offsets, row-major."""
        return list(product(*(axis.offsets() for axis in self.axes)))

    def entry(self, row: Sequence[int], offset: Sequence[int]) -> int:
        """F at the row (p.., q.., i, j), also at shifts that are no offsets, where it is 0."""
        return kernel_entry(self.axes, self.entries, self.channels[1], row, offset)

    def rows(self) -> list[tuple[list[int], int]]:
        """For each s, i and j a row (p.., q.., i, j), and how many rows are like it.

        >>> [row for row, _ in GivenKernel([Axis(3, 2)], (1, 1), [1, 2, 3]).rows()]
        [[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0]]
        """
        steps = product(*(range(1 - axis.patch, axis.patch) for axis in self.axes))
        return [
            (
                [*(max(0, -s) for s in step), *(max(0, s) for s in step), *pair],
                prod(axis.patch - abs(s) for axis, s in zip(self.axes, step, strict=True)),
            )
            for step in steps
            for pair in product(range(self.channels[0]), range(self.channels[1]))
        ]


def read_kernel(kind: str, claim: str, body: dict[str, object]) -> tuple[Facts, GivenKernel]:
    """The kernel, with what the claim may ask about."""
    size = read.sides(body["kernel_size"], "kernel_size", None)
    patch = read.sides(body["patch_size"], "patch_size", len(size))
    inputs, outputs = (
        read.integer(body[name], name, 1, read.LARGEST_POSITION)
        for name in ("in_channels", "out_channels")
    )
    rows = prod(2 * p - 1 for p in patch) * inputs * outputs
    require(rows <= MOST_ROWS, "range", f"F has {rows} distinct rows, expected up to {MOST_ROWS}")
    axes = [Axis(k, p) for k, p in zip(size, patch, strict=True)]
    offsets = prod(len(axis.offsets()) for axis in axes)
    require(offsets <= MOST_OFFSETS, "range", f"{offsets} offsets, expected up to {MOST_OFFSETS}")
    entries = read.entries(body["kernel"], "kernel", prod(size) * inputs * outputs)
    heads = read.integer(body["heads"], "heads", 1, MOST_OFFSETS + 1)
    facts = Facts(
        kind, claim, size, patch, channels=(inputs, outputs), heads=heads, offsets=offsets
    )
    return facts, GivenKernel(axes, (inputs, outputs), entries)


def read_products(body: dict[str, object], facts: Facts) -> tuple[list[list[int]], int]:
    """The matrix (X, x), in whole numbers, and what they are to be divided by.

    "attention" has for each head the c_δ and then u; it is a softmax of finite scores for every N.
    """
    width = facts.offsets
    given = read.array(
        body["attention"],
        "attention",
        lambda head, at: read.rationals(head, at, width + 1),
        facts.heads,
    )
    rows = [{at: entry for at, entry in enumerate(head) if entry} for head in given]
    require_realizable(rows, "finite", width)
    columns = read_values(body["values"], Attention("given", rows), width)
    matrix = [
        [
            sum((value * rows[head].get(at, _0) for head, value in column.items()), _0)
            for at in range(width + 1)
        ]
        for column in columns
    ]
    unit = lcm(*(entry.denominator for line in matrix for entry in line))
    return [[int(entry * unit) for entry in line] for line in matrix], unit


_0 = Fraction(0)
