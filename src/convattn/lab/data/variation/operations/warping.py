"""Affine maps of an image: each pixel of the result looks up where it comes from."""

import jax.numpy as jnp
from jaxtyping import Array, Int32

MATRIX_BITS = 16
"""The matrix is an integer number of 2⁻¹⁶."""
WEIGHT_BITS = 11
"""Pixels are mixed with weights that are multiples of 2⁻¹¹, so that two of them, and a byte, fit
an int32."""


def warp(
    image: Int32[Array, "height width channels"],
    matrix: Int32[Array, "2 2"],
    shift: Int32[Array, "2"],
    fill: Int32[Array, " channels"],
) -> Int32[Array, "height width channels"]:
    """Out(x, y) = image(x', y') with x' = a x + b y + c and y' = d x + e y + f, bilinear.

    Pixels are squares of side 1 and have their middles at halves. Where (x', y') is outside the
    image the result is the fill. Between the middles of four pixels these are mixed in proportion,
    beyond the last middle the last pixel counts; fractions are cut off, as Pillow does.

    Positions are exact. Weights are rounded to 2⁻¹¹: where that is exact, so is the result, and
    else a value differs by less than 2·255·2⁻¹² < 1/8 from the exact one before its fraction is
    cut off, so by at most 1 after.

    Args:
        matrix: ((a, b), (d, e)) in units of 2⁻¹⁶, each at most 1 in absolute value.
        shift: (c, f) in units of 2⁻¹⁷ pixels.
        fill: One value a channel.

    Source: Pillow, `Image.transform` with `AFFINE` and `BILINEAR`.

    >>> row = jnp.array([[[10], [20], [40]]], jnp.int32)
    >>> still, right = jnp.eye(2, dtype=jnp.int32) << 16, jnp.array([1 << 16, 0], jnp.int32)
    >>> warp(row, still, right, jnp.array([7], jnp.int32))[0, :, 0].tolist()
    [15, 30, 7]
    """
    height, width, channels = image.shape
    fine = MATRIX_BITS + 1  # positions count in 2⁻¹⁷ pixels, as middles are at halves
    columns = 2 * jnp.arange(width, dtype=jnp.int32) + 1
    rows = 2 * jnp.arange(height, dtype=jnp.int32)[:, None] + 1
    across = matrix[0, 0] * columns + matrix[0, 1] * rows + shift[0]
    down = matrix[1, 0] * columns + matrix[1, 1] * rows + shift[1]
    inside = (across >= 0) & (across < width << fine) & (down >= 0) & (down < height << fine)
    # One further pixel on each side repeats the last one: half a pixel back is half a pixel on.
    padded = jnp.pad(image, ((1, 1), (1, 1), (0, 0)), mode="edge").reshape(-1, channels)
    left, right_weight = _split(across + (1 << MATRIX_BITS), fine)
    upper, lower_weight = _split(down + (1 << MATRIX_BITS), fine)
    place = upper * (width + 2) + left

    def mixed(first: Array) -> Array:
        one, other = (jnp.take(padded, at, axis=0, mode="clip") for at in (first, first + 1))
        return _mix(one, other, right_weight)

    found = _mix(mixed(place), mixed(place + width + 2), lower_weight) >> (2 * WEIGHT_BITS)
    return jnp.where(inside[..., None], found, fill)


def _split(position: Array, fine: int) -> tuple[Array, Array]:
    """⌊p⌋ in pixels, and p - ⌊p⌋ rounded to WEIGHT_BITS."""
    whole = position >> fine
    cut = fine - WEIGHT_BITS
    return whole, (position - (whole << fine) + (1 << (cut - 1))) >> cut


def _mix(one: Array, other: Array, weight: Array) -> Array:
    return (one << WEIGHT_BITS) + weight[..., None] * (other - one)
