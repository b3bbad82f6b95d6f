"""Which shifts a head may skip, and how much weight it loses by that.

A *window* keeps, on each axis, the shifts low ≤ δ ≤ high. Let A be a row of attention weights, τ
the weight that it puts on the keys that are skipped, and Ã the softmax over the kept keys alone, so
that A = (1 - τ)·Ã + τ·B with B a row of weights on the skipped keys. With values x_k, |x_k| ≤ m,

    |Σ_k Ã_k x_k - Σ_k A_k x_k| = τ·|Σ_k Ã_k x_k - Σ_k B_k x_k| ≤ 2τ·m,

as both sums are means of values. So one number for each head, the largest τ of any query, bounds
what a window changes: |out_windowed - out| ≤ Σ_h 2 τ_h g_h max_k |(X W_val,h W_out,h)_k|.

**All queries at once.** The keys of query p are the shifts -p, …, K-1-p on each axis. Zero is among
them, so the logarithm of Σ e^s over these is `logaddexp` of two running sums, one that goes out
from -1 and one that goes out from 0; and the same on the next axis. That takes as many steps as
there are shifts, nothing is subtracted, and nothing is as large as queries × keys.

**Rounding.** `logaddexp` moves by no more than its arguments do, and in floating point it adds at
most u(|result| + 16) (an exponential and a logarithm within eight roundings each). So after at most
Σ_axes (shifts + 1) + 3 of them, one subtraction of the largest score and the last exponential
counted, a logarithm of a sum of scores between -S and 0 is off by at most that many times
u(S + log n + 16). `skipped_weight` multiplies its result by the exponential of twice that. To keep
S small, skipped scores are raised to log(tiny) below the least kept one: τ can only grow.
"""

import bisect
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import DTypeLike
from jaxtyping import Bool, Float, Shaped

from convattn.encodings.base import RelativePosition
from convattn.fast.options import Window
from convattn.operators.arrays import is_traced
from convattn.operators.shifts import TokenGrid


def choose_windows(
    encoding: RelativePosition, grid: TokenGrid, dtype: DTypeLike | None = None
) -> tuple[Window, ...]:
    """The windows, one for each head, outside which at most half a unit roundoff of weight lies.

    None of their sides can be moved in by one. Where weights never fall off, the window is
    everything.

    Args:
        encoding: With concrete parameters.
        dtype: Whose unit roundoff counts (float32: 2⁻²⁴); None takes that of the scores.

    Returns:
        For each head and axis (smallest, largest) shift, as `windows=` of `apply_attention` takes
        them.

    Raises:
        ValueError: Where parameters are traced.

    >>> from convattn.encodings import QuadraticEncoding
    >>> grid = TokenGrid((32, 32), ((0, 0), (0, 0)))
    >>> encoding = QuadraticEncoding(jnp.array([1.0, 1e-6]), jnp.array([[0.0, 2.0], [0.0, 0.0]]))
    >>> choose_windows(encoding, grid, "float32")
    (((-4, 4), (-2, 6)), ((-31, 31), (-31, 31)))
    """
    if is_traced(encoding):
        raise ValueError(
            "choose_windows looks at the parameters of the encoding, but they are traced (jit, "
            "grad or vmap); call it outside on concrete parameters and pass its result as "
            "windows=, which is static"
        )
    with jax.ensure_compile_time_eval(), jax.transfer_guard("allow"):  # read on the host
        scores = encoding.shift_scores(grid.shifts, grid.number_of_keys)
        table = np.asarray(scores, np.float64)
    limit = float(jnp.finfo(scores.dtype if dtype is None else dtype).eps) / 4
    table = table.reshape(-1, *(len(shifts) for shifts in grid.shift_ranges))
    with np.errstate(invalid="ignore"):  # NaN scores keep everything
        return tuple(_smallest_window(head, grid, limit) for head in table)


def skipped_weight(
    encoding: RelativePosition, grid: TokenGrid, windows: tuple[Window, ...] | None = None
) -> Float[Array, " heads"]:
    """For each head at least the most weight that any query has on the keys outside the window.

    It is that weight up to rounding and zero if nothing is skipped. Of concrete parameters it is
    worked out in float64; under tracing in the dtype of the scores.

    Args:
        windows: For each head and axis (smallest, largest) shift; None stands for
            `choose_windows(encoding, grid)`.

    Raises:
        ValueError: Where parameters are traced and no windows are given.

    >>> from convattn.encodings import QuadraticEncoding
    >>> encoding = QuadraticEncoding(jnp.zeros(2), jnp.zeros((2, 1)))
    >>> grid = TokenGrid((3,), ((0, 0),))
    >>> print(skipped_weight(encoding, grid, (((-1, 1),), ((-2, 2),))).round(3))
    [0.333 0.   ]
    """
    if windows is None:
        windows = choose_windows(encoding, grid)
    inside = np.stack([window_mask(grid, window) for window in windows])
    if is_traced(encoding):
        scores = lax.stop_gradient(encoding.shift_scores(grid.shifts, grid.number_of_keys))
        return jnp.minimum(_weight_bound(scores.reshape(inside.shape), inside, grid), 1)
    with jax.ensure_compile_time_eval(), jax.transfer_guard("allow"):
        computed = encoding.shift_scores(grid.shifts, grid.number_of_keys)
        table = np.asarray(computed, np.float64).reshape(inside.shape)
    with np.errstate(invalid="ignore"):
        weight = _weight_bound(table, inside, grid)
    limits = jnp.finfo(computed.dtype)
    up = np.where(weight > 0, weight * (1 + float(limits.eps)) + 2 * float(limits.tiny), weight)
    return jax.device_put(np.minimum(up, 1).astype(computed.dtype))


def _weight_bound(
    scores: Shaped[Any, " heads *shifts"],
    inside: Bool[np.ndarray, " heads *shifts"],
    grid: TokenGrid,
) -> Any:
    """The bound of `skipped_weight` from a table of scores, in NumPy or JAX, before it is cut at 1.

    >>> inside = np.array([[False, True, True]])
    >>> _weight_bound(np.zeros((1, 3)), inside, TokenGrid((2,), ((0, 0),))).round(3)
    array([0.5])
    """
    concrete = isinstance(scores, np.ndarray)
    module, running = (np, accumulated) if concrete else (jnp, lax.cumlogsumexp)
    axes = tuple(range(1, inside.ndim))
    scores = scores - scores.max(axis=axes, keepdims=True)
    depth = -module.where(inside, scores, 0).min(axis=axes, keepdims=True)
    limits = jnp.finfo(scores.dtype)
    tiny, roundoff = float(limits.tiny), float(limits.eps) / 2
    floor = math.log(tiny)
    raised = module.maximum(scores, floor - depth)
    inside_sum = _log_sums(module.where(inside, scores, -module.inf), grid, running)
    skipped = _log_sums(module.where(inside, -module.inf, raised), grid, running)
    steps = sum(len(shifts) + 1 for shifts in grid.shift_ranges) + 3
    spread = depth - floor + math.log(inside[0].size) + 16
    error = 2 * steps * roundoff * spread * (1 + steps * roundoff)
    weight = module.exp(skipped - module.logaddexp(skipped, inside_sum) + error) + 2 * tiny
    return module.where(skipped == -module.inf, 0, weight).max(axis=axes)


def window_problem(windows: Any, heads: int, grid: TokenGrid) -> str | None:
    """What is wrong with the windows of a layer on a grid, or None.

    >>> window_problem((((2, 1),),), 1, TokenGrid((5,), ((0, 0),)))
    'the window of head 0 on axis 0 is (2, 1), but its smallest shift is above its largest'
    """
    if len(windows) != heads:
        return f"there are {len(windows)} windows, but the layer has {heads} heads; give one each"
    for head, window in enumerate(windows):
        if len(window) != len(grid.queries):
            return (
                f"the window of head {head} has {len(window)} axes, but the grid has "
                f"{len(grid.queries)}; give a pair (smallest, largest shift) for each"
            )
        for axis, (pair, (before, after)) in enumerate(zip(window, grid.ring, strict=True)):
            name = f"the window of head {head} on axis {axis} is {pair}, but"
            if len(pair) != 2 or any(
                isinstance(shift, bool) or not isinstance(shift, int | np.integer) for shift in pair
            ):
                return f"{name} expected two integers, the smallest and the largest shift"
            low, high = pair
            if low > high:
                return f"{name} its smallest shift is above its largest"
            if low > after or high < -before:
                return (
                    f"{name} leaves a query at the border without any key: a grid with the ring "
                    f"{(before, after)} takes a smallest shift ≤ {after} and a largest ≥ {-before}"
                    "; let the window reach back to shift 0, or lay a larger ring"
                )
    return None


def window_mask(grid: TokenGrid, window: Window) -> Bool[np.ndarray, "*shifts"]:
    """For each shift that occurs, whether the window keeps it.

    >>> window_mask(TokenGrid((3,), ((0, 0),)), ((-1, 5),)).tolist()
    [False, True, True, True, True]
    """
    if grid.ahead is not None:
        raise ValueError(
            "grid has a causal mask, but expected none, as windows do not know it; use shift or "
            "chunked"
        )
    axes = [
        [low <= shift <= high for shift in shifts]
        for shifts, (low, high) in zip(grid.shift_ranges, window, strict=True)
    ]
    return np.all(np.meshgrid(*axes, indexing="ij"), axis=0)


def _smallest_window(scores: Float[np.ndarray, "*shifts"], grid: TokenGrid, limit: float) -> Window:
    """The window of one head that skips at most `limit`.

    Each side first takes its share of the limit by itself, by bisection; then each is moved in
    while all that is skipped stays within the limit.
    """
    total = _log_sums(scores, grid, accumulated)
    everything = tuple((shifts[0], shifts[-1]) for shifts in grid.shift_ranges)

    def skipped(window: Window) -> float:
        rest = np.where(window_mask(grid, window), -np.inf, scores)
        return largest_ratio(_log_sums(rest, grid, accumulated), total)

    def moved(window: Window, axis: int, side: int, shift: int) -> Window:
        pair = (shift, window[axis][1]) if side == 0 else (window[axis][0], shift)
        return (*window[:axis], pair, *window[axis + 1 :])

    sides = [(axis, side, step) for axis in range(scores.ndim) for side, step in ((0, 1), (1, -1))]
    window = everything
    for axis, side, step in sides:
        inwards = grid.shift_ranges[axis][::step]

        def share(shift: int, axis: int = axis, side: int = side) -> float:
            return skipped(moved(everything, axis, side, shift))

        last = bisect.bisect_right(inwards, limit / len(sides), key=share) - 1
        window = moved(window, axis, side, inwards[max(last, 0)])
    for axis, side, step in sides:
        while window[axis][0] < window[axis][1]:
            smaller = moved(window, axis, side, window[axis][side] + step)
            if not skipped(smaller) <= limit:
                break
            window = smaller
    return window


def largest_ratio(addends: Float[np.ndarray, "*q"], totals: Float[np.ndarray, "*q"]) -> float:
    """The largest e^part/e^total; infinite if it is no number.

    >>> largest_ratio(np.array([-np.inf, 0.0]), np.array([0.0, 0.0]))
    1.0
    """
    ratio = float(np.exp(addends - totals).max())
    return math.inf if math.isnan(ratio) else ratio


def accumulated(terms: np.ndarray, axis: int) -> np.ndarray:
    """Running logarithms of sums of exponentials, in NumPy.

    >>> accumulated(np.zeros((1, 2)), 1).round(4).tolist()
    [[0.0, 0.6931]]
    """
    return np.logaddexp.accumulate(terms, axis)


def _log_sums(
    scores: Shaped[Any, "*heads_and_shifts"], grid: TokenGrid, running: Callable[..., Any]
) -> Any:
    """For every query the logarithm of the sum of e^score over its keys.

    >>> grid = TokenGrid((2, 3), ((0, 0), (0, 0)))
    >>> np.exp(_log_sums(np.zeros((3, 5)), grid, accumulated)).round()
    array([[6., 6., 6.],
           [6., 6., 6.]])
    """
    axes = len(grid.queries)
    first = scores.ndim - axes
    module = np if isinstance(scores, np.ndarray) else jnp
    for axis in range(axes):
        moved = module.moveaxis(scores, first + axis, -1)
        scores = module.moveaxis(_axis_log_sums(moved, grid, axis, running), -1, first + axis)
    return scores


def _axis_log_sums(
    scores: Shaped[Any, "*others shifts"], grid: TokenGrid, axis: int, running: Callable[..., Any]
) -> Any:
    """The same on one axis, the last of `scores`: from shifts to queries."""
    module = np if isinstance(scores, np.ndarray) else jnp
    queries, (before, after) = grid.queries[axis], grid.ring[axis]
    zero = -grid.shift_ranges[axis].start
    last = scores.ndim - 1
    nothing = module.full((*scores.shape[:-1], 1), -module.inf, scores.dtype)
    left, right = scores[..., :zero][..., ::-1], running(scores[..., zero:], axis=last)
    if zero:
        left = running(left, axis=last)
    left = module.concatenate([nothing, left], axis=-1)[..., before : before + queries]
    right = right[..., after : after + queries][..., ::-1]
    return module.logaddexp(left, right)
