"""One row for each implementation at each batch size, and what two rows that took turns say."""

import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.training.implementations import TORCH, StepMemory


@dataclass(frozen=True)
class Row:
    """What was measured of one implementation at one batch size.

    Attributes:
        contestant, batch: Which one.
        wall, cpu: Seconds of each turn, by the clock and of all threads of the process.
        memory: Of a step, by XLA's analysis.
        resident: By how many bytes a step raised what a fresh process holds.
    """

    contestant: str
    batch: int
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    memory: StepMemory | None = None
    resident: int | None = None

    @property
    def images_per_second(self) -> float:
        """By the median turn."""
        return self.batch / statistics.median(self.wall)

    def to_json(self) -> dict[str, Any]:
        """As JSON holds it, with what follows from the fields."""
        memory = None if self.memory is None else {**self.memory._asdict()}
        if self.memory is not None and memory is not None:
            memory["peak"] = self.memory.peak
        speed = self.images_per_second if self.wall else None
        return {**asdict(self), "memory": memory, "images_per_second": speed}


def quartiles(seconds: list[float], others: list[float]) -> tuple[float, float, float]:
    """The quartiles of one's time over the other's, turn by turn, free of what slowed both.

    Raises:
        ValueError: Unless both took the same turns, two or more.

    >>> quartiles([2.0, 4.0, 6.0], [1.0, 2.0, 2.0])
    (2.0, 2.0, 2.5)
    """
    if len(seconds) != len(others) or len(seconds) < 2:
        raise ValueError(
            f"{len(seconds)} and {len(others)} turns, but expected as many of both, at least two"
        )
    ratios = [mine / theirs for mine, theirs in zip(seconds, others, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return low, middle, high


def fastest_torch(rows: Iterable[Row]) -> Row | None:
    """The PyTorch form with the least median time."""
    rows_of_torch = [row for row in rows if row.contestant.startswith(TORCH) and row.wall]
    return min(rows_of_torch, key=lambda row: statistics.median(row.wall), default=None)
