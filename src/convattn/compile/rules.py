"""How each operation of a traced function is read (`reader.py`)."""

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate, chain
from typing import Any

import numpy as np
from scipy.special import erf, erfc, expit

from convattn.compile.affine import Affine, Border, concatenated
from convattn.compile.lattice import Pair
from convattn.compile.reader import RELU, Reader, Rule
from convattn.compile.scalar import IDENTITY, Scalar, chosen, combined
from convattn.compile.symbol import (
    BATCH,
    COLUMN,
    FEATURE,
    OUTSIDE,
    ROW,
    Flat,
    Sign,
    Symbol,
    whole_places,
)

# Constants beside symbols.


def _uniform(constant: Any) -> float | None:
    """The one number of an array, or None if it has several."""
    array = np.asarray(constant)
    if array.size and (array == array.flat[0]).all():
        return float(array.flat[0])
    return None


def _by_channel(reader: Reader, constant: Any, symbol: Symbol) -> np.ndarray:
    """The numbers of a constant beside an ordered symbol, one a channel."""
    array = np.broadcast_to(np.asarray(constant, np.float64), symbol.shape)
    for axis, role in enumerate(symbol.roles):
        if role != FEATURE:
            array = array.take([0], axis) if _is_same_along(array, axis) else array
    sizes = [array.shape[axis] for axis, role in enumerate(symbol.roles) if role != FEATURE]
    if any(size != 1 for size in sizes):
        raise reader.refusal(
            "a constant that differs from pixel to pixel, such as a mask, a map of positions, or "
            "the number of pixels in an average that leaves out the border; let averages count it"
        )
    return array.reshape(-1)


def _is_same_along(array: np.ndarray, axis: int) -> bool:
    return bool((array == array.take([0], axis)).all())


# Elementwise operations.


def _sum(operation: Callable[..., np.ndarray], sign: int) -> Rule:
    def rule(reader: Reader, inputs: list[Any], equation: Any) -> Any:
        one, other = inputs
        if isinstance(one, Symbol) and isinstance(other, Symbol):
            if one.has_base_of(other):
                return replace(one, function=combined(one.function, other.function, operation))
            one, other = _aligned(reader, one, other)
            second = other.affine if sign > 0 else other.affine.scaled(np.array(-1.0))
            return replace(one, affine=one.affine.plus(second))
        symbol, constant = (one, other) if isinstance(one, Symbol) else (other, one)
        slope, factor = (1, sign) if isinstance(one, Symbol) else (sign, 1)
        number = _uniform(constant)
        if number is not None:
            return replace(symbol, function=symbol.function.then(slope, factor * number))
        symbol = reader.linear(symbol)
        bias = factor * _by_channel(reader, constant, symbol)
        affine = symbol.affine.scaled(np.array(float(slope)))
        return replace(symbol, affine=affine.plus(reader.constant(affine, bias)))

    return rule


def _aligned(reader: Reader, one: Symbol, other: Symbol) -> tuple[Symbol, Symbol]:
    """Two linear arrays of the same shape, points and order of channels."""
    one, other = reader.whole(one), reader.whole(other)
    if one.roles != other.roles or one.affine.lattice != other.affine.lattice:
        raise reader.refusal(
            "joins arrays whose pixels do not match, such as a vector spread over a map "
            "(squeeze-and-excitation), or maps at different strides"
        )
    return one, other


def _times(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    one, other = inputs
    if isinstance(one, Symbol) and isinstance(other, Symbol):
        if one.has_base_of(other):
            return replace(one, function=combined(one.function, other.function, np.multiply))
        raise reader.refusal(
            "multiplies two arrays that depend on the image, as gates, squeeze-and-excitation and "
            "attention do; no construction is known here"
        )
    symbol, constant = (one, other) if isinstance(one, Symbol) else (other, one)
    number = _uniform(constant)
    if number is not None:
        return replace(symbol, function=symbol.function.then(number))
    symbol = reader.linear(symbol)
    return replace(symbol, affine=symbol.affine.scaled(_by_channel(reader, constant, symbol)))


def _quotient(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    one, other = inputs
    if isinstance(other, Symbol):
        raise reader.refusal("divides by what depends on the image, as norms of layers do")
    return _times(reader, [one, 1 / np.asarray(other, np.float64)], equation)


def _larger(sign: int) -> Rule:
    def rule(reader: Reader, inputs: list[Any], equation: Any) -> Any:
        one, other = inputs
        if not isinstance(one, Symbol):
            one, other = other, one
        if not isinstance(other, Symbol) and (number := _uniform(other)) is not None:
            other = replace(one, function=Scalar.affine(0.0, number))
        if isinstance(other, Symbol) and one.has_base_of(other):
            difference = combined(one.function, other.function, np.subtract)
            pair = (one.function, other.function)[::sign]
            found = chosen(difference, *pair)
            assert found is not None
            return replace(one, function=found)
        if not isinstance(other, Symbol):
            one = reader.linear(one)
            constant = reader.constant(one.affine, _by_channel(reader, other, one))
            other = replace(one, affine=constant)
        one, other = _aligned(reader, one, other)
        return replace(one, affine=_maximum(reader, one.affine, other.affine, sign))

    return rule


def _maximum(reader: Reader, one: Affine, other: Affine, sign: int = 1) -> Affine:
    """max(x, y) = x + ReLU(y - x), min(x, y) = x - ReLU(x - y)."""
    difference = other.plus(one.scaled(np.array(-1.0))).scaled(np.array(float(sign)))
    return one.plus(reader.stored(difference, RELU).scaled(np.array(float(sign))))


def _clamp(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    low, symbol, high = inputs
    return _larger(-1)(reader, [_larger(1)(reader, [symbol, low], equation), high], equation)


def _compared(order: int) -> Rule:
    def rule(reader: Reader, inputs: list[Any], equation: Any) -> Any:
        return Sign(_sum(np.subtract, -1)(reader, inputs[::order], equation))

    return rule


def _select(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    sign, *cases = inputs
    if not isinstance(sign, Sign) or len(cases) != 2:
        raise reader.refusal("a choice by a mask; known is one by the sign of the same number")
    base = sign.of
    functions = []
    for case in cases:
        number = None if isinstance(case, Symbol) else _uniform(case)
        if number is not None:
            functions.append(Scalar.affine(0.0, number))
        elif isinstance(case, Symbol) and case.has_base_of(base):
            functions.append(case.function)
        else:
            raise reader.refusal("a choice between other arrays than functions of the same number")
    found = chosen(base.function, functions[1], functions[0])
    if found is None:
        raise reader.refusal("a function that jumps, which no MLP computes")
    return replace(base, function=found)


def _magnitude(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    (symbol,) = inputs
    found = chosen(symbol.function, symbol.function, symbol.function.then(-1.0))
    assert found is not None
    return replace(symbol, function=found)


def _smooth(outer: Callable[[np.ndarray], np.ndarray]) -> Rule:
    def rule(reader: Reader, inputs: list[Any], equation: Any) -> Any:
        (symbol,) = inputs
        return replace(symbol, function=symbol.function.smooth(outer))

    return rule


def _power(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    exponent = equation.params["y"]
    return _smooth(lambda z: z**exponent)(reader, inputs, equation)


def _negative(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    (symbol,) = inputs
    return replace(symbol, function=symbol.function.then(-1.0))


# Shapes.


def _reshape(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    (symbol,), shape = inputs, equation.outvars[0].aval.shape
    if isinstance(symbol, Flat):
        raise reader.refusal("takes a flattened map apart; a linear map must read it next")
    found = symbol.reshaped(shape)
    if found is not None:
        return found
    if symbol.roles[0] == BATCH and len(shape) == 2 and shape[0] == 1:
        return Flat(reader.whole(symbol))
    raise reader.refusal(
        f"from {symbol.shape} to {shape} joins rows, columns and channels, as sequences of tokens "
        "do; known are flattening a map for a linear classifier, and reshapes of channels"
    )


def _broadcast(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    symbol, shape = inputs[0], equation.params["shape"]
    roles, sizes = [FEATURE] * len(shape), [1] * len(shape)
    places = dict(zip((ROW, COLUMN), symbol.places, strict=True))
    axes = zip(equation.params["broadcast_dimensions"], symbol.roles, symbol.shape, strict=True)
    for axis, role, size in axes:
        if role in places and size == 1:  # one row or column, repeated on its axis or the next
            if shape[axis] == 1 and axis + 1 < len(shape) and shape[axis + 1] > 1:
                axis += axis + 1 not in equation.params["broadcast_dimensions"]
            places[role] *= shape[axis]
            size = shape[axis]
        roles[axis], sizes[axis] = role, size
    if any(a != b and role != FEATURE for a, b, role in zip(sizes, shape, roles, strict=True)):
        raise reader.refusal("repeats images, or whole rows and columns")
    features = [size for size, role in zip(sizes, roles, strict=True) if role == FEATURE]
    wanted = [size for size, role in zip(shape, roles, strict=True) if role == FEATURE]
    index = np.broadcast_to(symbol.index.reshape(features), wanted)
    found = replace(symbol, roles=tuple(roles), index=index)
    return replace(found, places=(places[ROW], places[COLUMN]))


def _transpose(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    return inputs[0].transposed(tuple(equation.params["permutation"]))


def _slice(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    (symbol,), given = inputs, equation.params
    strides = given["strides"] or [1] * len(symbol.shape)
    cuts = [
        slice(*cut)
        for cut in zip(given["start_indices"], given["limit_indices"], strides, strict=True)
    ]
    return _cut(symbol, cuts)


def _cut(symbol: Symbol, cuts: list[slice]) -> Symbol:
    """A part of each axis."""
    features = tuple(cuts[axis] for axis in symbol.feature_axes)
    places = dict(zip((ROW, COLUMN), symbol.places, strict=True))
    for cut, role in zip(cuts, symbol.roles, strict=True):
        if role in places:
            places[role] = places[role][cut]
    return replace(symbol, index=symbol.index[features], places=(places[ROW], places[COLUMN]))


def _reversed(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    (symbol,), axes = inputs, equation.params["dimensions"]
    cuts = [slice(None, None, -1 if axis in axes else 1) for axis in range(len(symbol.roles))]
    return _cut(symbol, cuts)


def _concatenate(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    axis = equation.params["dimension"]
    inputs = [part for part in inputs if isinstance(part, Symbol) or np.size(part)]
    if len(inputs) == 1:
        return inputs[0]
    symbols = [part for part in inputs if isinstance(part, Symbol)]
    role = symbols[0].roles[axis]
    if role == FEATURE:
        like = symbols[0]
        parts = [
            reader.whole(part) if isinstance(part, Symbol) else _constant_part(reader, part, like)
            for part in inputs
        ]
        if any(p.affine.lattice != like.affine.lattice or p.roles != like.roles for p in parts):
            raise reader.refusal("joins maps at different strides")
        starts = accumulate((part.affine.channels for part in parts), initial=0)
        index = [part.index + start for part, start in zip(parts, starts, strict=False)]
        feature = like.feature_axes.index(axis)
        return replace(
            parts[0],
            affine=concatenated([part.affine for part in parts]),
            index=np.concatenate(index, feature),
        )
    first, places = symbols[0], []
    for part in inputs:
        if not isinstance(part, Symbol):
            if np.any(part):
                raise reader.refusal("lays other constants than zeros around a map")
            places += [OUTSIDE] * np.shape(part)[axis]
        elif part.affine is first.affine and part.function is first.function:
            places += part.places[(ROW, COLUMN).index(role)]
        else:
            raise reader.refusal("joins rows or columns of different maps")
    found = list(first.places)
    found[(ROW, COLUMN).index(role)] = tuple(places)
    return replace(first, places=(found[0], found[1]))


def _constant_part(reader: Reader, array: Any, like: Symbol) -> Symbol:
    """Constant channels beside a map."""
    shape = np.shape(array)
    sizes = [shape[axis] for axis in like.feature_axes]
    index = np.arange(int(np.prod(sizes))).reshape(sizes)
    affine = Affine(like.affine.lattice, index.size, {})
    symbol = replace(like, affine=affine, index=index, function=IDENTITY)
    return replace(symbol, affine=reader.constant(affine, _by_channel(reader, array, symbol)))


def _pad(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    symbol, value = inputs
    config = equation.params["padding_config"]
    if any(interior for *_, interior in config) or float(value) != 0:
        raise reader.refusal("lays zeros between pixels, or other numbers than zeros around a map")
    symbol = reader.linear(symbol)
    places = dict(zip((ROW, COLUMN), symbol.places, strict=True))
    for axis, (role, (low, high, _)) in enumerate(zip(symbol.roles, config, strict=True)):
        if role in places:
            own = places[role][max(-low, 0) : len(places[role]) - max(-high, 0)]
            places[role] = (OUTSIDE,) * max(low, 0) + own + (OUTSIDE,) * max(high, 0)
        elif low or high:
            symbol = _wider(reader, symbol, axis, low, high)
    return replace(symbol, places=(places[ROW], places[COLUMN]))


def _wider(reader: Reader, symbol: Symbol, axis: int, low: int, high: int) -> Symbol:
    """With zero channels beside its own."""
    if low < 0 or high < 0 or symbol.roles[axis] == BATCH:
        raise reader.refusal("pads the batch, or takes away channels; take a slice")
    count = symbol.affine.channels
    affine = symbol.affine.mapped(np.eye(count, count + 1))
    widths = [(0, 0)] * symbol.index.ndim
    widths[symbol.feature_axes.index(axis)] = (low, high)
    return replace(symbol, affine=affine, index=np.pad(symbol.index, widths, constant_values=count))


# What reads neighbours.


def _borders(reader: Reader, symbol: Symbol) -> tuple[Pair, Pair, Border]:
    """How many pixels were laid before and after a map on each axis, and what they are."""
    lattice = symbol.affine.lattice
    assert lattice is not None
    found: list[tuple[int, int]] = []
    kinds: set[Border] = set()
    for places, count in zip(symbol.places, lattice.count, strict=True):
        array = np.array(places)
        for before in (*range(len(places)), *range(-1, -count, -1)):
            positions = np.arange(len(places)) - before
            after = len(places) - before - count
            inside = (positions >= 0) & (positions < count)
            if not np.array_equal(array[inside], positions[inside]) or not inside.any():
                continue
            around = {
                "zeros": np.full(len(places), OUTSIDE),
                "edge": positions.clip(0, count - 1),
                "circular": positions % count,
            }
            if inside.all():
                found.append((before, after))
                break
            kind = next(
                (
                    kind
                    for kind, held in around.items()
                    if np.array_equal(array[~inside], held[~inside])
                ),
                None,
            )
            if kind is not None:
                kinds.add(kind)  # type: ignore[arg-type]
                found.append((before, after))
                break
        else:
            raise reader.refusal("reads a map in another order, or reflected at its border")
    if len(kinds) > 1:
        raise reader.refusal("a map whose axes have different borders")
    (top, bottom), (left, right) = found
    return (top, left), (bottom, right), kinds.pop() if kinds else "zeros"


def _windows(
    reader: Reader, symbol: Symbol, sizes: Pair, stride: Pair, dilation: Pair, padding: Any
) -> tuple[Pair, Pair, Border]:
    """Pixels laid before, points of the result, and the border, of windows on a pointwise map."""
    lattice = symbol.affine.lattice
    assert lattice is not None
    before, after, border = _borders(reader, symbol)
    own = [width for pair in padding for width in pair]
    if border != "zeros" and any(own):
        raise reader.refusal("lays zeros around a border of another kind")
    cropped = min(*before, *after) < 0
    if cropped and (any(own) or max(*before, *after) > 0):
        raise reader.refusal("lays zeros around a part of a map")
    counts, starts = [], []
    for axis in range(2):
        low, high = padding[axis]
        reach = dilation[axis] * (sizes[axis] - 1) + 1
        total = len(symbol.places[axis]) + low + high
        count = (total - reach) // stride[axis] + 1
        if count < 1 or (count - 1) * stride[axis] >= lattice.count[axis]:
            raise reader.refusal(
                f"gives {count} points on an axis of {lattice.count[axis]} at stride "
                f"{stride[axis]}, but expected at least one, and no more than it has; lay fewer "
                "zeros"
            )
        counts.append(count)
        starts.append(before[axis] + low)
    return (starts[0], starts[1]), (counts[0], counts[1]), border


def _convolution(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    symbol, kernel = inputs
    given = equation.params
    if not isinstance(symbol, Symbol) or isinstance(kernel, Symbol):
        raise reader.refusal("a kernel that depends on the image (a dynamic convolution)")
    numbers = given["dimension_numbers"]
    lhs, rhs, out = numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec
    if len(lhs) != 4:
        raise reader.refusal(f"a convolution on {len(lhs) - 2} axes, but expected images, with two")
    if any(d != 1 for d in given["lhs_dilation"]) or given["batch_group_count"] != 1:
        raise reader.refusal("a transposed convolution, which has more pixels than the image")
    symbol = reader.pointwise(symbol.transposed(tuple(lhs)))
    taps = np.asarray(kernel, np.float64).transpose(*rhs[2:], rhs[1], rhs[0])
    strides, padding = list(given["window_strides"]), list(given["padding"])
    dilations = list(given["rhs_dilation"])
    if symbol.roles[2:] == (COLUMN, ROW):
        symbol, taps = symbol.transposed((0, 1, 3, 2)), taps.swapaxes(0, 1)
        strides, padding, dilations = strides[::-1], padding[::-1], dilations[::-1]
        out = (*out[:2], out[3], out[2])
    taps = _dense(taps, given["feature_group_count"])
    order = tuple(int(axis) for axis in np.argsort(out))
    if symbol.roles == (BATCH, FEATURE, FEATURE, FEATURE):
        if symbol.shape[2:] != (1, 1) or any(low for low, _ in padding):
            raise reader.refusal("a convolution of a vector with neighbours")
        found = replace(symbol, affine=symbol.affine.mapped(taps[0, 0]))
        return replace(found, index=np.arange(taps.shape[3])[:, None, None]).transposed(order)
    if symbol.roles != (BATCH, FEATURE, ROW, COLUMN):
        raise reader.refusal("a convolution over other axes than rows and columns")
    stride, dilation = (strides[0], strides[1]), (dilations[0], dilations[1])
    sizes = (taps.shape[0], taps.shape[1])
    before, count, border = _windows(reader, symbol, sizes, stride, dilation, padding)
    reader.require_border(border, symbol.affine)
    affine = symbol.affine.convolved(
        taps, stride=stride, dilation=dilation, before=before, count=count, border=border
    )
    found = replace(symbol, affine=affine, index=np.arange(taps.shape[3]))
    return replace(found, places=whole_places(count)).transposed(order)


def _dense(taps: np.ndarray, groups: int) -> np.ndarray:
    """A kernel of groups as one of all channels, zero elsewhere."""
    rows, columns, inputs, outputs = taps.shape
    found = np.zeros((rows, columns, inputs * groups, outputs))
    each = outputs // groups
    for group in range(groups):
        own = slice(group * each, (group + 1) * each)
        found[:, :, group * inputs : (group + 1) * inputs, own] = taps[..., own]
    return found


def _window_sum(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    symbol, sizes, stride, dilation, padding, order = _pool(reader, inputs[0], equation)
    before, count, border = _windows(reader, symbol, sizes, stride, dilation, padding)
    taps = np.broadcast_to(np.eye(symbol.affine.channels), (*sizes, *[symbol.affine.channels] * 2))
    affine = symbol.affine.convolved(
        taps, stride=stride, dilation=dilation, before=before, count=count, border=border
    )
    return replace(symbol, affine=affine, places=whole_places(count)).transposed(order)


def _pool(reader: Reader, symbol: Any, equation: Any) -> tuple[Any, ...]:
    """A pointwise map, the window's sizes, strides, dilations and padding, and the axes' order."""
    given = equation.params
    if any(d != 1 for d in given["base_dilation"]):
        raise reader.refusal("a window over pixels with others between them")
    own = {role: axis for axis, role in enumerate(symbol.roles) if role in (ROW, COLUMN)}
    for axis, size in enumerate(given["window_dimensions"]):
        if size != 1 and axis not in own.values():
            raise reader.refusal("a window over channels or images")
    if len(own) != 2:
        raise reader.refusal("a window over a vector")
    axes = (own[ROW], own[COLUMN])
    found = [
        tuple(given[name][axis] for axis in axes)
        for name in ("window_dimensions", "window_strides", "window_dilation", "padding")
    ]
    return (reader.pointwise(symbol), *found, tuple(range(len(symbol.roles))))


def _window_max(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    symbol, sizes, stride, dilation, padding, _ = _pool(reader, inputs[0], equation)
    if not symbol.is_whole:
        raise reader.refusal("the largest of pixels that were laid around a map")
    if max(dilation) > 1:
        raise reader.refusal("a dilated window of maxima")
    before, count, _ = _windows(reader, symbol, sizes, stride, dilation, padding)
    affine, sides = symbol.affine, symbol.affine.lattice.count
    for axis in range(2):
        low, after = before[axis], sizes[axis] - 1 - before[axis]
        inside = not low and stride[axis] * (count[axis] - 1) + after < sides[axis]
        affine = _running_maximum(reader, affine, axis, after, low, inside)
    taps = np.eye(affine.channels)[None, None]
    affine = affine.convolved(taps, stride=stride, count=count)
    return replace(symbol, affine=affine, places=whole_places(count))


def _running_maximum(
    reader: Reader, affine: Affine, axis: int, after: int, before: int, inside: bool
) -> Affine:
    """The largest of the points from `before` behind to `after` ahead, as far as they are there.

    Twice as many points a step. Beyond the border the nearest point is read, which is among those
    of the window; zeros are as good where no window that is read leaves the map, and where no
    number is negative.
    """
    assert affine.lattice is not None
    nonnegative = reader.is_nonnegative(affine)
    zeros = inside or nonnegative
    if not zeros and max(affine.lattice.held) > 1:
        raise reader.refusal(
            "windows of maxima that leave a map with negative numbers, in patches of several of "
            "its pixels; take patch_size=1, or put ReLU before"
        )
    for reach, sign in ((after, 1), (before, -1)):
        done = 0
        while done < reach:
            step = min(done + 1, reach - done)
            start = [0, 0]
            start[axis] = -sign * step
            shifted = affine.convolved(
                np.eye(affine.channels)[None, None],
                before=(start[0], start[1]),
                count=affine.lattice.count,
                border="zeros" if zeros else "edge",
            )
            affine, done = _maximum(reader, affine, shifted), done + step
            if nonnegative:
                reader.nonnegative.append(affine)
    return affine


# Sums over axes.


def _without(symbol: Symbol, axes: tuple[int, ...], affine: Affine) -> Symbol:
    """A vector, without the rows and columns."""
    roles = tuple(role for axis, role in enumerate(symbol.roles) if axis not in axes)
    return replace(symbol, affine=affine, roles=roles, places=((), ()))


def _reduce(of_maxima: bool) -> Rule:
    def rule(reader: Reader, inputs: list[Any], equation: Any) -> Any:
        symbol, axes = inputs[0], tuple(equation.params["axes"])
        over = {symbol.roles[axis] for axis in axes}
        if over != {ROW, COLUMN}:
            raise reader.refusal(
                "over other axes than all rows and columns together, such as a norm over channels "
                "or one of the image's own statistics"
            )
        symbol = reader.pointwise(reader.whole(symbol))
        assert symbol.affine.lattice is not None
        count = symbol.affine.lattice.count
        if not of_maxima:
            return _without(
                symbol, axes, symbol.affine.averaged().scaled(np.array(float(np.prod(count))))
            )
        affine = symbol.affine
        for axis in range(2):
            affine = _running_maximum(reader, affine, axis, count[axis] - 1, 0, inside=True)
        return _without(symbol, axes, affine.at_point((0, 0), np.eye(affine.channels)))

    return rule


def _dot(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    one, other = inputs
    (first, second), (own, theirs) = equation.params["dimension_numbers"]
    if not isinstance(one, Symbol | Flat) ^ isinstance(other, Symbol | Flat):
        raise reader.refusal("multiplies two arrays that depend on the image, as attention does")
    swapped = not isinstance(one, Symbol | Flat)
    if swapped:
        one, other, first, second, own, theirs = other, one, second, first, theirs, own
    weights = np.asarray(other, np.float64)
    free = [axis for axis in range(weights.ndim) if axis not in (*second, *theirs)]
    weights = _block_diagonal(weights.transpose(*second, *theirs, *free), len(second), len(theirs))
    first = (*first, *own)
    sizes = weights.shape[len(first) :]
    if isinstance(one, Flat) and not own:
        return _classified(reader, one.of, weights.reshape(-1, int(np.prod(sizes))), sizes, swapped)
    if isinstance(one, Flat) or any(one.roles[axis] != FEATURE for axis in first):
        raise reader.refusal("a linear map over rows or columns, or one for each of them")
    symbol = reader.whole(one)
    kept = [axis for axis in symbol.feature_axes if axis not in first]
    if kept and symbol.index.size != np.prod([symbol.shape[axis] for axis in first]):
        raise reader.refusal("a linear map over some of the channels' axes")
    order = [symbol.feature_axes.index(axis) for axis in first]
    rest = [place for place in range(symbol.index.ndim) if place not in order]
    index = symbol.index.transpose(*order, *rest).ravel()
    affine = symbol.affine.taken(index).mapped(weights.reshape(index.size, -1))
    roles = [role for axis, role in enumerate(symbol.roles) if axis not in first]
    index = np.arange(affine.channels).reshape([1] * len(kept) + list(sizes))
    found = Symbol(affine, (*roles, *[FEATURE] * len(sizes)), index, symbol.places)
    axes = range(len(found.roles))
    parts = axes[: len(roles)], axes[len(roles) + len(own) :]
    return found.transposed(
        (*axes[len(roles) :][: len(own)], *chain(*parts[:: -1 if swapped else 1]))
    )


def _block_diagonal(weights: np.ndarray, contracted: int, batched: int) -> np.ndarray:
    """`[*contracted, *batched, *free]` as `[*contracted, *batched, *batched, *free]`."""
    if not batched:
        return weights
    shape = weights.shape
    inner, groups = shape[:contracted], shape[contracted : contracted + batched]
    count, free = int(np.prod(groups)), shape[contracted + batched :]
    whole = np.zeros((int(np.prod(inner)), count, count, int(np.prod(free))))
    whole[:, range(count), range(count)] = weights.reshape(*whole.shape[:2], -1)
    return whole.reshape(*inner, *groups, *groups, *free)


def _classified(
    reader: Reader, symbol: Symbol, weights: np.ndarray, sizes: tuple[int, ...], swapped: bool
) -> Symbol:
    """A linear map of all points and channels of a map."""
    symbol = reader.pointwise(symbol)
    shape = symbol.shape[1:]
    axes = [symbol.roles.index(role) - 1 for role in (ROW, COLUMN)]
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    held = weights.reshape(*shape, -1).transpose(*axes, *rest, len(shape))
    held = held.reshape(*held.shape[:2], -1, held.shape[-1])
    total: Affine | None = None
    for point in np.ndindex(held.shape[:2]):
        part = symbol.affine.at_point((point[0], point[1]), held[point])
        total = part if total is None else total.plus(part)
    assert total is not None
    index = np.arange(total.channels).reshape(sizes)
    found = Symbol(total, (BATCH, *[FEATURE] * len(sizes)), index)
    return found.transposed((*range(1, len(sizes) + 1), 0)) if swapped else found


def _same(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    return inputs[0]


RULES: dict[str, Rule] = {
    "add": _sum(np.add, 1),
    "add_any": _sum(np.add, 1),
    "sub": _sum(np.subtract, -1),
    "mul": _times,
    "div": _quotient,
    "neg": _negative,
    "max": _larger(1),
    "min": _larger(-1),
    "clamp": _clamp,
    "gt": _compared(1),
    "ge": _compared(1),
    "lt": _compared(-1),
    "le": _compared(-1),
    "select_n": _select,
    "abs": _magnitude,
    "erf": _smooth(erf),
    "erfc": _smooth(erfc),
    "tanh": _smooth(np.tanh),
    "logistic": _smooth(expit),
    "exp": _smooth(np.exp),
    "integer_pow": _power,
    "square": _smooth(np.square),
    "log1p": _smooth(np.log1p),
    "rev": _reversed,
    "reshape": _reshape,
    "squeeze": _reshape,
    "expand_dims": _reshape,
    "broadcast_in_dim": _broadcast,
    "transpose": _transpose,
    "slice": _slice,
    "concatenate": _concatenate,
    "pad": _pad,
    "conv_general_dilated": _convolution,
    "reduce_window_sum": _window_sum,
    "reduce_window_max": _window_max,
    "reduce_sum": _reduce(of_maxima=False),
    "reduce_max": _reduce(of_maxima=True),
    "dot_general": _dot,
    **dict.fromkeys(("copy", "convert_element_type", "stop_gradient", "reduce_precision"), _same),
}
