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
from itertools import product
from math import prod

from convattn_check import reading as read
from convattn_check.attention import Attention, Offset
from convattn_check.claims import Facts
from convattn_check.convolution import Axis, kernel_entry
from convattn_check.cost import Work, longest, whole_numbers
from convattn_check.elimination import eliminate
from convattn_check.reject import require, show
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

    @property
    def size(self) -> tuple[int, ...]:
        """K on each axis."""
        return tuple(axis.kernel for axis in self.axes)

    @property
    def patch(self) -> tuple[int, ...]:
        """P on each axis."""
        return tuple(axis.patch for axis in self.axes)

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


def read_convolution(body: dict[str, object]) -> GivenKernel:
    """Sizes, channels and entries."""
    size = read.sides(body["kernel_size"], "kernel_size", None)
    patch = read.sides(body["patch_size"], "patch_size", len(size))
    inputs, outputs = (
        read.integer(body[name], name, 1, read.LARGEST_POSITION)
        for name in ("in_channels", "out_channels")
    )
    axes = [Axis(k, p) for k, p in zip(size, patch, strict=True)]
    entries = read.entries(body["kernel"], "kernel", prod(size) * inputs * outputs)
    return GivenKernel(axes, (inputs, outputs), entries)


def read_minor(
    body: dict[str, object], kernel: GivenKernel, order: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Rows and columns of a square minor of F, after computing that its determinant is not 0."""
    last = [p - 1 for p in kernel.patch * 2] + [n - 1 for n in kernel.channels]
    rows = [read.position(row, "a row", last) for row in read.items(body["rows"], "rows", order)]
    most = read.LARGEST_POSITION
    columns = [
        read.integers(column, "a column", len(kernel.axes), -most, most)
        for column in read.items(body["columns"], "columns", order)
    ]
    _, determinant = eliminate([[kernel.entry(row, column) for column in columns] for row in rows])
    stated = read.integer(body["determinant"], "determinant")
    require(
        stated == determinant and determinant != 0,
        "determinant",
        f"determinant {show(stated)}, expected that of the minor, {show(determinant)}, and not 0",
    )
    return rows, columns


def furthest(shifts: Sequence[Sequence[int]]) -> list[int]:
    """Tokens a side of an image in which all these shifts occur: one more than the furthest."""
    return [max(map(abs, steps)) + 1 for steps in zip(*shifts, strict=True)]


def require_tokens(body: dict[str, object], tokens: list[int], reason: str) -> None:
    """Whether "tokens_per_side" is what was computed."""
    stated = body["tokens_per_side"]
    require(
        read.same(stated, tokens),
        "tokens",
        f"tokens_per_side is {show(stated)}, expected {tokens}: on each axis {reason}",
    )


def read_kernel(
    kind: str, claim: str, body: dict[str, object], most_offsets: int = MOST_OFFSETS
) -> tuple[Facts, GivenKernel]:
    """The kernel, with what the claim may ask about."""
    kernel = read_convolution(body)
    size, patch = kernel.size, kernel.patch
    inputs, outputs = kernel.channels
    rows = prod(2 * p - 1 for p in patch) * inputs * outputs
    require(rows <= MOST_ROWS, "range", f"F has {rows} distinct rows, expected up to {MOST_ROWS}")
    offsets = prod(len(axis.offsets()) for axis in kernel.axes)
    require(offsets <= most_offsets, "range", f"{offsets} offsets, expected up to {most_offsets}")
    Work("the Gram matrix of F, or F X,").add(rows * offsets**2, 64, 64)
    heads = read.integer(body["heads"], "heads", 1, MOST_OFFSETS + 1)
    facts = Facts(kind, claim, size, patch, channels=kernel.channels, heads=heads, offsets=offsets)
    return facts, kernel


def read_products(body: dict[str, object], facts: Facts) -> tuple[list[list[int]], int]:
    """The matrix (X, x), in whole numbers, and what they are to be divided by.

    "attention" has for each head the c_δ ≥ 0 and then u > 0: every key has a positive weight, c_δ +
    u/N or u/N, so that it is a softmax of finite scores for every N.
    """
    width = facts.offsets
    attention = read.array(
        body["attention"],
        "attention",
        lambda head, at: read.rationals(head, at, width + 1),
        facts.heads,
    )
    whole, unit = whole_numbers([entry for head in attention for entry in head], "attention")
    weights = [whole[start : start + width + 1] for start in range(0, len(whole), width + 1)]
    for head, (*own, uniform) in enumerate(attention):
        require(
            min(own) >= 0 and uniform > 0,
            "realizable",
            f"head {head} has min c = {show(min(own))}, u = {show(uniform)}, expected c >= 0 and "
            "u > 0",
        )
    heads = Attention("given", [{}] * facts.heads)  # values ask for their number alone
    columns = read_values(body["values"], heads, width)
    maps, divisor = whole_numbers([v for column in columns for v in column.values()], "values")
    remaining = iter(maps)
    work, long = Work("the product of values and attention"), longest(whole)
    matrix = []
    for column in columns:
        line = [0] * (width + 1)
        for head in column:
            value = next(remaining)
            work.add(len(line), long, value.bit_length())
            for at, weight in enumerate(weights[head]):
                line[at] += value * weight
        matrix.append(line)
    return matrix, unit * divisor
