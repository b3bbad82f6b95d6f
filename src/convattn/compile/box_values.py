"""The values of a network on a box of images, and what evaluating it in floating point adds.

*The idea.* Interval arithmetic says how large each number can be; rounding is relative to sums of
absolute values; both go through the network in one pass. So a bound for a box needs no run.

*Intervals.* An affine map A takes centre and radius to A(centre) and |A|(radius). In float64 it is
off by at most γ_(k+8) |A||v|, k the products of an entry, which is added to the radius. A function
of one number that is piecewise linear takes its extremes at the ends and at bends, GELU at -0.7518.

*Evaluation in a dtype.* With ẽ the errors of what it reads, |v| ≤ a, and L the largest slope of the
function, a value is off by at most

    L (|M|ẽ + γ_(k+8) |M|(a + ẽ)) + γ_(8+2c) (|z| + Σ |jump|(|z| + |t|)),

c the number of bends t. *As attention in the exact form*, with the uniform weight ε, the first γ is
the relative error of `bounds/rounding.py`, and |M|a is the majorant of `bounds/majorant.py`. There
a head adds M(1 - ε)/(1 - ε) of the pixel that it sees and Mε/(1 - ε) of the mean of all, and the
uniform head subtracts as much again: at most |M|a + 2ε/(1 - ε) |M| max a.

*Assumed.* Sums run in any order, with or without fused operations; convolutions are sums of
products (no Winograd, no TF32). Nothing rounded is the case of exact arithmetic. Numbers below the
normal range may be read as zero: fewer than 2²⁰ of at most 2⁻¹²⁶, by factors below 2¹⁶, are 2⁻⁹⁰.
The network is what the compiler has read of the function, each of its affine maps computed as one
sum, and in attention as one convolution of each value.
"""

from collections.abc import Mapping, Sequence

import jax.numpy as jnp
import numpy as np

from convattn.bounds.rounding import layer_error_bound
from convattn.compile.affine import Affine, Value
from convattn.compile.evaluation import absolute_values, affine_values
from convattn.compile.network import Network
from convattn.compile.scalar import Units
from convattn.encodings.layer import AttentionLayer
from convattn.operators.roundoff import gamma, unit_roundoff

INFLATED, UNDERFLOW = 1 + 2.0**-20, 2.0**-90  # of our own float64; of what a dtype reads as zero
OTHERS = 8  # roundings
_LEAST_OF_GELU = -0.7517915246935645  # where it is
_WIDE = unit_roundoff(np.float64)
Maps = dict[Value, np.ndarray]


class BoxValues:
    """Intervals of all values, arrays `[1, rows, columns, channels]` or `[1, channels]`.

    Args:
        network: As the compiler has read it.
        lower, upper: `[rows, columns, channels]`.

    Raises:
        ValueError: For bounds of other shapes, not finite ones, and lower ones above upper ones.
    """

    def __init__(self, network: Network, lower: np.ndarray, upper: np.ndarray) -> None:
        expected = (*network.image_size, network.image.channels)
        if lower.shape != expected or upper.shape != expected:
            raise ValueError(
                f"lower and upper of (rows, columns, channels) {lower.shape} and {upper.shape}, "
                f"but expected images of {expected}, for which the network was compiled"
            )
        if not (np.isfinite([lower, upper]).all() and (lower <= upper).all()):
            raise ValueError(
                "lower and upper that are no box, but expected finite numbers, and lower nowhere "
                "above upper; exchange them, or remove what is not finite"
            )
        self.network = network
        self.low: Maps = {network.image: np.asarray(lower, np.float64)[None]}
        self.high: Maps = {network.image: np.asarray(upper, np.float64)[None]}
        for node in network.nodes:
            low, high = self.interval(node.affine)
            sizes = node.units.around(np.maximum(abs(low), abs(high)))
            slack = gamma(OTHERS + 2 * node.units.count, _WIDE) * sizes
            low, high = _extremes(node.units, low, high)
            self.low[node.value], self.high[node.value] = low - slack, high + slack

    def interval(self, affine: Affine) -> tuple[np.ndarray, np.ndarray]:
        """Between which the numbers of an affine map are, rounded outwards."""
        middle = {v: (self.low[v] + self.high[v]) / 2 for v in self.low}
        half = {v: INFLATED * (self.high[v] - middle[v]) for v in self.low}
        centre, radius = (
            affine_values(affine, middle),
            absolute_values(affine, half, constants=False),
        )
        radius += gamma(affine.products + OTHERS, _WIDE) * absolute_values(affine, self.sizes())
        return centre - INFLATED * radius, centre + INFLATED * radius

    def sizes(self, error: Mapping[Value, np.ndarray] | None = None) -> Maps:
        """a, or a + ẽ of the values whose errors are there."""
        most = {v: np.maximum(abs(self.low[v]), abs(self.high[v])) for v in self.low}
        return most if error is None else {v: most[v] + e for v, e in error.items()}

    def evaluation_error(
        self, dtype: str, layers: Sequence[tuple[AttentionLayer, Sequence[int]]] = ()
    ) -> np.ndarray:
        """How far logits `[classes]` computed in a dtype can be from exact ones.

        Args:
            dtype: In which every operation is rounded.
            layers: What takes the place of its convolutions where it runs as attention in the exact
                form, by the back end `dense`, and the shape of the images that each is given.
        """
        unit = unit_roundoff(dtype)
        errors: Maps = {self.network.image: np.zeros_like(self.low[self.network.image])}

        def mapped(affine: Affine) -> np.ndarray:
            sizes = self.sizes(errors)
            rounding = gamma(affine.products + OTHERS, unit) * absolute_values(affine, sizes)
            for layer, shape in layers:
                own = _of_attention(layer, shape, affine, sizes)
                rounding = np.maximum(rounding, own * (1 + gamma(OTHERS, unit)))
            carried = absolute_values(affine, errors, constants=False)
            return carried + (rounding + UNDERFLOW) * INFLATED

        for node in self.network.nodes:
            error = mapped(node.affine)
            most = np.maximum(*map(abs, self.interval(node.affine))) + error
            own = gamma(OTHERS + 2 * node.units.count, unit) * node.units.around(most)
            errors[node.value] = (node.units.lipschitz * error + own) * INFLATED
        return mapped(self.network.logits)[0]


def _of_attention(
    layer: AttentionLayer, shape: Sequence[int], affine: Affine, sizes: Maps
) -> np.ndarray:
    """What a layer in the exact form rounds, and the sums around it."""
    weight = float(layer.encoding.uniform_weight)  # type: ignore[attr-defined]
    most = max(float(a.max()) for a in sizes.values())
    spread = 2 * weight / (1 - weight) * of_all_taps(affine, largest(sizes))
    majorant = absolute_values(affine, sizes) + spread
    dtype = layer.dtype or jnp.float32
    images, unit = jnp.full(shape, most, dtype), unit_roundoff(dtype)
    error = float(layer_error_bound(layer, images, np.ones((1, 1)))[0, 0])
    return (error + gamma(OTHERS, unit)) * majorant


def largest(values: Mapping[Value, np.ndarray]) -> Maps:
    """By channel, over all points."""
    return {
        value: numbers.reshape(-1, numbers.shape[-1]).max(0) for value, numbers in values.items()
    }


def of_all_taps(affine: Affine, channels: Mapping[Value, np.ndarray]) -> np.ndarray:
    """|M| of numbers `[channels]` that stand at every point, outside the image too.

    Args:
        channels: Of the values that count.
    """
    total = np.zeros(affine.channels)
    for (value, _), taps in affine.terms.items():
        for matrix in taps.values() if value in channels else ():
            total += channels[value] @ np.abs(matrix)
    return total


def _extremes(units: Units, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of a function on intervals."""
    inner = [_LEAST_OF_GELU] if units.is_gelu else [bend for bend, _, _ in units.bends]
    points = [low, high, *(np.clip(point, low, high) for point in inner)]
    values = np.stack([units.call(point) for point in points])
    return values.min(0), values.max(0)
