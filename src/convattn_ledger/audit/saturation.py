"""When attention becomes one-hot: its maximum rounds to one, or all else is exactly zero.

For the quadratic encoding (C20, eq. 9, and "α = 46 suffices") the scores are -α|δ|² around a target
in the middle of a line of 32 tokens or a grid of 32 × 32: its 2 or 4 nearest rivals lie α below,
exactly, in every format. For a relative bias (L21, Lemma 2, "M = 40 … up to machine precision")
they are M on the target and 0 on the N - 1 other keys. The order in which a device sums decides
where inside the predicted interval a bias saturates, so its target is put first, in the middle and
last, and the greatest of the three least M is reported.

Let the target's score exceed that of its c nearest rivals by x and of all others by far more. With
the maximum subtracted, softmax forms 1/Z and e^-x/Z, where Z = 1 + c·e^-x + ….

- *The maximum rounds to one* if the computed Z is 1. Adding rivals one at a time to 1 leaves it at
  1 as soon as e^-x ≤ 2^-p (a tie goes to the even 1), and no order of summation does so earlier.
  Adding the rivals up first asks for c·e^-x ≤ 2^-p. A compiler that holds Z wider than the format
  and rounds 1/Z to it asks for one factor 2 more, as the spacing below 1 is half of that above; the
  same factor covers the rounding of the rivals' sum, which one by one at most doubles it. Hence

      p ln 2  ≤  x  ≤  (p + 1) ln 2 + ln c.

- *Exact one-hot* needs e^-x = 0: x ≥ (p - e) ln 2 where subnormals are kept, x > -e ln 2 where they
  are flushed to zero (``FloatFormat.one_hot_kept``, ``one_hot_flushed``). c doesn't enter.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from convattn.operators.attention import attention_weights
from convattn_ledger.audit.float_format import (
    FloatFormat,
    bit_patterns,
    float_format,
    least_representable,
)

HIGHEST_SCALE = 2048.0
SIDE = 32
CLAIMED_ALPHA = 46.0
KEYS = (27, 28, 256, 1024, 50176)
CLAIMED_LOGIT = 40.0


@dataclass(frozen=True)
class Saturation:
    """The least scale of the scores from which a softmax saturates.

    Attributes:
        rounds_to_one, one_hot: Measured; None if not up to 2048.
        rounds_to_one_predicted: The interval above.
        one_hot_predicted: Where subnormals are flushed, and where they are kept.
    """

    rounds_to_one: float | None
    rounds_to_one_predicted: tuple[float, float]
    one_hot: float | None
    one_hot_predicted: tuple[float, float]


@dataclass(frozen=True)
class QuadraticSaturation:
    """What the quadratic encoding needs on one grid.

    Attributes:
        dtype, softmax_dtype: Of the scores and of the softmax.
        axes: 1 for a line of 32 tokens, 2 for a grid of 32 × 32.
        alpha: The least α for each kind of saturation.
        rival_at_claimed: The greatest weight off the target at α = 46.
    """

    dtype: str
    softmax_dtype: str
    axes: int
    alpha: Saturation
    rival_at_claimed: float


@dataclass(frozen=True)
class BiasSaturation:
    """What a relative bias needs with N keys.

    Attributes:
        dtype, softmax_dtype: Of the scores and of the softmax.
        keys: N.
        logit: The least M for each kind of saturation, wherever the target stands.
        deficit_at_claimed: One less the greatest weight at M = 40, the largest of the three; 0
            means that it rounds to one.
    """

    dtype: str
    softmax_dtype: str
    keys: int
    logit: Saturation
    deficit_at_claimed: float


def softmax_formats(score: FloatFormat) -> tuple[FloatFormat, ...]:
    """Softmax in the scores' own format, and in at least float32, which is what the library does.

    >>> [number_format.name for number_format in softmax_formats(float_format("float16"))]
    ['float16', 'float32']
    """
    return (score,) if score.precision >= 24 else (score, float_format("float32"))


@partial(jax.jit, static_argnames="softmax")
def _attention_row(
    scale: Float[Array, ""], pattern: Int[Array, " keys"], softmax: FloatFormat
) -> Float[Array, " keys"]:
    """softmax(scale·pattern), scores in the scale's dtype; from float32 on the library's own."""
    scores = scale * pattern.astype(scale.dtype)
    if softmax.precision < 24:
        return jax.nn.softmax(scores.astype(softmax.dtype))
    return attention_weights(scores[None])[0]


def rounds_to_one(weights: Float[np.ndarray, " keys"]) -> bool:
    """Whether the greatest weight is exactly one.

    >>> rounds_to_one(np.float32([1.0, 1e-20])), rounds_to_one(np.float32([0.9999999, 1e-7]))
    (True, False)
    """
    return float(weights.astype(np.float64).max()) == 1.0


def is_one_hot(weights: Float[np.ndarray, " keys"]) -> bool:
    """Whether one weight is exactly one and every other exactly zero, subnormals included.

    >>> is_one_hot(np.float32([0, 1, 0])), is_one_hot(np.float32([0, 1, 1e-45]))
    (True, False)
    """
    return rounds_to_one(weights) and int(np.count_nonzero(bit_patterns(weights))) == 1


def measure_saturation(
    weights_at: Callable[[np.ndarray], np.ndarray],
    *,
    score: FloatFormat,
    softmax: FloatFormat,
    rivals: int,
) -> Saturation:
    """The least scale, in the scores' format, at which a row of weights saturates."""

    def least(holds: Callable[[np.ndarray], bool]) -> float | None:
        return least_representable(
            lambda scale: holds(weights_at(scale)), 1.0, HIGHEST_SCALE, score
        )

    return Saturation(
        rounds_to_one=least(rounds_to_one),
        rounds_to_one_predicted=(
            softmax.precision * math.log(2),
            (softmax.precision + 1) * math.log(2) + math.log(rivals),
        ),
        one_hot=least(is_one_hot),
        one_hot_predicted=(softmax.one_hot_flushed, softmax.one_hot_kept),
    )


def squared_distances(axes: int) -> Int[np.ndarray, " keys"]:
    """|δ|² from the middle of the line or the grid to each of its tokens."""
    line = (np.arange(SIDE, dtype=np.int32) - SIDE // 2) ** 2
    return line if axes == 1 else (line[:, None] + line).ravel()


def measure_quadratic_saturation(score: FloatFormat) -> tuple[QuadraticSaturation, ...]:
    """Every combination of softmax format and 1 or 2 axes."""
    rows = []
    for softmax, axes in product(softmax_formats(score), (1, 2)):
        distances = squared_distances(axes)
        weights_at = _weights_at(-distances, softmax)
        alpha = measure_saturation(weights_at, score=score, softmax=softmax, rivals=2 * axes)
        claimed = weights_at(np.array(CLAIMED_ALPHA).astype(score.dtype)).astype(np.float64)
        rival = float(claimed[distances > 0].max())
        rows.append(QuadraticSaturation(score.name, softmax.name, axes, alpha, rival))
    return tuple(rows)


def measure_bias_saturation(
    score: FloatFormat, keys: tuple[int, ...] = KEYS
) -> tuple[BiasSaturation, ...]:
    """Every combination of softmax format and number of keys (each at least 2)."""
    rows = []
    for softmax, count in product(softmax_formats(score), keys):
        measured, maxima = [], []
        for target in (0, count // 2, count - 1):
            weights_at = _weights_at((np.arange(count) == target).astype(np.int32), softmax)
            measured.append(
                measure_saturation(weights_at, score=score, softmax=softmax, rivals=count - 1)
            )
            claimed = weights_at(np.array(CLAIMED_LOGIT).astype(score.dtype))
            maxima.append(claimed.astype(np.float64).max())
        logit = replace(
            measured[0],
            rounds_to_one=_greatest([row.rounds_to_one for row in measured]),
            one_hot=_greatest([row.one_hot for row in measured]),
        )
        rows.append(BiasSaturation(score.name, softmax.name, count, logit, float(1 - min(maxima))))
    return tuple(rows)


def _weights_at(
    pattern: Int[np.ndarray, " keys"], softmax: FloatFormat
) -> Callable[[np.ndarray], np.ndarray]:
    on_device = jnp.asarray(pattern)
    return lambda scale: np.asarray(_attention_row(jnp.asarray(scale), on_device, softmax))


def _greatest(values: list[float | None]) -> float | None:
    reached = [value for value in values if value is not None]
    return max(reached) if len(reached) == len(values) else None
