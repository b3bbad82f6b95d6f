"""Operations that move numbers: on the index of a symbol, they are themselves."""

from dataclasses import replace
from typing import Any

import numpy as np

from convattn.compile.reader import Reader
from convattn.compile.symbol import OUTSIDE, Index, Sign, Symbol, side_by_side
from convattn.networks.transformation.evaluation import bind

WIDE = ("float32", "float64")


def moved(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """A reshape, slice, transpose, repetition or gather of the first input, by constant others."""
    symbol, *others = inputs
    if isinstance(symbol, Sign):
        return Sign(moved(reader, [symbol.of, *others], equation), symbol.negated)
    if not isinstance(symbol, Symbol) or any(isinstance(part, Symbol | Sign) for part in others):
        raise reader.refusal("reads at places that depend on the image")
    indices = on_indices(equation, symbol.index, *others)
    return [replace(symbol, index=index) for index in indices]


def on_indices(equation: Any, *operands: Any) -> list[Index]:
    """An operation itself, on the indices among its operands."""
    narrow = (
        part.astype(np.int32) if isinstance(part, np.ndarray) and part.dtype == np.int64 else part
        for part in operands
    )
    return [np.asarray(index, np.int64) for index in bind(equation, [*narrow])]


def padded(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """Zeros around or between numbers."""
    symbol, value = inputs
    if not isinstance(symbol, Symbol) or isinstance(value, Symbol) or float(value) != 0:
        raise reader.refusal("lays other numbers than zeros around a map")
    (index,) = on_indices(equation, symbol.index, np.int32(OUTSIDE))
    return replace(symbol, index=index)


def cast(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """Between float32 and float64; masks become zeros and ones."""
    (symbol,) = inputs
    if isinstance(symbol, Symbol):
        params = equation.params
        dtype = equation.outvars[0].aval.dtype
        narrow = params.get("mantissa_bits", 23) < 23 or params.get("exponent_bits", 8) < 8
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
        affine, indices = side_by_side([(s.affine, s.index) for s in symbols])
        symbols = [
            replace(s, affine=affine, index=index)
            for s, index in zip(symbols, indices, strict=True)
        ]
    rest = iter(symbols)
    parts = [
        next(rest).index if isinstance(part, Symbol) else _zeros(reader, part) for part in parts
    ]
    join = np.stack if equation.primitive.name == "stack" else np.concatenate
    axis = equation.params["axis" if join is np.stack else "dimension"]
    return replace(symbols[0], index=join(parts, axis))


def _zeros(reader: Reader, part: Any) -> np.ndarray:
    """The index of constants, which must be zeros."""
    if np.any(part):
        raise reader.refusal("joins a map with other constants than zeros")
    return np.full(np.shape(part), OUTSIDE)
