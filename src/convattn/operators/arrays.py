"""What counts as an input array, and in which precision sums are taken."""

import difflib
import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

_STORAGE_FORMATS = ("float4_", "float6_", "float8_", "int2", "int4", "uint2", "uint4")


P, R = ParamSpec("P"), TypeVar("R")


def named_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, whose refusal of an unknown argument names the nearest that there is.

    >>> @named_arguments
    ... def layer(kernel, stride=1): ...
    >>> layer([1.0], strides=2)
    Traceback (most recent call last):
    ...
    TypeError: layer() has no argument 'strides', did you mean 'stride'?
    """
    known = [name for name in inspect.signature(function).parameters if name != "self"]

    @wraps(function)
    def checked(*args: P.args, **named: P.kwargs) -> R:
        for name in (name for name in named if name not in known):
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(known)}"
            raise TypeError(f"{function.__qualname__}() has no argument {name!r}, {hint}")
        return function(*args, **named)

    return checked


def as_array(value: Any, name: str) -> Array:
    """`jnp.asarray`, except that it refuses where JAX would silently drop bits.

    A 64-bit array given while 64-bit types are off would be truncated to 32 bits, a NumPy array at
    once, a JAX array (left over from when they were on) in the first product. 64-bit floats and
    complex numbers are refused; 64-bit integers pass if every one of them fits.

    Args:
        value: Anything that `jnp.asarray` takes.
        name: What the message calls it.

    >>> as_array([1, 2, 3], "images").shape
    (3,)
    """
    if isinstance(value, Array):
        array = value
        if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
            array = _narrow_left_over(array, name)
    else:
        for leaf in jax.tree.leaves(value):
            _refuse_unknown_format(getattr(leaf, "dtype", None), name)
        if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
            for leaf in jax.tree.leaves(value):
                if isinstance(leaf, np.ndarray | np.generic) or hasattr(leaf, "__array__"):
                    _refuse_truncation(np.asarray(leaf), name)
        try:
            array = jnp.asarray(value)
        except (TypeError, ValueError, OverflowError) as error:
            why = str(error).partition("\n")[0]
            raise ValueError(
                f"{name} is {type(value).__name__}, which is not an array of numbers: {why}; "
                + (
                    "pass its kernel[...] and bias[...], or take convattn.nnx.AttentionConv"
                    if hasattr(value, "kernel")
                    else "pass a JAX or NumPy array, or nested lists of numbers of one depth"
                )
            ) from error
    if not jnp.issubdtype(array.dtype, jnp.number) and array.dtype != jnp.bool_:
        raise ValueError(
            f"{name}.dtype={array.dtype}, but expected numbers; pass an array of numbers"
        )
    if array.dtype == jnp.bool_:
        raise ValueError(f"{name}.dtype=bool, but expected numbers; cast it, e.g. to float32")
    _refuse_unknown_format(array.dtype, name)
    return array


def as_floats(array: Array, name: str) -> Array:
    """Integers of 64 bits as float64, others as float32; floats and complex numbers as they are.

    >>> as_floats(jnp.array([2**24]), "kernel").tolist()
    [16777216.0]
    """
    if jnp.issubdtype(array.dtype, jnp.inexact):
        return array
    floats = array.astype(jnp.float64 if array.dtype.itemsize == 8 else jnp.float32)
    if not isinstance(array, jax.core.Tracer):
        beyond = float(jnp.iinfo(array.dtype).max)  # which it is rounded up to, and no integer is
        is_exact = (floats < max(beyond, 2**24)) & (floats.astype(array.dtype) == array)
        if not bool(is_exact.all()):
            raise ValueError(
                f"{name} holds integers of {array.dtype} that {floats.dtype} rounds; cast it to a "
                "float yourself, a wider one if they are to stay what they are"
            )
    return floats


def _refuse_unknown_format(dtype: Any, name: str) -> None:
    """Refuse formats that JAX has none of, or that it does not promote to any other."""
    if dtype in (np.dtype(np.longdouble), np.dtype(np.clongdouble)) and dtype.itemsize > 8 * (
        2 if dtype.kind == "c" else 1
    ):
        raise ValueError(
            f"{name}.dtype={dtype} (longdouble), but JAX has no numbers beyond 64 bits; cast "
            f"{name} to float64 (with 64-bit types on) or to float32"
        )
    if isinstance(dtype, np.dtype) and dtype.name.startswith(_STORAGE_FORMATS):
        raise ValueError(
            f"{name}.dtype={dtype}, a storage format that does not mix with others in sums; cast "
            f"{name} to bfloat16 or float32, after multiplying by its scale if it has one"
        )


def _narrow_left_over(array: Array, name: str) -> Array:
    """Refuse a 64-bit JAX array while 64-bit types are off, or narrow it where nothing is lost."""
    if array.dtype in (np.float64, np.complex128):
        _refuse_truncation(np.empty(0, array.dtype), name)
    if array.dtype in (np.int64, np.uint64) and not isinstance(array, jax.core.Tracer):
        values = np.asarray(array)
        _refuse_truncation(values, name)
        return jnp.asarray(values)
    return array


def _refuse_truncation(array: np.ndarray, name: str) -> None:
    if array.dtype in (np.float64, np.complex128):
        raise ValueError(
            f"{name}.dtype={array.dtype}, but 64-bit types are off in JAX, which would truncate "
            f"it; enable them with jax.config.update('jax_enable_x64', True) or cast {name} to "
            "float32 yourself"
        )
    if array.dtype in (np.int64, np.uint64) and array.size:
        limits = np.iinfo(np.int32)
        if array.min() < limits.min or array.max() > limits.max:
            raise ValueError(
                f"{name}.dtype={array.dtype} holds values beyond 32 bits, but 64-bit types are off "
                "in JAX; enable them with jax.config.update('jax_enable_x64', True)"
            )


def promoted(*dtypes: DTypeLike | Array) -> np.dtype:
    """What they promote to, also where `jax_numpy_dtype_promotion` is "strict".

    Sums are taken in at least float32 by design; that flag is about the caller's own arrays.

    >>> with jax.numpy_dtype_promotion("strict"):
    ...     promoted(jnp.bfloat16, jnp.float32)
    dtype('float32')
    """
    with jax.numpy_dtype_promotion("standard"):
        return np.dtype(jnp.result_type(*dtypes))


def known_size(size: Any, otherwise: int = 1) -> int:
    """The size of an axis, or another where it is a symbol of `jax.export`.

    >>> known_size(3), known_size(jax.export.symbolic_shape("batch")[0])
    (3, 1)
    """
    return int(size) if isinstance(size, int | np.integer) else otherwise


def accumulation_dtype(*operands: DTypeLike | Array) -> np.dtype:
    """The dtype in which products of these operands are summed: at least float32 for floats.

    >>> accumulation_dtype(jnp.bfloat16)
    dtype('float32')
    >>> accumulation_dtype(jnp.int32)
    dtype('int32')
    """
    result = promoted(*operands)
    return promoted(result, jnp.float32) if jnp.issubdtype(result, jnp.inexact) else result


def is_traced(tree: Any) -> bool:
    """Whether an array of a tree has no value yet, as inside `jax.jit`.

    >>> jax.jit(lambda x: jnp.array(is_traced(x)))(1.0).item(), is_traced(jnp.ones(2))
    (True, False)
    """
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(tree))


def require_finite(array: Array, name: str) -> None:
    """Refuse NaN and infinities in a concrete array; a traced one cannot be looked at."""
    if is_traced(array) or not jnp.issubdtype(array.dtype, jnp.inexact):
        return
    bad = ~np.isfinite(np.asarray(array))
    if bad.any():
        first = tuple(int(index) for index in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} has {int(bad.sum())} non-finite entries, the first at index {first}, but "
            "every weight must be finite; look for a diverged training run or an overflow on cast"
        )
