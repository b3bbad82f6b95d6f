"""Norms that no token exceeds, layer by layer, on all images of a range.

Let a token be x = (x_c, E u) with |x_c| ≤ B and the mean μ. Less μ, its first part has a square of
at most |x_c|² and its second one of at least |u|²; so what LayerNorm leaves of the channels x_c has
a norm of at most g·√C·B/√(B² + |u|²) + |b| = R, with g its largest gain and b its bias there, and
|u| the least of any token. (Rounding may leave a sum s of the stored E u; then B is √(B² + s²), and
|u|² is what it is without its mean.)

The attention adds at most R·min(Σ|V_h O_h|, |O|√Σ|V_h|²) + |bias|, since its rows sum to one; the
feed-forward part, by |gelu(y)| ≤ |y|, at most |W_2|(|W_1| R' + |b_1|) + |b_2|, R' the norm of all
that its LayerNorm gives. So B grows from layer to layer no faster than linearly.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from convattn.bounds.spectral_norm import spectral_norm_bound
from convattn.initialization.filters import Filters
from convattn.initialization.leaks import SLACK, PositionNorms
from convattn.initialization.options import LARGEST
from convattn.networks.vision_transformer.state_dicts import Block, VisionTransformer


@dataclass(frozen=True)
class Stream:
    """What is certain of the tokens that a layer is given, and of its linear maps.

    Attributes:
        content: B, of the channels without positions.
        read: R, of the same after LayerNorm.
        maps: `[heads, channels, channels]`, V_h O_h.
        norms: |V_h O_h|.
        stacked: The norm of all V_h O_h on top of each other.
    """

    content: float
    read: float
    maps: Float[np.ndarray, "heads channels out_channels"]
    norms: Float[np.ndarray, " heads"]
    stacked: float


def streams(
    model: VisionTransformer, filters: list[Filters], content: float, position_norms: PositionNorms
) -> list[Stream]:
    """Those of each layer.

    Args:
        content: Of the first layer.
        position_norms: Of the stored tokens.
    """
    streams_by_layer = []
    width = len(model.patch_bias)
    for block, layer_filters in zip(model.blocks, filters, strict=True):
        heads, channels, head_dim = layer_filters.values.shape
        value = block["value.weight"].reshape(heads, head_dim, width)[..., :channels]
        output = block["output.weight"].reshape(width, heads, head_dim)[:channels]
        gain, bias = block["norm1.weight"][:channels], block["norm1.bias"][:channels]
        size = np.hypot(content, position_norms.leaning)
        fraction = size / np.hypot(size, position_norms.least) if position_norms.least else 1.0
        read = np.abs(gain).max() * np.sqrt(width) * fraction
        read = float(read + np.linalg.norm(bias)) * SLACK
        maps = np.einsum("hdc,ohd->hco", value, output)
        norms = np.array([spectral_norm_bound(one) for one in maps])
        stacked = spectral_norm_bound(maps.reshape(-1, channels))
        streams_by_layer.append(Stream(content, read, maps, norms, stacked))
        joint = spectral_norm_bound(output.reshape(channels, -1))
        joint *= float(np.linalg.norm([spectral_norm_bound(one) for one in value]))
        added = read * min(float(norms.sum()), joint) + np.linalg.norm(block["output.bias"])
        content = (content + float(added) + _fed_forward(block, width)) * SLACK
    return streams_by_layer


def _fed_forward(block: Block, width: int) -> float:
    """The largest norm that the feed-forward part can add."""
    normalized = np.abs(block["norm2.weight"]).max() * np.sqrt(width)
    normalized += np.linalg.norm(block["norm2.bias"])
    hidden = spectral_norm_bound(block["fc1.weight"]) * normalized + np.linalg.norm(
        block["fc1.bias"]
    )
    scale = np.abs(block.get("scale2", np.ones(1))).max()
    output = spectral_norm_bound(block["fc2.weight"]) * hidden
    return float(scale * (output + np.linalg.norm(block["fc2.bias"])))


def first_content(
    model: VisionTransformer, image_range: tuple[Any, Any], tokens: int, convolved: int
) -> tuple[float, float]:
    """B of the first layer, for images whose numbers lie in the range.

    With m the middle of the range and r half its width, |W p + b| ≤ |W m + b| + |W r|·√entries.

    Args:
        model: As it is stored, with all that it adds to the patches.
        tokens: Of the grid.
        convolved: How many channels stand before the reserved ones.

    Returns:
        That of tokens of the grid, and that of the tokens before it.
    """
    channels = model.patch.shape[1]
    try:
        low, high = (np.broadcast_to(np.asarray(e, np.float64), channels) for e in image_range)
        ordered = bool((low < high).all() and np.abs([low, high]).max() < LARGEST)
    except (ValueError, TypeError):
        ordered = False
    if not ordered:
        raise ValueError(
            f"image_range={image_range!r}, but expected the least and the largest number of an "
            f"image, one for all {channels} channels or one for each, below {LARGEST:.0e}"
        )
    taken = model.patch[:convolved]
    half = (taken * ((high - low) / 2)[:, None, None]).reshape(len(taken), -1)
    middle = (taken * ((high + low) / 2)[:, None, None]).sum(axis=(1, 2, 3))
    centres, others = middle + model.patch_bias[:convolved], model.prefix[:, :convolved]
    if model.positions is not None:
        added = model.positions[:, :convolved]
        centres = centres + added[-tokens:]
        others = others + (added[:-tokens] if len(added) > tokens else 0)
    spread = spectral_norm_bound(half) * np.sqrt(half.shape[1])
    patches = np.linalg.norm(np.atleast_2d(centres), axis=1) + spread
    largest = np.linalg.norm(others, axis=1).max(initial=0.0)
    return float(patches.max()) * SLACK, float(largest) * SLACK
