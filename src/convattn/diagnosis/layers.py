"""The attention of one layer, from a layer of this library, from arrays, or from Swin's tables."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import attention_maps
from convattn.networks.vision_transformer.token_grid import require_room
from convattn.networks.weights.files import WeightsFile, refuse

SWIN = re.compile(
    r"(?P<block>(?:\w+\.)*?layers\.\d+\.blocks\.\d+\.(?:attn|attention))\.(?P<part>.+)"
)
_SWIN_NAMES = {  # after the module's name, timm's, Hugging Face's files', and transformers 5's
    "qkv.weight": ("qkv.weight", "proj.weight", "relative_position_bias_table"),
    "self.value.weight": (
        *("self.value.weight", "output.dense.weight"),
        "self.relative_position_bias_table",
    ),
    "v_proj.weight": (
        *("v_proj.weight", "o_proj.weight"),
        "relative_position_bias.relative_position_bias_table",
    ),
}
_SWIN_UNREAD = re.compile(
    r"(qkv|proj|self\.(query|key|value)|output\.dense|[qkvo]_proj)\.(weight|bias)|.*position_index"
)


compiled_maps = jax.jit(attention_maps)


@dataclass(frozen=True)
class LayerAttention:
    """One layer, as it is measured.

    Attributes:
        name: What it is called.
        grid: H, W: the last H·W queries and keys, row by row.
        attention: `[images, heads, queries, keys]`.
        at_mean: `[heads, queries, keys]`, the attention where every token is its mean over the
            images, which fixes the linear map of the layer; of attention probabilities, whose
            tokens are not known, their mean.
        maps: `[heads, in, out]`, W_h; None if they are not known.
    """

    name: str
    grid: tuple[int, int]
    attention: Float[np.ndarray, "images heads queries keys"]
    at_mean: Float[np.ndarray, "heads queries keys"]
    maps: Float[np.ndarray, " heads in out"] | None


def layer_attention(
    layer: AttentionLayer,
    images: Float[np.ndarray, "images height width channels"] | None,
    image_size: tuple[int, int] | None,
) -> LayerAttention:
    """The attention of a layer to the tokens of images; ring and register are other keys.

    Without content the attention is that of all images, and counts as that of two.
    """
    if len(layer.patch_size) != 2:
        raise ValueError(f"{layer!r} is a layer of sequences, but expected one of images")
    missing = images is None or (layer.content is not None and not len(images))
    if missing and (layer.content is not None or image_size is None):
        needed = "images" if layer.content is not None else "images or image_size (in pixels)"
        raise ValueError(f"{layer!r} was given no images, but expected {needed}")
    if not layer.heads:
        raise ValueError(f"{layer!r} has no heads, but expected at least one")
    source: Any = image_size
    if images is not None:
        source = images = images.astype(jax.dtypes.canonicalize_dtype(np.float64))
    attend = attention_maps if images is None else compiled_maps
    maps_and_ring = attend(layer, source)
    weights = np.asarray(maps_and_ring.weights, np.float64)
    weights = weights[None].repeat(2, axis=0) if layer.content is None else weights
    grid = (weights.shape[2], weights.shape[3])
    ring = maps_and_ring.ring
    if layer.padding is not None:  # the queries' own places, those under the kernel's centre
        axes = layer.filled_axes((image_size or ()) if images is None else images.shape[1:3])
        starts = (axis.queries.start for axis in axes)
        sides = zip(starts, grid, weights.shape[4:], strict=True)
        ring = tuple((start, keys - start - own) for start, own, keys in sides)
    above, below, left, right = (int(count) for side in ring for count in side)
    is_padding = np.pad(np.zeros(grid, bool), ((above, below), (left, right)), constant_values=True)
    order = np.argsort(~is_padding.ravel(), kind="stable")

    def flat(weights: np.ndarray) -> np.ndarray:
        flattened = weights.reshape(*weights.shape[:2], math.prod(grid), -1)
        flattened = flattened[..., order] if is_padding.any() else flattened
        if layer.register is None:
            return flattened
        rest = np.maximum(1 - flattened.sum(axis=-1, keepdims=True), 0)
        return np.concatenate([rest, flattened], axis=-1)

    attention = flat(weights)
    at_mean = attention[:1]
    if layer.content is not None and images is not None and len(images) > 1:
        mean = images.mean(axis=0, keepdims=True)
        at_mean = flat(np.asarray(compiled_maps(layer, mean).weights, np.float64))
    maps = linear_maps(layer, is_padding.size)
    return LayerAttention("layer 1", grid, attention, at_mean[0], maps)


def linear_maps(
    layer: AttentionLayer, number_of_keys: int
) -> Float[np.ndarray, " heads in out"] | None:
    """W_h, gains included, in float64; None if both maps are the identity."""
    maps = [np.asarray(m, np.float64) for m in (layer.value, layer.output) if m is not None]
    linear = maps[0] @ maps[-1] if len(maps) == 2 else maps[0] if maps else None
    gains = layer.encoding.head_gains(number_of_keys)
    if linear is not None and gains is not None:
        linear = linear * np.asarray(gains, np.float64)[:, None, None]
    return linear


def array_layers(
    arrays: Mapping[str, np.ndarray], tokens: tuple[int, int] | None
) -> Iterator[LayerAttention]:
    """Layers of attention probabilities `[images, heads, queries, keys]`.

    Args:
        arrays: One layer each, or, with one more axis in front, all layers.
        tokens: The rows and columns of the grid; None takes a square, with no, one or two other
            tokens in front.
    """
    for name, array in arrays.items():
        if array.ndim not in (4, 5) or 0 in array.shape[-4:]:
            raise ValueError(
                f"{name or 'the array'} has shape {array.shape}, but expected attention "
                "probabilities [images, heads, queries, keys], or [layers, images, heads, queries, "
                "keys], with no empty axis"
            )
        for number, layer in enumerate(array if array.ndim == 5 else array[None], 1):
            queries, keys = layer.shape[-2:]
            if queries != keys:
                raise ValueError(
                    f"{name or 'the array'} has {queries} queries and {keys} keys, but expected as "
                    "many: where keys are pooled (SegFormer, PVT, Twins) or latent (Perceiver), "
                    "queries and keys are no tokens of the same grid, so that no offset is defined"
                )
            sides = [math.isqrt(keys - others) for others in range(min(3, keys))]
            square = next((s for o, s in enumerate(sides) if s * s == keys - o), None)
            if tokens is None and square is None:
                raise ValueError(
                    f"{name or 'the array'} has {keys} keys, which are no square of tokens with up "
                    "to two others in front; give the rows and columns of tokens as image_size"
                )
            label = name if array.ndim == 4 and name else f"{name} layer {number}".strip()
            grid = tokens or (square or 0, square or 0)
            yield LayerAttention(label, grid, layer, layer.mean(axis=0), None)


def swin_layers(file: WeightsFile) -> list[LayerAttention]:
    """Each attention layer of a Swin network within one window, by its table alone.

    The content scores are left out, so that A_h = softmax(B_h), as for queries of zeros; the tables
    tell nothing of the shifted windows' borders. Names of timm and Hugging Face.
    """
    blocks: dict[str, set[str]] = {}
    for name in file.arrays:
        if match := SWIN.fullmatch(name):
            blocks.setdefault(match["block"], set()).add(match["part"])
    layers, problems = [], []
    for block, parts in blocks.items():
        names = next(
            (n for sign, n in _SWIN_NAMES.items() if sign in parts), _SWIN_NAMES["qkv.weight"]
        )
        problems += [f"{block}.{part} is missing" for part in names if part not in parts]
        unknown = (p for p in sorted(parts - {*names}) if not _SWIN_UNREAD.fullmatch(p))
        problems += [f"{block}.{part} is unexpected" for part in unknown]
        if not parts >= {*names}:
            continue
        value, output, table = (file.floats(f"{block}.{part}") for part in names)
        side = (math.isqrt(len(table)) + 1) // 2
        width, heads = (array.shape[-1] if array.ndim == 2 else 0 for array in (output, table))
        if (2 * side - 1) ** 2 != len(table) or not heads or width % heads:
            problems.append(
                f"{block}.{names[2]} has shape {table.shape}, expected ((2w - 1)², heads), "
                f"with heads that divide {width}"
            )
        elif (value.shape not in ((width, width), (3 * width, width))) or (
            output.shape != (width, width)
        ):
            problems.append(
                f"{block}.{names[0]} and {names[1]} have shapes {value.shape} and {output.shape}, "
                f"expected {width} columns and rows, or three times the rows"
            )
        else:
            stored = sum(map(np.size, file.arrays.values()))
            require_room(heads * side**4, stored, f"the attention of {block}")
            require_room(heads * width**2, stored, f"the maps of {block}")
            values = value[-width:].reshape(heads, -1, width).swapaxes(1, 2)
            maps = values @ output.T.reshape(heads, -1, width)
            bias = relative_bias(table, (side, side), 0)
            attention = softmax(bias, axis=-1)
            layers.append(LayerAttention(block, (side, side), attention[None], attention, maps))
    refuse(problems, f"the tensors of {file.name} are not those of a Swin transformer")
    return layers


def relative_bias(
    table: Float[np.ndarray, "rows heads"], grid: tuple[int, int], others: int
) -> Float[np.ndarray, "heads tokens tokens"]:
    """B_h of a table of relative positions, as BEiT and Swin have it.

    For q and k on the grid it is the row (q - k) + (H - 1, W - 1), counted row by row. If `others`
    is 1 a class token stands in front, and the last three rows are for it as query, as key, and as
    both.

    >>> relative_bias(np.arange(3.0)[:, None], (1, 2), 0).tolist()  # rows q - k = -1, 0, 1
    [[[1.0, 0.0], [2.0, 1.0]]]
    """
    height, width = grid
    positions = np.stack(np.divmod(np.arange(height * width), width), axis=1)
    between = positions[:, None] - positions[None] + (height - 1, width - 1)
    rows = np.full((others + len(positions),) * 2, len(table) - 1)
    rows[others:, others:] = between[..., 0] * (2 * width - 1) + between[..., 1]
    rows[:others, others:] = len(table) - 3
    rows[others:, :others] = len(table) - 2
    return np.moveaxis(table[rows], -1, 0)
