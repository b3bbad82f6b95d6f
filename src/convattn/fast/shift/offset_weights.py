"""What a head puts on a few offsets and on every other key, without a row of weights.

The scores of head h are s_δ at the offsets δ and b at every other key. Of N keys, let the offsets
in P be keys of query q, and n = |P|. With m the largest score that occurs and

    Z = Σ_(δ in P) e^(s_δ - m) + (N - n) e^(b - m),

the softmax is e^(s_δ - m)/Z at q + δ and c = e^(b - m)/Z at every other key. So, X being zero on
the ring, and with a_δ = (e^(s_δ - m) - e^(b - m))/Z,

    A_q X = Σ_(δ in P) a_δ X_(q+δ) + c Σ_k X_k:

n slices and one sum over all tokens.

*Cancellation.* e^s - e^b is not formed as a difference: with t = -|s - b| ≤ 0 and h the larger of s
and b it is ± e^(h-m)·(-expm1(t)), which costs the rounding of t (relative, exact if s and b are
within a factor of two) and a few roundings of exp, expm1 and products. So a_δ has a small relative
error whatever the scores are, and is zero where s = b. What can cancel is the sum itself, a_δ < 0
against c > 0, where b > s: the rounding there is relative to Σ |a_δ||X_(q+δ)| + c Σ |X|, which is
at most A_q |X| + 2c Σ_P |X_(q+δ)|. And Σ_k X_k must not overflow.

If no key but the offsets is left (N = n), b does not occur: a_δ = e^(s_δ - m)/Z and c = 0.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.export import is_symbolic_dim
from jaxtyping import Bool, Float

from convattn.encodings.base import OffsetTable
from convattn.operators.shifts import Queries, Shift, TokenGrid, count


class OffsetWeights(NamedTuple):
    """A_q X = Σ_δ a_δ X_(q+δ) + c Σ_k X_k, for each head and each pattern of present offsets.

    Attributes:
        `at_offsets` is a, `[heads, offsets, patterns]`, zero where an offset is absent;
        `everywhere` is c, `[heads, patterns]`.
    """

    at_offsets: Array
    everywhere: Array


def read_offsets(encoding: OffsetTable, grid: TokenGrid) -> tuple[Shift, ...]:
    """The offsets of an encoding that lead some query to a key.

    >>> from convattn.encodings import MixtureEncoding
    >>> encoding = MixtureEncoding(jnp.ones((1, 3)), ((-2,), (0,), (3,)))
    >>> read_offsets(encoding, TokenGrid((3,), ((0, 1),)))
    ((-2,), (0,), (3,))
    >>> read_offsets(encoding, TokenGrid((2,), ((0, 1),)))
    ((0,),)
    """
    distinct = dict.fromkeys(encoding.offsets)
    sides = tuple(zip(grid.queries, grid.ring, strict=True))
    return tuple(
        offset
        for offset in distinct
        if all(
            -step < before + n and step < n + after
            for step, (n, (before, after)) in zip(offset, sides, strict=True)
        )
    )


def offset_weights(
    encoding: OffsetTable,
    grid: TokenGrid,
    offsets: tuple[Shift, ...],
    present: Bool[np.ndarray, "offsets patterns"],
    queries: Queries | None = None,
) -> OffsetWeights:
    """a and c of every head, times its gain if it has one.

    Args:
        offsets: From `read_offsets`.
        present: Which of them are keys, for each pattern.
        queries: Under a causal mask, those of the one pattern, each of which becomes one.

    >>> from convattn.encodings import BiasEncoding
    >>> encoding = BiasEncoding(jnp.array([[1.0]]), jnp.array(0.5), ((1,),))
    >>> grid = TokenGrid((3,), ((0, 1),))
    >>> weights = offset_weights(encoding, grid, ((1,),), np.array([[True]]))
    >>> weights.at_offsets.round(4).tolist(), weights.everywhere.round(4).tolist()
    ([[[0.5]]], [[0.125]])
    """
    keys: Any = grid.number_of_keys  # or a symbol, which is a number in the program
    keys = jnp.asarray(keys) if is_symbolic_dim(keys) else keys
    spare = tuple(max(steps) + 1 for steps in zip(*encoding.offsets, strict=True))
    table = partial(encoding.shift_scores, np.array([*offsets, spare]))
    if grid.ahead is None or queries is None:
        scores = table(keys)[..., None]
    else:
        keys = grid.visible_keys(queries.start + queries.step * jnp.arange(count(queries)))
        scores = jax.vmap(table, out_axes=-1)(keys)
    scores = jnp.maximum(scores, jnp.finfo(scores.dtype).min)  # -∞ - (-∞) would be NaN
    here, other = scores[:, :-1], scores[:, -1:]
    left = keys - present.sum(axis=0)
    some = (left > 0)[None, None]
    highest = _largest(here, present[None], other, some)
    powers = _power(here - highest, present[None])
    background = _power(other - highest, some)
    total = powers.sum(axis=1) + left.astype(powers.dtype)[None] * background[:, 0]
    above = here >= other
    larger = jnp.where(above, here, other)
    gap = jnp.where(above, other - here, here - other)
    sign = jnp.where(above, -1, 1).astype(scores.dtype)
    difference = sign * _power(larger - highest, present[None] & some) * jnp.expm1(gap)
    gains = encoding.head_gains(keys)
    shares = 1 / total if gains is None else gains.astype(total.dtype)[:, None] / total
    at_offsets = jnp.where(some, difference, powers) * shares[:, None]
    return OffsetWeights(at_offsets, background[:, 0] * shares)


def _largest(
    here: Float[Array, "heads offsets #queries"],
    present: Bool[np.ndarray, "1 offsets #patterns"],
    other: Float[Array, "heads 1 #queries"],
    some: Any,
) -> Float[Array, "heads 1 _"]:
    """m, the largest score that occurs; the softmax does not depend on it, nor do gradients."""
    among = jnp.where(present, here, -jnp.inf).max(axis=1, keepdims=True, initial=-jnp.inf)
    return lax.stop_gradient(jnp.maximum(among, jnp.where(some, other, -jnp.inf)))


def _power(exponents: Float[Array, " heads #offsets _"], occurs: Any) -> Array:
    """e^x where it occurs and 0 elsewhere, with gradients that do not overflow elsewhere."""
    return jnp.exp(jnp.where(occurs, exponents, -jnp.inf))
