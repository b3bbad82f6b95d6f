"""`Source`: what the explorer asks of a model, whichever file or run it comes from."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, UInt8

from convattn.data.cifar10_slice import Images
from convattn.diagnosis.layers import LayerAttention
from convattn_lab.explorer.positional_layer import PositionalLayer

Pixels = UInt8[np.ndarray, "batch height width 3"]
Prepared = Float[np.ndarray, "batch height width channels"]


class Outputs(NamedTuple):
    """What a layer gives, `[rows, columns, channels]`: as a convolution, and as attention."""

    before: Float[np.ndarray, "rows columns channels"]
    after: Float[np.ndarray, "rows columns channels"]


@dataclass(frozen=True)
class Source:
    """A model; its layers come in one of three ways.

    Attributes:
        name, kind, notes: What it is, and what must be said of it.
        image_size: Pixels of its images; None where it takes none.
        prepare: From bytes to what it takes.
        attend: The layers' attention to prepared images, where it depends on them.
        positional: The layers, where it does not.
        recorded: The layers, where nothing but their attention is known.
        compare: For prepared images and each layer, by its number, the convolution and the
            attention that it became; None where nothing was converted.
        samples: Labelled images of its own to choose from, of any size.
    """

    name: str
    kind: str
    image_size: tuple[int, int] | None
    prepare: Callable[[Pixels], Prepared]
    notes: tuple[str, ...] = ()
    attend: Callable[[Prepared], Iterable[LayerAttention]] | None = None
    positional: tuple[PositionalLayer, ...] = ()
    recorded: tuple[LayerAttention, ...] = ()
    compare: Callable[[Prepared], list[Callable[[], Outputs]]] | None = None
    samples: Images | None = None


def normaliser(mean: Iterable[float], std: Iterable[float]) -> Callable[[Pixels], Prepared]:
    """(x/255 - mean)/std, in float32."""
    center, scale = (np.asarray(tuple(channels), np.float64) for channels in (mean, std))

    def prepare(pixels: Pixels) -> Prepared:
        return ((pixels / 255 - center) / scale).astype(np.float32)

    return prepare


def as_numbers(pixels: Pixels) -> Prepared:
    """The bytes as they are, in float32."""
    return pixels.astype(np.float32)
