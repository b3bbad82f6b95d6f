"""PyTorch: its networks as functions of JAX, and attention in place of their convolutions.

The names load on first use: a converted model runs, and is loaded, without JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from convattn.extras import require

require("torch")

if TYPE_CHECKING:
    from convattn.torch.attention_conv import AttentionConv as AttentionConv
    from convattn.torch.functions import function_of as function_of
    from convattn.torch.multihead_attention import to_multihead_attention as to_multihead_attention
    from convattn.torch.networks import network as network
    from convattn.torch.surgery import to_attention as to_attention

_HOMES = {
    "AttentionConv": "attention_conv",
    "function_of": "functions",
    "network": "networks",
    "to_attention": "surgery",
    "to_multihead_attention": "multihead_attention",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"convattn.torch.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
