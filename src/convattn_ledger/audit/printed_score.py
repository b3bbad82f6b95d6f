"""From which image size on C20's eq. 9, computed as printed, loses its target to rounding.

Eq. 9 scores v·r_δ = -α(|δ|² - 2⟨Δ, δ⟩) with v = -α(1, -2Δ) and r_δ = (|δ|², δ): the target δ = Δ
and a neighbour have scores α|Δ|² and α|Δ|² - α, so a difference of α must survive among numbers of
the size of α|Δ|². The centred form -α|δ - Δ|² has the target at 0 and its neighbours at -α exactly.

For an image of side n the query in one corner looks at the opposite one, the largest shift there
is: Δ = n - 1 on each of d axes, T = |Δ|² = d(n-1)². v and r are stored in the format, and so are
the scores; softmax is the library's, in at least float32. On a line all keys are scored, on a grid
those within 16 of the target on each axis, the others lying at least 289α below.

**When it can't fail.** Let u = 2^-p. For Δ < 2^p storing δ and Δ is exact; the term α|δ|² ≤ αT has
two roundings (of |δ|², of the product), the terms 2αΔ_i δ_i, together at most 2αT, two (of 2αΔ_i,
of the product), and each of at most d additions one of a partial sum of at most 3αT. So a score
errs by at most (6 + 3d)αT/(2^p - 4), and by less where arithmetic is fused or wider. Two scores
keep their order while T < (2^p - 4)/(2(6 + 3d)), and stay at least g apart while T < (1 - g/α) of
that; with g = (q + 1) ln 2 + ln 2d + 0.01 the maximum rounds to one in a softmax of q bits (see
``saturation``). And 2αT must not overflow. ``argmax_safe_below`` and ``weight_safe_below`` are the
sides below which this proves eq. 9 sound.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float

from convattn.operators.attention import attention_weights
from convattn_ledger.audit.float_format import FloatFormat

LARGEST_SIDE = 1024
GRID_WINDOW = 17
ALPHAS = (46.0, 46 * math.log(10), 128.0)
Score = Callable[[np.ndarray, np.ndarray], Array | np.ndarray]


@dataclass(frozen=True)
class Loss:
    """The least sides at which a form of the score fails; None if none searched does.

    Attributes:
        argmax: The target's score isn't finite and strictly the greatest.
        weight: The target's weight isn't exactly one.
    """

    argmax: int | None
    weight: int | None


@dataclass(frozen=True)
class PrintedScore:
    """Where eq. 9 as printed and its centred form fail.

    Attributes:
        dtype, axes: The scores' format, 1 for a line or 2 for a grid.
        alpha: α as stored in the format.
        printed, centred: The least sides at which each fails.
        argmax_safe_below, weight_safe_below: No smaller side can fail as printed.
    """

    dtype: str
    axes: int
    alpha: float
    printed: Loss
    centred: Loss
    argmax_safe_below: int
    weight_safe_below: int


@jax.jit
def _inner_product(
    query: Float[Array, "sides 1 features"], keys: Float[Array, "sides keys features"]
) -> Float[Array, "sides keys"]:
    """v·r_δ, products and sums in the operands' dtype."""
    return (query * keys).sum(-1)


_weights = jax.jit(attention_weights)


def corner_shifts(axes: int, largest_side: int) -> tuple[np.ndarray, np.ndarray]:
    """Δ ``[sides, 1, axes]`` for sides 1, 2, …, and δ ``[sides, keys, axes]``; key 0 is the target.

    Shifts with a negative component lie outside of the image.
    """
    target = np.broadcast_to(np.arange(largest_side)[:, None, None], (largest_side, 1, axes))
    reach = np.arange(min(LARGEST_SIDE if axes == 1 else GRID_WINDOW, largest_side))
    back = np.stack(np.meshgrid(*[reach] * axes, indexing="ij"), -1).reshape(1, -1, axes)
    return target, target - back


def first_loss(
    scores: Float[np.ndarray, "sides keys"],
    weights: Float[np.ndarray, "sides keys"],
    inside: Bool[np.ndarray, "sides keys"],
) -> Loss:
    """The least side whose target, key 0, fails; NaN fails, and so does an overflow to infinity.

    >>> scores = np.array([[0.0, -9.0], [0.0, 0.0]])
    >>> first_loss(scores, np.array([[1.0, 0.0], [0.5, 0.5]]), np.ones((2, 2), bool))
    Loss(argmax=2, weight=2)
    """
    wide = np.where(inside, scores.astype(np.float64), -np.inf)
    argmax_lost = ~((wide[:, :1] > wide[:, 1:]).all(axis=1) & np.isfinite(wide[:, 0]))
    weight_lost = weights[:, 0].astype(np.float64) != 1

    def first(lost: np.ndarray) -> int | None:
        return int(lost.argmax()) + 1 if lost.any() else None

    return Loss(first(argmax_lost), first(weight_lost))


def safe_below(score: FloatFormat, axes: int, alpha: float, gap: float) -> int:
    """The side below which two scores provably stay at least ``gap`` apart (0: in order).

    >>> from convattn_ledger.audit.float_format import float_format
    >>> safe_below(float_format("float32"), 1, 46.0, 0.0)
    967
    """
    if gap >= alpha:
        return 1
    limit = (1 - gap / alpha) * (2**score.precision - 4) / (2 * (6 + 3 * axes))
    limit = min(limit, score.largest / (2 * alpha))
    return math.ceil(math.sqrt(limit / axes)) + 1


def measure_printed_score(
    score: FloatFormat,
    alpha: float,
    axes: int,
    product: Score = _inner_product,
    *,
    largest_side: int = LARGEST_SIDE,
) -> PrintedScore:
    """Search sides 1 … `largest_side` for the least that fails, printed and centred.

    α > 0 is rounded to the scores' format; `product` takes v ``[sides, 1, features]`` and r
    ``[sides, keys, features]`` to the scores.
    """
    dtype = score.dtype
    stored = np.array(alpha).astype(dtype)
    target, shifts = corner_shifts(axes, largest_side)
    inside = np.asarray((shifts >= 0).all(-1))

    def in_format(array: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return array.astype(np.float64).astype(dtype)

    def loss(query: np.ndarray, keys: np.ndarray) -> Loss:
        with np.errstate(over="ignore"):
            scaled = -stored * query
        scores = jnp.asarray(product(scaled, keys))
        weights = _weights(scores, jnp.asarray(inside))
        return first_loss(np.asarray(scores), np.asarray(weights), inside)

    ones = np.ones((largest_side, 1, 1), dtype)
    features = np.concatenate([(shifts**2).sum(-1, keepdims=True), shifts], -1)
    printed = loss(np.concatenate([ones, in_format(-2 * target)], -1), in_format(features))
    distances = ((shifts - target) ** 2).sum(-1, keepdims=True)
    centred = loss(ones, in_format(distances))

    stored_alpha, softmax_precision = float(stored), max(score.precision, 24)
    gap = (softmax_precision + 1) * math.log(2) + math.log(2 * axes) + 0.01
    return PrintedScore(
        dtype=score.name,
        axes=axes,
        alpha=stored_alpha,
        printed=printed,
        centred=centred,
        argmax_safe_below=safe_below(score, axes, stored_alpha, 0.0),
        weight_safe_below=safe_below(score, axes, stored_alpha, gap),
    )


def measure_printed_scores(score: FloatFormat) -> tuple[PrintedScore, ...]:
    """α = 46, 46 ln 10 and 128, on a line and on a grid."""
    return tuple(measure_printed_score(score, alpha, axes) for axes in (1, 2) for alpha in ALPHAS)
