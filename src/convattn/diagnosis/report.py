"""What is known of a model's heads, as numbers for JSON."""

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from jaxtyping import Float

from convattn.diagnosis.measures import HeadMeasures
from convattn.diagnosis.nearest_convolution import NearestConvolution


@dataclass(frozen=True)
class LayerDiagnosis:
    """One layer.

    Attributes:
        number: From 1, in the order of the model.
        name: What it is called.
        grid: The rows and columns of tokens.
        heads: What each head does.
        convolution: The convolution nearest to the layer.
        mean: `[heads, rows, columns, rows, columns]`, the mean attention over the images from each
            query to each key.
    """

    number: int
    name: str
    grid: tuple[int, int]
    heads: HeadMeasures
    convolution: NearestConvolution
    mean: Float[np.ndarray, "heads query_rows query_columns key_rows key_columns"]

    def as_dict(self) -> dict[str, Any]:
        """All numbers but the maps, as JSON holds them; null where nothing is defined."""
        convolution, measures = self.convolution, self.heads
        names = [field.name for field in fields(measures)]
        heads = [
            {
                "head": number + 1,
                **{name: _plain(getattr(measures, name)[number]) for name in names},
            }
            | {"to_convolution": float(convolution.heads[number])}
            for number in range(len(measures.distance))
        ]
        nearest = {
            "kernel_size": list(convolution.kernel_size),
            "relative_distance": convolution.relative,
            "whole": convolution.whole and asdict(convolution.whole),
            "as_near": convolution.as_near and asdict(convolution.as_near),
        }
        named = {"layer": self.number, "name": self.name, "grid": list(self.grid)}
        return {**named, "heads": heads, "convolution": nearest}


@dataclass(frozen=True)
class Diagnosis:
    """A model.

    Attributes:
        model: What it is called.
        notes: What a reader must know of how the numbers came about.
        layers: Those that were asked for.
        patch_size: Pixels of a patch, on each axis; None if not known.
    """

    model: str
    notes: tuple[str, ...]
    layers: tuple[LayerDiagnosis, ...]
    patch_size: tuple[int, int] | None

    def as_dict(self) -> dict[str, Any]:
        """All numbers but the maps, as JSON holds them; distances in tokens."""
        return {
            "schema": 1,
            "model": self.model,
            "patch_size": None if self.patch_size is None else list(self.patch_size),
            "notes": list(self.notes),
            "layers": [layer.as_dict() for layer in self.layers],
        }


def _plain(value: Any) -> Any:
    """Numbers and lists of them, NaN as None.

    >>> _plain(np.array([1.0, np.nan]))
    [1.0, None]
    """
    if isinstance(value, np.ndarray):
        return [_plain(each) for each in value]
    number = value.item()
    return None if math.isnan(number) else number
