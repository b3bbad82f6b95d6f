"""A layer at one image size: plain multi-head attention with a table of scores.

`flax.nnx.MultiHeadAttention` and `torch.nn.MultiheadAttention` have no relative bias. At a fixed
image size none is needed: the positional scores of every query with every key are one array
B[h, q, k], and the layer is

    out_q = Σ_h Σ_k softmax_k(B[h, q, k]) X_k V_h O_h + b,

the queries being the image's tokens and the keys these and the ring. A gain g_h(N) is one number
once N is known, so it goes into O_h.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Num

from convattn.constructions.linear_map import require_score_room
from convattn.encodings.base import score_dtype
from convattn.encodings.layer import AttentionLayer
from convattn.files import parse_json
from convattn.networks.weights.formats import WeightsRefused
from convattn.operators.patches import Ring, add_zero_ring, patchify, unpatchify
from convattn.operators.shifts import TokenGrid

METADATA = "convattn"


@dataclass(frozen=True)
class ImageTokens:
    """How images become tokens for a stored attention, and its result an image again.

    Attributes:
        For each axis the pixels of an image, of a patch and of an output patch, the zero tokens
        before and after, and which pixels of the result are kept.
    """

    image_size: tuple[int, ...]
    patch_size: tuple[int, ...]
    ring: Ring
    output_patch_size: tuple[int, ...]
    subsampling: tuple[int, ...]

    @property
    def grid(self) -> TokenGrid:
        """The tokens and the ring around them."""
        sides = zip(self.image_size, self.patch_size, strict=True)
        return TokenGrid(tuple(n // p for n, p in sides), self.ring)

    def queries(self, images: Any) -> Num[Array, "batch queries features"]:
        """The tokens of the images, row-major."""
        tokens = self._tokens(images)
        return tokens.reshape(tokens.shape[0], -1, tokens.shape[-1])

    def keys(self, images: Any) -> Num[Array, "batch keys features"]:
        """The tokens with the ring of zero tokens around them, row-major."""
        tokens = add_zero_ring(self._tokens(images), self.ring)
        return tokens.reshape(tokens.shape[0], -1, tokens.shape[-1])

    def images(self, result: Any) -> Num[Array, "batch *space out_channels"]:
        """The image that the attention's result `[batch, queries, features]` stands for."""
        tokens = jnp.asarray(result)
        tokens = tokens.reshape(tokens.shape[0], *self.grid.queries, tokens.shape[-1])
        pixels = unpatchify(tokens, self.output_patch_size)
        return pixels[(slice(None), *(slice(None, None, s) for s in self.subsampling))]

    def _tokens(self, images: Any) -> Array:
        if jnp.shape(images)[1:-1] != self.image_size:
            raise ValueError(
                f"images.shape={jnp.shape(images)}, but the weights are made for images of "
                f"{self.image_size} pixels; convert for that size, or use the layout 'convattn'"
            )
        return patchify(images, self.patch_size)


@dataclass(frozen=True)
class FixedSizeAttention:
    """The arrays of a layer at one image size, in float32 or float64.

    Attributes:
        B, V, O and b of the module's formula, and the way from images to tokens. `layer` is the
        same layer with V and O written out, from which the rounding bound is computed.
    """

    scores: Float[Array, "heads queries keys"]
    value: Float[Array, "heads features head_features"]
    output: Float[Array, "heads head_features out_features"]
    bias: Float[Array, " out_features"]
    tokens: ImageTokens
    layer: AttentionLayer


def at_image_size(layer: AttentionLayer, image_size: tuple[int, ...]) -> FixedSizeAttention:
    """Work out a layer's arrays for one image size.

    A missing map becomes an identity, placed so that the head dimension is the smaller of its two
    sides.

    >>> import convattn as ca
    >>> fixed = at_image_size(ca.conv_to_attention([[[1.0]], [[2.0]], [[3.0]]]), (5,))
    >>> fixed.scores.shape, fixed.value.shape
    ((4, 5, 7), (4, 1, 1))
    """
    axes = len(layer.patch_size)
    if len(image_size) != axes or any(
        n < 1 or n % p for n, p in zip(image_size, layer.patch_size, strict=True)
    ):
        raise ValueError(
            f"image_size={image_size}, but patches of size {layer.patch_size} should divide it"
        )
    if layer.padding is not None:
        raise ValueError(
            f"the layer fills its ring ({layer.padding.fill.lower()}), but a module of fixed size "
            "reads the image's own tokens and zeros; write the layout convattn, or convert with "
            "padding='SAME_TORCH' and pad the images before it"
        )
    layer.require_no_register("a module of fixed size is written out for tokens")
    if layer.causal:
        raise ValueError(
            "the layer has a causal mask, but only scores are written out; write the layout "
            "convattn"
        )
    if layer.content is not None:
        raise ValueError("the layer has content scores, but only positional ones are written out")
    if layer.dtype is None or (layer.value is None and layer.output is None):
        raise ValueError("the layer has neither a value nor an output map; give it an identity")
    dtype = score_dtype(jnp.zeros((), layer.dtype))
    if dtype != layer.dtype:
        raise ValueError(f"the layer is stored in {layer.dtype}; cast its arrays to {dtype} first")
    value, output = _both_maps(layer, dtype)
    tokens = ImageTokens(
        tuple(image_size),
        layer.patch_size,
        layer.ring,
        layer.output_patch_size,
        layer.subsampling,
    )
    require_score_room(layer, tokens.image_size)
    gains = layer.encoding.head_gains(tokens.grid.number_of_keys)
    bias = jnp.zeros(output.shape[2:], dtype) if layer.bias is None else layer.bias.astype(dtype)
    return FixedSizeAttention(
        layer.encoding.positional_scores(tokens.grid).astype(dtype),
        value,
        output if gains is None else output * gains.astype(dtype)[:, None, None],
        bias,
        tokens,
        replace(layer, value=value, output=output),
    )


def smallest_image(
    kernel_size: tuple[int, ...],
    patch_size: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
) -> tuple[int, ...]:
    """Sides, different ones, at which every tap meets a pixel at some output pixel that is kept.

    >>> smallest_image((3, 3), (16, 16), (1, 1), (1, 1))
    (32, 48)
    """
    sides: list[int] = []
    for k, p, s, d in zip(kernel_size, patch_size, stride, dilation, strict=True):
        side = p * math.ceil(((k - 1) * d + max(p, s)) / p)
        sides.append(side + p * (side in sides))
    return tuple(sides)


def fixed_metadata(layout: str, fixed: FixedSizeAttention, framework: str) -> dict[str, str]:
    """The text that goes with a layout for a fixed image size."""
    heads, features, head_features = fixed.value.shape
    described = {
        "layout": layout,
        "version": 1,
        "heads": heads,
        "features": features,
        "head_features": head_features,
        "out_features": fixed.output.shape[2],
        **asdict(fixed.tokens),
    }
    return {"format": framework, METADATA: json.dumps(described, sort_keys=True)}


def read_fixed_metadata(
    metadata: Mapping[str, str], layout: str, name: str
) -> tuple[dict[str, int], ImageTokens]:
    """The sizes of the attention, and the way from images to tokens."""
    try:
        described = parse_json(metadata.get(METADATA, "null"))
        if described["layout"] != layout or described["version"] != 1:
            raise KeyError(layout)
        sizes = {k: int(described[k]) for k in ("heads", "features", "head_features")}
        sizes["out_features"] = int(described["out_features"])
        tokens = ImageTokens(
            **{k: tuple(described[k]) for k in ("image_size", "patch_size")},
            ring=tuple((int(before), int(after)) for before, after in described["ring"]),
            **{k: tuple(described[k]) for k in ("output_patch_size", "subsampling")},
        )
    except (ValueError, KeyError, TypeError) as error:
        raise WeightsRefused(
            f"{name} is not in the layout {layout!r} of convattn convert kernel; expected a file "
            f"written with --format {layout}"
        ) from error
    return sizes, tokens


def _both_maps(layer: AttentionLayer, dtype: Any) -> tuple[Array, Array]:
    """The value and output maps of a layer, a missing one as the narrower identity."""
    if layer.value is not None and layer.output is not None:
        return layer.value.astype(dtype), layer.output.astype(dtype)
    only = layer.output if layer.value is None else layer.value
    maps = only.astype(dtype)  # type: ignore[union-attr]
    heads, rows, columns = maps.shape
    identity = jnp.broadcast_to(
        jnp.eye(min(rows, columns), dtype=dtype), (heads, *[min(rows, columns)] * 2)
    )
    return (identity, maps) if rows <= columns else (maps, identity)


def as_numpy(array: Array) -> np.ndarray:
    """The array as NumPy's, row-major."""
    return np.ascontiguousarray(np.asarray(array))
