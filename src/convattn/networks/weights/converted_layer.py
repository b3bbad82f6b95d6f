"""A convolution as the content of a file with an attention layer, run before it is written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import Array

from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.two_layers import TwoLayers, conv_to_two_layers
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention
from convattn.networks.weights.files import WeightsFile, parse_weights
from convattn.networks.weights.fixed_size import at_image_size, smallest_image
from convattn.networks.weights.stored_layer import (
    encode,
    layer_arrays,
    layer_metadata,
    restore_layer,
    restore_one,
)
from convattn.networks.weights.verification import Comparison, reference, reference_of_two
from convattn.operators.integers import per_axis

Route = Callable[[WeightsFile, Any], Array]
SINGLE = 4  # bytes; the modules of the layouts "flax" and "torch" compute in no less


@dataclass(frozen=True)
class Packed:
    """A layer in a layout.

    Attributes:
        arrays, metadata: What the file holds.
        layer: The layer with the maps that are stored, from which the bound is computed.
        routes: The ways to run what is stored, by their names.
    """

    arrays: dict[str, np.ndarray]
    metadata: dict[str, str]
    layer: AttentionLayer
    routes: dict[str, Route]


@dataclass(frozen=True)
class ConvertedLayer:
    """The content of a file, and how it did against the convolution.

    Attributes:
        content: The file, in the format of its ending.
        heads: How many the layer has.
        arrays: What the file holds.
        comparisons: One for each way to run the content.
    """

    content: bytes
    heads: int
    arrays: dict[str, np.ndarray]
    comparisons: tuple[Comparison, ...]


def convert_weights(
    kernel: np.ndarray,
    bias: np.ndarray | None,
    arguments: Mapping[str, Any],
    *,
    layout: str = "convattn",
    image_size: int | tuple[int, ...] | None = None,
    seed: int = 0,
    name: str = "attention.safetensors",
) -> ConvertedLayer:
    """Convert a convolution, encode the layer, and run the content against the convolution.

    Args:
        kernel, bias: `[*K, in/groups, out]`, and `[out]` or None.
        arguments: Those of `conv_to_attention` apart from the weights.
        layout: The layout, `"convattn"`, `"flax"` or `"torch"`; the latter two widen to float32.
        image_size: The pixels on each axis; None takes the smallest image that meets every tap.
        seed: Of the random image.
        name: What the file will be called; the ending tells the format.

    >>> converted = convert_weights(np.ones((3, 1, 2), np.float32), None, {"form": "limit"})
    >>> converted.heads, [comparison.passed for comparison in converted.comparisons]
    (3, [True])
    """
    parts = [part for part in (kernel, bias) if part is not None]
    if layout != "convattn" and any(part.dtype.itemsize < SINGLE for part in parts):
        kernel = kernel.astype(np.float32)
        bias = None if bias is None else bias.astype(np.float32)
    layer = conv_to_attention(kernel, bias, **arguments)
    axes = len(layer.patch_size)
    sides = (
        smallest_image(kernel.shape[:axes], layer.patch_size, layer.stride, layer.dilation)
        if image_size is None
        else per_axis(image_size, axes, "image_size")
    )
    packed = pack(layer, layout, sides)
    content = encode(packed.arrays, packed.metadata, name[name.rfind(".") :])
    stored = parse_weights(content, name)
    groups = arguments.get("groups", 1)
    expected = reference(packed.layer, kernel, bias, sides, groups=groups, seed=seed)
    comparisons = tuple(
        expected.compare(route, lambda images, run=run: run(stored, images))  # type: ignore[misc]
        for route, run in packed.routes.items()
    )
    return ConvertedLayer(content, layer.heads, packed.arrays, comparisons)


def convert_to_two_layers(
    kernel: np.ndarray,
    bias: np.ndarray | None,
    arguments: Mapping[str, Any],
    *,
    image_size: int | tuple[int, ...] | None = None,
    seed: int = 0,
    name: str = "attention.safetensors",
) -> ConvertedLayer:
    """The same as two layers, whose heads are counted together.

    Args:
        arguments: Those of `conv_to_two_layers` apart from the weights.

    >>> converted = convert_to_two_layers(np.ones((3, 3, 1, 2), np.float32), None, {})
    >>> converted.heads, [comparison.passed for comparison in converted.comparisons]
    (7, [True])
    """
    layers = conv_to_two_layers(kernel, bias, **arguments)
    dilation = per_axis(arguments.get("dilation", 1), 2, "dilation")
    sides = (
        smallest_image(kernel.shape[:2], layers.patch_size, layers.stride, dilation)
        if image_size is None
        else per_axis(image_size, 2, "image_size")
    )
    arrays = layer_arrays(layers)
    content = encode(arrays, layer_metadata(layers), name[name.rfind(".") :])
    stored = restore_layer(parse_weights(content, name))
    assert isinstance(stored, TwoLayers)
    options = {"groups": arguments.get("groups", 1), "dilation": dilation}
    expected = reference_of_two(layers, kernel, bias, sides, seed=seed, **options)
    comparison = expected.compare("both layers", stored)
    return ConvertedLayer(content, sum(layers.heads), arrays, (comparison,))


def pack(layer: AttentionLayer, layout: str, image_size: tuple[int, ...]) -> Packed:
    """A layer in one of the layouts.

    Args:
        layout: `"convattn"`, `"flax"` or `"torch"`.
        image_size: The pixels on each axis, for which the latter two are made.

    >>> packed = pack(conv_to_attention([[[1.0]], [[2.0]], [[3.0]]]), "flax", (5,))
    >>> packed.arrays["attention_fn.bias"].shape, list(packed.routes)
    ((4, 5, 7), ['flax.nnx.MultiHeadAttention'])
    """
    routes: dict[str, Route]
    if layout == "convattn":
        routes = {"apply_attention": lambda file, x: apply_attention(restore_one(file), x)}
        return Packed(layer_arrays(layer), layer_metadata(layer), layer, routes)
    if layout == "flax":
        from convattn.networks.weights.flax_layout import apply_flax, pack_flax

        fixed = at_image_size(layer, image_size)
        routes = {"flax.nnx.MultiHeadAttention": apply_flax}
        return Packed(*pack_flax(fixed), fixed.layer, routes)
    if layout == "torch":
        from convattn.networks.weights import torch_layout

        fixed = at_image_size(layer, image_size)
        routes = {"the formula of torch.nn.MultiheadAttention": torch_layout.apply_formula}
        if torch_layout.torch_is_installed():
            routes["torch.nn.MultiheadAttention"] = torch_layout.apply_torch
        return Packed(*torch_layout.pack_torch(fixed), fixed.layer, routes)
    raise ValueError(f"layout={layout!r}, but expected convattn, flax or torch")
