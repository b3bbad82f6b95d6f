"""A ResNet whose parameters and statistics are drawn in NumPy: nothing is compiled for that."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from convattn.lab.models.resnet import ResNet
from convattn.lab.models.settings import ResNetSettings

RANGES = {"mean": (-1.0, 1.0), "var": (0.2, 2.0), "scale": (-2.0, 2.0), "bias": (-1.0, 1.0)}
SIDE = 8


def random_resnet(rng: np.random.Generator, settings: ResNetSettings, classes: int) -> ResNet:
    """Kernels of variance 2/n, n what an entry sums; statistics, scales and shifts of all sizes.

    >>> settings = ResNetSettings(channels=(2,), blocks=(1,))
    >>> model = random_resnet(np.random.default_rng(0), settings, 3)
    >>> bool(model.stem.norm.var[...].min() >= 0.2), model.classifier.kernel.shape
    (True, (2, 3))
    """

    def build() -> ResNet:
        size = (SIDE, SIDE)
        return ResNet(settings, classes=classes, image_size=size, rngs=nnx.Rngs(0))

    def draw(path: tuple[Any, ...], leaf: Any) -> jax.Array:
        names = jax.tree_util.keystr(path, simple=True, separator=".").split(".")
        found = [name for name in names if name in RANGES]
        if found:
            drawn = rng.uniform(*RANGES[found[-1]], leaf.shape)
        else:
            drawn = rng.normal(0, np.sqrt(2 / np.prod(leaf.shape[:-1])), leaf.shape)
        return jnp.asarray(drawn.astype(leaf.dtype))

    structure, state = nnx.split(nnx.eval_shape(build))
    return nnx.merge(structure, jax.tree_util.tree_map_with_path(draw, state))
