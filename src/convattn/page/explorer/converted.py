"""Networks whose convolutions became attention, and each convolution beside its layer."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from convattn.constructions.two_layers import TwoLayers
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import layer_features
from convattn.files import shown
from convattn.ledger.images.cifar10_slice import Images
from convattn.networks.diagnosis.layers import linear_maps
from convattn.networks.diagnosis.nearest_convolution import nearest_convolution
from convattn.networks.runs import FoldedRun, run_network
from convattn.networks.steps import Attention, Convolution, Network, Residual, attend
from convattn.page.explorer.source import Outputs, Pixels, Prepared, Source, as_numbers
from convattn.page.explorer.still import StillLayer

RECOVERED = "Convolutions are those nearest to the layers, which the file holds alone."


class Watched(FoldedRun):
    """A run of convolutions that notes what each was given, and what it gave."""

    def __init__(self) -> None:
        self.seen: dict[str, tuple[Array, Array]] = {}

    def apply(self, step: Convolution, images: Any) -> Array:
        """The convolution."""
        found = super().apply(step, images)
        self.seen[step.name] = images, found
        return found


def of_network(
    name: str,
    folded: Network,
    layers: dict[str, AttentionLayer],
    image_size: tuple[int, int],
    *,
    kind: str,
    notes: tuple[str, ...] = (),
    samples: Images | None = None,
) -> Source:
    """A network of convolutions, with the layers that they became by name; it takes bytes."""

    def watched(images: Prepared) -> dict[str, tuple[Array, Array]]:
        run = Watched()
        run_network(folded, run, jnp.asarray(images))
        return run.seen

    def compare(images: Prepared) -> list[Callable[[], Outputs]]:
        seen = watched(images)

        def of(key: str) -> Callable[[], Outputs]:
            inputs, before = seen[key]
            return lambda: outputs_of(before, attend(layers[key], inputs))

        return [of(key) for key in layers]

    try:
        seen = watched(np.zeros((1, *image_size, 3)))
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"{name} has steps that do not follow each other on images of size {image_size} "
            f"({shown(str(error))}), but expected a network that takes them; give its --image-size"
        ) from error
    shapes = {key: x.shape for key, (x, _) in seen.items()}
    still = tuple(
        StillLayer(key, layer, (shapes[key][1], shapes[key][2])) for key, layer in layers.items()
    )
    how: dict[str, Any] = {"still": still, "compare": compare, "samples": samples}
    return Source(name, kind, image_size, as_numbers, notes, **how)


def of_attention_network(name: str, network: Network, image_size: tuple[int, int]) -> Source:
    """A network that `convattn convert --network` has written from a run."""
    layers: dict[str, AttentionLayer] = {}

    def folded(steps: Network) -> Network:
        found = []
        for step in steps:
            if isinstance(step, Residual):
                step = Residual(folded(step.branch), folded(step.shortcut))
            elif isinstance(step, Attention):
                if isinstance(step.layer, TwoLayers):
                    raise ValueError(
                        f"{name} has two layers for one convolution, {step.name or 'unnamed'}, but "
                        "only layers that stand alone are shown"
                    )
                layers[step.name] = step.layer
                step = recovered(step.layer, step.name)
            found.append(step)
        return tuple(found)

    steps = folded(network)
    if not layers:
        raise ValueError(f"{name} holds a network without attention, but expected layers of it")
    kind = "converted network"
    return of_network(name, steps, layers, image_size, kind=kind, notes=(RECOVERED,))


def kernel_size_of(layer: AttentionLayer) -> tuple[int, int]:
    """K on both axes of the convolution that a layer with a ring was; 3 without a ring."""
    reach = (sum(ring) // step for ring, step in zip(layer.ring, layer.dilation, strict=True))
    rows, columns = (each + 1 for each in reach)
    has_ring = any(map(any, layer.ring)) or getattr(layer.encoding, "offsets", None) == ((0, 0),)
    return (rows, columns) if has_ring else (3, 3)


def recovered(layer: AttentionLayer, name: str = "") -> Convolution:
    """The convolution nearest to a layer on pixels, its kernel Σ_h p_h(t) W_h."""
    size = kernel_size_of(layer)
    small = StillLayer(name, replace(layer, padding=None), (max(2, size[0]), max(2, size[1])))
    found = small.measured(small.image_size)
    pairs = found.at_mean[:, :, -found.grid[0] * found.grid[1] :]
    taps = nearest_convolution(pairs.reshape(-1, *found.grid, *found.grid), None, size).taps
    maps = linear_maps(layer, layer.token_grid(small.image_size).number_of_keys)
    if maps is None:
        raise ValueError(f"{name or 'the layer'} has no maps, but expected those of a convolution")
    kernel = jnp.asarray(np.einsum("hrc,hio->rcio", taps, maps), layer.dtype)
    bias = jnp.zeros(kernel.shape[-1], kernel.dtype) if layer.bias is None else layer.bias
    return Convolution(kernel, bias, layer.stride[0], name)


def of_layer(name: str, layer: AttentionLayer, image_size: tuple[int, int]) -> Source:
    """One layer without content; beside its convolution where it takes the pixels of pictures."""
    still = StillLayer("layer 1", layer, image_size)
    channels = (layer_features(layer) or 3) // int(np.prod(layer.patch_size))
    single = len({*layer.stride}) == 1 and {*layer.patch_size, *layer.dilation} == {1}
    if channels not in (1, 3) or not single or layer.padding is not None or not any(layer.ring[0]):
        note = f"The layer takes {channels} channels; positions alone decide what it attends to."
        return Source(name, "attention layer", image_size, as_numbers, (note,), still=(still,))
    made = recovered(layer, name)

    def prepare(pixels: Pixels) -> Prepared:
        found = as_numbers(pixels) / np.float32(255)
        return found if channels == 3 else found.mean(axis=-1, keepdims=True)

    def compare(images: Prepared) -> list[Callable[[], Outputs]]:
        typed = jnp.asarray(images)
        return [lambda: outputs_of(FoldedRun().apply(made, typed), attend(layer, typed))]

    how: dict[str, Any] = {"still": (still,), "compare": compare}
    return Source(name, "attention layer", image_size, prepare, (RECOVERED,), **how)


def outputs_of(before: Array, after: Array) -> Outputs:
    """The first image of both."""
    return Outputs(np.asarray(before[0], np.float64), np.asarray(after[0], np.float64))
