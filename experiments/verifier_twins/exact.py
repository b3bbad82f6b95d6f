"""A CNN in rational arithmetic: on an image, and bounds for all images of a box.

*The idea.* Every layer is written out from the definition of a convolution as sums of rational
numbers, independently of JAX and of the compiler, and linear forms of the last layer are carried
back to the pixels (Zhang et al. 2018, Singh et al. 2019). On l ≤ z ≤ u with l < 0 < u,

    αz ≤ ReLU(z) ≤ λz + max(-λl, (1 - λ)u)   for every α, λ in [0, 1],

since both sides are convex or linear and hold at l, 0 and u. λ is u/(u - l) to ten bits, α is 0 or
1, so that all numbers stay dyadic. The last form is least at a corner of the box. Nothing rounds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor

import numpy as np

from verifier_twins.networks import Layer, Network

Form = dict[int, Fraction]  # coefficients of numbers, by index
_BITS = 1024


def rational(numbers: np.ndarray) -> list[Fraction]:
    """Floats, row by row, as what they are."""
    return [Fraction(float(number)) for number in np.asarray(numbers).ravel()]


@dataclass(frozen=True)
class Rows:
    """An affine map: of each output a form and a constant."""

    forms: tuple[Form, ...]
    shifts: tuple[Fraction, ...]

    def at(self, numbers: Sequence[Fraction]) -> list[Fraction]:
        """Its values."""
        return [
            shift + sum((c * numbers[place] for place, c in form.items()), Fraction(0))
            for form, shift in zip(self.forms, self.shifts, strict=True)
        ]


def add_multiple(total: Form, factor: Fraction, form: Form) -> None:
    """Add a multiple of a form to another, in place; nothing is added for a factor of 0."""
    for place, weight in form.items() if factor else ():
        total[place] = total.get(place, Fraction(0)) + factor * weight


def layer_rows(layer: Layer, shape: tuple[int, int, int]) -> tuple[Rows, tuple[int, int, int]]:
    """A convolution before ReLU, by its definition; the shape of its result."""
    channels, rows, columns = shape
    outputs, _, height, width = layer.kernel.shape
    (top, bottom), (left, right) = layer.offsets((rows, columns))
    step, apart = layer.stride, layer.dilation
    high = (rows + top + bottom - apart * (height - 1) - 1) // step + 1
    wide = (columns + left + right - apart * (width - 1) - 1) // step + 1
    forms, shifts = [], []
    for out, i, j in np.ndindex(outputs, high, wide):
        form: Form = {}
        for channel, a, b in np.ndindex(channels, height, width):
            row, column = step * i + apart * a - top, step * j + apart * b - left
            weight = float(layer.kernel[out, channel, a, b])
            if weight and 0 <= row < rows and 0 <= column < columns:
                form[(channel * rows + row) * columns + column] = Fraction(weight)
        if layer.adds_input:
            place = (out * rows + i) * columns + j
            form[place] = form.get(place, Fraction(0)) + 1
        forms.append(form)
        shifts.append(Fraction(float(layer.bias[out])))
    return Rows(tuple(forms), tuple(shifts)), (outputs, high, wide)


def network_rows(network: Network) -> list[Rows]:
    """Every layer, and the classifier."""
    shape, layers = network.image, []
    for layer in network.layers:
        rows, shape = layer_rows(layer, shape)
        layers.append(rows)
    weights = network.weights(shape[1] * shape[2])
    forms = tuple(
        {place: Fraction(weight) for place, weight in enumerate(own.tolist()) if weight}
        for own in weights.T
    )
    return [*layers, Rows(forms, tuple(rational(network.bias)))]


def logits(layers: Sequence[Rows], image: Sequence[Fraction]) -> list[Fraction]:
    """Of an image."""
    numbers = list(image)
    for rows in layers[:-1]:
        numbers = [max(number, Fraction(0)) for number in rows.at(numbers)]
    return layers[-1].at(numbers)


class Certified:
    """Bounds of a network on a box, by linear forms of the pixels.

    Args:
        layers: From `network_rows`.
        lower, upper: The pixels of the box.
    """

    def __init__(
        self, layers: Sequence[Rows], lower: Sequence[Fraction], upper: Sequence[Fraction]
    ) -> None:
        self.layers, self.lower, self.upper = layers, lower, upper
        self.ranges: list[list[tuple[Fraction, Fraction]]] = []
        for number, rows in enumerate(layers[:-1]):
            own = []
            for form, shift in zip(rows.forms, rows.shifts, strict=True):
                negated = {place: -weight for place, weight in form.items()}
                low = shift + self.least(form, number)[0]
                own.append((low, shift - self.least(negated, number)[0]))
            self.ranges.append(own)

    def least(self, form: Form, number: int) -> tuple[Fraction, list[bool]]:
        """A lower bound of a form of what layer `number` reads; which pixels are upper there."""
        total = Fraction(0)
        for rows, ranges in zip(
            reversed(self.layers[:number]), reversed(self.ranges[:number]), strict=True
        ):
            before: Form = {}
            for place, weight in form.items():
                slope, shift = _relaxed(weight > 0, *ranges[place])
                total += weight * (shift + slope * rows.shifts[place])
                add_multiple(before, weight * slope, rows.forms[place])
            form = before
        at_upper = [form.get(place, 0) < 0 for place in range(len(self.lower))]
        for place, weight in form.items():
            total += weight * (self.upper[place] if at_upper[place] else self.lower[place])
        return total, at_upper


def _relaxed(below: bool, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """Slope and shift of a line below or above ReLU on an interval."""
    if low >= 0 or high <= 0:
        return Fraction(low >= 0), Fraction(0)
    if below:
        return Fraction(high > -low), Fraction(0)
    slope = Fraction(floor(high / (high - low) * _BITS), _BITS)
    return slope, max(-slope * low, (1 - slope) * high)
