"""A small trained-looking ResNet, and its conversion."""

from functools import cache

import jax.numpy as jnp
import numpy as np
from flax import nnx

from convattn.models.resnet import ResNet
from convattn.models.settings import ResNetSettings
from convattn.networks import ConvertedResNet, convert_resnet
from convattn.networks.resnet import normalized_convolutions

CHANNELS = np.full(3, 0.5)


def small_model(seed: int = 0) -> ResNet:
    """Six convolutions of four shapes, with statistics, scales and shifts of all sizes."""
    settings = ResNetSettings(channels=(3, 4), blocks=(1, 1))
    model = ResNet(settings, classes=3, image_size=(8, 8), rngs=nnx.Rngs(seed))
    rng = np.random.default_rng(seed)
    ranges = {"mean": (-1, 1), "var": (0.2, 2), "scale": (-2, 2), "bias": (-1, 1)}
    for _, layer in normalized_convolutions(model):
        for part, (low, high) in ranges.items():
            drawn = rng.uniform(low, high, layer.norm.num_features)
            getattr(layer.norm, part)[...] = jnp.asarray(drawn.astype(np.float32))
    return model


@cache
def small_network(leak: float = 0.25) -> ConvertedResNet:
    return convert_resnet(small_model(), CHANNELS, CHANNELS / 2, leak=leak)


def small_images(count: int = 2, side: tuple[int, int] = (8, 8)) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (count, *side, 3)).astype(np.uint8)
