"""What is known of a model's heads: numbers for JSON, and two tables."""

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from jaxtyping import Float
from rich.table import Table
from rich.text import Text

from convattn.networks.diagnosis.measures import HeadMeasures
from convattn.networks.diagnosis.nearest_convolution import NearestConvolution

HEAD_COLUMNS = (
    *("layer", "head", "distance", "entropy", "center", "spread", "by position"),
    *("one shift", "shift", "elsewhere", "to conv"),
)
LAYER_COLUMNS = ("layer", "heads", "nearest", "distance", "rank", "limit", "exact", "as near")


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

    def head_table(self) -> Table:
        """A row for each head."""
        table = _table(HEAD_COLUMNS)
        for layer in self.layers:
            found = layer.heads
            for head in range(len(found.distance)):
                center = " ".join(_number(each, "+.1f") for each in found.center[head])
                table.add_row(
                    Text(layer.name if not head else ""),
                    str(head + 1),
                    _number(found.distance[head]),
                    _number(found.entropy[head]),
                    center,
                    _number(found.spread[head]),
                    _number(found.positions[head]),
                    _number(found.one_shift[head]),
                    " ".join(f"{each:+d}" for each in found.shift[head]),
                    _number(found.elsewhere[head]),
                    _number(layer.convolution.heads[head]),
                )
        return table

    def layer_table(self) -> Table:
        """A row for each layer: the nearest convolution, and the heads that it takes."""
        table = _table(LAYER_COLUMNS)
        for layer in self.layers:
            found = layer.convolution
            table.add_row(
                Text(layer.name),
                str(len(layer.heads.distance)),
                " × ".join(map(str, found.kernel_size)),
                "–" if found.relative is None else f"{found.relative:.3g}",
                *_counts(found),
            )
        return table


def _counts(found: NearestConvolution) -> tuple[str, ...]:
    if found.whole is None or found.as_near is None:
        return ("–",) * 4
    counts = (found.whole.rank, found.whole.limit, found.whole.exact, found.as_near.rank)
    return tuple(map(str, counts))


def _table(columns: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="left" if name == "layer" else "right")
    return table


def _number(value: float, form: str = ".2f") -> str:
    return "–" if math.isnan(value) else format(value, form)


def _plain(value: Any) -> Any:
    """Numbers and lists of them, NaN as None.

    >>> _plain(np.array([1.0, np.nan]))
    [1.0, None]
    """
    if isinstance(value, np.ndarray):
        return [_plain(each) for each in value]
    number = value.item()
    return None if math.isnan(number) else number
