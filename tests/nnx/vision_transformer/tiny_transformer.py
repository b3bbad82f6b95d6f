"""Tiny vision transformers of every kind, with numbers from NumPy in all parameters."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from lab.models.tiny import filled

from convattn.nnx.layers.compute import wide_dtype
from convattn.nnx.vision_transformer.model import VisionTransformer
from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
from convattn_lab.models.sizes import abstract_model

SIZE = (4, 6)  # 2 × 3 patches of 2 × 2 pixels and 3 channels
CONVOLUTION = VisionTransformerSettings(
    "convolution", depth=2, width=12, inner=7, patch_size=2, kernel_size=5
)
SETTINGS = {
    "convolution": CONVOLUTION,
    "mean border": replace(CONVOLUTION, border="mean", kernel_size=3),
    "ring": replace(CONVOLUTION, mixing="attention", heads=3, ring=1),
    "absolute": replace(
        CONVOLUTION,
        mixing="attention",
        width=10,
        heads=2,
        head_width=3,
        position="absolute",
        projection="learned",
    ),
    "rotary": replace(
        CONVOLUTION,
        mixing="attention",
        heads=2,
        head_width=8,
        position="rotary",
        rotary_base=7.0,
        projection="learned",
    ),
    "class": replace(
        CONVOLUTION,
        mixing="attention",
        heads=2,
        head_width=5,
        position="absolute",
        pooling="class",
        projection="learned",
    ),
}


def tiny(kind: str, dtype: str = "float32", seed: int = 0, **changes: Any) -> VisionTransformer:
    """A network of one kind, whose parameters have the dtype in which it computes, or float32."""
    return network(replace(SETTINGS[kind], **changes), dtype, seed)


def network(
    settings: VisionTransformerSettings, dtype: str = "float32", seed: int = 0
) -> VisionTransformer:
    """The same for any settings of images of this size."""
    options = {"classes": 5, "image_size": SIZE, "dtype": dtype}
    parameter_dtype = wide_dtype(dtype).name
    return filled(abstract_model(settings, **options), seed, parameter_dtype)


def images(batch: int = 2, seed: int = 1, dtype: str = "float32") -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=(batch, *SIZE, 3)), dtype)
