"""Which keys a query reads: the one sign convention, kernel taps, token offsets and grids.

The convention of the whole library is

    δ = key - query,      conv(X)_q = Σ_δ X_(q+δ) W_δ,      attention heads look at q + δ.

Every source is translated into it here, and nowhere else:

| source                                   | writes                      | here      |
|------------------------------------------|-----------------------------|-----------|
| C20 eq. 5, Lemma 2, eqs. 8, 9, 18, 19    | δ = k - q                   | δ         |
| C20 Lemma 1 (eqs. 10, 13)                | f(h) = q - k                | -f(h)     |
| L21 eq. 1 and eq. 14                     | X_(q+δ)                     | δ         |
| L21 Lemma 2, eqs. 4 and 10               | q - k = δ, b_(x_i - x_j)    | -δ        |
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.export import is_symbolic_dim
from jaxtyping import Bool, Int

Shift = tuple[int, ...]


def from_query_minus_key(shift: Iterable[int]) -> Shift:
    """Translate a paper's q - k (C20 Lemma 1, L21 Lemma 2) into δ = k - q.

    >>> from_query_minus_key((1, -2))
    (-1, 2)
    """
    return tuple(-component for component in shift)


def axis_taps(kernel_size: int) -> range:
    """The shifts that one axis of a kernel reads, before dilation.

    Odd K: {-r, …, r} with r = (K-1)/2, the Δ_K of C20 and the Δ of L21 eq. 1. Even K has no
    centre: the taps are {-(K/2 - 1), …, K/2}, one more to the right, as XLA pads. (C20's Δ_K
    taken literally would have K + 1 taps for even K.)

    >>> list(axis_taps(3)), list(axis_taps(4))
    ([-1, 0, 1], [-1, 0, 1, 2])
    """
    before = (kernel_size - 1) // 2
    return range(-before, kernel_size - before)


def kernel_shifts(kernel_size: Sequence[int], dilation: Sequence[int]) -> tuple[Shift, ...]:
    """Δ_K: the shift of every tap, row-major like `kernel.reshape(-1, in, out)`.

    >>> kernel_shifts((1, 3), (1, 2))
    ((0, -2), (0, 0), (0, 2))
    """
    axes = ([tap * d for tap in axis_taps(k)] for k, d in zip(kernel_size, dilation, strict=True))
    return tuple(product(*axes))


def axis_token_offsets(kernel_size: int, patch_size: int, dilation: int) -> tuple[int, ...]:
    """On one axis, the patches that a patch reads: {⌊(p + t·d)/P⌋ : 0 ≤ p < P, t a tap}.

    For odd K and d = 1 these are {-m, …, m} with m = ⌈(K-1)/(2P)⌉ (L21 eqs. 5 and 13); with a
    dilation there can be gaps, so they are counted rather than taken from m.

    >>> axis_token_offsets(5, 16, 1), axis_token_offsets(3, 1, 4), axis_token_offsets(3, 2, 5)
    ((-1, 0, 1), (-4, 0, 4), (-3, -2, 0, 2, 3))
    """
    return tuple(
        sorted(
            {
                (pixel + tap * dilation) // patch_size
                for pixel in range(patch_size)
                for tap in axis_taps(kernel_size)
            }
        )
    )


@dataclass(frozen=True)
class SymbolicRange:
    """A range of queries whose end is a symbol of `jax.export`, as `range` holds integers only."""

    start: int
    stop: int
    step: int = 1


Queries = Any  # of one axis: a range, or a SymbolicRange


def axis_queries(start: int, stop: int, step: int = 1) -> Queries:
    """The queries of one axis.

    >>> import jax
    >>> axis_queries(0, 6, 2), axis_queries(1, jax.export.symbolic_shape("n + 1")[0])
    (range(0, 6, 2), SymbolicRange(start=1, stop=n + 1, step=1))
    """
    symbolic = is_symbolic_dim(stop) or is_symbolic_dim(start)
    return SymbolicRange(start, stop, step) if symbolic else range(start, stop, step)


def count(queries: Queries) -> int:
    """How many they are.

    >>> import jax
    >>> count(range(0, 5, 2)), count(axis_queries(0, jax.export.symbolic_shape("2*n")[0], 2))
    (3, n)
    """
    if isinstance(queries, range):
        return len(queries)
    return -(-(queries.stop - queries.start) // queries.step)


def symbolic_axes(sizes: Sequence[Any]) -> tuple[Any, ...]:
    """Those sizes that are symbols of `jax.export`.

    >>> import jax
    >>> symbolic_axes((4, 5)), symbolic_axes((4, *jax.export.symbolic_shape("width")))
    ((), (width,))
    """
    return tuple(size for size in sizes if is_symbolic_dim(size))


@dataclass(frozen=True)
class TokenGrid:
    """The tokens of an image, and the ring of zero tokens laid around them.

    Queries are the image's own tokens; keys are these and the ring. Positions are counted from
    the first key.

    Args:
        queries: Tokens on each axis, without the ring.
        ring: For each axis, how many zero tokens stand before and after.
        ahead: Of a causal sequence, how many keys after its own a query sees; None sees all.

    >>> grid = TokenGrid((4, 5), ((1, 1), (0, 2)))
    >>> grid.keys, grid.number_of_keys, grid.shift_ranges
    ((6, 7), 42, (range(-4, 5), range(-4, 7)))
    >>> TokenGrid((3,), ((2, 0),), ahead=0).visible_keys().tolist()
    [3, 4, 5]
    """

    queries: tuple[int, ...]
    ring: tuple[tuple[int, int], ...]
    ahead: int | None = field(default=None, repr=False)

    @property
    def keys(self) -> tuple[int, ...]:
        """Tokens on each axis, ring included."""
        return tuple(
            n + before + after for n, (before, after) in zip(self.queries, self.ring, strict=True)
        )

    @property
    def number_of_keys(self) -> int:
        """N of the papers: all tokens, ring included."""
        return math.prod(self.keys)

    def visible_keys(self, queries: Int[Array, "*block"] | None = None) -> Any:
        """How many keys, the first ones, some or all queries see; N without a causal mask."""
        if self.ahead is None:
            return self.number_of_keys
        if queries is None:
            queries = jnp.arange(self.queries[0])
        return jnp.minimum(self.ring[0][0] + queries + self.ahead + 1, self.number_of_keys)

    def mask(self, queries: Array | None = None) -> Bool[Array, "*block keys"] | None:
        """Which keys some or all queries see, or None where each sees all."""
        if self.ahead is None:
            return None
        return jnp.arange(self.number_of_keys) < self.visible_keys(queries)[..., None]

    @property
    def shift_ranges(self) -> tuple[range, ...]:
        """On each axis, every shift δ = key - query that occurs."""
        return tuple(
            range(-(before + n - 1), n + after)
            for n, (before, after) in zip(self.queries, self.ring, strict=True)
        )

    @property
    def shifts(self) -> Int[np.ndarray, "shifts axes"]:
        """Every shift that occurs, row-major over `shift_ranges`."""
        mesh = np.meshgrid(*self.shift_ranges, indexing="ij")
        return np.stack([axis.reshape(-1) for axis in mesh], axis=-1)

    @property
    def query_positions(self) -> Int[np.ndarray, "queries axes"]:
        """Where the queries stand among the keys, row-major."""
        axes = [
            range(before, before + n)
            for n, (before, _) in zip(self.queries, self.ring, strict=True)
        ]
        return np.stack([axis.reshape(-1) for axis in np.meshgrid(*axes, indexing="ij")], axis=-1)

    @property
    def key_positions(self) -> Int[np.ndarray, "keys axes"]:
        """Where the keys stand, row-major."""
        axes = [range(n) for n in self.keys]
        return np.stack([axis.reshape(-1) for axis in np.meshgrid(*axes, indexing="ij")], axis=-1)

    def shift_index(self) -> Int[Array, "queries keys"]:
        """For each query and key, the row of `shifts` that holds key - query."""
        index = jnp.zeros((1, 1), jnp.int32)
        for axis, shifts in enumerate(self.shift_ranges):
            query = self.ring[axis][0] + jnp.arange(self.queries[axis], dtype=jnp.int32)
            key = jnp.arange(self.keys[axis], dtype=jnp.int32)
            here = key[None, :] - query[:, None] - shifts.start
            index = index[:, None, :, None] * len(shifts) + here[None, :, None, :]
            index = index.reshape(-1, index.shape[2] * index.shape[3])
        return index
