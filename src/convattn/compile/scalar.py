"""Functions of one number, as MLPs of vision transformers compute them.

A hidden unit is a·GELU(w x + b). With Φ the normal distribution function, GELU(z) = z·Φ(z), and for
every z

    GELU(z) - GELU(-z) = z,                                                                   (1)
    0 ≤ ReLU(z) - GELU(s z)/s ≤ m/s,   m = max_z z·Φ(-z) = 0.16997…                           (2)

(1) since Φ(z) + Φ(-z) = 1. (2): for z ≥ 0 the difference is z - z·Φ(sz) = (1/s)·(sz)·Φ(-sz), for
z < 0 it is -z·Φ(sz) = (1/s)·|sz|·Φ(-|sz|). A piecewise linear function f has a piece a z + b with a
≠ 0, or is a constant. With u = a z + b,

    f = u + Σ_k j_k ReLU(±(u - t_k)),

a unit for each bend, since u is an affine map as z is. GELU itself is z + GELU(-z), by (1).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

Array = Float[np.ndarray, "*numbers"]
Line = tuple[float, float]  # slope and shift
GELU_DEVIATION = 0.16997120747990369  # max z·Φ(-z), at z = 0.7517915246935645
GELU_SLOPE = 1.13  # the largest of GELU
_SAMPLES = np.concatenate([np.linspace(-8, 8, 161), [-100.0, -20.0, 20.0, 100.0]])
_CLOSE = 1e-6  # constants of a network in float32 are off by 6e-8
_EQUAL = 2.0**-50  # of two lines: what rounding has made of one
_FAR = 1e300  # lines that cross beyond do not cross; well below where a crossing overflows


@dataclass(frozen=True, eq=False)
class Scalar:
    """A function of numbers.

    Attributes:
        call: It.
        knots: Where it may bend, in their order, if it is piecewise linear; else None.
        lines: The line between two knots, before the first and after the last.
    """

    call: Callable[[Array], Array]
    knots: tuple[float, ...] | None = None
    lines: tuple[Line, ...] = ()

    @staticmethod
    def of_lines(knots: Sequence[float], lines: Sequence[Line]) -> "Scalar":
        """The piecewise linear function; lines that are the same are joined."""
        pieces, bends = [lines[0]], []
        for knot, line in zip(knots, lines[1:], strict=True):
            if not _is_same(pieces[-1], line):
                bends.append(float(knot))
                pieces.append(line)
        edges, slopes, shifts = np.array(bends), *np.array(pieces, np.float64).T

        def call(z: Array) -> Array:
            place = np.searchsorted(edges, z)
            return slopes[place] * z + shifts[place]

        return Scalar(call, tuple(bends), tuple(pieces))

    @staticmethod
    def affine(slope: float, shift: float = 0.0) -> "Scalar":
        """z ↦ slope·z + shift."""
        return Scalar.of_lines((), [(slope, shift)])

    @property
    def line(self) -> Line | None:
        """Slope and shift, if it is one line."""
        return self.lines[0] if self.knots == () else None

    def at(self, number: float) -> Line:
        """The line of a piecewise linear function at a number that is no knot."""
        assert self.knots is not None
        return self.lines[int(np.searchsorted(self.knots, number))]

    def then(self, slope: float, shift: float = 0.0) -> "Scalar":
        """slope·f + shift."""
        if self.knots is None:
            return Scalar(lambda z: slope * self.call(z) + shift)
        return Scalar.of_lines(self.knots, [(slope * a, slope * b + shift) for a, b in self.lines])

    def smooth(self, outer: Callable[[Array], Array]) -> "Scalar":
        """outer(f), of which nothing more is known."""
        return Scalar(lambda z: outer(self.call(z)))


IDENTITY = Scalar.affine(1.0)


def _is_same(one: Line, other: Line) -> bool:
    return all(abs(a - b) <= _EQUAL * max(abs(a), abs(b)) for a, b in zip(one, other, strict=True))


def combined(one: Scalar, other: Scalar, operation: Callable[[Array, Array], Array]) -> Scalar:
    """operation(f, g), piecewise linear where both are and it is `np.add` or `np.subtract`."""
    if operation in (np.add, np.subtract) and one.knots is not None and other.knots is not None:
        sign = 1 if operation is np.add else -1
        knots = sorted({*one.knots, *other.knots})
        pairs = [(one.at(point), other.at(point)) for point in _between(knots)]
        return Scalar.of_lines(knots, [(a + sign * c, b + sign * d) for (a, b), (c, d) in pairs])
    return Scalar(lambda z: operation(one.call(z), other.call(z)))


def chosen(sign: Scalar, above: Scalar, below: Scalar) -> Scalar | None:
    """z ↦ above(z) where sign(z) > 0, else below(z); None if that is not continuous.

    >>> relu = chosen(IDENTITY, IDENTITY, Scalar.affine(0.0))
    >>> relu.knots, relu.lines, relu.call(np.array([-2.0, 3.0])).tolist()
    ((0.0,), ((0.0, 0.0), (1.0, 0.0)), [0.0, 3.0])
    """
    parts = (sign, above, below)
    if any(part.knots is None for part in parts):
        return Scalar(lambda z: np.where(sign.call(z) > 0, above.call(z), below.call(z)))
    knots = sorted({knot for part in parts for knot in part.knots or ()} | _zeros(sign))
    lines = []
    for point in _between(knots):
        slope, shift = sign.at(point)
        lines.append((above if slope * point + shift > 0 else below).at(point))
    for knot, ((a, b), (c, d)) in zip(knots, pairwise(lines), strict=True):
        one, other = a * knot + b, c * knot + d
        step, scale = abs(one - other), max(1.0, abs(knot), abs(one))
        # A bend is where two lines meet: a step moves it by step/|c - a|.
        if step > max(_CLOSE * min(1.0, abs(c - a)), _EQUAL) * scale:
            return None
    return Scalar.of_lines(knots, lines)


def _between(knots: Sequence[float]) -> list[float]:
    """A number before, between and after knots."""
    if not knots:
        return [0.0]
    ends = [knots[0] - max(1.0, abs(knots[0])), knots[-1] + max(1.0, abs(knots[-1]))]
    return [ends[0], *((a + b) / 2 for a, b in pairwise(knots)), ends[1]]


def _zeros(function: Scalar) -> set[float]:
    """Where a piecewise linear function changes its sign, up to `_FAR`."""
    edges = [-np.inf, *(function.knots or ()), np.inf]
    zeros = set()
    for (left, right), (slope, shift) in zip(pairwise(edges), function.lines, strict=True):
        zero = -shift / slope if slope else np.inf
        if left <= zero <= right and abs(zero) <= _FAR:
            zeros.add(float(zero) + 0.0)
    return zeros


@dataclass(frozen=True)
class Units:
    """f(u) = u + Σ_k jump_k ReLU(side_k (u - t_k)), or GELU(u) = u + GELU(-u).

    Attributes:
        bends: t_k, jump_k and side_k, which is 1 or -1; a unit each.
        is_gelu: Whether it is GELU, with one unit.
    """

    bends: tuple[tuple[float, float, int], ...] = ()
    is_gelu: bool = False

    @property
    def count(self) -> int:
        """Hidden units for each number."""
        return len(self.bends) + self.is_gelu

    @property
    def lipschitz(self) -> float:
        """The largest slope in absolute value."""
        if self.is_gelu:
            return GELU_SLOPE
        points = _between(sorted(bend for bend, _, _ in self.bends))
        return float(np.abs(self.slope_at(np.array(points))).max())

    def slope_at(self, number: Array) -> Array:
        """The derivative where there is one, of what is piecewise linear."""
        slope = np.ones(np.shape(number))
        for bend, jump, side in self.bends:
            slope = slope + side * jump * (side * (number - bend) > 0)
        return slope

    def call(self, numbers: Array) -> Array:
        """The function itself: ReLU for every bend."""
        if self.is_gelu:
            return numbers * ndtr(numbers)
        total = np.asarray(numbers)
        for bend, jump, side in self.bends:
            total = total + jump * np.maximum(side * (numbers - bend), 0)
        return total

    def around(self, sizes: Array, mean: float = 0.0) -> Array:
        """|z| + Σ |jump|(|z| + |t| + (1 + |t|)μ), and 2|z| + μ for GELU."""
        total = sizes + (sizes + mean) * self.is_gelu
        for bend, jump, _ in self.bends:
            total = total + abs(jump) * (sizes + abs(bend) + (1 + abs(bend)) * mean)
        return total

    @property
    def range(self) -> tuple[float, float]:
        """Between which numbers all of its values are."""
        if self.is_gelu:
            return -GELU_DEVIATION, np.inf
        knots = np.array(sorted(bend for bend, _, _ in self.bends))
        points = np.array(_between(knots.tolist()))
        held = self.call(knots) if self.bends else np.array([np.inf, -np.inf])
        first, *_, last = self.slope_at(points[[0, 0, -1]])
        low = -np.inf if first > 0 or last < 0 else held.min()
        high = np.inf if first < 0 or last > 0 else held.max()
        return float(low), float(high)


class Normal(NamedTuple):
    """f(z) = outer·units(scale·z + bias) + shift."""

    scale: float
    bias: float
    units: Units
    outer: float = 1.0
    shift: float = 0.0


def normal_form(function: Scalar) -> Normal | None:
    """A function as hidden units; None if it is neither piecewise linear nor GELU.

    Args:
        function: No constant.

    >>> normal_form(chosen(IDENTITY, IDENTITY, Scalar.affine(0.0)))
    Normal(scale=1.0, bias=0.0, units=Units(bends=((0.0, 1.0, -1),), is_gelu=False), ...)
    """
    if function.knots is None:
        return _gelu(function)
    slopes = [slope for slope, _ in function.lines]
    base = slopes.index(1.0) if 1.0 in slopes else int(np.argmax(np.abs(slopes)))
    scale, bias = function.lines[base]
    lines = [(a / scale, b - a / scale * bias) for a, b in function.lines]  # of u
    lines[base] = 1.0, 0.0
    if scale < 0:
        lines, base = lines[::-1], len(lines) - 1 - base
    bends = tuple(
        ((b - d) / (c - a), c - a, 1 if number >= base else -1)
        for number, ((a, b), (c, d)) in enumerate(pairwise(lines))
    )
    return Normal(scale, bias, Units(bends))


def _gelu(function: Scalar) -> Normal | None:
    """c·GELU + d."""
    low, middle, high = function.call(np.array([-100.0, 20.0, 100.0])).tolist()
    outer = (high - middle) / 80
    expected = outer * _SAMPLES * ndtr(_SAMPLES) + low
    most = _CLOSE * max(abs(outer), abs(low))
    actual = function.call(_SAMPLES)
    if not np.isfinite(actual).all() or not outer:
        return None
    if not np.allclose(actual, expected, rtol=_CLOSE, atol=most):
        return None
    outer = 1.0 if abs(outer - 1) <= _CLOSE else outer
    return Normal(1.0, 0.0, Units(is_gelu=True), outer, low if abs(low) > most else 0.0)
