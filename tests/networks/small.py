"""A small trained-looking ResNet as a function of bytes, and its attention."""

from functools import cache
from typing import Any

import numpy as np

from convattn.networks.transformation.attention_of import Attention, attention_of
from convattn_lab.models.resnet import ResNet
from convattn_lab.models.resnet_function import image_function, random_resnet
from convattn_lab.models.settings import ResNetSettings

MEAN, STD = np.full(3, 0.5), np.full(3, 0.25)
NAMES = ["stem"] + [
    f"blocks.{name}" for name in ("0.first", "0.second", "1.first", "1.second", "1.shortcut")
]


@cache
def small_model(seed: int = 0) -> ResNet:
    """Six convolutions of four shapes, with statistics, scales and shifts of all sizes."""
    settings = ResNetSettings(channels=(3, 4), blocks=(1, 1))
    return random_resnet(np.random.default_rng(seed), settings, 3)


@cache
def small_function() -> Any:
    return image_function(small_model(), MEAN, STD)


@cache
def small_attention() -> Attention:
    return attention_of(small_function(), small_images(), uniform_weight=0.25)


def small_images(count: int = 2, side: tuple[int, int] = (8, 8)) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (count, *side, 3)).astype(np.uint8)
