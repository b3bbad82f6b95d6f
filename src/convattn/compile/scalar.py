"""Functions of one number, as MLPs of vision transformers compute them.

A hidden unit is a·GELU(w x + b). With Φ the normal distribution function, GELU(z) = z·Φ(z), and for
every z

    GELU(z) - GELU(-z) = z,                                                                   (1)
    0 ≤ ReLU(z) - GELU(s z)/s ≤ m/s,   m = max_z z·Φ(-z) = 0.16997…                           (2)

(1) since Φ(z) + Φ(-z) = 1. (2): for z ≥ 0 the difference is z - z·Φ(sz) = (1/s)·(sz)·Φ(-sz), for
z < 0 it is -z·Φ(sz) = (1/s)·|sz|·Φ(-|sz|). So a piecewise linear function, written as

    f(z) = z + c + d z + Σ_k j_k ReLU(±(z - t_k)),

costs one unit a bend, and two more if d ≠ 0; where a piece has the slope 1, d = 0. GELU itself is
z + GELU(-z), by (1).
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float
from scipy.special import erf

Array = Float[np.ndarray, "*numbers"]
GELU_DEVIATION = 0.16997120747990369  # max z·Φ(-z), at z = 0.7517915246935645
GELU_SLOPE = 1.13  # the largest of GELU
_SAMPLES = np.concatenate([np.linspace(-8, 8, 161), [-100.0, -20.0, 20.0, 100.0]])
_PARALLEL = 1e-12  # of their numbers: what taking differences of lines leaves of a slope
_CLOSE = 1e-6  # constants of a network in float32 are off by 6e-8


@dataclass(frozen=True, eq=False)
class Scalar:
    """A function of numbers.

    Attributes:
        call: It.
        bends: Where it may bend, if it is piecewise linear; else None.
        slope: Of z ↦ slope·z + shift, if it is that.
        shift: The same.
    """

    call: Callable[[Array], Array]
    bends: tuple[float, ...] | None = ()
    slope: float | None = None
    shift: float = 0.0

    @staticmethod
    def affine(slope: float, shift: float = 0.0) -> "Scalar":
        """z ↦ slope·z + shift."""
        return Scalar(lambda z: slope * z + shift, (), slope, shift)

    def then(self, slope: float, shift: float = 0.0) -> "Scalar":
        """slope·f + shift."""
        if self.slope is not None:
            return Scalar.affine(slope * self.slope, slope * self.shift + shift)
        return Scalar(lambda z: slope * self.call(z) + shift, self.bends)

    def smooth(self, outer: Callable[[Array], Array]) -> "Scalar":
        """outer(f), of which nothing more is known."""
        return Scalar(lambda z: outer(self.call(z)), None)


IDENTITY = Scalar.affine(1.0)


def combined(one: Scalar, other: Scalar, operation: Callable[[Array, Array], Array]) -> Scalar:
    """operation(f, g), piecewise linear where both are and it is `np.add` or `np.subtract`."""
    linear = operation in (np.add, np.subtract)
    if linear and one.slope is not None and other.slope is not None:
        sign = 1 if operation is np.add else -1
        return Scalar.affine(one.slope + sign * other.slope, one.shift + sign * other.shift)
    bends = None
    if linear and one.bends is not None and other.bends is not None:
        bends = tuple(sorted({*one.bends, *other.bends}))
    return Scalar(lambda z: operation(one.call(z), other.call(z)), bends)


def chosen(sign: Scalar, above: Scalar, below: Scalar) -> Scalar | None:
    """z ↦ above(z) where sign(z) > 0, else below(z); None if that is not continuous.

    >>> relu = chosen(IDENTITY, IDENTITY, Scalar.affine(0.0))
    >>> relu.bends, relu.call(np.array([-2.0, 3.0])).tolist()
    ((0.0,), [0.0, 3.0])
    """

    def call(z: Array) -> Array:
        return np.where(sign.call(z) > 0, above.call(z), below.call(z))

    parts = [part.bends for part in (sign, above, below)]
    if any(bends is None for bends in parts):
        return Scalar(call, None)
    bends = sorted({bend for part in parts for bend in part or ()})
    crossings = _zeros(sign, bends)
    for point in crossings:
        ends = above.call(np.array([point])), below.call(np.array([point]))
        if not np.allclose(*ends, rtol=1e-6, atol=1e-6 * max(1.0, abs(point))):
            return None
    return Scalar(call, tuple(sorted({*bends, *crossings})))


def _zeros(function: Scalar, bends: list[float]) -> list[float]:
    """Where a piecewise linear function changes its sign."""
    edges = [(bends[0] if bends else 0.0) - 1, *bends, (bends[-1] if bends else 0.0) + 1]
    found = []
    for number, (left, right) in enumerate(pairwise(edges)):
        first, last = function.call(np.array([left, right], np.float64)).tolist()
        slope = (last - first) / (right - left)
        if abs(slope) <= _PARALLEL * max(abs(first), abs(last)):
            continue
        zero = left - first / slope
        inside = (number == 0 or zero >= left) and (number == len(edges) - 2 or zero <= right)
        if inside:
            found.append(float(zero))
    return found


@dataclass(frozen=True)
class Units:
    """f(z) = z + shift + slope·z + Σ_k jump_k ReLU(side_k (z - t_k)), or GELU(z) = z + GELU(-z).

    Attributes:
        shift: Added to what was stored.
        slope: Of z beside the identity; two units, exact by (1), where it is not zero.
        bends: t_k, jump_k and side_k, which is 1 or -1; a unit each.
        is_gelu: Whether it is GELU, with one unit.
    """

    shift: float = 0.0
    slope: float = 0.0
    bends: tuple[tuple[float, float, int], ...] = ()
    is_gelu: bool = False

    @property
    def count(self) -> int:
        """Hidden units for each number."""
        return len(self.bends) + 2 * bool(self.slope) + self.is_gelu

    @property
    def lipschitz(self) -> float:
        """The largest slope in absolute value."""
        if self.is_gelu:
            return GELU_SLOPE
        bends = sorted(bend for bend, _, _ in self.bends) or [0.0]
        middles = [(a + b) / 2 for a, b in pairwise([bends[0] - 2, *bends, bends[-1] + 2])]
        return float(np.abs(self.slope_at(np.array(middles))).max())

    def slope_at(self, number: Array) -> Array:
        """The derivative where there is one, of what is piecewise linear."""
        slope = np.full(np.shape(number), 1 + self.slope)
        for bend, jump, side in self.bends:
            slope = slope + side * jump * (side * (number - bend) > 0)
        return slope


def units_of(function: Scalar) -> Units | None:
    """The hidden units of a function; None if it is neither piecewise linear nor GELU.

    >>> units_of(chosen(IDENTITY, IDENTITY, Scalar.affine(0.0)))
    Units(shift=0.0, slope=0.0, bends=((0.0, 1.0, -1),), is_gelu=False)
    """
    if function.slope is not None:
        return Units(function.shift, function.slope - 1)
    if function.bends:
        return _bent(function, function.bends)
    if function.bends is not None:
        first, second = function.call(np.array([0.0, 1.0])).tolist()
        return Units(_rounded(first), _rounded(second - first) - 1)
    gelu = _SAMPLES * (1 + erf(_SAMPLES / np.sqrt(2))) / 2
    if np.allclose(function.call(_SAMPLES), gelu, rtol=_CLOSE, atol=_CLOSE):
        return Units(is_gelu=True)
    return None


def _bent(function: Scalar, bends: tuple[float, ...]) -> Units:
    """From the piece whose slope is nearest to 1, to both sides."""
    edges = np.array([bends[0] - 1, *bends, bends[-1] + 1])
    values = function.call(edges)
    slopes = [_rounded(slope) for slope in np.diff(values) / np.diff(edges)]
    base = int(np.argmin([abs(slope - 1) for slope in slopes]))
    jumps = [
        (float(bend), right - left, 1 if number >= base else -1)
        for number, (bend, (left, right)) in enumerate(zip(bends, pairwise(slopes), strict=True))
        if right != left
    ]
    shift = _rounded(values[base] - slopes[base] * edges[base])
    return Units(shift, slopes[base] - 1, tuple(jumps))


def _rounded(number: float) -> float:
    """A slope without what taking differences has added."""
    near = round(float(number), 12)
    return near if abs(near - number) <= 1e-12 * max(1.0, abs(number)) else float(number)
