"""What reads neighbours: convolutions, pooling, and maps at a part of their points."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from convattn.compile.affine import Affine, Border
from convattn.compile.elementwise import maximum
from convattn.compile.lattice import Pair
from convattn.compile.reader import Reader
from convattn.compile.symbol import IMAGES, OUTSIDE, Map, Symbol

_OTHER_ORDER = (
    "takes rows or columns in another order or number than the map has, or reflected at its "
    "border; known are zeros, the nearest pixel and going around"
)


class Window(NamedTuple):
    """What the taps of a window read of a map.

    Attributes:
        rows, columns: The offset of each tap, in points of the map; None for zeros alone.
        stride: Points of the map from one of the result to the next.
        points: Of the result, on each axis.
        border: What is read beyond the map.
    """

    rows: list[int | None]
    columns: list[int | None]
    stride: Pair
    points: Pair
    border: Border


class Sides(NamedTuple):
    """Of a window, on two axes.

    Attributes:
        sizes, strides, dilations: On each.
        padding: Zeros before and after on each; what is negative is cut off.
    """

    sizes: Pair
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    padding: tuple[Pair, Pair] = ((0, 0), (0, 0))


def window(reader: Reader, symbol: Symbol, layout: Map, sides: Sides) -> Window:
    """What a window reads of a map whose rows and columns stand somehow.

    Raises:
        NotCompiled: If it reads other points than evenly spaced ones, or gives too many.
    """
    read = []
    for axis, places in enumerate((layout.rows, layout.columns)):
        low, high = sides.padding[axis]
        laid = np.concatenate(
            [np.full(max(low, 0), OUTSIDE), places, np.full(max(high, 0), OUTSIDE)]
        )
        laid = laid[max(-low, 0) : len(laid) - max(-high, 0)]
        numbers = (sides.sizes[axis], sides.strides[axis], sides.dilations[axis])
        read.append(_axis(reader, laid, symbol.count[axis], *numbers))
    (rows, row_step, row_count, row_border), (columns, step, count, border) = read
    kinds = row_border | border
    if len(kinds) > 1:
        raise reader.refusal(f"reads different borders ({' and '.join(sorted(kinds))}) of one map")
    kind: Border = kinds.pop() if kinds else "zeros"
    lattice = symbol.affine.lattice
    if kind == "edge" and lattice is not None and max(lattice.held) > 1:
        raise reader.refusal("reads the nearest pixel beyond the border; take patch_size=1")
    return Window(rows, columns, (row_step, step), (row_count, count), kind)


def _axis(
    reader: Reader, places: np.ndarray, count: int, size: int, stride: int, dilation: int
) -> tuple[list[int | None], int, int, set[Border]]:
    """The offset of each tap, the step, the points, and what is beyond."""
    points = (len(places) - dilation * (size - 1) - 1) // stride + 1
    if points < 1:
        raise reader.refusal(
            f"a window of {dilation * (size - 1) + 1} pixels on an axis of {len(places)}, with "
            "those that were laid around, but expected one that fits; lay more zeros, or take a "
            "smaller kernel"
        )
    taps = [places[dilation * tap :][: stride * points : stride] for tap in range(size)]
    step = _step(taps, count)
    if step is None:
        raise reader.refusal(_OTHER_ORDER)
    if (points - 1) * step >= count:
        raise reader.refusal(
            f"gives {points} points on an axis of {count} at stride {step}, but expected no more "
            "than it has; lay fewer zeros"
        )
    offsets: list[int | None] = []
    kinds: set[Border] = set()
    for held in taps:
        if (held < 0).all():
            offsets.append(None)
            continue
        progression = _progression(held, step, count)
        if progression is None:
            raise reader.refusal(_OTHER_ORDER)
        offsets.append(progression[0])
        kinds |= progression[1]
    return offsets, step, points, kinds


def _step(taps: Sequence[np.ndarray], count: int) -> int | None:
    """From one point to the next: the least that fits where no two neighbours are seen."""
    if len(taps[0]) == 1:
        return count
    largest = max(
        int((held[1:] - held[:-1])[(held[1:] >= 0) & (held[:-1] >= 0)].max(initial=0))
        for held in taps
    )
    if largest > 0:
        return largest
    met = [held for held in taps if (held >= 0).any()]
    steps = range(1, count + 1)
    return next((s for s in steps if all(_progression(held, s, count) for held in met)), None)


def _progression(held: np.ndarray, step: int, count: int) -> tuple[int, set[Border]] | None:
    """The first place, and what is beyond the axis, of places that are evenly apart.

    >>> _progression(np.array([OUTSIDE, 0, 1]), 1, 3), _progression(np.array([1, 2, 0]), 1, 3)
    ((-1, {'zeros'}), (1, {'circular'}))
    """
    steps = step * np.arange(len(held))
    inside = held >= 0
    starts = np.unique((held - steps)[inside])
    for first in starts[np.argsort(np.abs(starts))].tolist():
        expected = first + steps
        within = (expected >= 0) & (expected < count)
        if np.array_equal(np.where(within, expected, OUTSIDE), held):
            return first, set() if within.all() else {"zeros"}
        if np.array_equal(np.clip(expected, 0, count - 1), held):
            return first, {"edge"}
    if inside.all() and steps[-1] < count:
        first = int(held[0]) if 2 * held[0] <= count else int(held[0]) - count
        if np.array_equal((first + steps) % count, held):
            return first, {"circular"}
    return None


def at_its_places(reader: Reader, symbol: Symbol) -> Symbol:
    """A linear symbol, every point of whose map stands at its place; one point is a vector."""
    symbol = reader.linear(symbol)
    if symbol.affine.lattice is None:
        return symbol
    axes = symbol.axes()
    if axes is None or axes.image is None:
        raise reader.refusal(
            "rows, columns, channels or images are mixed in one axis of what it reads; a linear "
            "map of all of them, or a reshape back, must come first"
        )
    if symbol.count == (1, 1) or (axes.row is axes.column is None and not axes.loose):
        return single_point(reader, symbol)
    wide = replace(symbol, index=symbol.index[..., None, None])
    spare = [*axes.loose, symbol.index.ndim, symbol.index.ndim + 1]
    choices = product(*([axis] if axis is not None else spare for axis in axes[1:3]))
    tried = ((axes.image, row, column) for row, column in choices if row != column)
    own, layout = next(
        ((each, held) for each in tried if (held := wide.as_map(each)) is not None), (None, None)
    )
    if own is None or layout is None:
        raise reader.refusal("takes pixels in another order or number than the map has")
    if all(
        np.array_equal(places, np.arange(count))
        for places, count in zip(layout[:2], symbol.count, strict=True)
    ):
        return symbol
    wide = reader.pointwise(wide)
    read = window(reader, wide, layout, Sides((1, 1)))
    affine = _read(wide.affine, np.eye(wide.affine.channels)[None, None], read)
    moved = wide.with_map(own, affine, layout.channels)
    return replace(moved, index=moved.index.reshape(symbol.index.shape))


def single_point(reader: Reader, symbol: Symbol) -> Symbol:
    """The channels of one point of a map, as a vector."""
    symbol = reader.pointwise(symbol)
    numbers, channels = symbol.numbers(), symbol.affine.channels
    inside = numbers.inside
    places = {
        (int(r), int(c)) for r, c in zip(numbers.row[inside], numbers.column[inside], strict=True)
    }
    if len(places) > 1:
        raise reader.refusal("joins numbers of several pixels")
    held = np.zeros((*symbol.count, channels, channels))
    held[places.pop() if places else (0, 0)] = np.eye(channels)
    index = np.where(inside, numbers.image * channels + numbers.channel, OUTSIDE)
    return replace(symbol, affine=symbol.affine.of_points(held), index=index)


def _read(affine: Affine, taps: np.ndarray, read: Window) -> Affine:
    return affine.convolved(
        taps, read.rows, read.columns, stride=read.stride, count=read.points, border=read.border
    )


def convolution(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """`conv_general_dilated`."""
    symbol, kernel = inputs
    params = equation.params
    if not isinstance(symbol, Symbol) or isinstance(kernel, Symbol):
        raise reader.refusal("a kernel that depends on the image (a dynamic convolution)")
    lhs, rhs, out = params["dimension_numbers"]
    if len(lhs) != 4:
        raise reader.refusal(f"a convolution on {len(lhs) - 2} axes, but expected images, with two")
    if any(d != 1 for d in params["lhs_dilation"]) or params["batch_group_count"] != 1:
        raise reader.refusal("a transposed convolution, which has more pixels than the image")
    symbol = reader.pointwise(symbol)
    taps = np.asarray(kernel, np.float64).transpose(*rhs[2:], rhs[1], rhs[0])
    taps = _dense(taps, params["feature_group_count"])
    turned = replace(symbol, index=symbol.index.transpose(lhs))  # images, channels, two axes
    axes, swapped = (0, 2, 3), False
    layout = turned.as_map(axes)
    if layout is None:
        axes, swapped = (0, 3, 2), True
        layout = turned.as_map(axes)
    if layout is None:
        raise reader.refusal(
            "a convolution over other axes than rows and columns; if the images are [batch, "
            "channels, rows, columns], give channels_first=True"
        )
    order = slice(None, None, -1 if swapped else 1)
    sides = Sides(
        taps.shape[:2][order],
        *(tuple(params[name])[order] for name in ("window_strides", "rhs_dilation", "padding")),
    )
    taps = taps.swapaxes(0, 1) if swapped else taps
    whole = np.zeros((*taps.shape[:2], symbol.affine.channels, taps.shape[3]))
    known = layout.channels >= 0
    for channel in np.flatnonzero(known):
        whole[:, :, layout.channels[channel]] += taps[:, :, channel]
    read = window(reader, symbol, layout, sides)
    if symbol.affine.lattice is None:
        result = _of_vector(reader, turned, whole, read)
    else:
        result = turned.with_map(axes, _read(symbol.affine, whole, read))
    return replace(result, index=result.index.transpose(np.argsort(out)))


def _of_vector(reader: Reader, symbol: Symbol, taps: np.ndarray, read: Window) -> Symbol:
    """A convolution of an image of one pixel: the taps that meet it."""
    if read.points != (1, 1):
        raise reader.refusal("a convolution of a vector with neighbours")
    met = [
        taps[j, k]
        for j, row in enumerate(read.rows)
        for k, column in enumerate(read.columns)
        if row == column == 0
    ]
    affine = symbol.affine.mapped(sum(met, np.zeros(taps.shape[2:])))
    images, outputs = np.arange(IMAGES)[:, None], np.arange(taps.shape[3])
    return replace(symbol, affine=affine, index=(images * len(outputs) + outputs)[..., None, None])


def _dense(taps: np.ndarray, groups: int) -> np.ndarray:
    """A kernel of groups as one of all channels, zero elsewhere."""
    rows, columns, inputs, outputs = taps.shape
    dense = np.zeros((rows, columns, inputs * groups, outputs))
    each = outputs // groups
    for group in range(groups):
        own = slice(group * each, (group + 1) * each)
        dense[:, :, group * inputs : (group + 1) * inputs, own] = taps[..., own]
    return dense


class _Pool(NamedTuple):
    symbol: Symbol
    axes: tuple[int, int, int]
    layout: Map
    read: Window
    sides: Sides
    shape: tuple[int, ...]


def _pool(reader: Reader, symbol: Any, equation: Any) -> _Pool:
    """A pointwise map, and what windows of it read."""
    params = equation.params
    if not isinstance(symbol, Symbol):
        raise reader.refusal("a window over a mask")
    if any(d != 1 for d in params["base_dilation"]):
        raise reader.refusal("a window over pixels with others between them")
    symbol = reader.pointwise(symbol)
    axes = symbol.axes()
    if axes is None or axes.image is None or symbol.affine.lattice is None:
        raise reader.refusal("a window over a vector, or over rows and columns in one axis")
    wide = [axis for axis, size in enumerate(params["window_dimensions"]) if size != 1]
    single = [axis for axis, size in enumerate(symbol.index.shape) if size == 1]
    spare = [axis for axis in (*axes.loose, *single) if axis not in axes[:3]]
    spare.sort(key=lambda axis: axis not in wide)
    row, column = (spare.pop(0) if axis is None else axis for axis in (axes.row, axes.column))
    if not set(wide) <= {row, column}:
        raise reader.refusal("a window over channels or images")
    own = (axes.image, row, column)
    layout = symbol.as_map(own)
    if layout is None:
        raise reader.refusal("takes pixels in another order or number than the map has")
    sides = Sides(
        *(
            (params[name][row], params[name][column])
            for name in ("window_dimensions", "window_strides", "window_dilation", "padding")
        )
    )
    shape = equation.outvars[0].aval.shape
    return _Pool(symbol, own, layout, window(reader, symbol, layout, sides), sides, shape)


def window_sum(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """`reduce_window_sum`."""
    pool = _pool(reader, inputs[0], equation)
    channels = pool.symbol.affine.channels
    taps = np.broadcast_to(np.eye(channels), (*pool.sides.sizes, channels, channels))
    affine = _read(pool.symbol.affine, taps, pool.read)
    return pool.symbol.with_map(pool.axes, affine, pool.layout.channels)


def window_max(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """`reduce_window_max`."""
    pool = _pool(reader, inputs[0], equation)
    sides, symbol = pool.sides, pool.symbol
    counts = symbol.count
    if any(
        not np.array_equal(places, np.arange(count))
        for places, count in zip(pool.layout[:2], counts, strict=True)
    ):
        raise reader.refusal(
            "the largest of pixels that were laid around a map, or of a part of it"
        )
    if max(sides.dilations) > 1:
        raise reader.refusal("a dilated window of maxima")
    affine = symbol.affine
    for axis in range(2):
        low, size = sides.padding[axis][0], sides.sizes[axis]
        after = size - 1 - low
        last = sides.strides[axis] * (pool.read.points[axis] - 1) + after
        inside = low <= 0 and last < counts[axis]
        affine = running_maximum(reader, affine, axis, after, low, inside)
    offsets: list[int | None] = [0]
    read = Window(offsets, offsets, sides.strides, pool.read.points, "zeros")
    affine = _read(affine, np.eye(affine.channels)[None, None], read)
    return symbol.with_map(pool.axes, affine, pool.layout.channels)


def running_maximum(
    reader: Reader, affine: Affine, axis: int, after: int, before: int, inside: bool
) -> Affine:
    """The largest of the points from `before` behind to `after` ahead, as far as they are there.

    Twice as many points a step. Beyond the border the nearest point is read, which is among those
    of the window; zeros are as good where no window that is read leaves the map, and where no
    number is negative.
    """
    assert affine.lattice is not None
    zeros = inside or bool((reader.lowest(affine) >= 0).all())
    if not zeros and max(affine.lattice.held) > 1:
        raise reader.refusal(
            "windows of maxima that leave a map whose numbers may be negative, in patches of "
            "several of its pixels; take patch_size=1, or put ReLU before"
        )
    for reach, sign in ((after, 1), (before, -1)):
        done = 0
        while done < reach:
            step = min(done + 1, reach - done)
            offsets: list[list[int | None]] = [[0], [0]]
            offsets[axis] = [sign * step]
            border: Border = "zeros" if zeros else "edge"
            read = Window(offsets[0], offsets[1], (1, 1), affine.lattice.count, border)
            if not affine.is_pointwise:
                affine = reader.stored(affine)
            shifted = _read(affine, np.eye(affine.channels)[None, None], read)
            affine, done = maximum(reader, affine, shifted), done + step
    return affine


def largest_of_all(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """`reduce_max` over all rows and columns."""
    symbol = inputs[0]
    axes = symbol.axes() if isinstance(symbol, Symbol) else None
    over = set(equation.params["axes"])
    image, row, column = (None, None, None) if axes is None else axes[:3]
    if image is None or row is None or column is None or over != {row, column}:
        raise reader.refusal("the largest over other axes than all rows and columns together")
    symbol = reader.pointwise(reader.whole(symbol))
    counts, affine = symbol.count, symbol.affine
    for axis in range(2):
        affine = running_maximum(reader, affine, axis, counts[axis] - 1, 0, inside=True)
    first = symbol.index.take([0], row).take([0], column)
    return single_point(reader, replace(symbol, affine=affine, index=first.squeeze((row, column))))
