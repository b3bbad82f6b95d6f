"""An executable proof companion for "self-attention can express convolution".

The public names load on first use, so that importing the package loads no JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convattn.bounds.flattened_kernel import exact_rank as exact_rank
    from convattn.bounds.flattened_kernel import flattened_kernel as flattened_kernel
    from convattn.bounds.flattened_kernel import numerical_rank as numerical_rank
    from convattn.bounds.heads import heads as heads
    from convattn.bounds.kernel_layout import approximate_convolution as approximate_convolution
    from convattn.bounds.kernel_layout import conv_to_attention as conv_to_attention
    from convattn.bounds.kernel_layout import heads_of as heads_of
    from convattn.bounds.kernel_layout import two_layers as two_layers
    from convattn.constructions.recovery import attention_to_conv as attention_to_conv
    from convattn.constructions.two_layers import TwoLayers as TwoLayers
    from convattn.encodings.layer import AttentionLayer as AttentionLayer
    from convattn.encodings.layer import ContentScores as ContentScores
    from convattn.fast.application import apply_attention as apply_attention
    from convattn.fast.application import attention_maps as attention_maps
    from convattn.networks.diagnosis.head_maps import plot_heads as plot_heads
    from convattn.networks.transformation.attention_of import attention_of as attention_of
    from convattn.networks.transformation.network_file import load_network as load_network
    from convattn.networks.transformation.network_file import save_network as save_network
    from convattn.networks.transformation.with_attention import with_attention as with_attention
    from convattn.networks.weights.stored_layer import load_layer as load_layer
    from convattn.networks.weights.stored_layer import save_layer as save_layer
    from convattn.operators.convolution import conv as conv
    from convattn.operators.patches import patchify as patchify
    from convattn.operators.patches import unpatchify as unpatchify

__version__ = "0.1.0"

_HOMES = {
    "AttentionLayer": "convattn.encodings.layer",
    "ContentScores": "convattn.encodings.layer",
    "TwoLayers": "convattn.constructions.two_layers",
    "apply_attention": "convattn.fast.application",
    "approximate_convolution": "convattn.bounds.kernel_layout",
    "attention_maps": "convattn.fast.application",
    "attention_of": "convattn.networks.transformation.attention_of",
    "attention_to_conv": "convattn.constructions.recovery",
    "conv": "convattn.operators.convolution",
    "conv_to_attention": "convattn.bounds.kernel_layout",
    "exact_rank": "convattn.bounds.flattened_kernel",
    "flattened_kernel": "convattn.bounds.flattened_kernel",
    "heads": "convattn.bounds.heads",
    "heads_of": "convattn.bounds.kernel_layout",
    "load_layer": "convattn.networks.weights.stored_layer",
    "load_network": "convattn.networks.transformation.network_file",
    "numerical_rank": "convattn.bounds.flattened_kernel",
    "patchify": "convattn.operators.patches",
    "plot_heads": "convattn.networks.diagnosis.head_maps",
    "save_layer": "convattn.networks.weights.stored_layer",
    "save_network": "convattn.networks.transformation.network_file",
    "two_layers": "convattn.bounds.kernel_layout",
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
