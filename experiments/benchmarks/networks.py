"""Who competes on a whole network: its convolutions, and attention in their place."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

import convattn as ca
from benchmarks.implementations import Implementation
from benchmarks.layers import normal
from benchmarks.measurement import Runner, jax_runner
from benchmarks.settings import Settings
from convattn_lab.models.build import build_model
from convattn_lab.models.settings import ResNetSettings

CLASSES = 10
BACK_ENDS = ("auto", "dense")


def network_implementations(side: int, features: int, settings: Settings) -> list[Implementation]:
    """A residual network for CIFAR-10 (He et al. 2016, section 4.2), and itself as attention.

    Args:
        side: Of the images.
        features: Of the first stage; the others have two and four times as many.
        settings: Of the run; `quick` leaves one block a stage of three.
    """
    blocks = (1, 1, 1) if settings.quick else (3, 3, 3)
    widths = (features, 2 * features, 4 * features)
    model = build_model(
        ResNetSettings(widths, blocks), classes=CLASSES, image_size=(side, side), rngs=nnx.Rngs(0)
    )
    definition, state = nnx.split(model)
    state = jax.tree.map(partial(narrowed, dtype=settings.jax_dtype), state)
    images = normal((settings.batch, side, side, 3), 1.0, 1, settings.jax_dtype)

    def network(state: Any, images: Array) -> Array:
        return nnx.merge(definition, state)(images)

    def runner(back_end: str | None) -> Runner:
        function = network if back_end is None else ca.with_attention(network, backend=back_end)
        with jax.default_matmul_precision(settings.precision):
            return jax_runner(function, state, images)

    requested = settings.back_ends
    names = [name for name in BACK_ENDS if requested is None or name in requested]
    implementations = [Implementation(name, partial(runner, name)) for name in names]
    return [*implementations, Implementation("lax.conv", partial(runner, None))]


def narrowed(leaf: Any, dtype: jnp.dtype) -> Any:
    """A floating-point parameter in the dtype of the run."""
    floating = jnp.issubdtype(leaf.dtype, jnp.floating)
    return leaf.astype(dtype) if floating else leaf
