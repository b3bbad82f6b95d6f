"""A small trained-looking ResNet, and its conversion."""

from functools import cache

import numpy as np

from convattn.lab.analysis.resnet_comparison import ConvertedResNet, convert_resnet
from convattn.lab.models.resnet import ResNet
from convattn.lab.models.resnet_network import random_resnet
from convattn.lab.models.settings import ResNetSettings

CHANNELS = np.full(3, 0.5)


@cache
def small_model(seed: int = 0) -> ResNet:
    """Six convolutions of four shapes, with statistics, scales and shifts of all sizes."""
    settings = ResNetSettings(channels=(3, 4), blocks=(1, 1))
    return random_resnet(np.random.default_rng(seed), settings, 3)


@cache
def small_network(leak: float = 0.25) -> ConvertedResNet:
    return convert_resnet(small_model(), CHANNELS, CHANNELS / 2, leak=leak)


def small_images(count: int = 2, side: tuple[int, int] = (8, 8)) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (count, *side, 3)).astype(np.uint8)
