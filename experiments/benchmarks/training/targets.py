"""What is asked of a training step, and whether it was met."""

from collections.abc import Callable
from typing import NamedTuple

from benchmarks.settings import GIB
from benchmarks.targets import verdict
from benchmarks.training.rows import Row, fastest_torch, quartiles

SPEED, MEMORY = 1.3, 0.5


class Target(NamedTuple):
    """What is asked, what was measured, and the verdict; no verdict where nothing is asked."""

    asked: str
    measured: str
    verdict: str


def targets(timed: list[Row], memory: list[Row]) -> list[Target]:
    """Speed at each batch size, memory, and what not keeping the head outputs costs."""
    results: list[Target] = []
    for batch in sorted({row.batch for row in timed}):
        named = {row.contestant: row for row in timed if row.batch == batch}
        torch = fastest_torch(named.values())
        results += speed(batch, named.get("ours"), torch)
        results += recomputation(batch, named.get("ours"), named.get("kept"))
    named = {row.contestant: row for row in memory}
    results += peak(named.get("ours"), named.get("plain"))
    return results


def speed(batch: int, ours: Row | None, torch: Row | None) -> list[Target]:
    """PyTorch's time over ours, by the clock; by processor time too, where nothing is asked."""
    asked = f"batch {batch}: at least {SPEED} × the images per second of PyTorch"
    if ours is None or torch is None:
        return [Target(asked, "", "not measured")]
    low, middle, high = quartiles(torch.wall, ours.wall)
    return [
        Target(
            asked,
            f"{middle:.2f} (quartiles {low:.2f} to {high:.2f}) × {torch.contestant}",
            verdict(middle >= SPEED, high >= SPEED),
        ),
        Target(f"batch {batch}: by processor time", spread(torch.cpu, ours.cpu), ""),
    ]


def recomputation(batch: int, ours: Row | None, stored: Row | None) -> list[Target]:
    """Our time over that of the step that mixes along the axes and keeps the head outputs."""
    if ours is None or stored is None:
        return []
    asked = f"batch {batch}: time, of the step that keeps what heads have seen"
    return [
        Target(asked, spread(ours.wall, stored.wall), ""),
        Target(f"{asked}, by processor time", spread(ours.cpu, stored.cpu), ""),
    ]


def spread(seconds: list[float], others: list[float]) -> str:
    """The quartiles of a ratio, in words."""
    low, middle, high = quartiles(seconds, others)
    return f"{middle:.2f} (quartiles {low:.2f} to {high:.2f})"


def peak(ours: Row | None, plain: Row | None) -> list[Target]:
    """Our peak over that of the plain form: by XLA's analysis, and resident."""
    asked = f"memory of a step at most {MEMORY} of the plain form's"
    if ours is None or plain is None:
        return [Target(asked, "", "not measured")]
    kinds: dict[str, Callable[[Row], int | None]] = {
        "XLA": lambda row: row.memory and row.memory.peak,
        "resident": lambda row: row.resident,
    }
    results = []
    for kind, size in kinds.items():
        mine, theirs = size(ours), size(plain)
        name = f"batch {ours.batch}: {asked} ({kind})"
        if not mine or not theirs:
            results.append(Target(name, "", "not measured"))
            continue
        fraction = mine / theirs
        measured = f"{fraction:.2f}: {mine / GIB:.2f} of {theirs / GIB:.2f} GiB"
        results.append(Target(name, measured, verdict(fraction <= MEMORY, fraction <= MEMORY)))
    return results
