"""One row for each implementation on each case at each size."""

import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.measurement import Cost, Memory


@dataclass(frozen=True)
class Row:
    """What was measured of one implementation, or why nothing was.

    Attributes:
        case, side, features, batch, contestant: Which one.
        chose: The back end behind `"auto"` and `"grid"`.
        skipped: Why it was not timed, or None.
        forward, backward: Seconds of each turn; backward includes the forward pass.
        memory: Of the backward pass, by XLA's analysis.
        resident: By how many bytes it raised what a fresh process holds.
        work: Products, numbers moved, exponentials and calls, as the cost model is told.
        cost: Of the backward pass, by XLA's analysis.
    """

    case: str
    side: int
    features: int
    batch: int
    contestant: str
    chose: str | None = None
    skipped: str | None = None
    forward: list[float] = field(default_factory=list)
    backward: list[float] = field(default_factory=list)
    memory: Memory | None = None
    resident: int | None = None
    work: list[float] | None = None
    cost: Cost | None = None

    @property
    def pixels(self) -> int:
        """Tokens of an image."""
        return self.side * self.side

    @property
    def group(self) -> tuple[str, int, int, int]:
        """What the rows that took turns with this one have in common."""
        return self.case, self.features, self.batch, self.side

    @property
    def forward_seconds(self) -> float:
        """The median forward pass."""
        return statistics.median(self.forward)

    @property
    def backward_seconds(self) -> float:
        """The median forward and backward pass."""
        return statistics.median(self.backward)

    def to_json(self) -> dict[str, Any]:
        """As JSON holds it, the medians besides."""
        memory = None if self.memory is None else {**self.memory._asdict()}
        if self.memory is not None and memory is not None:
            memory["total"] = self.memory.total
        medians = {}
        if self.skipped is None:
            medians = {
                "median_forward": self.forward_seconds,
                "median_backward": self.backward_seconds,
            }
        cost = None if self.cost is None else self.cost._asdict()
        return {**asdict(self), "memory": memory, "cost": cost, **medians}


def row_from_json(record: dict[str, Any]) -> Row:
    """The row that `to_json` has written."""
    fields = {name: record[name] for name in Row.__dataclass_fields__ if name in record}
    for name, kind in (("memory", Memory), ("cost", Cost)):
        if record.get(name) is not None:
            fields[name] = kind(*(record[name][field] for field in kind._fields))
    return Row(**fields)


def by_group(rows: Iterable[Row]) -> dict[tuple[str, int, int, int], dict[str, Row]]:
    """The rows that took turns together, by the implementation's name."""
    groups: dict[tuple[str, int, int, int], dict[str, Row]] = {}
    for row in rows:
        groups.setdefault(row.group, {})[row.contestant] = row
    return groups


def ratio(row: Row, other: Row) -> tuple[float, float, float]:
    """Row's time over the other's, forward and backward: the lower quartile, median and upper.

    The two took turns, so that the ratio of one turn is free of what slowed both. Where either was
    timed once the ratio of the medians stands for all three.
    """
    if len(row.backward) != len(other.backward) or len(row.backward) < 2:
        single = row.backward_seconds / other.backward_seconds
        return single, single, single
    turns = [mine / theirs for mine, theirs in zip(row.backward, other.backward, strict=True)]
    low, middle, high = statistics.quantiles(turns, n=4, method="inclusive")
    return low, middle, high
