"""The floating-point formats an audit measures, their predicted thresholds, and a search in them.

A format has p bits of significand (the hidden one included), so rounding to nearest errs by at most
u = 2^-p of the result; its least normal number is 2^e with e = ``min_exponent``, its subnormal
numbers are spaced 2^(e-p+1). For positive numbers of an IEEE format the order of the values is that
of the bit patterns, so halving an interval of patterns ends at two neighbouring numbers: the search
is exact.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

NAMES = ("float64", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format.

    Attributes:
        name: The dtype's name.
        precision: p, the bits of the significand, the hidden one included.
        min_exponent: e, the least normal number being 2^e.
        largest: The largest finite number.

    >>> single = float_format("float32")
    >>> single.precision, single.min_exponent
    (24, -126)
    >>> round(single.one_hot_flushed, 2), round(single.one_hot_kept, 2)
    (87.34, 103.97)
    """

    name: str
    precision: int
    min_exponent: int
    largest: float

    @property
    def dtype(self) -> np.dtype:
        """The NumPy dtype, which for bfloat16 comes from ml_dtypes."""
        return jnp.dtype(self.name)

    @property
    def least_normal(self) -> float:
        """2^e."""
        return math.ldexp(1.0, self.min_exponent)

    @property
    def one_hot_kept(self) -> float:
        """Least x for which e^-x rounds to zero with subnormals: e^-x ≤ 2^(e-p), ties to even."""
        return (self.precision - self.min_exponent) * math.log(2)

    @property
    def one_hot_flushed(self) -> float:
        """Least x for which e^-x is zero where subnormals are flushed: e^-x < 2^e."""
        return -self.min_exponent * math.log(2)


def float_format(dtype: DTypeLike) -> FloatFormat:
    """The format of a dtype.

    Raises:
        ValueError: For other dtypes than these four, and for float64 while 64-bit types are off,
            since JAX would silently measure float32.
    """
    try:
        name = jnp.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    if name not in NAMES:
        raise ValueError(f"dtype={name}, but expected one of {', '.join(NAMES)}")
    if name == "float64" and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise ValueError(
            "dtype=float64, but expected a narrower one while 64-bit types are off in JAX; call "
            "jax.config.update('jax_enable_x64', True) first, or leave float64 out"
        )
    info = jnp.finfo(name)
    return FloatFormat(name, int(info.nmant) + 1, int(info.minexp), float(info.max))


def available_formats() -> tuple[FloatFormat, ...]:
    """All formats that can be measured now: float64 only if 64-bit types are on."""
    x64 = jax.config.jax_enable_x64  # type: ignore[attr-defined]
    return tuple(float_format(name) for name in NAMES if x64 or name != "float64")


def bit_patterns(array: np.ndarray) -> np.ndarray:
    """Sign-free bit patterns, which no flushing on the host can disturb; zero is pattern 0.

    >>> bit_patterns(np.array([0.0, -0.0, 5e-324])).tolist()
    [0, 0, 1]
    """
    array = np.ascontiguousarray(array)
    bits = 8 * array.dtype.itemsize
    unsigned = array.view(np.dtype(f"u{array.dtype.itemsize}"))
    return unsigned & unsigned.dtype.type(2 ** (bits - 1) - 1)


def least_representable(
    predicate: Callable[[np.ndarray], bool], low: float, high: float, number_format: FloatFormat
) -> float | None:
    """The least x of the format in (low, high] with predicate(x), None if predicate(high) fails.

    The predicate gets a zero-dimensional array of the format and should be false, then true;
    otherwise the answer is some x at which it becomes true. If predicate(low) holds, it is low.

    Raises:
        ValueError: Unless 0 < low < high in the format.

    >>> least_representable(lambda x: x * x >= 2, 1.0, 2.0, float_format("bfloat16"))
    1.4140625
    """
    dtype = number_format.dtype
    unsigned = np.dtype(f"u{dtype.itemsize}")
    ends = np.array([low, high], np.float64).astype(dtype)
    if not 0 < float(ends[0]) < float(ends[1]) < float("inf"):
        raise ValueError(
            f"low={low} and high={high} are {ends.tolist()} in {number_format.name}, but expected "
            "finite numbers with 0 < low < high"
        )

    def number(pattern: int) -> np.ndarray:
        return np.array(pattern, unsigned).view(dtype)

    below, above = (int(pattern) for pattern in ends.view(unsigned))
    if predicate(number(below)):
        return float(number(below))
    if not predicate(number(above)):
        return None
    while above - below > 1:
        middle = (below + above) // 2
        if predicate(number(middle)):
            above = middle
        else:
            below = middle
    return float(number(above))
