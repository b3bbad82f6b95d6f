"""Cross-attentive image similarity (B19 §6.1): SAC of two images side by side, t = [x, z].

**The seam.** In t a filter of width m ≥ 2 reads from both images at once: the query of a patch at
the right edge of x already holds pixels of z, where x alone would have zeros. A gap of g zero
columns between the images removes that iff g ≥ ⌈d(m-1)/2⌉, the reach of the filter: at the last
column M - 1 of x it reads up to M - 1 + ⌈d(m-1)/2⌉, which is before z's first column M + g; at z's
first column it reads back by ⌊d(m-1)/2⌋, which is no more. Then every query, key and value of x and
of z in t is what it is in x or z alone, with its zero padding. The cells of the gap itself are no
patches of either image: they are masked as keys, and dropped as queries, so that the attention
weights are shared out among the patches of x and z only.

The gap is laid anew by every layer: what a layer computes at the gap is not zero.

**The bias** counts distances in t: from a pixel of x to the same pixel of z it is M + g, so the
table needs 2M + g columns, where eq. 3 gives it M. Because it is even, and t is not symmetric in x
and z, exchanging x and z changes the result (reflecting both as well does not, for 1×1 filters).
"""

from typing import Any

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Num

from convattn.operators.arrays import as_array
from convattn.operators.integers import as_integer
from convattn.sac.multiscale import (
    MultiscaleParameters,
    common_stride,
    multiscale_self_attentive_convolution,
)
from convattn.sac.self_attentive_convolution import self_attentive_convolution

_SEGMENTS = ("add", "concatenate")


def with_segment(
    images: Any, segment: Any, how: str = "add"
) -> Num[Array, "batch height width augmented_channels"]:
    """Segment augmentation: what tells the patches of x from those of z.

    Args:
        segment: x^seg, `[height, width, d]`, or `[d]` for all pixels alike.
        how: `"add"` (d is the number of channels) or `"concatenate"` (any d).

    Raises:
        ValueError: For anything else, and for shapes that do not fit.

    Source: B19 §6.1.

    >>> with_segment(jnp.ones((1, 1, 2, 1)), jnp.array([7.0]), "concatenate").tolist()
    [[[[1.0, 7.0], [1.0, 7.0]]]]
    """
    check_how(how)
    images, segment = as_array(images, "images"), as_array(segment, "segment")
    fits = segment.ndim == 1 or segment.shape[:-1] == images.shape[1:-1]
    if not fits or (how == "add" and segment.shape[-1] != images.shape[-1]):
        channels = images.shape[-1] if how == "add" else "d"
        raise ValueError(
            f"segment.shape={segment.shape}, but for images of shape {images.shape} with "
            f"how={how!r} should be [{channels}] or [height, width, {channels}]"
        )
    if how == "add":
        return images + jnp.broadcast_to(segment, images.shape)
    spread = jnp.broadcast_to(segment, (*images.shape[:-1], segment.shape[-1]))
    dtype = jnp.result_type(images, segment)
    return jnp.concatenate([images.astype(dtype), spread.astype(dtype)], axis=-1)


def check_how(how: str) -> None:
    """Refuse other ways of segment augmentation."""
    if how not in _SEGMENTS:
        raise ValueError(f"how={how!r}, but expected one of {', '.join(_SEGMENTS)}")


def side_by_side(
    first: Any,
    second: Any,
    gap: int = 0,
) -> tuple[Num[Array, "batch height joined_width channels"], Bool[Array, "height joined_width"]]:
    """t = [x, 0, z] with `gap` zero columns between, and the mask of the columns that are images'.

    Raises:
        ValueError: For images of different shapes, and a negative gap.

    >>> joined, mask = side_by_side(jnp.ones((1, 1, 2, 1)), 2 * jnp.ones((1, 1, 2, 1)), gap=1)
    >>> joined.ravel().tolist(), mask.ravel().tolist()
    ([1.0, 1.0, 0.0, 2.0, 2.0], [True, True, False, True, True])
    """
    first, second = as_array(first, "first"), as_array(second, "second")
    if first.shape != second.shape or first.ndim != 4:
        raise ValueError(
            f"first.shape={first.shape} and second.shape={second.shape}, but both should be one "
            "[batch, height, width, channels]; crop or resize the images"
        )
    gap = as_integer(gap, "gap", 0)
    batch, height, width, channels = first.shape
    between = jnp.zeros((batch, height, gap, channels), first.dtype)
    columns = jnp.arange(2 * width + gap)
    mask = (columns < width) | (columns >= width + gap)
    return (
        jnp.concatenate([first, between, second], axis=2),
        jnp.broadcast_to(mask, (height, 2 * width + gap)),
    )


def seam_reach(parameters: Any) -> int:
    """The columns of gap that keep the images apart: the greatest ⌈d(m-1)/2⌉ of the filters.

    >>> from convattn.sac.parameters import SelfAttentiveParameters
    >>> seam_reach(SelfAttentiveParameters(jnp.ones((1, 3, 4, 1, 1)), dilation=(1, 2)))
    3
    """
    if isinstance(parameters, MultiscaleParameters):
        return max(seam_reach(scale) for scale in parameters.scales)
    return -(-parameters.dilation[1] * (parameters.kernel_size[1] - 1) // 2)


def cross_attentive_features(
    parameters: Any,
    first: Any,
    second: Any,
    *,
    gap: int | None = None,
    segments: tuple[Any, Any] | None = None,
    how: str = "add",
) -> tuple[Array, Array]:
    """x and z after a SAC or MSAC layer in which the patches of both attend to those of both.

    Args:
        parameters: `SelfAttentiveParameters` or `MultiscaleParameters` on two axes.
        gap: Zero columns between the images; by default the fewest that keep the filters from
            mixing them (and let z start on the stride). 0 is the paper's.
        segments, how: x^seg and z^seg, as `with_segment` takes them.

    Returns:
        The features of x and of z, `[batch, ⌈height/s⌉, ⌈width/s⌉, out]` each.

    Raises:
        ValueError: As `side_by_side` and `with_segment` say, for other than two segments, for
            parameters of sequences, and where width + gap is not a multiple of the stride.

    Source: B19 §6.1; the gap is ours.
    """
    check_how(how)
    multiscale = isinstance(parameters, MultiscaleParameters)
    strides = common_stride(parameters) if multiscale else parameters.stride
    if len(strides) != 2 or min(strides) < 1:
        raise ValueError(
            f"stride={strides}, but expected two numbers ≥ 1: two images stand side by side, so "
            "the filters should have two axes"
        )
    first, second = as_array(first, "first"), as_array(second, "second")
    if segments is not None:
        if len(segments) != 2:
            raise ValueError(f"{len(segments)} segments, but expected two, of x and of z")
        first = with_segment(first, segments[0], how)
        second = with_segment(second, segments[1], how)
    if first.ndim != 4:
        side_by_side(first, second)
    stride, width = strides[1], first.shape[2]
    if gap is None:
        reach = seam_reach(parameters)
        gap = reach + -(width + reach) % stride
    if (width + gap) % stride:
        raise ValueError(
            f"gap={gap} puts the second image at column {width + gap}, which the stride {stride} "
            "passes over; width + gap should be a multiple of it"
        )
    joined, mask = side_by_side(first, second, gap)
    apply = multiscale_self_attentive_convolution if multiscale else self_attentive_convolution
    result = apply(parameters, joined, key_mask=mask)
    cells = -(-width // stride)
    start = (width + gap) // stride
    return result[:, :, :cells], result[:, :, start:]
