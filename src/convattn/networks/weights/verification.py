"""What is written has been run: an image through the stored weights, against the convolution.

The image holds integers from -8 to 8, exact in every format; the convolution is computed in
float64, and its own rounding, at most γ_n Σ|X||W| for sums of n products, joins the bound. Where
kernel and bias are integers so small that nothing in a one-hot layer is rounded, the bound is
zero: the results must be equal.

**The way back.** On images of one size the layer is a linear map L, the stored kernel another, C.
`stored_residual` has |L - C|_F/|L|_F with the kernel as it will be written, whose entries are C's.

*What rounding accounts for.* Let L be the computed map of a layer that was made from a kernel W.
By `convattn.bounds.rounding`, |L - C_W| ≤ ρ·G entry by entry, G being the linear map of the
majorant. The least-squares kernel is an orthogonal projection, so the distance is at most
|L - C_W|_F ≤ ρ|G|_F; taking the mean of m entries adds γ_m|L|_F and storing it in a dtype of
roundoff u another u|L|_F. G needs W; with the recovered kernel in its place it changes by a factor
1 + O(ρ), for which there is a factor of two:

    tolerance = 2ρ|G|_F/|L|_F + γ_m + u.

Where the layer fills its ring, this holds of the maps L̃, C̃, G̃ from the filled image, on which the
kernel was fitted (`convattn.constructions.linear_map`). On the image |L - C|_F ≤ |F|₂|L̃ - C̃|_F, so

    tolerance = |F|₂|L̃|_F/|L|_F (2ρ|G̃|_F/|L̃|_F + γ_m + u).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from convattn.bounds.limit_rounding import limit_rounding_bound, output_magnitude
from convattn.bounds.majorant import majorant_layer, majorant_of
from convattn.bounds.rounding import layer_error_bound, maps_dtype, relative_error
from convattn.bounds.score_error import layer_score_error
from convattn.bounds.two_layers import two_layers_bound
from convattn.constructions.linear_map import (
    MapGeometry,
    fill_norm,
    filled_map,
    folded,
    require_score_room,
)
from convattn.constructions.narrow_heads import price
from convattn.constructions.recovery import RecoveryResidual, residual_of
from convattn.constructions.two_layers import TwoLayers
from convattn.encodings.layer import AttentionLayer
from convattn.encodings.mixture import MixtureEncoding
from convattn.encodings.scalar import ScalarEncoding
from convattn.fast.application import apply_attention
from convattn.operators.arrays import accumulation_dtype
from convattn.operators.attention import HIGHEST, contraction_lengths
from convattn.operators.convolution import conv
from convattn.operators.padding import centred_padding, fill_around
from convattn.operators.roundoff import gamma, largest_near, unit_roundoff
from convattn.operators.shifts import TokenGrid, axis_taps

_LARGEST_PIXEL = 8


@dataclass(frozen=True)
class Comparison:
    """One run against the convolution.

    Attributes:
        route: What was run.
        image: Its shape.
        dtype: Of the result.
        error, bound: The largest over the entries.
        largest: Of the convolution.
        passed: Whether every entry is within its own bound, and near where the bound says nothing.
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
        most, bound = float(error.max()), float(self.bound.max())
        largest = float(np.abs(self.expected).max())
        within = bool((error <= self.bound).all() and np.isfinite(self.bound).all())
        return Comparison(
            route,
            self.images.shape,
            jnp.dtype(result.dtype).name,
            most,
            bound,
            largest,
            within and most <= largest_near(bound, largest, result.dtype),
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
        ValueError: For heads that mix offsets, with what a limit form of them loses (S.price).
    """
    if isinstance(layer.encoding, MixtureEncoding) and layer.register is None:
        lost = price(layer.encoding, maps_dtype(layer))
        raise ValueError(
            "num_heads='min' makes heads that mix offsets, for which no bound is derived here, and "
            f"what has none is not written; leave it out{'; ' * bool(lost)}{lost}"
        )
    require_score_room(layer, image_size)
    options: Mapping[str, Any] = {
        "stride": layer.stride,
        "dilation": layer.dilation,
        "padding": layer.padding or centred_padding(kernel.shape[:-2], layer.dilation),
        "groups": groups,
    }
    images, expected = _random_case(maps_dtype(layer), kernel, bias, image_size, seed, options)
    size = output_magnitude(images, kernel, bias, layer, groups)
    if not layer.is_exact_form:
        bound = limit_rounding_bound(layer, images, kernel, bias, groups=groups)
        if _nothing_rounds(layer, kernel, bias, size):
            return Reference(images, expected, np.zeros_like(expected), True)
    else:
        majorant = majorant_of(layer, kernel, bias, images, groups=groups)
        bound = layer_error_bound(layer, jnp.asarray(images), majorant)
    return Reference(images, expected, bound + _own_rounding(kernel, size), False)


def reference_of_two(
    layers: TwoLayers,
    kernel: np.ndarray,
    bias: np.ndarray | None,
    image_size: tuple[int, ...],
    *,
    groups: int = 1,
    dilation: Sequence[int] = (1, 1),
    seed: int = 0,
) -> Reference:
    """The same for two layers."""
    assert layers.second.output is not None
    tokens = [n // p for n, p in zip(image_size, layers.patch_size, strict=True)]
    padded = tuple(n + 2 * width for n, width in zip(tokens, layers.margin, strict=True))
    for layer in (layers.first, layers.second):
        require_score_room(layer, padded)
    options = {"stride": layers.stride, "dilation": dilation, "groups": groups}
    options |= {"padding": "SAME_TORCH"}
    dtype = layers.second.output.dtype
    images, expected = _random_case(dtype, kernel, bias, image_size, seed, options)
    with jax.enable_x64(True):
        magnitudes = [None if x is None else np.abs(x.astype(np.float64)) for x in (kernel, bias)]
        size = np.asarray(conv(np.abs(images.astype(np.float64)), *magnitudes, **options))
    bound = two_layers_bound(layers, images) + _own_rounding(kernel, size)
    return Reference(images, expected, bound, False)


def _random_case(
    dtype: Any,
    kernel: np.ndarray,
    bias: np.ndarray | None,
    image_size: tuple[int, ...],
    seed: int,
    options: Mapping[str, Any],
) -> tuple[np.ndarray, np.ndarray]:
    """A random image in the dtype, and its convolution in float64."""
    pixels = _random_pixels((1, *image_size, kernel.shape[-2] * options["groups"]), seed)
    with jax.enable_x64(True):
        operands = [
            None if operand is None else operand.astype(np.float64) for operand in (kernel, bias)
        ]
        expected = np.asarray(conv(pixels.astype(np.float64), *operands, **options))
    return np.asarray(jnp.asarray(pixels, dtype)), expected


def _random_pixels(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Integers, exact in every format."""
    return np.random.default_rng(seed).integers(
        -_LARGEST_PIXEL, _LARGEST_PIXEL, shape, endpoint=True
    )


def _own_rounding(kernel: np.ndarray, size: np.ndarray) -> np.ndarray:
    """That of the convolution in float64, with the magnitudes |X| * |W| + |b|."""
    products = math.prod(kernel.shape[:-1]) + 2
    own: np.ndarray = gamma(products, unit_roundoff(jnp.float64)) * size * (1 + 2.0**-20)
    return own


def _nothing_rounds(
    layer: AttentionLayer, kernel: np.ndarray, bias: np.ndarray | None, size: np.ndarray
) -> bool:
    """Whether all numbers are integers that every format on the way holds."""
    means = layer.padding is not None and layer.padding.fill == "MEAN"
    if isinstance(layer.encoding, ScalarEncoding) or means:
        return False
    parts = [part.astype(np.float64) for part in (kernel, bias) if part is not None]
    are_integers = all(bool((part == np.rint(part)).all()) for part in parts)
    bits = int(jnp.finfo(maps_dtype(layer)).nmant) + 1  # of the result no fewer, if with a bias
    return are_integers and float(size.max()) <= 2.0**bits


def stored_residual(
    layer: AttentionLayer, kernel: Any, bias: Any, image_size: tuple[int, ...]
) -> RecoveryResidual:
    """`attention_to_conv`'s residual for a kernel and a bias as they are stored, in float64.

    >>> import convattn as ca
    >>> kernel = jnp.array([[[1.0]], [[2.0]], [[3.0]]])
    >>> layer = ca.conv_to_attention(kernel, encoding="quadratic")
    >>> float(stored_residual(layer, 2 * kernel, None, (5,)).relative_frobenius)
    1.0
    """
    computed = np.asarray(filled_map(layer, image_size), np.float64)
    with jax.enable_x64(True):
        kernel, bias = (None if x is None else jnp.asarray(x, jnp.float64) for x in (kernel, bias))
        return residual_of(layer, jnp.asarray(computed), kernel, bias, image_size)


class LargeImage(NamedTuple):
    """Of the outputs of a random image, in which heads that look far beyond the kernel show.

    Attributes:
        distance: |layer - convolution|/|convolution|, without the bias.
        rounding: What rounding accounts for; zero where nothing is derived.
    """

    distance: float
    rounding: float


def on_large_image(
    layer: AttentionLayer, kernel: np.ndarray, image_size: tuple[int, ...]
) -> LargeImage:
    """The outputs of a layer beside those of a convolution, on an image much larger than it.

    >>> import convattn as ca
    >>> kernel = np.array([[[1.0]], [[2.0]], [[3.0]]], np.float32)
    >>> layer = ca.conv_to_attention(kernel, encoding="quadratic")
    >>> on_large_image(layer, kernel, (20,)).distance
    0.0
    >>> on_large_image(layer, kernel[:1], (20,)).distance > 0.5
    True
    """
    layer = replace(layer, bias=None)
    pixels = _random_pixels((1, *image_size, kernel.shape[-2]), 0)
    images = jnp.asarray(pixels, maps_dtype(layer))
    result = np.asarray(apply_attention(layer, images)).astype(np.float64)
    expected = _convolved(layer, pixels, kernel)
    size = float(np.linalg.norm(expected))
    distance = float(np.linalg.norm(result - expected))
    if size == 0:
        return LargeImage(distance, 0.0)
    grid, dtype = layer.token_grid(image_size), accumulation_dtype(layer.dtype)  # type: ignore[arg-type]
    if layer.is_exact_form:
        try:
            with jax.enable_x64(True):
                absolute = jax.tree.map(
                    jnp.asarray, majorant_layer(layer, np.asarray(kernel), None)
                )
                magnitude = np.asarray(apply_attention(absolute, jnp.asarray(abs(pixels), float)))
        except ValueError:  # a kernel of another size than the layer's
            return LargeImage(distance / size, 0.0)
        rho = _rounding_of_heads(layer, grid, dtype)
    else:
        magnitude = _convolved(layer, abs(pixels), abs(np.asarray(kernel, np.float64)))
        lengths = contraction_lengths(layer.value, layer.output, layer.heads, grid.number_of_keys)
        rho = sum(gamma(n, unit_roundoff(dtype)) for n in lengths)
    rho += unit_roundoff(layer.dtype)  # type: ignore[arg-type]
    return LargeImage(distance / size, float(2 * rho * np.linalg.norm(magnitude) / size))


def _convolved(layer: AttentionLayer, images: np.ndarray, kernel: Any) -> np.ndarray:
    """The convolution that is meant, in float64: of the filled image, zeros around it."""
    geometry = MapGeometry.of(layer, images.shape[1:-1])
    with jax.enable_x64(True):
        filled = jnp.asarray(images, jnp.float64)
        if any(map(sum, geometry.widths)):
            assert layer.padding is not None
            filled = fill_around(filled, layer.padding.fill, geometry.widths)
        padding = []
        for axis, count in enumerate(geometry.outputs):
            taps, step = axis_taps(kernel.shape[axis]), layer.dilation[axis]
            before = -(geometry.first[axis] + step * taps[0])
            read = (count - 1) * layer.stride[axis] + step * (len(taps) - 1) + 1
            padding.append((before, read - before - geometry.inputs[axis]))
        letters = "HW"[: len(padding)]
        return np.asarray(
            jax.lax.conv_general_dilated(
                filled,
                jnp.asarray(kernel, jnp.float64),
                layer.stride,
                padding,
                rhs_dilation=layer.dilation,
                dimension_numbers=(f"N{letters}C", f"{letters}IO", f"N{letters}C"),
                precision=HIGHEST,
            )
        )


def rounding_tolerance(layer: AttentionLayer, kernel: Any, image_size: tuple[int, ...]) -> float:
    """The distance that rounding accounts for, for a layer from `conv_to_attention`.

    Args:
        kernel: The recovered one.

    >>> import convattn as ca
    >>> kernel = jnp.array([[[1.0]], [[2.0]], [[3.0]]])
    >>> 0 < rounding_tolerance(ca.conv_to_attention(kernel), kernel, (5,)) < 1e-3
    True
    """
    if layer.content is not None:
        raise ValueError("the layer has content scores, so it is a convolution at most at X = 0")
    grid, dtype = layer.token_grid(image_size), accumulation_dtype(layer.dtype)  # type: ignore[arg-type]
    linear = np.asarray(filled_map(layer, image_size), np.float64)
    with jax.enable_x64(True):
        own = np.linalg.norm(np.asarray(folded(layer, jnp.asarray(linear), image_size)))
    # What a difference of maps from the filled image is at most, relative, on the image.
    factor = float(fill_norm(layer, image_size) * np.linalg.norm(linear) / own) if own > 0 else 1.0
    pairs = math.prod(MapGeometry.of(layer, image_size).outputs) + 1
    total = gamma(pairs, unit_roundoff(dtype)) + unit_roundoff(layer.dtype)  # type: ignore[arg-type]
    if not layer.is_exact_form:
        if isinstance(layer.encoding, ScalarEncoding):
            raise ValueError("no tolerance is derived for the limit form of a scalar encoding")
        return factor * total
    rho = _rounding_of_heads(layer, grid, dtype)
    with jax.enable_x64(True):
        absolute = jax.tree.map(jnp.asarray, majorant_layer(layer, np.asarray(kernel), None))
        majorant = float(np.linalg.norm(np.asarray(filled_map(absolute, image_size))))
    norm = float(np.linalg.norm(linear))
    return factor * (2 * rho * majorant / norm + total) if norm > 0 else total


def _rounding_of_heads(layer: AttentionLayer, grid: TokenGrid, dtype: Any) -> float:
    """ρ of an exact form, relative to its majorant."""
    scores = layer_score_error(layer, grid)
    exponent = scores.absolute + unit_roundoff(scores.dtype) * (scores.range + 2 * scores.absolute)
    return float(relative_error(layer, grid, scores, exponent, dtype, dtype, False))
