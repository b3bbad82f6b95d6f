"""How linear maps begin: PyTorch's default, which is what the authors' code of C20 leaves them at.

A map of n inputs begins with weights, and a bias, that are uniform in ±1/√n: of variance 1/(3n).
The authors build on a BERT whose maps would begin with N(0, 0.02²), but nothing in their models
calls for that.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array, lax
from jax.nn.initializers import Initializer
from jax.typing import DTypeLike

from convattn.lab.models.linear import Linear


def uniform_within(inputs: int) -> Initializer:
    """Numbers that are uniform in ±1/√inputs.

    >>> numbers = uniform_within(4)(jax.random.key(0), (1000,), jnp.float32)
    >>> 0.45 < float(jnp.abs(numbers).max()) <= 0.5
    True
    """
    limit = 1 / math.sqrt(max(inputs, 1))

    def draw(
        key: Array, shape: Sequence[Any], dtype: Any = jnp.float32, out_sharding: Any = None
    ) -> Array:
        return jax.random.uniform(key, shape, dtype, -limit, limit, out_sharding=out_sharding)

    return draw


def linear(
    inputs: int, outputs: int, *, rngs: nnx.Rngs, dtype: DTypeLike, precision: lax.Precision
) -> Linear:
    """A linear map with a bias; parameters in float32, computed in `dtype`."""
    return Linear(
        inputs,
        outputs,
        dtype=dtype,
        precision=precision,
        kernel_init=uniform_within(inputs),
        bias_init=uniform_within(inputs),
        rngs=rngs,
    )
