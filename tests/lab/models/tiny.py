"""Tiny models with numbers from NumPy, so that nothing is compiled to make them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from convattn_lab.models.encoder import Encoder
from convattn_lab.models.settings import EncoderSettings
from convattn_lab.models.sizes import abstract_model

SIZE = (8, 6)
ENCODINGS = ("quadratic", "gaussian", "learned", "content")


def tiny(encoding: str = "quadratic", heads: tuple[int, ...] = (3, 2), **options: Any) -> Encoder:
    """Layers of width 8 on 4 × 3 tokens; neither scales are one nor biases zero."""
    names = ("dropout", "attention_dropout", "norm_epsilon")
    chosen = {name: options.pop(name) for name in names if name in options}
    settings = EncoderSettings(encoding, heads=heads, width=8, inner=6, **chosen)
    return filled(abstract_model(settings, classes=5, image_size=SIZE, **options))


def filled(model: Any, seed: int = 0, dtype: str = "float32") -> Any:
    """The model with positive and negative numbers for the shapes of its parameters; scales, and
    the running statistics of norms, are positive."""
    rng = np.random.default_rng(seed)
    graph, state = nnx.split(model)

    def draw(path: Any, leaf: Any) -> jax.Array:
        numbers = 0.4 * rng.normal(size=leaf.shape)
        if any(name in jax.tree_util.keystr(path) for name in ("scale", "var")):
            numbers = 1 + np.abs(numbers)
        return jnp.asarray(numbers, dtype)

    return nnx.merge(graph, jax.tree_util.tree_map_with_path(draw, state))


def images(batch: int = 2, seed: int = 1, dtype: str = "float32") -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=(batch, *SIZE, 3)), dtype)
