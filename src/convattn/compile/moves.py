"""Operations that move numbers: on the index of a symbol, they are themselves."""

from dataclasses import replace
from typing import Any

import numpy as np

from convattn.compile.affine import concatenated
from convattn.compile.reader import Reader
from convattn.compile.symbol import OUTSIDE, Sign, Symbol
from convattn.networks.transformation.evaluation import bind

WIDE = ("float32", "float64")


def moved(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """A reshape, slice, transpose, repetition or gather of the first input, by constant others."""
    symbol, *others = inputs
    if isinstance(symbol, Sign):
        return Sign(moved(reader, [symbol.of, *others], equation), symbol.negated)
    if not isinstance(symbol, Symbol) or any(isinstance(part, Symbol | Sign) for part in others):
        raise reader.refusal("reads at places that depend on the image")
    found = bind(equation, [symbol.index.astype(np.int32), *others])
    return [replace(symbol, index=np.asarray(index, np.int64)) for index in found]


def padded(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """Zeros around or between numbers."""
    symbol, value = inputs
    if not isinstance(symbol, Symbol) or isinstance(value, Symbol) or float(value) != 0:
        raise reader.refusal("lays other numbers than zeros around a map")
    (index,) = bind(equation, [symbol.index.astype(np.int32), np.int32(OUTSIDE)])
    return replace(symbol, index=np.asarray(index, np.int64))


def cast(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """Between float32 and float64; masks become zeros and ones."""
    (symbol,) = inputs
    if isinstance(symbol, Symbol):
        given = equation.params
        dtype = equation.outvars[0].aval.dtype
        narrow = given.get("mantissa_bits", 23) < 23 or given.get("exponent_bits", 8) < 8
        if str(dtype) not in WIDE or narrow:
            raise reader.refusal(
                f"rounds what depends on the image, to {dtype}, but expected float32 or float64 "
                "throughout"
            )
    return symbol


def kept(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """The input."""
    return inputs[0]


def joined(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """Several arrays along an axis, or along a new one."""
    parts = [part for part in inputs if isinstance(part, Symbol) or np.size(part)]
    if any(isinstance(part, Sign) for part in parts):
        raise reader.refusal("joins masks")
    symbols = [part for part in parts if isinstance(part, Symbol)]
    first = symbols[0]
    if any(s.affine is not first.affine or s.function is not first.function for s in symbols):
        symbols = [reader.linear(symbol) for symbol in symbols]
        if any(s.affine.lattice != symbols[0].affine.lattice for s in symbols):
            symbols = [reader.whole(symbol) for symbol in symbols]
        if any(s.affine.lattice != symbols[0].affine.lattice for s in symbols):
            raise reader.refusal("joins maps at different strides")
        symbols = _of_one_map(symbols)
    rest = iter(symbols)
    indices = [
        next(rest).index if isinstance(part, Symbol) else _zeros(reader, part) for part in parts
    ]
    join = np.stack if equation.primitive.name == "stack" else np.concatenate
    axis = equation.params["axis" if join is np.stack else "dimension"]
    return replace(symbols[0], index=join(indices, axis))


def _of_one_map(symbols: list[Symbol]) -> list[Symbol]:
    """With the channels of all in one affine map."""
    width = sum(symbol.affine.channels for symbol in symbols)
    affine, start, found = concatenated([symbol.affine for symbol in symbols]), 0, []
    for symbol in symbols:
        own = symbol.affine.channels
        index = symbol.base * width + start + symbol.index % own
        index = np.where(symbol.index >= 0, index, OUTSIDE)
        found.append(replace(symbol, affine=affine, index=index))
        start += own
    return found


def _zeros(reader: Reader, part: Any) -> np.ndarray:
    """The index of constants, which must be zeros."""
    if np.any(part):
        raise reader.refusal("joins a map with other constants than zeros")
    return np.full(np.shape(part), OUTSIDE)
