"""Parameters of small integers, and attention that is exactly uniform or exactly one-hot."""

import jax
import jax.numpy as jnp
import numpy as np

from convattn.sac import (
    EvenBias,
    SelfAttentiveParameters,
    attention_scores,
    cross_attentive_features,
    filter_bank,
    multiscale_self_attentive_convolution,
    self_attentive_convolution,
)

# Compiled as a whole, which takes less than operation by operation.
apply = jax.jit(self_attentive_convolution)
apply_multiscale = jax.jit(multiscale_self_attentive_convolution)
apply_cross = jax.jit(cross_attentive_features, static_argnames=("gap", "how"))
scores_of = jax.jit(attention_scores)
bank_of = jax.jit(filter_bank, static_argnames=("stride", "dilation", "causal"))

ONE_HOT = 128.0  # e^-128 is zero in float32


def integers(seed, *shape, magnitude=3):
    generator = np.random.default_rng(seed)
    values = generator.integers(-magnitude, magnitude, shape, endpoint=True)
    return jnp.asarray(values, jnp.float32)


def one_hot_tables(*distances, size):
    """A table for each head with M at one distance, (0, 0) among them only where it is a corner."""
    tables = np.zeros((len(distances), *size), np.float32)
    for head, distance in enumerate(distances):
        tables[(head, *distance)] = ONE_HOT
    return EvenBias(jnp.asarray(tables))


def sac(
    seed, size, *, heads=2, features=4, key_features=4, content=True, ordinary=False, **options
):
    """d = 3 channels in, `features` out; √d_a is 2."""
    taps = tuple(size)
    axes = len(taps)
    ones = (1,) * axes
    options = {"stride": ones, "dilation": ones, "key_stride": ones, **options}
    query, key = (
        (integers(seed + i, heads, *taps, 3, 4) for i in (1, 2)) if content else (None, None)
    )
    return SelfAttentiveParameters(
        value=integers(seed, heads, *taps, 3, 5),
        query=query,
        key=key,
        output=integers(seed + 3, heads, 5, features),
        ordinary=integers(seed + 4, *taps, 3, features) if ordinary else None,
        merge=integers(seed + 5, 2 * features, features) if ordinary else None,
        **options,
    )
