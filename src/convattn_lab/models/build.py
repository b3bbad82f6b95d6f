"""A model from its settings."""

from typing import Any

import jax.numpy as jnp
from flax import nnx
from jax.typing import DTypeLike

from convattn.nnx.vision_transformer.model import VisionTransformer
from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
from convattn_lab.models.encoder import Encoder
from convattn_lab.models.resnet import ResNet
from convattn_lab.models.self_attentive_resnet import SelfAttentiveResNet
from convattn_lab.models.settings import (
    EncoderSettings,
    ResNetSettings,
    SelfAttentiveResNetSettings,
    VisionModelSettings,
)

MODELS: dict[type, Any] = {
    EncoderSettings: Encoder,
    ResNetSettings: ResNet,
    SelfAttentiveResNetSettings: SelfAttentiveResNet,
    VisionTransformerSettings: VisionTransformer,
}


def build_model(
    settings: VisionModelSettings,
    *,
    classes: int,
    image_size: tuple[int, int],
    rngs: nnx.Rngs,
    dtype: DTypeLike = jnp.float32,
    **options: Any,
) -> Any:
    """The model that the settings describe.

    Args:
        classes, image_size: Of the images; (height, width).
        dtype: In which it computes; parameters are float32.
        options: Further arguments of the model, such as `backend` of an encoder.

    Raises:
        ValueError: For settings of another kind, and for sizes that do not fit.

    >>> settings = ResNetSettings(channels=(4,), blocks=(1,))
    >>> type(build_model(settings, classes=2, image_size=(8, 8), rngs=nnx.Rngs(0))).__name__
    'ResNet'
    """
    if type(settings) not in MODELS:
        names = ", ".join(kind.__name__ for kind in MODELS)
        raise ValueError(f"settings is {type(settings).__name__}, but expected one of {names}")
    how = {"classes": classes, "image_size": image_size, "rngs": rngs, "dtype": dtype}
    return MODELS[type(settings)](settings, **how, **options)
