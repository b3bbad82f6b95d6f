"""What is written has been run: an image through the stored weights, against the convolution.

The image holds integers from -8 to 8, exact in every format; the convolution is computed in
float64, and its own rounding, at most γ_n Σ|X||W| for sums of n products, joins the bound. Where
kernel and bias are integers so small that nothing in a one-hot layer is rounded, the bound is
zero: the results must be equal.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from convattn.bounds.limit_rounding import limit_rounding_bound, magnitude
from convattn.bounds.majorant import majorant_of
from convattn.bounds.rounding import layer_error_bound, maps_dtype
from convattn.bounds.score_error import gamma, unit_roundoff
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.encodings.scalar import ScalarEncoding
from convattn.networks.weights.stated_size import require_room
from convattn.operators.convolution import conv

LARGEST_PIXEL = 8


@dataclass(frozen=True)
class Comparison:
    """One run against the convolution.

    Attributes:
        route: What was run.
        image: Its shape.
        dtype: Of the result.
        error, bound: The largest over the entries.
        largest: Of the convolution.
        passed: Whether every entry is within its own bound.
        equality: Whether equality was asked for.
    """

    route: str
    image: tuple[int, ...]
    dtype: str
    error: float
    bound: float
    largest: float
    passed: bool
    equality: bool


@dataclass(frozen=True)
class Reference:
    """An image, what the convolution makes of it, and how far a layer may be from that."""

    images: np.ndarray
    expected: Float[np.ndarray, "batch *space out_channels"]
    bound: Float[np.ndarray, "batch *space out_channels"]
    equality: bool

    def compare(self, route: str, run: Callable[[Any], Any]) -> Comparison:
        """Run the image and compare the result."""
        result = run(jnp.asarray(self.images))
        if result.shape != self.expected.shape:
            raise ValueError(f"{route} gave shape {result.shape}, conv {self.expected.shape}")
        error = np.abs(np.asarray(result).astype(np.float64) - self.expected)
        return Comparison(
            route,
            self.images.shape,
            jnp.dtype(result.dtype).name,
            float(error.max()),
            float(self.bound.max()),
            float(np.abs(self.expected).max()),
            bool((error <= self.bound).all() and np.isfinite(self.bound).all()),
            self.equality,
        )


def reference(
    layer: AttentionLayer,
    kernel: np.ndarray,
    bias: np.ndarray | None,
    image_size: tuple[int, ...],
    *,
    groups: int = 1,
    seed: int = 0,
) -> Reference:
    """Draw an image, convolve it, and derive the bound for a layer made from that kernel.

    Args:
        layer: From `conv_to_attention`, with the maps that are stored.
        kernel, bias, groups: What it was made from.

    Raises:
        ValueError: Where there is no bound, with the reason.
    """
    require_room(layer, image_size)
    dtype = maps_dtype(layer)
    generator = np.random.default_rng(seed)
    shape = (1, *image_size, kernel.shape[-2] * groups)
    drawn = generator.integers(-LARGEST_PIXEL, LARGEST_PIXEL, shape, endpoint=True)
    images = np.asarray(jnp.asarray(drawn, dtype))
    options: Mapping[str, Any] = {"stride": layer.stride, "dilation": layer.dilation}
    with jax.enable_x64(True):
        wide = [None if part is None else part.astype(np.float64) for part in (kernel, bias)]
        expected = np.asarray(conv(drawn.astype(np.float64), *wide, groups=groups, **options))
    size = magnitude(images, kernel, bias, layer, groups)
    if not is_exact_form(layer):
        bound = limit_rounding_bound(layer, images, kernel, bias, groups=groups)
        if _nothing_rounds(layer, kernel, bias, size):
            return Reference(images, expected, np.zeros_like(expected), True)
    else:
        majorant = majorant_of(layer, kernel, bias, images, groups=groups)
        bound = layer_error_bound(layer, jnp.asarray(images), majorant)
    products = math.prod(kernel.shape[:-1]) + 2
    own = gamma(products, unit_roundoff(jnp.float64)) * size
    return Reference(images, expected, bound + own * (1 + 2.0**-20), False)


def is_exact_form(layer: AttentionLayer) -> bool:
    """Whether the layer is exact at finite parameters."""
    encoding = layer.encoding
    if isinstance(encoding, BiasEncoding):
        return encoding.leak is not None
    return isinstance(encoding, ScalarEncoding) and encoding.logit is None


def _nothing_rounds(
    layer: AttentionLayer, kernel: np.ndarray, bias: np.ndarray | None, size: np.ndarray
) -> bool:
    """Whether all numbers are integers that every format on the way holds."""
    if isinstance(layer.encoding, ScalarEncoding):
        return False
    parts = [part.astype(np.float64) for part in (kernel, bias) if part is not None]
    whole = all(bool((part == np.rint(part)).all()) for part in parts)
    narrowest = min(int(jnp.finfo(d).nmant) for d in (maps_dtype(layer), layer.dtype))
    return whole and float(size.max()) <= 2.0 ** (narrowest + 1)
