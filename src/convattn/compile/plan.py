"""Which channels, heads and blocks of a vision transformer a network takes.

The stream has H·d_H features. Half of them hold numbers, the others the same numbers negated: a
channel c is a pair (+, -). Channels hold constants of the positions, and the values of the
network, `channels · points of a token` each, from the block that makes a value to the last one that
reads it.

A value takes as many heads as it reads tokens: one for each offset, for each single point, and for
the mean. A head passes on d_H numbers, so a matrix with r rows and c columns that are not zero
takes ⌈min(r, c)/d_H⌉ of them, which the blocks of a value share out. The hidden units of its last
block apply the function, and clear the channels that a later value will take.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from convattn.compile.affine import CENTRE, MEAN, Affine, Border, Value
from convattn.compile.lattice import Lattice, Pair
from convattn.compile.network import Network, Node, NotCompiled
from convattn.compile.scalar import Units

LEAST_HEAD = 5  # features of queries and keys: two axes of two numbers, and the class token's
LEAST_HEAD_DIM = 8  # that are taken, where none are asked for
HELD = 3  # channels that every network has: λ, 1 on the grid, 1 on the class token


@dataclass(frozen=True)
class Tokens:
    """The tokens that hold points of a lattice.

    Attributes:
        apart: From one to the next, on each axis.
        count: Of them.
    """

    apart: Pair
    count: Pair

    @classmethod
    def of(cls, lattice: Lattice) -> "Tokens":
        """Those of a lattice."""
        return cls(lattice.apart, lattice.tokens)


@dataclass(frozen=True)
class Code:
    """Positions of tokens, as four channels: corners of a polygon on each axis.

    Attributes:
        tokens: Which have one; those of the others are zero.
        border: What is read outside.
    """

    tokens: Tokens
    border: Border


@dataclass(frozen=True)
class Reading:
    """What a head looks at.

    Attributes:
        kind: A token at an offset from the query ("offset"), the query itself ("self"); of the
            class token a single token ("point"), or the mean of all ("mean").
        code: By which it is found; of a mean, its tokens.
        where: The offset, or the token, counted in the code's tokens.
    """

    kind: Literal["offset", "self", "point", "mean"]
    code: Code
    where: Pair = CENTRE


@dataclass(frozen=True, eq=False)
class Head:
    """One head: numbers that it takes from the token it looks at, and where it puts them.

    Attributes:
        reading: Where it looks.
        sources: Which feature of which value each row of `value` reads.
        value: `[sources, passed]`.
        output: `[passed, features of the target]`.
    """

    reading: Reading
    sources: tuple[tuple[Value, int], ...]
    value: np.ndarray
    output: np.ndarray

    @property
    def absolute_map(self) -> np.ndarray:
        """|M|, `[sources, features of the target]`."""
        return np.abs(self.value) @ np.abs(self.output)


@dataclass(eq=False)
class Block:
    """One block.

    Attributes:
        node: Of which it makes a part.
        heads: At most H.
        units: The function, in the last block of a node; None before.
        cleared: Channels that its hidden units set to zero.
    """

    node: Node
    heads: Sequence[Head]
    units: Units | None
    cleared: list[int] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Plan:
    """A network as blocks of a stream.

    Attributes:
        network: It; its last node makes the logits, where they are no map of vectors.
        num_heads, head_dim: H and d_H.
        blocks: In their order.
        codes: Their first channel.
        means: By tokens the channel that is 1 outside them.
        channels: Of each value, by feature.
        hidden: Units of every block.
        reach: Of each code, the farthest offset on each axis.
    """

    network: Network
    num_heads: int
    head_dim: int
    blocks: tuple[Block, ...]
    codes: dict[Code, int]
    means: dict[Tokens, int]
    channels: dict[Value, np.ndarray]
    hidden: int
    reach: dict[Code, Pair]

    def steps(self, code: Code) -> tuple[float, float]:
        """θ: the angle from one token to the next on each axis, in radians.

        It is 0 on a circular axis of one token, where every offset leads back to that token.
        """
        reach = self.reach.get(code, CENTRE)
        angles = []
        for count, far in zip(code.tokens.count, reach, strict=True):
            if code.border == "circular":
                angles.append(2 * np.pi / count if count > 1 else 0.0)
            else:
                corners = (4 if code.border == "edge" else 1) * (count + far)
                angles.append(2 * np.pi / max(corners, 3))
        return angles[0], angles[1]

    def gap(self, code: Code) -> float:
        """How far the nearest other token's score is below 2: the smaller 1 - cos θ, θ ≠ 0."""
        return float(min((1 - np.cos(step) for step in self.steps(code) if step), default=1.0))

    @property
    def least_gap(self) -> float:
        """That of the code whose tokens are nearest."""
        return min((self.gap(code) for code in self.codes), default=1.0)

    @property
    def largest_ratio(self) -> float:
        """The largest 1 + 4/gap of the codes."""
        return 1 + 4 / self.least_gap

    @property
    def constants(self) -> int:
        """The channels that hold constants of a token, all but λ at most 1."""
        return HELD + 4 * len(self.codes) + len(self.means)

    @property
    def width(self) -> int:
        """H·d_H."""
        return self.num_heads * self.head_dim


def make_plan(network: Network, num_heads: int | None = None, head_dim: int | None = None) -> Plan:
    """The plan of as many heads as the map that reads most, or of this many, of this width.

    Heads are as wide as makes the fewest parameters, over the blocks that this takes.

    Raises:
        NotCompiled: If the stream has too few channels at these sizes.
    """
    network = _with_logits(network)
    demands = [(node, list(_matrices(node))) for node in network.nodes]
    channels, least, cleared = _allocated(network)
    codes, means, reach, constants = _constants(demands)
    half = HELD + constants + least
    heads, dim = _sizes(demands, half, num_heads, head_dim)
    blocks, last = [], {}
    for node, matrices in demands:
        needed = [head for matrix in matrices for head in _heads(*matrix, dim)]
        groups = [needed[start : start + heads] for start in range(0, len(needed), heads)] or [[]]
        blocks += [Block(node, group, None) for group in groups]
        blocks[-1].units = node.units
        last[node.value] = blocks[-1]
    start = HELD + constants
    for value, dead in cleared:
        last[value].cleared += [start + channel for channel in dead]
    placed = {value: start + place for value, place in channels.items()}
    hidden = max((_units(block) for block in blocks), default=0)
    hidden = -(-max(hidden, 1) // (heads * dim)) * heads * dim
    return Plan(network, heads, dim, tuple(blocks), codes, means, placed, hidden, reach)


def _with_logits(network: Network) -> Network:
    """With a last value for logits that read maps."""
    if network.logits.is_pointwise:
        return network
    value = Value("the logits", network.logits.channels, None)
    node = Node(value, network.logits, Units())
    return Network(network.image, (*network.nodes, node), Affine.of(value))


def _units(block: Block) -> int:
    own = 0 if block.units is None else block.units.count * block.node.value.features
    return own + 2 * len(block.cleared)


def _matrices(
    node: Node,
) -> Iterator[tuple[Reading, tuple[tuple[Value, int], ...], np.ndarray]]:
    """What a node reads: where, which features, and the matrix from them to its own features."""
    entries: dict[Reading, dict[tuple[Value, int], np.ndarray]] = {}
    target = node.value
    for (value, border), taps in node.affine.terms.items():
        for where, matrix in taps.items():
            for reading, place, block, start in _token_reads(target, value, border, where, matrix):
                rows = entries.setdefault(reading, {})
                for channel, row in enumerate(block):
                    if not row.any():
                        continue
                    feature = 0 if value.is_one else place * value.channels + channel
                    own = rows.setdefault((value, feature), np.zeros(target.features))
                    own[start : start + len(row)] += row
    for reading, rows in entries.items():
        matrix = np.array(list(rows.values()))
        yield reading, tuple(rows), matrix


def _token_reads(
    target: Value, value: Value, border: Border, where: object, matrix: np.ndarray
) -> Iterator[tuple[Reading, int, np.ndarray, int]]:
    """By token: where, the place in it, the matrix of channels, the first feature of the target."""
    if target.lattice is None:
        lattice = value.lattice
        if lattice is None:
            code = Code(Tokens((1, 1), (1, 1)), "zeros")
            yield Reading("self", code), 0, matrix, 0
        elif where == MEAN:
            reading = Reading("mean", Code(Tokens.of(lattice), "zeros"))
            for in_token in range(lattice.phases):
                yield reading, in_token, matrix / lattice.phases, 0
        else:
            assert isinstance(where, tuple)
            (row, own_row), (column, own_column) = map(divmod, where, lattice.held)
            code = Code(Tokens.of(lattice), "zeros")
            in_token = own_row * lattice.held[1] + own_column
            yield Reading("point", code, (row, column)), in_token, matrix, 0
        return
    assert value.lattice is not None
    assert isinstance(where, tuple)
    for number, place in enumerate(target.lattice.places()):
        offset, held = target.lattice.token_offset(value.lattice, place, where)
        code = Code(Tokens.of(value.lattice), border)
        reading = Reading("offset", code, offset)
        if offset == CENTRE:
            reading = Reading("self", Code(Tokens.of(target.lattice), "zeros"))
        source = held[0] * value.lattice.held[1] + held[1]
        yield reading, source, matrix, number * target.channels


def _heads(
    reading: Reading, sources: tuple[tuple[Value, int], ...], matrix: np.ndarray, dim: int
) -> Iterator[Head]:
    """Heads of width `dim` that add up to the matrix: by its rows or by its columns."""
    columns = np.flatnonzero(matrix.any(axis=0))
    if len(sources) <= len(columns):
        for start in range(0, len(sources), dim):
            rows = slice(start, start + dim)
            own = matrix[rows]
            yield Head(reading, sources[rows], np.eye(len(own)), own)
        return
    for start in range(0, len(columns), dim):
        own = columns[start : start + dim]
        yield Head(reading, sources, matrix[:, own], np.eye(matrix.shape[1])[own])


def _allocated(
    network: Network,
) -> tuple[dict[Value, np.ndarray], int, list[tuple[Value, list[int]]]]:
    """The channels of each value, how many there are, and which are cleared after which value."""
    last: dict[Value, int] = {network.image: -1}
    for number, node in enumerate(network.nodes):
        last[node.value] = number
        for value, _ in node.affine.terms:
            last[value] = number
    for value, _ in network.logits.terms:
        last[value] = len(network.nodes)
    channels: dict[Value, np.ndarray] = {}
    dead: dict[int, Value] = {}  # channels, and the value after which they are
    cleared: dict[Value, list[int]] = {}
    total = 0
    for number, value in enumerate([network.image, *(node.value for node in network.nodes)], -1):
        again = sorted(dead)[: value.features]
        for channel in again:
            cleared.setdefault(dead.pop(channel), []).append(channel)
        fresh = range(total, total := total + value.features - len(again))
        channels[value] = np.array([*again, *fresh])
        for other in [other for other in channels if last[other] == number and other is not value]:
            dead |= dict.fromkeys(channels[other].tolist(), value)
    return channels, total, list(cleared.items())


def _constants(
    demands: Iterable[tuple[Node, list[tuple[Reading, tuple[tuple[Value, int], ...], np.ndarray]]]],
) -> tuple[dict[Code, int], dict[Tokens, int], dict[Code, Pair], int]:
    """The channels of codes and means, the reach of codes, and how many channels there are."""
    codes: dict[Code, int] = {}
    means: dict[Tokens, int] = {}
    reach: dict[Code, Pair] = {}
    total = 0
    for _, matrices in demands:
        for reading, _, _ in matrices:
            code = reading.code
            if reading.kind == "mean":
                if code.tokens not in means:
                    means[code.tokens] = HELD + total
                    total += 1
                continue
            if code not in codes:
                codes[code] = HELD + total
                total += 4
            if reading.kind == "offset":
                own = reach.get(code, CENTRE)
                rows, columns = (max(a, abs(b)) for a, b in zip(own, reading.where, strict=True))
                reach[code] = rows, columns
    return codes, means, reach, total


def _sizes(
    demands: Sequence[tuple[Node, list[tuple[Reading, tuple[tuple[Value, int], ...], np.ndarray]]]],
    half: int,
    num_heads: int | None,
    head_dim: int | None,
) -> Pair:
    """H and d_H of fewest parameters, among those whose stream has `half` channels.

    Vectors, whose heads may be as many as a map has points, take several blocks.
    """
    widths = [
        [min(len(sources), int(matrix.any(axis=0).sum())) for _, sources, matrix in matrices]
        for _, matrices in demands
    ]
    of_maps = [
        len(each) for each, (node, _) in zip(widths, demands, strict=True) if node.value.lattice
    ]
    dims = sorted({LEAST_HEAD_DIM, 16, 24, 32, 48, 64} | {w for each in widths for w in each})
    best: tuple[float, Pair] | None = None
    heads = num_heads or max([1, *of_maps])
    least = max(LEAST_HEAD_DIM, -(-2 * half // heads))
    for dim in sorted({max(least, dim) for dim in dims}) if head_dim is None else [head_dim]:
        if heads * dim < 2 * half or dim < LEAST_HEAD:
            continue
        blocks = sum(
            max(-(-sum(-(-width // dim) for width in each) // heads), 1) for each in widths
        )
        cost = float(blocks * (heads * dim) ** 2)
        if best is None or cost < best[0]:
            best = cost, (heads, dim)
    if best is None:
        raise NotCompiled(
            f"num_heads={num_heads} and head_dim={head_dim}, but expected a product of at least "
            f"{2 * half}, the features of the stream, and heads of at least {LEAST_HEAD}"
        )
    return best[1]
