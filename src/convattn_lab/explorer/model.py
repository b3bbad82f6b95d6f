"""`ExploredModel`: the numbers behind the page, computed once for each image and kept."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from convattn.data.cifar10_slice import Images, load_cifar10_slice
from convattn.diagnosis.layers import LayerAttention
from convattn.diagnosis.measures import entropies, moments
from convattn.diagnosis.models import measure_layer
from convattn_lab.explorer.converted import kernel_size_of
from convattn_lab.explorer.pictures import Picture, resized
from convattn_lab.explorer.positional_layer import row_reader
from convattn_lab.explorer.source import Outputs, Source

SAMPLES, UPLOADS = 20, 32
ROUNDING = 1e-6  # of rows that are kept in float32
MAX_CACHED_BYTES = 256 * 2**20  # bytes of attention that are kept
Query = tuple[int, int]
Row = Float[np.ndarray, "heads rows columns"]
Reader = Callable[[Query], Row]


class NotThere(ValueError):
    """An image, a layer, a channel or a query that the model does not have."""


@dataclass(frozen=True)
class LayerInfo:
    """What the page must know of a layer before it asks for more.

    Attributes:
        name, heads, grid: As in `convattn diagnose`.
    """

    name: str
    heads: int
    grid: tuple[int, int]


@dataclass(frozen=True)
class QueryAttention:
    """What the heads of a layer attend to for one query.

    Attributes:
        full: In the image.
        position: By the position alone: in an image of the mean colour, in attention probabilities
            the mean over their images.
        numbers: Of both, for each head: distance, center, covariance, spread, entropy, elsewhere.
    """

    full: Row
    position: Row
    numbers: dict[str, dict[str, Any]]


class ExploredModel:
    """A source with its images.

    Args:
        source: The model.
        images: To choose from; None takes the source's own, or the bundled slice of CIFAR-10.
        reference: So many of these are the images that heads are measured on.
        kernel_size: Of the nearest convolution, where a layer does not say it.
    """

    def __init__(
        self,
        source: Source,
        images: Images | None = None,
        *,
        reference: int = 8,
        kernel_size: int = 3,
    ) -> None:
        self.source, self.kernel_size = source, kernel_size
        self._lock = threading.RLock()
        self._pictures: OrderedDict[str, tuple[str, Picture | None]] = OrderedDict()
        self._cached: OrderedDict[str, tuple[int, list[Reader]]] = OrderedDict()
        self._compared: OrderedDict[str, list[Callable[[], Outputs]]] = OrderedDict()
        self._outputs: OrderedDict[tuple[str, int], Outputs] = OrderedDict()
        self._numbers: dict[int, dict[str, Any]] = {}
        self._failure: str | None = None
        self._requested = 0
        self._add_samples(images or source.samples)
        self.samples = tuple(self._pictures)
        if source.attend is not None:
            first = list(source.attend(self._prepared(None)))
            self.layers = tuple(map(_info, first))
            self._position = [row_reader(each) for each in first]
            chosen = [self._prepared(key) for key in self.samples[:reference]]
            self.measured_on = len(chosen)
            self._measuring: Callable[[], Iterable[LayerAttention]] = lambda: source.attend(  # type: ignore[misc]
                np.concatenate(chosen)
            )
        elif source.positional:
            self.layers = tuple(
                LayerInfo(each.name, each.layer.heads, each.grid) for each in source.positional
            )
            self._position = [each.reader() for each in source.positional]
            self.measured_on = 0
        else:
            self.layers = tuple(map(_info, source.recorded))
            self._position = [row_reader(_mean_of(each)) for each in source.recorded]
            self._measuring = lambda: source.recorded
            self.measured_on = len(source.recorded[0].attention)

    def label(self, image: str) -> str:
        """What an image is called.

        Raises:
            NotThere: For an image that is not there, or no longer.
        """
        return self._picture(image)[0]

    def pixels(self, image: str) -> Picture:
        """An image as the model is given it.

        Raises:
            NotThere: As `label` does, and where only attention is known.
        """
        pixels = self._picture(image)[1]
        if pixels is None:
            raise NotThere(f"image={image!r} has no pixels: the file holds its attention alone")
        return pixels

    def add(self, pixels: Picture, label: str) -> str:
        """Keep an image of the right size; the oldest of more than `UPLOADS` is forgotten."""
        key = f"u{hashlib.sha256(pixels.tobytes()).hexdigest()[:16]}"
        with self._lock:
            self._pictures[key] = label, pixels
            uploads = [name for name in self._pictures if name not in self.samples]
            for name in uploads[:-UPLOADS]:
                del self._pictures[name]
        return key

    def attention(self, image: str, layer: int, query: Query) -> QueryAttention:
        """What a query (row, column) of a layer, counted from 0, attends to in an image.

        Raises:
            NotThere: For what the model does not have.
        """
        self._require(layer, query)
        position = self._position[layer](query)
        full = self._readers(image)[layer](query)
        numbers = {"full": query_numbers(full, query), "position": query_numbers(position, query)}
        return QueryAttention(full, position, numbers)

    def numbers(self, layer: int) -> dict[str, Any] | None:
        """What `convattn diagnose` says of a layer, and its nearest convolution; None: not yet.

        Raises:
            NotThere: For another layer; ValueError if it could not be measured.
        """
        self._require(layer)
        self._requested = layer
        if layer not in self._numbers and self._failure is not None:
            raise ValueError(self._failure)
        return self._numbers.get(layer)

    def measure(self, stop: threading.Event | None = None) -> None:
        """Measure all layers, one after the other, until asked to stop.

        Of layers that no image changes the one that was asked for comes first.
        """
        try:
            layers = (
                self._positional_attention()
                if self.source.positional
                else enumerate(self._measuring())
            )
            for number, attention in layers:
                if stop is not None and stop.is_set():
                    return
                self._numbers[number] = self._measured(number, attention)
        except (ValueError, MemoryError) as error:
            self._failure = f"the heads could not be measured: {error}"

    def outputs(self, image: str, layer: int) -> Outputs:
        """What a converted layer gives for an image, as a convolution and as attention.

        Raises:
            NotThere: For what the model does not have, and if nothing was converted.
        """
        self._require(layer)
        if self.source.compare is None:
            raise NotThere(f"{self.source.name} was not converted, so there is no before and after")
        with self._lock:
            if (image, layer) not in self._outputs:
                if image not in self._compared:
                    self._compared[image] = self.source.compare(self._prepared(image))
                    _shorten(self._compared, 4)
                self._outputs[image, layer] = self._compared[image][layer]()
                _shorten(self._outputs, 32)
            return self._outputs[image, layer]

    def _add_samples(self, samples: Images | None) -> None:
        source = self.source
        if source.image_size is None:
            count = len(source.recorded[0].attention)
            labels = [f"image {n}" for n in range(1, count + 1)] if count > 1 else ["any image"]
            for number, label in enumerate(labels):
                self._pictures[f"s{number}"] = label, None
            return
        images = samples or load_cifar10_slice("test")
        order = np.argsort([_rank(images.labels, n) for n in range(len(images))], kind="stable")
        for number in order[:SAMPLES]:
            name = images.class_names[int(images.labels[number])]
            pixels = resized(images.images[number], source.image_size)
            self._pictures[f"s{number}"] = f"{name} ({number})", pixels

    def _picture(self, image: str) -> tuple[str, Picture | None]:
        try:
            return self._pictures[image]
        except KeyError as error:
            raise NotThere(
                f"image={image!r}, but expected one of {', '.join(self.samples[:3])} … or one that "
                "was sent; send it again if it was"
            ) from error

    def _prepared(self, image: str | None) -> np.ndarray:
        """An image as the model takes it; None is the mean colour, zeros after normalising."""
        rows, columns = self.source.image_size or (1, 1)
        if image is None:
            return np.zeros_like(self.source.prepare(np.zeros((1, rows, columns, 3), np.uint8)))
        return self.source.prepare(self.pixels(image)[None])

    def _require(self, layer: int, query: Query | None = None) -> None:
        if not 0 <= layer < len(self.layers):
            raise NotThere(f"layer={layer}, but expected 0 to {len(self.layers) - 1}")
        rows, columns = self.layers[layer].grid
        if query is not None and not (0 <= query[0] < rows and 0 <= query[1] < columns):
            raise NotThere(
                f"query={query}, but expected a row of 0 to {rows - 1} and a column of 0 to "
                f"{columns - 1}: tokens are counted, not pixels"
            )

    def _readers(self, image: str) -> list[Reader]:
        """From queries to rows, for each layer; computed once for an image, and kept."""
        self._picture(image)
        source = self.source
        if source.positional:
            return self._position
        with self._lock:
            if image not in self._cached:
                if source.attend is None:
                    index = int(image[1:])
                    readers = [row_reader(layer, index) for layer in source.recorded]
                    self._cached[image] = 0, readers
                else:
                    layers = [_narrow(layer) for layer in source.attend(self._prepared(image))]
                    size = sum(layer.attention.nbytes for layer in layers)
                    self._cached[image] = size, [row_reader(layer) for layer in layers]
                while (
                    len(self._cached) > 1
                    and sum(n for n, _ in self._cached.values()) > MAX_CACHED_BYTES
                ):
                    self._cached.popitem(last=False)
            self._cached.move_to_end(image)
            return self._cached[image][1]

    def _positional_attention(self) -> Iterable[tuple[int, LayerAttention]]:
        pending = list(range(len(self.layers)))
        while pending:
            number = self._requested if self._requested in pending else pending[0]
            pending.remove(number)
            yield number, self.source.positional[number].measured()

    def _measured(self, number: int, attention: LayerAttention) -> dict[str, Any]:
        kernel_size = (self.kernel_size, self.kernel_size)
        if self.source.positional:
            kernel_size = kernel_size_of(self.source.positional[number].layer)
        rows, columns = (
            min(size, 2 * side - 1) for size, side in zip(kernel_size, attention.grid, strict=True)
        )
        diagnosed = measure_layer(number + 1, attention, (rows, columns))
        nearest = diagnosed.convolution
        taps = {
            "taps": nearest.taps.tolist(),
            "norms": None if nearest.norms is None else nearest.norms.tolist(),
        }
        return {**diagnosed.as_dict(), **taps, "images": self.measured_on}


def query_numbers(row: Row, query: Query) -> dict[str, Any]:
    """What one query attends to, in numbers; `convattn diagnose` has the means over queries.

    Entropy is that over the tokens of the grid, of their attention divided by its sum.

    >>> found = query_numbers(np.array([[[0.0, 0.5, 0.5]]]), (0, 0))
    >>> found["distance"], found["center"], found["elsewhere"]
    ([1.5], [[0.0, 1.5]], [0.0])
    """
    heads, rows, columns = row.shape
    flat = row.reshape(heads, -1)
    sums = flat.sum(axis=1, keepdims=True)
    weights = flat / np.where(sums > 0, sums, 1)
    shifts = np.stack(np.divmod(np.arange(rows * columns), columns), axis=1) - np.array(query)
    distance, center, covariance = moments(weights, shifts)
    return {
        "distance": distance.tolist(),
        "center": center.tolist(),
        "covariance": covariance.tolist(),
        "spread": np.sqrt(np.trace(covariance, axis1=1, axis2=2)).tolist(),
        "entropy": np.maximum(entropies(weights), 0).tolist(),
        "elsewhere": np.where(sums[:, 0] > 1 - ROUNDING, 0, 1 - sums[:, 0]).tolist(),
    }


def _info(layer: LayerAttention) -> LayerInfo:
    return LayerInfo(layer.name, layer.attention.shape[1], layer.grid)


def _mean_of(layer: LayerAttention) -> LayerAttention:
    mean = layer.attention.mean(axis=0, keepdims=True)
    return LayerAttention(layer.name, layer.grid, mean, mean[0], None)


def _narrow(layer: LayerAttention) -> LayerAttention:
    """The first image alone, in float32, which is what is kept."""
    attention = layer.attention[:1].astype(np.float32)
    return LayerAttention(layer.name, layer.grid, attention, attention[0], None)


def _rank(labels: np.ndarray, number: int) -> int:
    """How many images before this one have its label, so that all classes come first."""
    return int((labels[:number] == labels[number]).sum())


def _shorten(cache: OrderedDict[Any, Any], limit: int) -> None:
    while len(cache) > limit:
        cache.popitem(last=False)
