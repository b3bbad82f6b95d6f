"""When a softmax saturates: its maximum rounds to one, or everything else is exactly zero.

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
from dataclasses import dataclass

import jax
import numpy as np
from jax import Array
from jaxtyping import Float

from convattn.ledger.audit.bisection import least_representable
from convattn.ledger.audit.float_format import FloatFormat, bit_patterns, float_format
from convattn.operators.attention import attention_weights

HIGHEST_SCALE = 2048.0


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


def softmax_formats(score: FloatFormat) -> tuple[FloatFormat, ...]:
    """Softmax in the scores' own format, and in at least float32, which is what the library does.

    >>> [number_format.name for number_format in softmax_formats(float_format("float16"))]
    ['float16', 'float32']
    """
    return (score,) if score.precision >= 24 else (score, float_format("float32"))


def softmax_in(scores: Float[Array, " keys"], softmax: FloatFormat) -> Float[Array, " keys"]:
    """Softmax computed in the given format; at float32 and above the library's own function."""
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
    """The least scale in the scores' format at which the weights saturate.

    Args:
        weights_at: From a scale, a zero-dimensional array of the scores' format, to one row of
            weights on the host.
        rivals: c, the number of nearest rivals.
    """

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
