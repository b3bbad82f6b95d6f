"""A layer as PyTorch's own `torch.nn.MultiheadAttention`, whose zero key is the zero padding.

`add_zero_attn=True` gives every query one more key, whose key and value are zero. Let R be the ring
of zero tokens around the image and B the positional scores of head h at query q. Their values are
zero, so all that they do is to add

    e^L,    L = log Σ_(k in R) e^(B[h, q, k]),

to the normaliser: one key of zero value and score L does the same. The score of the zero key is 0,
and a softmax does not change where a number is taken from all scores of a row. So

    attn_mask[h, q, k] = B[h, q, k] - L[h, q]

on the image's own tokens makes the layer, exactly (S.padding of this project's ledger). Without a
ring there is no L, and no zero key.
"""

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import as_layer, check_layer
from convattn.networks.weights.fixed_size import ImageTokens, as_numpy, at_image_size
from convattn.networks.weights.torch_layout import LARGEST, PARAMETERS, pack_torch
from convattn.operators.integers import per_axis


class ImageAttention(torch.nn.Module):
    """`torch.nn.MultiheadAttention` on the tokens of images of one size.

    Attributes:
        attention: The stock module, with `batch_first`.
        mask: `attn_mask` of one image, `[heads, tokens, tokens]`; a buffer.

    >>> import convattn as ca, numpy as np
    >>> layer = ca.conv_to_attention(np.ones((3, 3, 1, 2), np.float32))
    >>> module = to_multihead_attention(layer, (4, 5))
    >>> module.attention.num_heads, tuple(module.mask.shape), module(torch.ones(1, 1, 4, 5)).shape
    (10, (10, 20, 20), torch.Size([1, 2, 4, 5]))
    """

    mask: Tensor

    def __init__(
        self,
        attention: torch.nn.MultiheadAttention,
        mask: Tensor,
        tokens: ImageTokens,
        in_features: int,
        out_features: int,
    ) -> None:
        super().__init__()
        self.attention, self.out_features = attention, out_features
        self.in_channels = in_features // math.prod(tokens.patch_size)
        self.image_size, self.patch_size = tokens.image_size, tokens.patch_size
        self.output_patch_size, self.subsampling = tokens.output_patch_size, tokens.subsampling
        self.register_buffer("mask", mask)

    def forward(self, images: Tensor) -> Tensor:
        """Attend.

        Args:
            images: `[batch, in, *space]` of the size that the module is made for.

        Returns:
            `[batch, out, *space_out]`.
        """
        if tuple(images.shape[1:]) != (self.in_channels, *self.image_size):
            raise ValueError(
                f"images.shape={tuple(images.shape)}, but the module is made for images of "
                f"{self.in_channels} channels and {self.image_size} pixels; call "
                "to_multihead_attention for that size, and for each group of channels by itself"
            )
        axes, batch = len(self.image_size), len(images)
        grid = [n // p for n, p in zip(self.image_size, self.patch_size, strict=True)]
        # [batch, in, tokens and pixels of each axis in turn] to [batch, tokens, pixels, in]
        split = images.reshape(batch, -1, *chain(*zip(grid, self.patch_size, strict=True)))
        tokens = split.permute(0, *range(2, 2 * axes + 2, 2), *range(3, 2 * axes + 2, 2), 1)
        tokens = tokens.reshape(batch, math.prod(grid), -1)
        tokens = functional.pad(tokens, (0, self.attention.embed_dim - tokens.shape[-1]))
        result, _ = self.attention(
            tokens, tokens, tokens, attn_mask=self.mask.repeat(batch, 1, 1), need_weights=False
        )
        result = result[..., : self.out_features].reshape(batch, *grid, *self.output_patch_size, -1)
        pairs = chain(*zip(range(1, axes + 1), range(axes + 1, 2 * axes + 1), strict=True))
        sides = [n * p for n, p in zip(grid, self.output_patch_size, strict=True)]
        outputs = result.permute(0, 2 * axes + 1, *pairs).reshape(batch, -1, *sides)
        return outputs[(..., *(slice(None, None, step) for step in self.subsampling))]


def to_multihead_attention(
    layer: AttentionLayer | Any, image_size: int | Sequence[int]
) -> ImageAttention:
    """A layer as a stock `torch.nn.MultiheadAttention` on images of one size.

    All heads have the same width d, queries and results the same `embed_dim` = heads·d; d is the
    least that holds the head dimension, and with all heads a token and an output. Tokens are padded
    with zeros to it, and of a result the first features count.

    Args:
        layer: From `conv_to_attention`, or an `AttentionConv`, whose bias is left out: positional
            scores, zero padding or none. That of a grouped convolution is for the channels of one
            group, and to the outputs of all.
        image_size: The pixels on each axis.

    Returns:
        A module on images `[batch, channels, *space]` that holds the stock module and its mask, in
        the layer's dtype.

    Raises:
        ValueError: As `at_image_size`, and where the weights or the mask take more than 2 GiB.

    Source: S.padding of this project's ledger.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention([[[1.0]], [[2.0]], [[4.0]]])
    >>> image = torch.tensor([[[1.0, 10.0, 100.0]]])
    >>> to_multihead_attention(layer, 3)(image).flatten().round(decimals=2).tolist()
    [42.0, 421.0, 210.0]
    """
    layer = as_layer(layer)
    check_layer(layer)
    sides = per_axis(image_size, len(layer.patch_size), "image_size")
    tokens = math.prod(n // p for n, p in zip(sides, layer.patch_size, strict=True))
    if 8 * layer.heads * tokens**2 > LARGEST:
        raise ValueError(
            f"image_size={sides} makes {tokens} tokens, and a mask of {layer.heads} × {tokens} × "
            f"{tokens} numbers, but expected one of at most {LARGEST // 2**30} GiB; take smaller "
            "images, or convattn.torch.AttentionConv, which forms no mask"
        )
    fixed = at_image_size(layer, sides)
    arrays, _ = pack_torch(fixed)
    scores = as_numpy(fixed.scores)
    inside = np.pad(np.ones(fixed.tokens.grid.queries, bool), layer.ring).ravel()
    ring = scores[..., ~inside]
    mask = scores[..., inside]
    if ring.shape[-1]:
        most = ring.max(-1, keepdims=True)
        mask = mask - (most + np.log(np.exp(ring - most).sum(-1, keepdims=True)))
    state: dict[str, Any] = {name: torch.from_numpy(arrays[name].copy()) for name in PARAMETERS}
    attention = torch.nn.MultiheadAttention(
        len(state["out_proj.bias"]),
        layer.heads,
        add_zero_attn=bool(ring.shape[-1]),
        batch_first=True,
        dtype=state["out_proj.bias"].dtype,
    )
    attention.load_state_dict(state)
    return ImageAttention(
        attention.eval(),
        torch.from_numpy(mask.copy()),
        fixed.tokens,
        fixed.value.shape[1],
        fixed.output.shape[2],
    )
