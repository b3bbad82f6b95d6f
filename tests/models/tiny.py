"""Tiny models, and how the tests move their parameters away from where they begin."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from convattn.models.build import build_model
from convattn.models.encoder import Encoder
from convattn.models.settings import EncoderSettings

SIZE = (8, 6)
ENCODINGS = ("quadratic", "gaussian", "learned", "content")


def tiny(encoding: str = "quadratic", heads: tuple[int, ...] = (3, 2), **options: Any) -> Encoder:
    """Two layers of width 8 on 4 × 3 tokens."""
    names = ("dropout", "attention_dropout", "norm_epsilon")
    chosen = {name: options.pop(name) for name in names if name in options}
    settings = EncoderSettings(encoding, heads=heads, width=8, inner=6, **chosen)
    given = {"classes": 5, "image_size": SIZE, "rngs": nnx.Rngs(3)}
    return build_model(settings, **given, **options)


def moved(model: Any, seed: int = 0) -> Any:
    """Every parameter a little elsewhere: scales are not one then, nor biases zero."""
    rng = np.random.default_rng(seed)

    def move(part: jax.Array) -> jax.Array:
        return part + jnp.asarray(0.2 * rng.normal(size=part.shape), part.dtype)

    nnx.update(model, jax.tree.map(move, nnx.state(model, nnx.Param)))
    return model


def images(batch: int = 2, seed: int = 1, dtype: str = "float32") -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=(batch, *SIZE, 3)), dtype)
