"""Networks whose convolutions became attention, and each convolution beside its layer."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from convattn.constructions.linear_map import MapGeometry
from convattn.encodings.base import OffsetTable
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import layer_features
from convattn.fast.grouped import grouped_attention
from convattn.files import brief
from convattn.networks.recovered_kernel import recovered_kernel, recovery_size
from convattn.networks.transformation.network_file import Network
from convattn_lab.explorer.positional_layer import PositionalLayer
from convattn_lab.explorer.source import Outputs, Pixels, Prepared, Source, as_numbers

RECOVERED = "Convolutions are those nearest to the layers, which the file holds alone."
Inputs = Callable[[Any], Mapping[str, Array]]


def of_layers(
    name: str,
    layers: Mapping[str, AttentionLayer],
    inputs: Inputs,
    image_size: tuple[int, int],
    **how: Any,
) -> Source:
    """Layers of a network beside the convolutions that they were.

    Args:
        inputs: From prepared images to what each layer is given, `[batch, *space, channels]`.
        how: Other attributes of the source.

    Raises:
        ValueError: For images that the network does not take, and where no layer is of images.
    """
    how = {"kind": "converted network", "prepare": as_numbers, "notes": (RECOVERED,), **how}
    try:
        activations = inputs(how["prepare"](np.zeros((1, *image_size, 3), np.uint8)))
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"{name} does not take images of size {image_size} ({brief(str(error))}), but expected "
            "a network of single images; give its --image-size"
        ) from error
    shown_layers = {
        key: layer
        for key, layer in layers.items()
        if key in activations and activations[key].ndim == 4
    }
    if not shown_layers:
        raise ValueError(
            f"{name} has no layers of images outside of loops, but expected some; diagnose its "
            "layers one by one"
        )
    convolution = cache(lambda key: RecoveredConvolution(shown_layers[key]))

    def compare(images: Prepared) -> list[Callable[[], Outputs]]:
        activations = inputs(images)

        def of(key: str) -> Callable[[], Outputs]:
            return lambda: convolution(key).beside(activations[key])

        return [of(key) for key in shown_layers]

    positional = tuple(
        PositionalLayer(key, layer, (activations[key].shape[1], activations[key].shape[2]))
        for key, layer in shown_layers.items()
    )
    return Source(name, image_size=image_size, positional=positional, compare=compare, **how)


def of_network(
    name: str,
    network: Network,
    image_size: tuple[int, int] | None,
    prepare: Callable[[Pixels], Prepared],
) -> Source:
    """A network that `convattn convert network` has written.

    Args:
        image_size: Of its images; None takes the file's.
        prepare: What its floats are of bytes; a network that takes bytes is given these.

    Raises:
        ValueError: For a network of anything but single images of three channels.
    """
    shapes = [(argument.shape, argument.dtype) for argument in network.arguments]
    channels = [axis for axis in (-1, 1) if len(shapes) == 1 and shapes[0][0][axis:][:1] == (3,)]
    if not channels or len(shapes[0][0]) != 4:
        raise ValueError(
            f"{name} takes {brief([shape for shape, _ in shapes])}, but expected one array of "
            "images with three channels; its layers are in convattn.load_network(FILE).layers"
        )
    (shape, dtype), first = shapes[0], channels[0] == 1
    own = shape[2:] if first else shape[1:3]
    size = tuple(map(int, own)) if all(isinstance(side, int) for side in own) else image_size
    takes_bytes = jnp.issubdtype(dtype, jnp.integer)

    def prepared(pixels: Pixels) -> Prepared:
        return pixels if takes_bytes else prepare(pixels)

    def inputs(images: Prepared) -> Mapping[str, Array]:
        typed = jnp.asarray(images, dtype)
        return network.inputs(jnp.moveaxis(typed, -1, 1) if first else typed)

    if image_size is not None and size != image_size:
        raise ValueError(f"{name} takes images of {size} pixels; leave out --image-size")
    assert size is not None
    return of_layers(name, network.layers, inputs, (size[0], size[1]), prepare=prepared)


class RecoveredConvolution:
    """The convolution nearest to a layer on pixels.

    Args:
        layer: Its maps go from the channels of one group to those of all.
    """

    def __init__(self, layer: AttentionLayer) -> None:
        self.layer, size = layer, kernel_size_of(layer)
        self.kernel = recovered_kernel(layer, size, recovery_size(layer, size, None))[0]
        self.kernel = self.kernel.astype(layer.dtype)

    def __call__(self, images: Array) -> Array:
        """The convolution."""
        layer, dtype = self.layer, jnp.result_type(images, self.kernel)
        widths = layer.ring if layer.padding is None else layer.padding.widths
        if layer.register is not None:
            size = images.shape[1:3]
            widths = MapGeometry.of(layer, size).padding(layer, self.kernel.shape[:2], size)
        order = ("NHWC", "HWIO", "NHWC")
        outputs: Array = lax.conv_general_dilated(
            images.astype(dtype),
            self.kernel.astype(dtype),
            layer.stride,
            [*widths],
            rhs_dilation=layer.dilation,
            feature_group_count=images.shape[-1] // self.kernel.shape[-2],
            dimension_numbers=order,
            precision="highest",
        )
        return outputs if layer.bias is None else outputs + layer.bias

    def beside(self, images: Array) -> Outputs:
        """What the convolution and the layer make of the first image."""
        groups = images.shape[-1] // self.kernel.shape[-2]
        return outputs_of(self(images[:1]), grouped_attention(self.layer, images[:1], groups))


def kernel_size_of(layer: AttentionLayer) -> tuple[int, int]:
    """K on both axes: what the offsets of its heads span, or its ring; 3 where neither says it."""
    if isinstance(layer.encoding, OffsetTable):
        spans = [max(axis) - min(axis) for axis in zip(*layer.encoding.offsets, strict=True)]
    else:
        spans = [sum(ring) or 2 * d for ring, d in zip(layer.ring, layer.dilation, strict=True)]
    rows, columns = (span // step + 1 for span, step in zip(spans, layer.dilation, strict=True))
    return rows, columns


def of_layer(name: str, layer: AttentionLayer, image_size: tuple[int, int]) -> Source:
    """One layer without content; beside its convolution where it takes the pixels of pictures."""
    positional = PositionalLayer("layer 1", layer, image_size)
    channels = (layer_features(layer) or 3) // int(np.prod(layer.patch_size))
    single = len({*layer.stride}) == 1 and {*layer.patch_size, *layer.dilation} == {1}
    if channels not in (1, 3) or not single or layer.padding is not None or not any(layer.ring[0]):
        note = f"The layer takes {channels} channels; positions alone decide what it attends to."
        return Source(
            name, "attention layer", image_size, as_numbers, (note,), positional=(positional,)
        )
    convolution = RecoveredConvolution(layer)

    def prepare(pixels: Pixels) -> Prepared:
        scaled = as_numbers(pixels) / np.float32(255)
        return scaled if channels == 3 else scaled.mean(axis=-1, keepdims=True)

    def compare(images: Prepared) -> list[Callable[[], Outputs]]:
        typed = jnp.asarray(images)
        return [lambda: convolution.beside(typed)]

    how: dict[str, Any] = {"positional": (positional,), "compare": compare}
    return Source(name, "attention layer", image_size, prepare, (RECOVERED,), **how)


def outputs_of(before: Array, after: Array) -> Outputs:
    """The first image of both."""
    return Outputs(np.asarray(before[0], np.float64), np.asarray(after[0], np.float64))
