"""Functions of one number, and what joins two arrays number by number."""

from dataclasses import replace
from typing import Any

import numpy as np

from convattn.compile.affine import Affine
from convattn.compile.moves import on_indices
from convattn.compile.reader import RELU, Reader, Rule
from convattn.compile.scalar import IDENTITY, Scalar, chosen, combined
from convattn.compile.symbol import OUTSIDE, Index, Sign, Symbol, renumbered
from convattn.networks.transformation.evaluation import bind


def applied(reader: Reader, symbol: Symbol, function: Scalar, outside: Any) -> Symbol:
    """Another function of the same numbers.

    Args:
        reader: For refusals.
        symbol: Of which it is.
        function: Of the numbers of its affine map.
        outside: What it makes of the zeros that were laid around, which must stay zeros.
    """
    if symbol.has_outside and outside:
        raise reader.refusal(
            "changes the zeros that were laid around a map into other numbers; apply it before "
            "they are laid, or let a convolution lay them"
        )
    return replace(symbol, function=function, line=reader.line)


# Constants beside symbols.


def uniform(constant: Any) -> float | None:
    """The one number of an array, or None if it has several."""
    array = np.asarray(constant)
    if array.size and (array == array.flat[0]).all():
        return float(array.flat[0])
    return None


def by_channel(reader: Reader, symbol: Symbol, constant: Any) -> tuple[Symbol, np.ndarray]:
    """A linear symbol, each of whose channels has one number of a constant, and these."""
    channels, inside = symbol.affine.channels, symbol.index >= 0
    array = np.broadcast_to(np.asarray(constant, np.float64), symbol.index.shape)[inside]
    own = (symbol.index % channels)[inside]
    held = np.zeros(channels)
    held[own] = array
    if (held[own] == array).all():
        return symbol, held
    pairs, kind = np.unique(np.stack([own, array]), axis=1, return_inverse=True)
    base, kind = symbol.base[inside], kind.reshape(-1)
    if len(np.unique(base * len(pairs[0]) + kind)) != len(np.unique(base)) * len(pairs[0]):
        raise reader.refusal(
            "a constant that differs from pixel to pixel, such as a mask, a map of positions, or "
            "the number of pixels in an average that leaves out the border; let averages count it"
        )
    index = symbol.index.copy()
    index[inside] = base * len(pairs[0]) + kind
    affine = symbol.affine.taken(pairs[0].astype(np.int64))
    return replace(symbol, affine=affine, index=index), pairs[1]


def aligned(reader: Reader, one: Symbol, other: Symbol) -> tuple[Affine, Affine, Index]:
    """Two affine maps of the same points and channels, and the index that both then have."""
    one, other = reader.linear(one), reader.linear(other)
    if (one.index < 0).all():
        return replace(other.affine, terms={}), other.affine, other.index
    if (other.index < 0).all():
        return one.affine, replace(one.affine, terms={}), one.index
    if not _at_same_points(one, other):
        one, other = reader.whole(one), reader.whole(other)
    if not _at_same_points(one, other):
        raise reader.refusal(
            "joins arrays whose pixels do not match, such as a vector spread over a map "
            "(squeeze-and-excitation), a map and itself turned round, or maps at different strides"
        )
    one, other = _filled(one, other.base), _filled(other, one.base)
    if one.affine.channels == other.affine.channels and np.array_equal(one.index, other.index):
        return one.affine, other.affine, one.index
    inside, width = one.index >= 0, other.affine.channels
    codes = one.index % one.affine.channels * width + other.index % width
    pairs, kind = np.unique(codes[inside], return_inverse=True)
    index = np.full(one.index.shape, OUTSIDE)
    index[inside] = one.base[inside] * len(pairs) + kind.reshape(-1)
    return one.affine.taken(pairs // width), other.affine.taken(pairs % width), index


def _at_same_points(one: Symbol, other: Symbol) -> bool:
    """Whether the numbers of each entry are of the same point, where neither is outside."""
    both = (one.index >= 0) & (other.index >= 0)
    same = bool((one.base == other.base)[both].all())
    return same and one.affine.lattice == other.affine.lattice


def _filled(symbol: Symbol, base: Index) -> Symbol:
    """With a channel of zeros for what is outside at a point."""
    missing = (symbol.index < 0) & (base >= 0)
    if not missing.any():
        return symbol
    channels = symbol.affine.channels
    affine = symbol.affine.mapped(np.eye(channels, channels + 1))
    index = renumbered(symbol.index, channels, channels + 1, np.arange(channels))
    return replace(
        symbol, affine=affine, index=np.where(missing, base * (channels + 1) + channels, index)
    )


def as_linear(one: Symbol, affine: Affine, index: Index) -> Symbol:
    """A linear symbol."""
    return replace(one, affine=affine, index=index, function=IDENTITY)


# Rules.


def broadcasting(rule: Rule) -> Rule:
    """The rule for inputs of one shape, also where axes of size 1 are to be repeated."""

    def wide(reader: Reader, inputs: list[Any], equation: Any) -> Any:
        shape = equation.outvars[0].aval.shape

        def spread(part: Any) -> Any:
            if isinstance(part, Sign):
                return replace(part, of=spread(part.of))
            if isinstance(part, Symbol) and part.index.shape != shape:
                return replace(part, index=np.broadcast_to(part.index, shape))
            return part

        return rule(reader, [spread(part) for part in inputs], equation)

    return wide


def added(sign: int) -> Rule:
    """one + other, or one - other."""

    def rule(reader: Reader, inputs: list[Any], equation: Any) -> Any:
        one, other = inputs
        if isinstance(one, Symbol) and isinstance(other, Symbol):
            if one.has_base_of(other):
                operation = np.add if sign > 0 else np.subtract
                return applied(reader, one, combined(one.function, other.function, operation), 0)
            first, second, index = aligned(reader, one, other)
            return as_linear(one, first.plus(second.scaled(float(sign))), index)
        require_symbols(reader, inputs)
        symbol, constant = (one, other) if isinstance(one, Symbol) else (other, one)
        slope, factor = (1, sign) if isinstance(one, Symbol) else (sign, 1)
        number = uniform(constant)
        if number is not None:
            shifted = symbol.function.then(slope, factor * number)
            return applied(reader, symbol, shifted, number)
        symbol, numbers = by_channel(reader, reader.linear(symbol), constant)
        affine = symbol.affine.scaled(float(slope))
        outside = np.broadcast_to(np.asarray(constant), symbol.index.shape)[symbol.index < 0].any()
        affine = affine.plus(reader.constant(affine, factor * numbers))
        return replace(applied(reader, symbol, IDENTITY, outside), affine=affine)

    return rule


def require_symbols(reader: Reader, inputs: list[Any]) -> None:
    """Refuse masks."""
    if any(isinstance(part, Sign) for part in inputs):
        raise reader.refusal(
            "computes with a mask; known are a product with it, and a choice by it"
        )


def times(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """one · other."""
    one, other = inputs
    if isinstance(one, Sign):
        one, other = other, one
    if isinstance(other, Sign) and isinstance(one, Symbol):
        return masked(reader, other, one, 0.0)
    require_symbols(reader, inputs)
    if isinstance(one, Symbol) and isinstance(other, Symbol):
        if one.has_base_of(other):
            return applied(reader, one, combined(one.function, other.function, np.multiply), 0)
        raise reader.refusal(
            "multiplies two arrays that depend on the image, as gates, squeeze-and-excitation and "
            "attention do; no construction is known here"
        )
    symbol, constant = (one, other) if isinstance(one, Symbol) else (other, one)
    number = uniform(constant)
    if number is not None:
        return applied(reader, symbol, symbol.function.then(number), 0)
    symbol, numbers = by_channel(reader, reader.linear(symbol), constant)
    return replace(symbol, affine=symbol.affine.scaled(numbers))


def quotient(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """one / other."""
    one, other = inputs
    if isinstance(other, Symbol | Sign):
        raise reader.refusal("divides by what depends on the image, as norms of layers do")
    return times(reader, [one, 1 / np.asarray(other, np.float64)], equation)


def negative(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """-z."""
    return times(reader, [inputs[0], -1.0], equation)


def larger(sign: int) -> Rule:
    """The larger of two, or the smaller for sign = -1."""

    def rule(reader: Reader, inputs: list[Any], equation: Any) -> Any:
        require_symbols(reader, inputs)
        one, other = inputs
        if not isinstance(one, Symbol):
            one, other = other, one
        if isinstance(other, Symbol):
            if one.has_base_of(other):
                return larger_of_functions(reader, one, one.function, other.function, sign, 0.0)
            first, second, index = aligned(reader, one, other)
            return as_linear(one, maximum(reader, first, second, sign), index)
        number = uniform(other)
        if number is not None and np.isinf(number):
            if sign * number < 0:
                return one
            raise reader.refusal(f"is {number} whatever the image is")
        if number is not None:
            constant = Scalar.affine(0.0, number)
            outside = max(sign * number, 0.0)
            return larger_of_functions(reader, one, one.function, constant, sign, outside)
        one, numbers = by_channel(reader, reader.linear(one), other)
        beyond = np.broadcast_to(np.asarray(other), one.index.shape)[one.index < 0]
        bound = reader.constant(one.affine, numbers)
        symbol = applied(reader, one, IDENTITY, (sign * beyond > 0).any())
        return replace(symbol, affine=maximum(reader, one.affine, bound, sign))

    return rule


def larger_of_functions(
    reader: Reader, symbol: Symbol, one: Scalar, other: Scalar, sign: int, outside: float
) -> Symbol:
    """The larger, or smaller, of two functions of the same numbers."""
    pair = (one, other)[::sign]
    function = chosen(combined(one, other, np.subtract), *pair)
    assert function is not None
    return applied(reader, symbol, function, outside)


def maximum(reader: Reader, one: Affine, other: Affine, sign: int = 1) -> Affine:
    """max(x, y) = x + ReLU(y - x), min(x, y) = x - ReLU(x - y)."""
    difference = other.plus(one.scaled(-1.0)).scaled(float(sign))
    return one.plus(reader.stored(difference, RELU).scaled(float(sign)))


def clamp(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """Between two bounds."""
    low, symbol, high = inputs
    return larger(-1)(reader, [larger(1)(reader, [symbol, low], equation), high], equation)


def compared(order: int, negated: bool) -> Rule:
    """Where one > other (order 1) or other > one (order -1), or where not."""

    def rule(reader: Reader, inputs: list[Any], equation: Any) -> Any:
        return Sign(added(-1)(reader, inputs[::order], equation), negated)

    return rule


def opposite(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """Where a mask is not."""
    (sign,) = inputs
    if not isinstance(sign, Sign):
        raise reader.refusal("computes with bits")
    return Sign(sign.of, not sign.negated)


def select(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """The second case where the mask is, else the first."""
    sign, *cases = inputs
    if not isinstance(sign, Sign):
        return _by_constant(reader, np.asarray(sign), cases, equation)
    if len(cases) != 2:
        raise reader.refusal("a choice among more than two by what depends on the image")
    return masked(reader, sign, cases[1], cases[0])


def _by_constant(reader: Reader, which: np.ndarray, cases: list[Any], equation: Any) -> Any:
    """A choice that does not depend on the image, of numbers of one array or zeros."""
    symbols = [case for case in cases if isinstance(case, Symbol)]
    alike = all(
        s.affine is symbols[0].affine and s.function is symbols[0].function for s in symbols
    )
    zeros = all(isinstance(case, Symbol) or not np.any(case) for case in cases)
    if not symbols or not alike or not zeros:
        raise reader.refusal(
            "a choice by a constant mask, of other numbers than one map's or zeros"
        )
    indices = (
        case.index if isinstance(case, Symbol) else np.full(np.shape(case), OUTSIDE)
        for case in cases
    )
    (index,) = on_indices(equation, which, *indices)
    return replace(symbols[0], index=index)


def masked(reader: Reader, sign: Sign, above: Any, below: Any) -> Symbol:
    """One function of a number where another one is positive, a third elsewhere."""
    base, functions = sign.of, []
    cases = (below, above) if sign.negated else (above, below)
    for case in cases:
        number = None if isinstance(case, Symbol | Sign) else uniform(case)
        if number is not None:
            functions.append(Scalar.affine(0.0, number))
        elif isinstance(case, Symbol) and case.has_base_of(base):
            functions.append(case.function)
        else:
            raise reader.refusal("a choice between other arrays than functions of the same number")
    function = chosen(base.function, *functions)
    if function is None:
        raise reader.refusal("a function that jumps, which no MLP computes")
    # What was laid around is zero, which is not positive.
    outside = 0.0 if isinstance(cases[1], Symbol) else uniform(cases[1])
    return applied(reader, base, function, outside)


def magnitude(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """|z|."""
    require_symbols(reader, inputs)
    (symbol,) = inputs
    function = symbol.function
    return larger_of_functions(reader, symbol, function, function.then(-1.0), 1, 0.0)


def smooth(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """A function of one number of which nothing more is known, as JAX computes it."""
    require_symbols(reader, inputs)
    symbol, *others = inputs
    if not isinstance(symbol, Symbol) or any(isinstance(part, Symbol) for part in others):
        raise reader.refusal("a power whose exponent depends on the image")
    parameters = [uniform(part) for part in others]
    if None in parameters:
        raise reader.refusal("powers by different exponents")

    def outer(numbers: np.ndarray) -> np.ndarray:
        (result,) = bind(equation, [np.asarray(numbers), *map(np.asarray, parameters)])
        return np.asarray(result, np.float64)

    return applied(reader, symbol, symbol.function.smooth(outer), outer(np.zeros(1))[0])
