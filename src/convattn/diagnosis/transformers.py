"""A vision transformer applied to images, layer by layer, as far as its attention needs it.

With z = LN(x) of the tokens x that go into a block, head h of width d attends by

    A[q, k] = softmax_k ((z_q Q_h + b_Q) · (z_k K_h + b_K) / √d + B_h[q, k])

and adds Σ_k A[q, k] z_k W_h, W_h = V_h O_h, to token q, layer scale included in O_h. B_h is BEiT's
bias, `relative_bias`. Computed in float64.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from convattn.diagnosis.layers import LayerAttention, relative_bias
from convattn.networks.vision_transformer.state_dicts import ACTIVATIONS, Block, VisionTransformer
from convattn.networks.vision_transformer.token_grid import token_grid


def attention_layers(
    model: VisionTransformer,
    images: Float[np.ndarray, "images height width channels"],
    rotary_of: Callable[[int, tuple[int, int]], Any] | None = None,
) -> Iterator[LayerAttention]:
    """Each layer of the network on normalised images.

    Args:
        rotary_of: From the width of a head and the grid, a `convattn.initialization.Rotary`.
    """
    channels, patch = model.patch.shape[1:3]
    if images.ndim != 4 or not len(images) or images.shape[3] != channels:
        first = images.ndim == 4 and images.shape[1] == channels
        raise ValueError(
            f"images.shape={images.shape}, but expected [images, height, width, {channels}]"
            + ("; move the channels last: images.transpose(0, 2, 3, 1)" if first else "")
        )
    grid = token_grid(model, (images.shape[1], images.shape[2]))
    count = len(images)
    squares = images.reshape(count, grid[0], patch, grid[1], patch, channels)
    squares = squares.transpose(0, 1, 3, 5, 2, 4).reshape(count, grid[0] * grid[1], -1)
    patches = {"patch.weight": model.patch, "patch.bias": model.patch_bias}
    tokens = linear(squares, patches, "patch")
    if model.positions is not None and len(model.positions) == tokens.shape[1]:
        tokens = tokens + model.positions
    rotary = None
    if rotary_of is not None:
        width = len(model.blocks[0]["query.weight"]) // model.heads
        turns = rotary_of(width, grid)
        if 2 * len(turns.turns) != width:
            raise ValueError(
                f"rotary turns {len(turns.turns)} pairs, but expected {width / 2:g}, as the heads "
                f"have {width} features; give heads (--heads), or other frequencies"
            )
        rotary = turns.tokens(grid), turns.coordinates
    others = np.broadcast_to(model.prefix, (count, *model.prefix.shape))
    tokens = np.concatenate([others, tokens], axis=1)
    if (
        model.positions is not None
        and len(model.positions) == tokens.shape[1]
        and len(model.prefix)
    ):
        tokens = tokens + model.positions
    if model.pre_norm:
        tokens = normalised(tokens, model.pre_norm, "pre_norm", model.epsilon)
    for number, block in enumerate(model.blocks):
        tables = [table for table in (model.table, block.get("table")) if table is not None]
        bias = sum((relative_bias(table, grid, others.shape[1]) for table in tables), np.zeros(()))
        several = [tokens, tokens.mean(axis=0, keepdims=True)][: 1 + (count > 1)]
        attention = [
            block_attention(
                block, normalised(x, block, "norm1", model.epsilon), model.heads, bias, rotary
            )
            for x in several
        ]
        weights, maps = attention[0], head_maps(block, model.heads)
        yield LayerAttention(f"layer {number + 1}", grid, weights, attention[-1][0], maps)
        tokens = block_output(model, block, tokens, weights)


def block_attention(
    block: Block,
    normal: Float[np.ndarray, "images tokens width"],
    heads: int,
    bias: Float[np.ndarray, "*heads_tokens_tokens"],
    rotary: tuple[np.ndarray, np.ndarray] | None = None,
) -> Float[np.ndarray, "images heads tokens tokens"]:
    """The attention of a block to normalised tokens.

    Args:
        rotary: e^(iθ) `[tokens of the grid, pairs]`, by which the last queries and keys are turned,
            and the coordinates `[2, pairs]` of the real and imaginary parts.
    """
    query, key = (by_head(linear(normal, block, part), heads) for part in ("query", "key"))
    if rotary is not None:
        query, key = (turned(part, *rotary) for part in (query, key))
    scores = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])
    return softmax(scores + bias, axis=-1)


def turned(
    features: Float[np.ndarray, "images heads tokens part"], turns: np.ndarray, pairs: np.ndarray
) -> Float[np.ndarray, "images heads tokens part"]:
    """Features with those of the last tokens, of the grid, turned pair by pair."""
    grid = features[..., -len(turns) :, :]
    pair = (grid[..., pairs[0]] + 1j * grid[..., pairs[1]]) * turns
    result = features.copy()
    result[..., -len(turns) :, pairs[0]] = pair.real
    result[..., -len(turns) :, pairs[1]] = pair.imag
    return result


def block_output(
    model: VisionTransformer,
    block: Block,
    tokens: Float[np.ndarray, "images tokens width"],
    attention: Float[np.ndarray, "images heads tokens tokens"],
) -> Float[np.ndarray, "images tokens width"]:
    """The tokens after a block, whose attention to them is known."""
    normal = normalised(tokens, block, "norm1", model.epsilon)
    values = attention @ by_head(linear(normal, block, "value"), model.heads)
    joined = values.swapaxes(1, 2).reshape(*tokens.shape[:2], -1)
    tokens = tokens + block.get("scale1", 1.0) * linear(joined, block, "output")
    hidden = linear(normalised(tokens, block, "norm2", model.epsilon), block, "fc1")
    hidden = ACTIVATIONS[model.activation](hidden)
    return tokens + block.get("scale2", 1.0) * linear(hidden, block, "fc2")


def head_maps(block: Block, heads: int) -> Float[np.ndarray, "heads width width"]:
    """W_h = V_h O_h of each head, layer scale included."""
    value, output = block["value.weight"], block["output.weight"]
    values = value.reshape(heads, -1, value.shape[1])
    outputs = (output.T * block.get("scale1", 1.0)).reshape(heads, -1, len(output))
    return values.swapaxes(1, 2) @ outputs


def normalised(
    tokens: Float[np.ndarray, "*batch width"], block: Block, part: str, epsilon: float
) -> Float[np.ndarray, "*batch width"]:
    """LayerNorm."""
    centered = tokens - tokens.mean(axis=-1, keepdims=True)
    scale = np.sqrt(np.mean(centered**2, axis=-1, keepdims=True) + epsilon)
    return centered / scale * block[f"{part}.weight"] + block[f"{part}.bias"]


def linear(
    tokens: Float[np.ndarray, "*batch in"], block: Block, part: str
) -> Float[np.ndarray, "*batch out"]:
    """A linear map with its bias, if it has one; of one matrix, as NumPy is slow with stacks."""
    weight = block[f"{part}.weight"]
    product = tokens.reshape(-1, tokens.shape[-1]) @ weight.reshape(len(weight), -1).T
    return product.reshape(*tokens.shape[:-1], -1) + block.get(f"{part}.bias", 0.0)


def by_head(
    tokens: Float[np.ndarray, "images tokens width"], heads: int
) -> Float[np.ndarray, "images heads tokens part"]:
    """The features of each head."""
    return tokens.reshape(*tokens.shape[:2], heads, -1).swapaxes(1, 2)
