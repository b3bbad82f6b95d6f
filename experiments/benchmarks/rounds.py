"""Goes through the cases and sizes: who competes, who is left out and why, what was measured."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import jax

from benchmarks.cases import CASES, Case
from benchmarks.growth import predicted_seconds
from benchmarks.implementations import Implementation
from benchmarks.measurement import Runner, take_turns
from benchmarks.resident import in_fresh_process, resident_increase
from benchmarks.rows import Row
from benchmarks.settings import GIB, Settings

SCRIPT = Path(__file__).resolve().parent.parent / "bench.py"

History = dict[tuple[str, int, str], list[tuple[int, float]]]


def rounds(settings: Settings, before: Iterable[Row] = ()) -> Iterator[list[Row]]:
    """The rows of each case and size, as soon as they are measured.

    Args:
        settings: Of the run.
        before: Rows of an earlier part of it; their cases and sizes are not measured again.
    """
    history: History = {}
    remember(history, before)
    measured = {row.group for row in before}
    for name, case in CASES.items():
        if settings.cases is not None and name not in settings.cases:
            continue
        for side, features in case.shapes(settings):
            if (name, features, settings.batch, side) in measured:
                continue
            rows = one_round(case, side, features, settings, history)
            remember(history, rows)
            yield rows


def remember(history: History, rows: Iterable[Row]) -> None:
    """Add what rows took."""
    for row in rows:
        if row.skipped is None:
            seconds = row.forward_seconds + row.backward_seconds
            key = (row.case, row.features, row.contestant)
            history.setdefault(key, []).append((row.pixels, seconds))


def one_round(
    case: Case, side: int, features: int, settings: Settings, history: History
) -> list[Row]:
    """A row for everybody who competes on a case at a size."""
    implementations = case.implementations(side, features, settings)
    runners: dict[str, Runner] = {}
    skipped: dict[str, str] = {}
    for implementation in implementations:
        past = history.get((case.name, features, implementation.name), [])
        reason = implementation.refusal or too_much(implementation, past, side, settings)
        runner = reason if reason is not None else compiled(implementation, settings)
        if isinstance(runner, str):
            skipped[implementation.name] = runner
        else:
            runners[implementation.name] = runner
    resident = {
        implementation.name: resident_size(
            case, side, features, implementation, runners[implementation.name], settings
        )
        for implementation in implementations
        if implementation.name in runners
    }
    times = take_turns(runners, settings.turns, settings.turn_seconds, settings.time_limit)
    return [
        Row(
            case.name,
            side,
            features,
            settings.batch,
            implementation.name,
            chose=implementation.chose,
            skipped=skipped.get(implementation.name),
            forward=times[implementation.name].forward if implementation.name in times else [],
            backward=times[implementation.name].backward if implementation.name in times else [],
            memory=runners[implementation.name].memory if implementation.name in runners else None,
            resident=resident.get(implementation.name),
            work=None if implementation.work is None else list(implementation.work),
            cost=runners[implementation.name].cost if implementation.name in runners else None,
        )
        for implementation in implementations
    ]


def too_much(
    implementation: Implementation, past: list[tuple[int, float]], side: int, settings: Settings
) -> str | None:
    """Why an implementation is not even compiled: the memory or the time it is expected to take."""
    if implementation.pair_bytes > settings.memory_limit:
        size = implementation.pair_bytes / GIB
        return f"the weights of all pairs, their scores and gradients take {size:.0f} GiB"
    expected = predicted_seconds(past, side * side)
    if expected > settings.time_limit:
        return f"expected to take {expected:.0f} s a turn"
    return None


def compiled(implementation: Implementation, settings: Settings) -> Runner | str:
    """The implementation ready to run, or why it cannot."""
    try:
        runner = implementation.runner()
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        return f"does not compile: {str(error).splitlines()[0] if str(error) else 'no memory'}"
    if runner.memory is not None and runner.memory.total > settings.memory_limit:
        return f"XLA plans {runner.memory.total / GIB:.1f} GiB"
    return runner


def resident_size(
    case: Case,
    side: int,
    features: int,
    implementation: Implementation,
    runner: Runner,
    settings: Settings,
) -> int | None:
    """The resident increase of an implementation expected to take much, on the CPU; else None.

    Small figures drown in what the allocator keeps.
    """
    smallest = settings.resident_from
    if smallest is None or jax.default_backend() != "cpu":
        return None
    expected = implementation.pair_bytes if runner.memory is None else runner.memory.total
    if expected < smallest:
        return None
    arguments = ["--memory-only", case.name, str(side), str(features), implementation.name]
    arguments += ["--batch", str(settings.batch), "--dtype", settings.dtype]
    return in_fresh_process(SCRIPT, [*arguments, "--precision", settings.precision])


def resident_of(case: str, side: int, features: int, name: str, settings: Settings) -> int:
    """Compile one implementation in this process and measure its forward and backward pass."""
    back_end = "separable" if name == "grid" else name
    alone = replace(settings, back_ends=(back_end,))
    implementations = CASES[case].implementations(side, features, alone)
    runner = next(
        implementation for implementation in implementations if implementation.name == name
    ).runner()
    return resident_increase(lambda: runner.backward(1))
