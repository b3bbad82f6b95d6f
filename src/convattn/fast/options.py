"""What a caller asks of a back end besides the layer and its tokens."""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array, lax

from convattn.attention import HIGHEST

Window = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Dropout:
    """Attention dropout: each weight is zeroed with probability `rate`, the others scaled up.

    **Fields:**

    - `rate`: in (0, 1).
    - `key`: a JAX random key; the same key gives the same zeros in every back end.
    """

    rate: float
    key: Array


@dataclass(frozen=True)
class AttentionOptions:
    """Options of one application of a layer.

    **Fields:**

    - `precision`: of the matrix products. At the highest, operands are cast to at least float32
      first; at any other, bfloat16 and float16 operands stay as they are and only the sums are
      taken in float32.
    - `dropout`: or None.
    - `windows`: for each head, and each axis, the smallest and the largest shift key - query that
      the windowed back end keeps; None lets it work them out from concrete parameters.
    - `chunk`: how many queries the chunked back end takes at a time; None lets it choose.
    """

    precision: lax.PrecisionLike = HIGHEST
    dropout: Dropout | None = None
    windows: tuple[Window, ...] | None = None
    chunk: int | None = None


def read_dropout(rate: float, key: Array | None) -> Dropout | None:
    """Dropout from a rate and a key, or None for the rate 0.

    **Raises:** `ValueError` for a rate outside [0, 1), a traced one, and one without a key.

    >>> read_dropout(0.0, None) is None, read_dropout(0.1, jax.random.key(0)).rate
    (True, 0.1)
    """
    if isinstance(rate, jax.core.Tracer) or not math.isfinite(rate) or not 0 <= rate < 1:
        raise ValueError(f"dropout_rate={rate}, but should be a number in [0, 1), not traced")
    if rate == 0:
        return None
    if key is None:
        raise ValueError(
            f"dropout_rate={rate} without a dropout_key; pass jax.random.key(seed), another one for "
            "every step, or the rate 0 to apply the layer without dropout"
        )
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.dtype != jnp.uint32:
        raise ValueError(f"dropout_key.dtype={key.dtype}, but should be a key of jax.random.key")
    return Dropout(float(rate), key)
