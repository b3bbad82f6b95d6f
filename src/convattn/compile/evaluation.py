"""A network of values in float64: the reference, and the transposes of its affine maps."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import ndtr

from convattn.compile.affine import MEAN, Affine, Border, Value
from convattn.compile.lattice import Pair
from convattn.compile.network import Network
from convattn.compile.scalar import Units

PADDING: dict[Border, Any] = {"zeros": "constant", "edge": "edge", "circular": "wrap"}
Maps = Mapping[Value, np.ndarray]  # `[batch, rows, columns, channels]`, or `[batch, channels]`


def affine_values(affine: Affine, values: Maps, *, constants: bool = True) -> np.ndarray:
    """An affine map of values, at every point.

    Args:
        values: All that it reads; the constant 1 may be left out.
        constants: Whether a constant that is left out counts, or only the linear part is wanted.
    """
    batch = len(next(iter(values.values())))
    count = () if affine.lattice is None else affine.lattice.count
    total = np.zeros((batch, *count, affine.channels))
    for (value, border), taps in affine.terms.items():
        if value not in values and not constants:
            continue
        source = values[value] if value in values else one_values(value, batch)
        for where, matrix in taps.items():
            total += _Window(affine, value, border, where).read(source) @ matrix
    return total


def absolute_values(affine: Affine, values: Maps, *, constants: bool = True) -> np.ndarray:
    """Σ |M||v|; the arguments are those of `affine_values`."""
    sizes = {value: np.abs(numbers) for value, numbers in values.items()}
    return affine_values(affine.of_matrices(np.abs), sizes, constants=constants)


def transposed_values(affine: Affine, cotangents: np.ndarray) -> dict[Value, np.ndarray]:
    """The transpose of its linear part, on cotangents at every point: one for each number read."""
    cotangent_of: dict[Value, np.ndarray] = {}
    for (value, border), taps in affine.terms.items():
        for where, matrix in taps.items():
            part = _Window(affine, value, border, where).spread(cotangents @ matrix.T)
            cotangent_of[value] = cotangent_of[value] + part if value in cotangent_of else part
    return cotangent_of


def one_values(value: Value, batch: int) -> np.ndarray:
    """The constant 1 at every point."""
    return np.ones((batch, *(() if value.lattice is None else value.lattice.count), 1))


class _Window:
    """What every point of an affine map reads of a value at one offset."""

    def __init__(self, affine: Affine, value: Value, border: Border, where: Any) -> None:
        self.affine, self.value, self.border, self.where = affine, value, border, where
        if value.lattice is None or affine.lattice is None:
            return
        self.widths: list[tuple[int, int]] = []
        self.cuts: list[slice] = []
        stride = affine.lattice.stride_from(value.lattice)
        sides = zip(where, stride, affine.lattice.count, value.lattice.count, strict=True)
        for offset, step, points, count in sides:
            last = step * (points - 1) + offset
            before, after = max(-offset, 0), max(last - count + 1, 0)
            self.widths.append((before, after))
            self.cuts.append(slice(offset + before, last + before + 1, step))

    def read(self, source: np.ndarray) -> np.ndarray:
        """By point of the affine map."""
        if self.value.lattice is None:
            return source
        if self.affine.lattice is None:
            mean = self.where == MEAN
            return source.mean((1, 2)) if mean else source[:, self.where[0], self.where[1]]
        padded = np.pad(source, [(0, 0), *self.widths, (0, 0)], mode=PADDING[self.border])
        return padded[:, self.cuts[0], self.cuts[1]]

    def spread(self, read: np.ndarray) -> np.ndarray:
        """The transpose of `read`."""
        lattice = self.value.lattice
        if lattice is None:
            return read
        batch, channels = len(read), read.shape[-1]
        cotangent = np.zeros((batch, *lattice.count, channels))
        if self.affine.lattice is None:
            if self.where == MEAN:
                return cotangent + read[:, None, None] / np.prod(lattice.count)
            cotangent[:, self.where[0], self.where[1]] = read
            return cotangent
        sides = [n + sum(width) for n, width in zip(lattice.count, self.widths, strict=True)]
        cotangent = np.zeros((batch, *sides, channels))
        cotangent[:, self.cuts[0], self.cuts[1]] = read
        for axis in range(2):
            rows = np.moveaxis(cotangent, axis + 1, 0)
            rows = _folded(rows, self.widths[axis], lattice.count[axis], self.border)
            cotangent = np.moveaxis(rows, 0, axis + 1)
        return cotangent


def _folded(padded: np.ndarray, width: Pair, count: int, border: Border) -> np.ndarray:
    """The transpose of padding the first axis."""
    before, after = width
    inside = padded[before : before + count].copy()
    if border == "edge":
        inside[0] += padded[:before].sum(0)
        inside[-1] += padded[before + count :].sum(0)
    elif border == "circular":
        for place in (*range(before), *range(before + count, before + count + after)):
            inside[(place - before) % count] += padded[place]
    return inside


def secant(units: Units, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(f(b) - f(a))/(b - a), and a derivative where they agree; no larger than f's slopes."""
    apart = second - first
    if units.is_gelu:
        slope = ndtr(first) + first * np.exp(-(first**2) / 2) / np.sqrt(2 * np.pi)
    else:
        slope = units.slope_at(first)
    rise = units.call(second) - units.call(first)
    ratio = rise / np.where(apart == 0, 1.0, apart)
    return np.where(apart == 0, slope, np.clip(ratio, -units.lipschitz, units.lipschitz))


def node_values(network: Network, images: np.ndarray) -> dict[Value, np.ndarray]:
    """The image `[batch, rows, columns, channels]` and every value."""
    values = {network.image: np.asarray(images, np.float64)}
    for node in network.nodes:
        values[node.value] = node.units.call(affine_values(node.affine, values))
    return values


def evaluate(network: Network, images: np.ndarray) -> np.ndarray:
    """The logits."""
    return affine_values(network.logits, node_values(network, images))
