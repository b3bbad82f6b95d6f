"""A diagnosis as two tables: a row for each head, and one for each layer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from convattn.diagnosis.nearest_convolution import NearestConvolution
from convattn.diagnosis.report import Diagnosis


@dataclass(frozen=True)
class Table:
    """Columns, rows of as many cells, and what the columns mean."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    legend: str


def head_table(diagnosis: Diagnosis) -> Table:
    """A row for each head; a layer's name stands at its first."""
    rows = []
    for layer in diagnosis.layers:
        heads = layer.heads
        for head in range(len(heads.distance)):
            center = " ".join(_number(each, "+.1f") for each in heads.center[head])
            rows.append(
                (
                    layer.name if not head else "",
                    str(head + 1),
                    _number(heads.distance[head]),
                    _number(heads.entropy[head]),
                    center,
                    _number(heads.spread[head]),
                    _number(heads.positions[head]),
                    _number(heads.one_shift[head]),
                    " ".join(f"{each:+d}" for each in heads.shift[head]),
                    _number(heads.elsewhere[head]),
                    _number(layer.convolution.heads[head]),
                )
            )
    columns = ("layer", "head", "distance", "entropy", "center", "spread", "by position")
    legend = (
        "distance, spread: of the key from the query, in tokens. entropy: nats. by position: the "
        "fraction of the attention's variance that positions alone explain. one shift: the mean "
        "attention to the key at that shift; of note where it is above that of uniform attention. "
        "elsewhere: attention to class token, registers and zero padding. to conv: the head's "
        "attention against its nearest convolution."
    )
    return Table((*columns, "one shift", "shift", "elsewhere", "to conv"), rows, legend)


def layer_table(diagnosis: Diagnosis) -> Table:
    """A row for each layer: the nearest convolution, and the heads that it takes."""
    rows = []
    for layer in diagnosis.layers:
        nearest = layer.convolution
        distance = "–" if nearest.relative is None else f"{nearest.relative:.3g}"
        size = " × ".join(map(str, nearest.kernel_size))
        rows.append((layer.name, str(len(layer.heads.distance)), size, distance, *_counts(nearest)))
    columns = ("layer", "heads", "nearest", "distance", "rank", "limit", "exact", "as near")
    taps = math.prod(diagnosis.layers[0].convolution.kernel_size)
    legend = (
        "distance: of the whole layer, with its value maps, from the nearest convolution, "
        "relative. rank, limit, exact: of that convolution's kernel, and the heads that it takes "
        "as scores tend to infinity and at finite scores (S.kernel; for any kernel "
        f"{taps} and {taps + 1}, S.finite). as near: so many heads at least it takes, without "
        "content scores, to come as near to that convolution as the layer does."
    )
    return Table(columns, rows, legend)


def _counts(nearest: NearestConvolution) -> tuple[str, ...]:
    if nearest.whole is None or nearest.as_near is None:
        return ("–",) * 4
    counts = (nearest.whole.rank, nearest.whole.limit, nearest.whole.exact, nearest.as_near.rank)
    return tuple(map(str, counts))


def _number(value: float, form: str = ".2f") -> str:
    return "–" if math.isnan(value) else format(value, form)
