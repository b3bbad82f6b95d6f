"""An executable proof companion for "self-attention can express convolution".

The public names load on first use, so that importing the package loads no JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convattn.bounds.block_counts import count_blocks as count_blocks
    from convattn.bounds.heads import count_heads as count_heads
    from convattn.bounds.kernel_layout import approximate_conv as approximate_conv
    from convattn.bounds.kernel_layout import conv_to_attention as conv_to_attention
    from convattn.bounds.kernel_layout import conv_to_two_layers as conv_to_two_layers
    from convattn.bounds.kernel_layout import count_heads_of_kernel as count_heads_of_kernel
    from convattn.constructions.recovery import attention_to_conv as attention_to_conv
    from convattn.constructions.two_layers import TwoLayers as TwoLayers
    from convattn.diagnosis.head_maps import plot_heads as plot_heads
    from convattn.encodings.layer import AttentionLayer as AttentionLayer
    from convattn.encodings.layer import ContentScores as ContentScores
    from convattn.fast.application import apply_attention as apply_attention
    from convattn.fast.application import attention_maps as attention_maps
    from convattn.networks.transformation.attention_of import attention_of as attention_of
    from convattn.networks.transformation.network_file import load_network as load_network
    from convattn.networks.transformation.network_file import save_network as save_network
    from convattn.networks.transformation.with_attention import with_attention as with_attention
    from convattn.networks.weights.stored_layer import load_layer as load_layer
    from convattn.networks.weights.stored_layer import save_layer as save_layer
    from convattn.operators.kernel_layout import conv as conv
    from convattn.operators.patches import patchify as patchify
    from convattn.operators.patches import unpatchify as unpatchify

__version__ = "0.1.0"

_HOMES = {
    "AttentionLayer": "convattn.encodings.layer",
    "ContentScores": "convattn.encodings.layer",
    "TwoLayers": "convattn.constructions.two_layers",
    "apply_attention": "convattn.fast.application",
    "approximate_conv": "convattn.bounds.kernel_layout",
    "attention_maps": "convattn.fast.application",
    "attention_of": "convattn.networks.transformation.attention_of",
    "attention_to_conv": "convattn.constructions.recovery",
    "conv": "convattn.operators.kernel_layout",
    "conv_to_attention": "convattn.bounds.kernel_layout",
    "conv_to_two_layers": "convattn.bounds.kernel_layout",
    "count_blocks": "convattn.bounds.block_counts",
    "count_heads": "convattn.bounds.heads",
    "count_heads_of_kernel": "convattn.bounds.kernel_layout",
    "load_layer": "convattn.networks.weights.stored_layer",
    "load_network": "convattn.networks.transformation.network_file",
    "patchify": "convattn.operators.patches",
    "plot_heads": "convattn.diagnosis.head_maps",
    "save_layer": "convattn.networks.weights.stored_layer",
    "save_network": "convattn.networks.transformation.network_file",
    "unpatchify": "convattn.operators.patches",
    "with_attention": "convattn.networks.transformation.with_attention",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
