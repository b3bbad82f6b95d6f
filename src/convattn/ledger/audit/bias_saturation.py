"""From which M on a relative bias attends to one patch, for several numbers of keys.

The scores are M on the target and 0 on the N - 1 other keys: N - 1 nearest rivals, M below,
exactly. The order in which a device sums decides where inside the predicted interval it saturates,
so the target is put first, in the middle and last, and the greatest of the three least M is
reported.

Source: L21, Lemma 2 ("M = 40 … up to machine precision").
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from convattn.ledger.audit.float_format import FloatFormat
from convattn.ledger.audit.saturation import (
    Saturation,
    measure_saturation,
    softmax_formats,
    softmax_in,
)

KEYS = (27, 28, 256, 1024, 50176)
CLAIMED_LOGIT = 40.0


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


@partial(jax.jit, static_argnames=("keys", "softmax"))
def bias_weights(
    logit: Float[Array, ""], target: Int[Array, ""], keys: int, softmax: FloatFormat
) -> Float[Array, " keys"]:
    """softmax of M on the target, 0 elsewhere, with the scores in M's dtype."""
    return softmax_in(jnp.where(jnp.arange(keys) == target, logit, jnp.zeros_like(logit)), softmax)


def measure_bias_saturation(
    score: FloatFormat, keys: tuple[int, ...] = KEYS
) -> tuple[BiasSaturation, ...]:
    """Every combination of softmax format and number of keys (each at least 2)."""
    return tuple(
        _measure(score, softmax, count) for softmax in softmax_formats(score) for count in keys
    )


def _measure(score: FloatFormat, softmax: FloatFormat, keys: int) -> BiasSaturation:
    def weights_at(logit: np.ndarray, target: int) -> np.ndarray:
        return np.asarray(bias_weights(jnp.asarray(logit), jnp.int32(target), keys, softmax))

    targets = (0, keys // 2, keys - 1)
    measured = [
        measure_saturation(
            partial(weights_at, target=target), score=score, softmax=softmax, rivals=keys - 1
        )
        for target in targets
    ]
    claimed = np.array(CLAIMED_LOGIT).astype(score.dtype)
    maxima = [weights_at(claimed, target).astype(np.float64).max() for target in targets]
    return BiasSaturation(
        dtype=score.name,
        softmax_dtype=softmax.name,
        keys=keys,
        logit=Saturation(
            rounds_to_one=_greatest([row.rounds_to_one for row in measured]),
            rounds_to_one_predicted=measured[0].rounds_to_one_predicted,
            one_hot=_greatest([row.one_hot for row in measured]),
            one_hot_predicted=measured[0].one_hot_predicted,
        ),
        deficit_at_claimed=float(1 - min(maxima)),
    )


def _greatest(values: list[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return max(found) if len(found) == len(values) else None
