"""Flax: attention in place of `nnx.Conv`, one layer or all of a model, and vision transformers.

The names load on first use: settings of a vision transformer are read without Flax and JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from convattn.extras import require

if TYPE_CHECKING:
    from convattn.nnx.attention_conv import AttentionConv as AttentionConv
    from convattn.nnx.surgery import Converted as Converted
    from convattn.nnx.surgery import Recovered as Recovered
    from convattn.nnx.surgery import Report as Report
    from convattn.nnx.surgery import to_attention as to_attention
    from convattn.nnx.surgery import to_convolution as to_convolution
    from convattn.nnx.vision_transformer.model import VisionTransformer as VisionTransformer
    from convattn.nnx.vision_transformer.settings import (
        VisionTransformerSettings as VisionTransformerSettings,
    )
    from convattn.nnx.vision_transformer.state_dict import load_state_dict as load_state_dict
    from convattn.nnx.vision_transformer.state_dict import state_dict as state_dict

_HOMES = {
    "AttentionConv": "attention_conv",
    "Converted": "surgery",
    "Recovered": "surgery",
    "Report": "surgery",
    "VisionTransformer": "vision_transformer.model",
    "VisionTransformerSettings": "vision_transformer.settings",
    "load_state_dict": "vision_transformer.state_dict",
    "state_dict": "vision_transformer.state_dict",
    "to_attention": "surgery",
    "to_convolution": "surgery",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        if name != "VisionTransformerSettings":
            require("flax")
        return getattr(import_module(f"convattn.nnx.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
