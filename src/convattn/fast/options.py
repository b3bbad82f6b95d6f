"""What a caller asks of a back end besides the layer and its tokens."""

import math
import operator
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from convattn.operators.attention import HIGHEST
from convattn.operators.integers import as_integer
from convattn.operators.shifts import Queries

Window = tuple[tuple[int, int], ...]
STATIC = {"static": True}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Dropout:
    """Attention dropout: each weight is zeroed with probability `rate`, the others scaled up.

    Attributes:
        rate: In (0, 1), taken to the nearest multiple of 2⁻³² below 1.
        key: a JAX random key; the same key gives the same zeros in every back end.
    """

    rate: float = field(metadata=STATIC)
    key: Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class AttentionOptions:
    """Options of one application of a layer.

    Attributes:
        precision: Of the matrix products. At the highest, operands are cast to at least float32
            first; at any other, bfloat16 and float16 operands stay as they are and only the sums
            are taken in float32.
        dropout: Or None.
        windows: For each head, and each axis, the smallest and the largest shift key - query that
            the windowed back end keeps; None lets it work them out from concrete parameters.
        chunk: How many queries the chunked back end takes at a time; None lets it choose.
        tokens_dtype: Of the tokens, where it is known.
        queries: For each axis the queries to compute; None for all. Back ends that are not
            `selective` ignore it.

    Raises:
        ValueError: For a chunk that is no integer ≥ 1.
    """

    precision: lax.PrecisionLike = field(default=HIGHEST, metadata=STATIC)
    dropout: Dropout | None = None
    windows: tuple[Window, ...] | None = field(default=None, metadata=STATIC)
    chunk: int | None = field(default=None, metadata=STATIC)
    tokens_dtype: np.dtype | None = field(default=None, metadata=STATIC)
    queries: tuple[Queries, ...] | None = field(default=None, metadata=STATIC)

    def __post_init__(self) -> None:
        """Hold the chunk as a Python integer."""
        if self.chunk is not None:
            object.__setattr__(self, "chunk", as_integer(self.chunk, "chunk", 1))


DEFAULT_OPTIONS = AttentionOptions()


def read_windows(windows: Any) -> tuple[Window, ...] | None:
    """Windows as nested tuples of integers, or None.

    >>> read_windows([[[-1, 1], [0, 2]]])
    (((-1, 1), (0, 2)),)
    """
    if windows is None:
        return None
    try:
        return tuple(
            tuple((operator.index(low), operator.index(high)) for low, high in head)
            for head in windows
        )
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"windows={windows!r}, but expected for each head and each axis the smallest and "
            "the largest shift, two integers, as convattn.fast.choose_windows returns them"
        ) from error


def read_dropout(rate: float, key: Array | None) -> Dropout | None:
    """Dropout from a rate and a key, or None for the rate 0.

    >>> read_dropout(0.0, None) is None, read_dropout(0.1, jax.random.key(0)).rate
    (True, 0.1)
    """
    is_number = isinstance(rate, int | float | np.number | Array) and not isinstance(
        rate, bool | jax.core.Tracer
    )
    number = float(rate) if is_number else math.nan
    if not 0 <= number < 1:
        raise ValueError(
            f"dropout_rate={rate!r}, but expected a number in [0, 1), not traced; under jit make "
            "it a static argument"
        )
    if number == 0:
        return None
    if key is None:
        raise ValueError(
            f"dropout_rate={rate} without a dropout_key; pass jax.random.key(seed), another one "
            "for every step, or the rate 0 to apply the layer without dropout"
        )
    dtype, axes = getattr(key, "dtype", None), getattr(key, "ndim", None)
    typed = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
    raw = dtype == jnp.uint32 and key.shape == (2,)
    if not ((typed and axes == 0) or raw):
        raise ValueError(
            f"dropout_key={key!r}, but expected one key, as jax.random.key(seed) returns it; take "
            "one of several with keys[i], or vmap over them"
        )
    if typed and key.dtype != jax.random.key(0, impl="threefry2x32").dtype:
        raise ValueError(
            f"dropout_key.dtype={key.dtype}, but expected a threefry key: others draw differently "
            "under vmap, so that the zeros would depend on the back end; pass "
            "jax.random.key(seed, impl='threefry2x32')"
        )
    return Dropout(number, key)
