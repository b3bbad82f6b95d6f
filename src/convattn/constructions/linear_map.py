"""What a layer without content is: a linear map from the pixels of images of one size.

L[x, y] ∈ R^(in × out) is what input pixel y adds to output pixel x. A layer that fills its ring
(with pixels of the edge, say) is first a linear map L̃ from the *filled image*, whose pixels around
the image count as inputs of their own, and L = L̃F with the map F that fills: F has one 1 in each
row, or rows of sum one for the mean. Zeros are no inputs: of a layer with zeros around the image
L̃ = L. As the rows of F sum to one,

    |L|_F ≤ |F|₂|L̃|_F,    |F|₂² ≤ |F|₁|F|_∞ = the largest column sum of F.    (`fill_norm`)
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import image_grid, kept_outputs
from convattn.fast.dense import layer_weights
from convattn.operators.attention import HIGHEST
from convattn.operators.integers import require_entries
from convattn.operators.padding import fill_around
from convattn.operators.shifts import axis_taps


class MapGeometry(NamedTuple):
    """Which pixels the map L̃ of a layer joins.

    Attributes:
        inputs: The pixels of the filled image on each axis.
        outputs: Those of the result.
        first: The input at the centre of the first output.
        widths: The pixels that fill the ring on each axis, (before, after).
        around: The zeros around them in the layer, or pixels cut off where negative.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    first: tuple[int, ...]
    widths: tuple[tuple[int, int], ...]
    around: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, layer: AttentionLayer, image_size: Sequence[int]) -> "MapGeometry":
        """That of a layer on images of that size.

        >>> import convattn as ca
        >>> MapGeometry.of(ca.conv_to_attention(jnp.ones((3, 1, 1)), padding="EDGE"), (5,))
        MapGeometry(inputs=(7,), outputs=(5,), first=(1,), widths=((1, 1),), around=((0, 0),))
        """
        outputs = image_grid(layer, image_size).output_size
        none = ((0, 0),) * len(outputs)
        if layer.padding is None:
            return cls(tuple(image_size), outputs, (0,) * len(outputs), none, none)
        axes = layer.filled_axes(image_size)
        zeros = layer.padding.fill == "ZEROS"
        widths = none if zeros else tuple(axis.fill for axis in axes)
        around = tuple(
            (axis.lay[0] + axis.fill[0] - before, axis.lay[1] + axis.fill[1] - after)
            for axis, (before, after) in zip(axes, widths, strict=True)
        )
        inputs = tuple(n + sum(pair) for n, pair in zip(image_size, widths, strict=True))
        first = tuple(
            axis.queries.start * patch - before
            for axis, patch, (before, _) in zip(axes, layer.patch_size, around, strict=True)
        )
        return cls(inputs, outputs, first, widths, around)

    def padding(
        self, layer: AttentionLayer, kernel_size: Sequence[int], image_size: Sequence[int]
    ) -> tuple[tuple[int, int], ...]:
        """The pixels (before, after) with which a kernel of that size has these centres.

        >>> import convattn as ca
        >>> layer = ca.conv_to_attention(jnp.ones((3, 1, 1)), padding="CAUSAL")
        >>> place = MapGeometry.of(layer, (9,))
        >>> place.padding(layer, (3,), (9,)), place.padding(layer, (5,), (9,))
        (((2, 0),), ((3, 1),))
        """
        padding, sizes = [], zip(image_size, self.outputs, layer.stride, strict=True)
        unread = [size - 1 - (count - 1) * stride for size, count, stride in sizes]
        if layer.padding is not None:
            widths = layer.padding.at(image_size, layer.stride)
            own = zip(unread, widths, layer.padding.reach, strict=True)
            unread = [pixels + sum(pair) - sum(reach) for pixels, pair, reach in own]
        for axis, size in enumerate(image_size):
            taps, step = axis_taps(kernel_size[axis]), layer.dilation[axis]
            before = self.widths[axis][0] - self.first[axis] - step * taps[0]
            read = (self.outputs[axis] - 1) * layer.stride[axis] + step * (len(taps) - 1) + 1
            padding.append((before, read + unread[axis] - size - before))
        return tuple(padding)

    def joined(
        self, layer: AttentionLayer, kernel_size: Sequence[int], tap: Sequence[int]
    ) -> tuple[np.ndarray, ...] | None:
        """The indices `[*inputs, *outputs]` of the pixels that a tap of a kernel joins."""
        pairs = []
        for axis, index in enumerate(tap):
            shift = layer.dilation[axis] * axis_taps(kernel_size[axis])[index]
            outputs = np.arange(self.outputs[axis])
            inputs = self.first[axis] + outputs * layer.stride[axis] + shift
            inside = (inputs >= 0) & (inputs < self.inputs[axis])
            pairs.append((inputs[inside], outputs[inside]))
        if any(pair[0].size == 0 for pair in pairs):
            return None
        grids = [*np.ix_(*(pair[0] for pair in pairs)), *np.ix_(*(pair[1] for pair in pairs))]
        return tuple(np.broadcast_arrays(*grids))


def linear_map(
    layer: AttentionLayer, image_size: Sequence[int]
) -> Float[Array, "*inputs_outputs in out"]:
    """L[y.., x.., i, o]: what input pixel y, channel i, adds to output pixel x, channel o.

    Args:
        image_size: The pixels on each axis; P divides them.

    Raises:
        ValueError: If it could not be written out, or the layer has no map.
    """
    return folded(layer, filled_map(layer, image_size), image_size)


def filled_map(
    layer: AttentionLayer, image_size: Sequence[int]
) -> Float[Array, "*inputs_outputs in out"]:
    """L̃, from the pixels of the filled image; as `linear_map`."""
    image_size = tuple(image_size)
    axes, image = len(layer.patch_size), image_grid(layer, image_size)
    grid = image.grid
    require_score_room(layer, image_size)
    widths = [part.shape for part in (layer.value, layer.output) if part is not None]
    if widths:
        require_entries(
            math.prod(grid.queries) ** 2 * widths[0][1] * widths[-1][2],
            f"the linear map of images of {image_size} pixels",
            "take a smaller image",
        )
    weights = layer_weights(layer, grid, None)
    if weights.ndim == 4:
        weights = weights[0]
    interior = np.ravel_multi_index(tuple(grid.query_positions.T), grid.keys)
    queries = [np.arange(side.start, side.stop, side.step) for side in image.queries]
    query_index = np.ravel_multi_index(np.ix_(*queries), grid.queries).ravel()
    weights = weights[:, query_index[:, None], interior]  # ring tokens are zero: they give nothing
    maps = layer_maps(layer, weights.dtype)
    if maps is None:
        raise ValueError(
            "the layer has neither a value nor an output map, so its channels are not known; give "
            "it one, e.g. an identity"
        )
    linear = jnp.einsum("hqk,hio->kqio", weights, maps, precision=HIGHEST)
    p_in, p_out = layer.patch_size, layer.output_patch_size
    in_channels = maps.shape[1] // math.prod(p_in)
    out_channels = maps.shape[2] // math.prod(p_out)
    query_sides = [len(side) for side in queries]
    linear = linear.reshape(*grid.queries, *query_sides, *p_in, in_channels, *p_out, out_channels)
    start_q, start_pin, start_pout = axes, 2 * axes, 3 * axes + 1
    order: list[int] = []
    for axis in range(axes):
        order += [axis, start_pin + axis]
    for axis in range(axes):
        order += [start_q + axis, start_pout + axis]
    order += [3 * axes, 4 * axes + 1]
    inputs = [n * p for n, p in zip(grid.queries, p_in, strict=True)]
    outputs = [n * p for n, p in zip(query_sides, p_out, strict=True)]
    linear = linear.transpose(order).reshape(*inputs, *outputs, in_channels, out_channels)
    linear = linear[(slice(None),) * axes + kept_outputs(layer, image)]
    around = MapGeometry.of(layer, image_size).around
    cut = [*((-before, -after, 0) for before, after in around), *((0, 0, 0),) * (axes + 2)]
    return lax.pad(linear, jnp.zeros((), linear.dtype), cut)


def convolution_map(
    layer: AttentionLayer, kernel: Float[Array, "*kernel in out"], image_size: Sequence[int]
) -> Float[Array, "*inputs_outputs in out"]:
    """The map of a convolution from the filled image of a layer, with its stride and dilation."""
    geometry = MapGeometry.of(layer, image_size)
    linear = jnp.zeros((*geometry.inputs, *geometry.outputs, *kernel.shape[-2:]), kernel.dtype)
    for tap in np.ndindex(*kernel.shape[:-2]):
        where = geometry.joined(layer, kernel.shape[:-2], tap)
        linear = linear if where is None else linear.at[where].set(kernel[tap])
    return linear


def folded(layer: AttentionLayer, linear: Array, image_size: Sequence[int]) -> Array:
    """M̃F, of any map M̃ from the filled image of a layer: what it is on images of that size."""
    widths, axes = MapGeometry.of(layer, image_size).widths, len(image_size)
    if layer.padding is None or not any(map(sum, widths)):
        return linear
    fill, rest = layer.padding.fill, linear.shape[axes:]
    image = jax.ShapeDtypeStruct((1, *image_size, math.prod(rest)), linear.dtype)
    transposed = jax.linear_transpose(lambda images: fill_around(images, fill, widths), image)
    (result,) = transposed(linear.reshape(1, *linear.shape[:axes], -1))
    return result.reshape(*image_size, *rest)


def fill_norm(layer: AttentionLayer, image_size: Sequence[int]) -> float:
    """√(largest column sum of F), at least its spectral norm; 1 for zeros around the image.

    >>> import convattn as ca
    >>> fill_norm(ca.conv_to_attention(jnp.ones((3, 1, 1)), padding="EDGE"), (5,)) ** 2
    2.0000000000000004
    """
    ones = jnp.ones((*MapGeometry.of(layer, image_size).inputs,), jnp.float32)
    return math.sqrt(float(folded(layer, ones, image_size).max()))


def require_score_room(layer: AttentionLayer, image_size: tuple[int, ...]) -> None:
    """Refuse an image so large that the scores of all pairs could not be written out."""
    grid = layer.token_grid(image_size)
    queries = math.prod(grid.queries)
    require_entries(
        layer.heads * queries * grid.number_of_keys,
        f"image_size={image_size} makes {queries} queries and {grid.number_of_keys} keys, whose "
        f"scores in {layer.heads} heads",
        "take larger patches or a smaller image",
    )


def layer_maps(layer: AttentionLayer, dtype: jnp.dtype) -> Array | None:
    """W_h = W_val,h W_out,h of every head, or None if both are the identity."""
    if layer.value is None or layer.output is None:
        single = layer.value if layer.output is None else layer.output
        return None if single is None else single.astype(dtype)
    return jnp.einsum(
        "hie,heo->hio", layer.value.astype(dtype), layer.output.astype(dtype), precision=HIGHEST
    )
