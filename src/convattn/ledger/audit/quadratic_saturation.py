"""From which α on the quadratic encoding attends to one pixel, on a grid of real size.

The scores are -α|δ|² around a target in the middle of a line of 32 tokens or a grid of 32 × 32: the
nearest rivals, 2 or 4 of them, lie α below, exactly, in every format.

Source: C20, eq. 9 and the appendix remark on the magnitude of α ("α = 46 suffices").
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

SIDE = 32
CLAIMED_ALPHA = 46.0


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


@partial(jax.jit, static_argnames="softmax")
def quadratic_weights(
    alpha: Float[Array, ""], distances: Int[Array, " keys"], softmax: FloatFormat
) -> Float[Array, " keys"]:
    """softmax(-α|δ|²) with the scores in α's dtype."""
    return softmax_in(-alpha * distances.astype(alpha.dtype), softmax)


def squared_distances(axes: int) -> np.ndarray:
    """|δ|² from the middle of the line or the grid to each of its tokens."""
    line = (np.arange(SIDE, dtype=np.int32) - SIDE // 2) ** 2
    return line if axes == 1 else (line[:, None] + line).ravel()


def measure_quadratic_saturation(score: FloatFormat) -> tuple[QuadraticSaturation, ...]:
    """Every combination of softmax format and 1 or 2 axes."""
    return tuple(
        _measure(score, softmax, axes) for softmax in softmax_formats(score) for axes in (1, 2)
    )


def _measure(score: FloatFormat, softmax: FloatFormat, axes: int) -> QuadraticSaturation:
    distances = squared_distances(axes)
    on_device = jnp.asarray(distances)

    def weights_at(alpha: np.ndarray) -> np.ndarray:
        return np.asarray(quadratic_weights(jnp.asarray(alpha), on_device, softmax))

    claimed = weights_at(np.array(CLAIMED_ALPHA).astype(score.dtype)).astype(np.float64)
    return QuadraticSaturation(
        dtype=score.name,
        softmax_dtype=softmax.name,
        axes=axes,
        alpha=measure_saturation(weights_at, score=score, softmax=softmax, rivals=2 * axes),
        rival_at_claimed=float(claimed[distances > 0].max()),
    )
