"""Matrices that a grid gives by definition: what a convolution reads, and what heads attend to.

Positions are those of a grid of n_1 × n_2 × … nodes, row-major; δ = key - query. For each shift δ
of a list the matrix E_δ has one row for each query:

| border    | E_δ(q, k)                                                                    |
|-----------|------------------------------------------------------------------------------|
| `zero`    | [k = q + δ], a row of zeros where q + δ is outside: zero padding              |
| `torus`   | [k = q + δ modulo n]                                                          |
| `edge`    | [k = the node with the coordinates of q + δ clamped to the grid]: EDGE padding |
| `mean`    | [k = q + δ], and 1/N where q + δ is outside: MEAN padding                     |
| `nearest` | [k is the node that minimises |k - q - δ|²]: the quadratic score in the limit |
| `leaky`   | softmax of log(1 + N(1/ε - 1)) at the shift δ and 0 at all others             |

`nearest` is found by trying every node; it is unique, as it is on each axis. In `leaky` the row of
a query whose q + δ is a node has the weight (1 - ε) + ε/N there and ε/N elsewhere; otherwise all N
scores are equal. With a stride s the queries are every s-th node on each axis: s·n, on ⌈n/s⌉ nodes.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from math import prod

from convattn_check import reading as read
from convattn_check.cost import LARGEST_PART, whole_numbers
from convattn_check.polynomial import Tensor, constant, flat
from convattn_check.reject import require, show

BORDERS = ("zero", "torus", "edge", "mean", "nearest", "leaky")
MOST_NODES = 64
MOST_SHIFTS = 64
Node = tuple[int, ...]


def read_grid(value: object, where: str) -> tuple[tuple[int, int, int], Tensor, str]:
    """Shape (shifts, queries, keys), entries, and the name of the border."""
    entry = value if isinstance(value, dict) else {}
    border = read.string(entry.get("border"), f"{where}.border", BORDERS)
    names = ["grid", "shifts", "border", "stride", *["leak"] * (border == "leaky")]
    body = read.fields(value, where, names)
    grid = read.integers(body["grid"], f"{where}.grid", None, 1, MOST_NODES)
    require(1 <= len(grid) <= 3, "range", f"{where} has {len(grid)} axes, expected 1 to 3")
    require(
        prod(grid) <= MOST_NODES, "range", f"{where} has {prod(grid)} nodes, up to {MOST_NODES}"
    )
    stride = read.integer(body["stride"], f"{where}.stride", 1, MOST_NODES)
    shifts = [
        tuple(read.integers(shift, f"{where}.shifts", len(grid), -MOST_NODES, MOST_NODES))
        for shift in read.items(body["shifts"], f"{where}.shifts")
    ]
    require(1 <= len(shifts) <= MOST_SHIFTS, "range", f"{where} has {len(shifts)} shifts")
    require(len(set(shifts)) == len(shifts), "tensors", f"{where} repeats a shift")
    for shift in shifts:
        require(
            all(abs(d) < n for d, n in zip(shift, grid, strict=True)),
            "tensors",
            f"{where} has the shift {shift}, which joins no two nodes of the grid {grid}",
        )
    nodes = list(product(*(range(n) for n in grid)))
    queries = list(product(*(range(0, n, stride) for n in grid)))
    leak = read.rational(body.get("leak", "1/2"), f"{where}.leak")  # no other border has one
    require(0 < leak < 1, "range", f"{where}.leak is {show(str(leak))}, expected 0 < ε < 1")
    whole_numbers([leak], f"{where}.leak", LARGEST_PART)
    entries: Tensor = {}
    for (number, shift), (row, query) in product(enumerate(shifts), enumerate(queries)):
        target = tuple(q + d for q, d in zip(query, shift, strict=True))
        for node, weight in _row(border, target, grid, nodes, leak):
            entries[number, row, flat(node, grid)] = constant(weight)
    return (len(shifts), len(queries), len(nodes)), entries, border


def _row(
    border: str, target: Node, grid: Sequence[int], nodes: Sequence[Node], leak: Fraction
) -> Iterator[tuple[Node, Fraction]]:
    """The nodes that a query attends to, with their weights."""
    inside = target in nodes
    one, equal = Fraction(1), Fraction(1, len(nodes))
    if border == "leaky":
        background = leak * equal if inside else equal
        for node in nodes:
            yield node, background + (1 - leak if node == target else 0)
    elif border == "nearest":
        distances = [sum((k - t) ** 2 for k, t in zip(node, target, strict=True)) for node in nodes]
        yield nodes[distances.index(min(distances))], one
    elif border == "torus":
        yield tuple(t % n for t, n in zip(target, grid, strict=True)), one
    elif border == "edge":
        yield tuple(min(max(t, 0), n - 1) for t, n in zip(target, grid, strict=True)), one
    elif inside:
        yield target, one
    elif border == "mean":
        for node in nodes:
            yield node, equal
