"""Σ_δ X_(q+δ) K_δ for the queries of a box, from slices: as a convolution or as one product.

*Measured* (CPU, float32, K = 3, value and both gradients, against `lax.conv_general_dilated`): the
slices side by side and one product take 0.65 times as long for one image of 14 × 14 tokens of 768
features, and as long for eight; for 32 × 32 tokens of 64 features they take 0.9 to 1.3 times as
long for one image and 1.4 or more for eight, where writing the slices costs as much as multiplying
them. One product for each offset, and the slices of one product with all taps, were slower
throughout. So: one product from `WIDE` out features on, below it the convolution where the offsets
fill a box.
Both sum products one by one, so that the rounding is that of Σ. On a GPU a convolution may be done
by other algorithms, such as Winograd's; there it is always one product.

A box with a step, of a layer with a stride, takes that step in the slices and as the stride of the
convolution, so that no query is computed to be left out.

Products are written for matrices: the gradient of an einsum with more axes comes out transposed,
and on a CPU putting it back took up to twenty times as long as the product itself.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import max_dim, min_dim
from jaxtyping import Float, Num

from convattn.fast.products import is_highest, product
from convattn.operators.shifts import Queries, Shift, axis_queries, count, symbolic_axes

Box = tuple[Queries, ...]  # for each axis its queries
WIDE = 256


def shifted(tokens: Num[Array, " batch *rest"], offset: Shift, box: Box) -> Array:
    """X_(q+δ) for every query q of the box, zero where q + δ is no token.

    Args:
        tokens: `[batch, *grid, ...]`.
        box: For each axis of the grid, its queries.

    >>> shifted(jnp.array([[1, 2, 3]]), (1,), (range(3),)).tolist()
    [[2, 3, 0]]
    >>> shifted(jnp.array([[1, 2, 3]]), (0,), (range(0, 3, 2),)).tolist()
    [[1, 3]]
    """
    padding = [(0, 0, 0)] * tokens.ndim
    for axis, ((start, stop), step) in enumerate(zip(map(ends, box), offset, strict=True), start=1):
        padding[axis] = (-(start + step), stop + step - tokens.shape[axis], 0)
    padded = lax.pad(tokens, jnp.zeros((), tokens.dtype), padding)
    if all(side.step == 1 for side in box):
        return padded
    return padded[(slice(None), *(slice(None, None, side.step) for side in box))]


def ends(side: Queries) -> tuple[int, int]:
    """The first query of an axis, and the one after the last.

    >>> ends(range(0, 6, 2)), ends(range(3, 3))
    ((0, 5), (3, 3))
    """
    return side.start, max_dim(side.start, side.start + (count(side) - 1) * side.step + 1)


def shifted_products(
    tokens: Num[Array, "batch *grid features"],
    taps: Float[Array, "offsets features out_features"],
    offsets: tuple[Shift, ...],
    box: Box,
    dtype: np.dtype,
    precision: lax.PrecisionLike,
) -> Num[Array, "batch *box out_features"]:
    """Σ_δ X_(q+δ) K_δ for every query q of the box.

    Args:
        offsets: At least one.
        dtype: Of the sums.

    >>> taps = jnp.array([[[1.0]], [[10.0]]])
    >>> tokens = jnp.array([[[1.0], [2.0], [3.0]]])
    >>> products = shifted_products(
    ...     tokens, taps, ((0,), (1,)), (range(3),), np.dtype("float32"), "highest"
    ... )
    >>> products.ravel().tolist()
    [21.0, 32.0, 3.0]
    """
    narrow = taps.shape[-1] < WIDE and dtype == np.float32 and is_highest(precision)
    if narrow and jax.default_backend() == "cpu" and _box_of_taps(offsets) is not None:
        return as_convolution(tokens, taps, offsets, box, dtype, precision)
    return as_product(tokens, taps, offsets, box, dtype, precision)


def as_product(
    tokens: Num[Array, "batch *grid features"],
    taps: Float[Array, "offsets features out_features"],
    offsets: tuple[Shift, ...],
    box: Box,
    dtype: np.dtype,
    precision: lax.PrecisionLike,
) -> Num[Array, "batch *box out_features"]:
    """The slices side by side, times the taps one below the other."""
    pieces = jnp.concatenate([shifted(tokens, offset, box) for offset in offsets], axis=-1)
    columns = taps.reshape(pieces.shape[-1], taps.shape[-1])
    rows = pieces.reshape(-1, pieces.shape[-1])
    result = product("nk,ko->no", rows, columns, dtype=dtype, precision=precision)
    return result.reshape(*pieces.shape[:-1], taps.shape[-1])


def as_convolution(
    tokens: Num[Array, "batch *grid features"],
    taps: Float[Array, "offsets features out_features"],
    offsets: tuple[Shift, ...],
    box: Box,
    dtype: np.dtype,
    precision: lax.PrecisionLike,
) -> Num[Array, "batch *box out_features"]:
    """`lax.conv_general_dilated` over the slice of the tokens that the box reads, which it pads."""
    box_of_taps = _box_of_taps(offsets)
    if box_of_taps is None:
        raise ValueError(f"offsets={offsets} fill no box of equal steps; use as_product")
    sizes, steps = box_of_taps
    lowest, highest = offsets[0], offsets[-1]
    window = tuple(
        (start + low, stop + high)
        for (start, stop), low, high in zip(map(ends, box), lowest, highest, strict=True)
    )
    covered = tuple(
        (max_dim(start, 0), min_dim(stop, size))
        for (start, stop), size in zip(window, tokens.shape[1:-1], strict=True)
    )
    padding = [
        (start - first, last - stop)
        for (first, last), (start, stop) in zip(window, covered, strict=True)
    ]
    only_ring = any(start >= stop for start, stop in covered)
    if only_ring or any(symbolic_axes(pair) for pair in padding):  # no widths for a convolution
        covered, padding = window, [(0, 0)] * len(window)
    names = "yx"[-len(sizes) :]
    return lax.conv_general_dilated(
        shifted(
            tokens.astype(dtype), (0,) * len(sizes), tuple(axis_queries(*pair) for pair in covered)
        ),
        taps.astype(dtype).reshape(*sizes, *taps.shape[1:]),
        window_strides=[side.step for side in box],
        padding=padding,
        rhs_dilation=steps,
        dimension_numbers=(f"N{names}C", f"{names}IO", f"N{names}C"),
        precision=precision,
    )


def _box_of_taps(offsets: tuple[Shift, ...]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """How many taps each axis has and how far apart, or None where the offsets fill no such box.

    >>> _box_of_taps(((0, -2), (0, 0), (0, 2))), _box_of_taps(((0,), (1,), (3,)))
    (((1, 3), (1, 2)), None)
    """
    axes = [sorted(set(steps)) for steps in zip(*offsets, strict=True)]
    gaps = [set(np.diff(axis).tolist()) or {1} for axis in axes]
    if tuple(itertools.product(*axes)) != offsets or any(len(steps) > 1 for steps in gaps):
        return None
    return tuple(map(len, axes)), tuple(steps.pop() for steps in gaps)
