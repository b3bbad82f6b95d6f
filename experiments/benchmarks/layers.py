"""The layers that are timed: 9 heads as in C20, the identity for values, one output map each."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import convattn as ca
from benchmarks.settings import Settings
from convattn.encodings import (
    GaussianEncoding,
    PositionalEncoding,
    QuadraticEncoding,
    QuadraticGridEncoding,
)
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.encodings.learned import initial_learned_encoding

HEADS = 9
KERNEL = 3
CENTER_VARIANCE = 2.0
POSITION_FEATURES = 32

LayerMaker = Callable[[int, int, Settings], AttentionLayer]


def normal(shape: tuple[int, ...], scale: float, seed: int, dtype: jnp.dtype) -> Array:
    """Normal numbers of that standard deviation."""
    values = np.random.default_rng(seed).normal(scale=scale, size=shape)
    return jnp.asarray(values, jnp.float32).astype(dtype)


def images(side: int, features: int, settings: Settings) -> Array:
    """A batch of images of noise."""
    return normal((settings.batch, side, side, features), 1.0, 1, settings.jax_dtype)


def kernel(features: int, settings: Settings) -> Array:
    """A 3 × 3 kernel that keeps the size of what it is applied to."""
    shape = (KERNEL, KERNEL, features, features)
    return normal(shape, 1 / (KERNEL * np.sqrt(features)), 2, settings.jax_dtype)


def with_maps(
    encoding: PositionalEncoding,
    features: int,
    settings: Settings,
    content: ContentScores | None = None,
) -> AttentionLayer:
    """A layer with this encoding and output maps [heads, features, features]."""
    output = normal(
        (HEADS, features, features), 1 / np.sqrt(HEADS * features), 3, settings.jax_dtype
    )
    return AttentionLayer(encoding=encoding, value=None, output=output, content=content)


def free_centers() -> QuadraticEncoding:
    """Centres drawn from N(0, 2 I) as C20 does, α between 0.5 and 1.5."""
    centers = normal((HEADS, 2), np.sqrt(CENTER_VARIANCE), 4, jnp.dtype("float32"))
    return QuadraticEncoding(jnp.linspace(0.5, 1.5, HEADS, dtype=jnp.float32), centers)


def quadratic(side: int, features: int, settings: Settings) -> AttentionLayer:
    """The quadratic encoding with free centres."""
    return with_maps(free_centers(), features, settings)


def grid_of_centers(side: int, features: int, settings: Settings) -> AttentionLayer:
    """The quadratic encoding with 3 × 3 centres on a grid, as those of a converted kernel are."""
    alpha = jnp.linspace(0.5, 1.5, KERNEL, dtype=jnp.float32)
    centers = jnp.asarray([-1.5, 0.25, 1.5], jnp.float32)
    pairs = tuple((row, column) for row in range(KERNEL) for column in range(KERNEL))
    encoding = QuadraticGridEncoding((alpha, alpha), (centers, centers), pairs)
    return with_maps(encoding, features, settings)


def learned(side: int, features: int, settings: Settings) -> AttentionLayer:
    """The learned row and column encoding."""
    encoding = initial_learned_encoding(
        jax.random.key(5), HEADS, (side, side), POSITION_FEATURES, jnp.dtype("float32")
    )
    return with_maps(encoding, features, settings)


def gaussian(side: int, features: int, settings: Settings) -> AttentionLayer:
    """The general Gaussian encoding, its axes turned and stretched."""
    angle = jnp.linspace(0.0, np.pi, HEADS, endpoint=False, dtype=jnp.float32)
    turned = jnp.stack([jnp.cos(angle), jnp.sin(angle), -jnp.sin(angle), jnp.cos(angle)], -1)
    root = jnp.asarray([[1.7], [0.8]], jnp.float32) * turned.reshape(HEADS, 2, 2)
    return with_maps(GaussianEncoding(free_centers().centers, root), features, settings)


def content(side: int, features: int, settings: Settings) -> AttentionLayer:
    """Scores from content besides those of the quadratic encoding."""
    query, key = (
        normal((HEADS, features, features), 1 / np.sqrt(features), seed, settings.jax_dtype)
        for seed in (6, 7)
    )
    return with_maps(free_centers(), features, settings, ContentScores(query, key))


def finite(side: int, features: int, settings: Settings) -> AttentionLayer:
    """The layer of S.finite that is the 3 × 3 convolution of `kernel`."""
    return ca.conv_to_attention(kernel(features, settings), form="exact")
