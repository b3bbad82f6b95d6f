"""What is known of a compiled vision transformer: where heads look, and what tokens depend on.

A token holds values of the network. The *field* of a value is the set of pixels from which a path
of nonzero weights leads to it: on no image does any other pixel matter. Its *Jacobian* at an image
is the product of the linear maps and of the slopes of the units on the way. Both are of the
network itself, from its plan; nothing is read off the transformer.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from convattn.compile.affine import Affine, Value
from convattn.compile.evaluation import affine_values, node_values, secant, transposed_values
from convattn.compile.network import Network, Node
from convattn.compile.plan import Plan
from convattn.compile.scalar import Units

Kind = Literal["offset", "self", "point", "mean", "unused"]
Numbers = dict[Value, np.ndarray]


@dataclass(frozen=True)
class KnownHead:
    """Where a head looks.

    The *lattice* of a head are the tokens that hold what it reads: `count` rows and columns of
    them, in each `every`-th row and column of the grid from the first ones on.

    Attributes:
        kind: `"offset"` and `"self"`: each token of the lattice looks at the one at an offset, or
            at itself, and the class token at itself; `"point"`: the class token looks at one token;
            `"mean"`: the class token looks at all of the lattice alike; `"unused"`: nothing is
            passed on. Where nothing else is said, a token looks at all tokens alike.
        where: The offset, or the token, in rows and columns of tokens.
        border: What an offset beyond the lattice reads: of `"zeros"` the class token, which holds
            zeros, of `"edge"` the nearest token, of `"circular"` the one reached by going around. A
            token of the grid outside the lattice looks at the class token for `"zeros"`, else at
            all tokens of the grid alike; it makes no value.
        every: Rows and columns of the grid from one token of the lattice to the next.
        count: Tokens of the lattice, on each axis; none of an unused head.

    In a block that makes a value of the class token, such as the last one, a `"self"` head passes
    the class token's own numbers on to itself: its constant 1, of which a bias is made, or a vector
    that it holds. What tokens of the grid look at there, nothing reads.
    """

    kind: Kind
    where: tuple[int, int] = (0, 0)
    border: str = "zeros"
    every: tuple[int, int] = (1, 1)
    count: tuple[int, int] = (0, 0)


@dataclass(frozen=True, eq=False)
class KnownValue:
    """A value that tokens hold.

    Attributes:
        name: As in the report.
        blocks: How many blocks have run when it is there.
        tokens: Which tokens hold it and are read later: places in the sequence, of which 0 is the
            class token.
        channels: Of the stream: feature f of the value is half of what stands in channel c_f less
            what stands in c_f + width/2. None of logits that the classifier makes of other values.
        numbers: On each image.
        field: The pixels on which each token's value can depend.
        jacobian: Of each feature by each pixel, on the first image; on all of them for the logits.
    """

    name: str
    blocks: int
    tokens: Int[np.ndarray, " tokens"]
    channels: Int[np.ndarray, " features"]
    numbers: Float[np.ndarray, "images tokens features"]
    field: Bool[np.ndarray, "tokens rows columns"]
    jacobian: Float[np.ndarray, "images tokens features channels rows columns"]


def known_heads(plan: Plan) -> list[list[KnownHead]]:
    """By block, its heads in their order."""
    blocks = []
    for block in plan.blocks:
        own = []
        for head in block.heads:
            reading, apart = head.reading, head.reading.code.tokens.apart
            row, column = (at * step for at, step in zip(reading.where, apart, strict=True))
            count = reading.code.tokens.count
            own.append(KnownHead(reading.kind, (row, column), reading.code.border, apart, count))
        blocks.append(own + [KnownHead("unused")] * (plan.num_heads - len(own)))
    return blocks


def known_values(
    plan: Plan, images: Float[np.ndarray, "images rows columns channels"]
) -> list[KnownValue]:
    """Every value that the network stores, and the logits last.

    Args:
        plan: Of the compiled network.
        images: Where the values are wanted; the Jacobian of all but the logits on the first.

    Raises:
        ValueError: If the images are not of the network's shape, or not finite.
    """
    network = _ending_in_logits(plan.network)
    images = _checked(network, images)
    values = node_values(network, images)
    slopes = _slopes(network, values)
    fields, read = _fields(network), points_read(network)
    jacobians = _jacobians(network, slopes, len(images))
    blocks = {block.node.value: number for number, block in enumerate(plan.blocks, 1)}
    known = []
    for node in network.nodes:
        value = node.value
        kept = len(images) if node is network.nodes[-1] else 1
        needed = np.flatnonzero(np.asarray(_by_token(value, read[value][None])).any((0, -1)))
        jacobian = _by_pixel(network, _by_token(value, jacobians[value]))[:kept, needed]
        field = np.asarray(_by_token(value, fields[value]).any(-1))[:, needed]
        known.append(
            KnownValue(
                value.name,
                blocks.get(value, len(plan.blocks)),
                _places(network, value)[needed],
                plan.channels.get(value, np.zeros(0, int)),
                _by_token(value, values[value])[:, needed],
                field.T.reshape(len(needed), *network.image_size),
                jacobian,
            )
        )
    return known


def _checked(network: Network, images: np.ndarray) -> np.ndarray:
    """The images in float64."""
    images = np.asarray(images, np.float64)
    expected = (*network.image_size, network.image.channels)
    if images.ndim != 4 or not len(images) or images.shape[1:] != expected:
        raise ValueError(
            f"images of the shape {images.shape}, but expected [images, rows, columns, channels] "
            f"with {expected[0]} rows, {expected[1]} columns and {expected[2]} channels"
        )
    if not np.isfinite(images).all():
        raise ValueError("the images hold numbers that are not finite; remove them")
    return images


def _ending_in_logits(network: Network) -> Network:
    """The network, its logits as its last value."""
    last = network.nodes[-1].value if network.nodes else None
    matrices = [taps for (value, _), taps in network.logits.terms.items() if value is last]
    if len(matrices) == len(network.logits.terms) == 1:
        (matrix,) = matrices[0].values()
        if np.array_equal(matrix, np.eye(network.logits.channels)):
            return network
    logits = Value("the logits", network.logits.channels, None)
    node = Node(logits, network.logits, Units())
    return Network(network.image, (*network.nodes, node), Affine.of(logits))


def _slopes(network: Network, values: Numbers) -> Numbers:
    """The derivative of each unit."""
    before = {node.value: affine_values(node.affine, values) for node in network.nodes}
    return {
        node.value: secant(node.units, before[node.value], before[node.value])
        for node in network.nodes
    }


def _jacobians(network: Network, slopes: Numbers, images: int) -> Numbers:
    """`[images · pixels, points…, features]`: one tangent for each number of an image."""
    count = int(np.prod([*network.image_size, network.image.channels]))
    unit = np.eye(count).reshape(count, *network.image_size, -1)
    tangents = {network.image: np.tile(unit, (images, 1, 1, 1))}
    for node in network.nodes:
        moved = affine_values(node.affine, tangents, constants=False)
        tangents[node.value] = moved * slopes[node.value].repeat(count, axis=0)
    return tangents


def _fields(network: Network) -> Numbers:
    """`[pixels, points…, channels]`: whether a path leads from each pixel."""
    count = int(np.prod(network.image_size))
    unit = np.eye(count).reshape(count, *network.image_size, 1)
    paths = {network.image: unit.repeat(network.image.channels, axis=-1)}
    for node in network.nodes:
        counted = affine_values(_nonzero(node.affine), paths, constants=False)
        paths[node.value] = (counted > 0).astype(float)
    return {value: counts > 0 for value, counts in paths.items()}


def points_read(network: Network) -> Numbers:
    """Of every value, `[points…, channels]`: whether a path of weights leads to a logit."""
    counts = _paths_back(network.logits, np.ones((1, network.logits.channels)))
    for node in network.nodes[::-1]:
        if node.value in counts:
            for value, part in _paths_back(node.affine, counts[node.value]).items():
                counts[value] = counts.get(value, 0) + part
    unread = {
        node.value: np.zeros((1, *_points(node.value), node.value.channels))
        for node in network.nodes
    }
    return {value: count[0] > 0 for value, count in (unread | counts).items()}


def _paths_back(affine: Affine, counts: np.ndarray) -> Numbers:
    """1 where a weight leads from a number of a value to a counted one."""
    parts = transposed_values(_nonzero(affine), (counts > 0).astype(float))
    return {value: (part > 0).astype(float) for value, part in parts.items()}


def _nonzero(affine: Affine) -> Affine:
    """With 1 for each weight that is not 0."""
    return affine.of_matrices(lambda matrix: (matrix != 0).astype(float))


def _points(value: Value) -> tuple[int, ...]:
    return () if value.lattice is None else value.lattice.count


def _by_token(value: Value, numbers: np.ndarray) -> np.ndarray:
    """`[batch, points…, channels]` as `[batch, tokens, features]`."""
    if value.lattice is None:
        return numbers[:, None]
    (rows, columns), (down, across) = value.lattice.tokens, value.lattice.held
    parts = numbers.reshape(len(numbers), rows, down, columns, across, value.channels)
    return parts.transpose(0, 1, 3, 2, 4, 5).reshape(len(numbers), rows * columns, -1)


def _places(network: Network, value: Value) -> np.ndarray:
    """In the sequence of tokens."""
    if value.lattice is None:
        return np.zeros(1, int)
    assert network.image.lattice is not None
    across = network.image.lattice.tokens[1]
    rows, columns = (
        np.arange(count) * apart
        for count, apart in zip(value.lattice.tokens, value.lattice.apart, strict=True)
    )
    return (1 + rows[:, None] * across + columns[None]).ravel()


def _by_pixel(network: Network, jacobian: np.ndarray) -> np.ndarray:
    """`[images · pixels, tokens, features]` as `[images, tokens, features, channels, rows, …]`."""
    image = (*network.image_size, network.image.channels)
    images = len(jacobian) // int(np.prod(image))
    return jacobian.reshape(images, *image, *jacobian.shape[1:]).transpose(0, 4, 5, 3, 1, 2)
