"""Steps in turns, and memory in processes of their own."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.resident import in_fresh_process, resident_increase
from benchmarks.training.implementations import TORCH, make_step_of, names
from benchmarks.training.plain_encoder import FORMS
from benchmarks.training.rows import Row
from benchmarks.training.settings import Settings

SCRIPT = Path(__file__).resolve().parents[2] / "training_bench.py"
Clocks = tuple[Callable[[], float], Callable[[], float]]


def timed_rows(settings: Settings) -> Iterator[list[Row]]:
    """The rows of each batch size; of the PyTorch forms the one that was fastest in a trial."""
    for batch in settings.batches:
        steps = {name: make_step_of(name, batch, settings) for name in names(settings)}
        runs = {name: step.run for name, step in steps.items()}
        torch = {name: run for name, run in runs.items() if name.startswith(TORCH)}
        trial = take_turns(torch, 2, settings.pause)
        slower = sorted(torch, key=lambda name: min(trial[name][0]))[1:]
        for name in slower:
            del runs[name]
        times = take_turns(runs, settings.turns, settings.pause)
        yield [Row(name, batch, *times[name], steps[name].memory) for name in runs]


def take_turns(
    runs: dict[str, Callable[[], None]],
    turns: int,
    pause: float,
    clocks: Clocks = (time.perf_counter, time.process_time),
) -> dict[str, tuple[list[float], list[float]]]:
    """Seconds by both clocks, for each implementation in every turn, another one first each time.

    A first run of each, which is not counted, warms up.
    """
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in runs}
    for run in runs.values():
        run()
    order = list(runs)
    for turn in range(turns):
        start = turn % max(1, len(order))
        for name in order[start:] + order[:start]:
            time.sleep(pause)
            before = [clock() for clock in clocks]
            runs[name]()
            for seconds, clock, since in zip(times[name], clocks, before, strict=True):
                seconds.append(clock() - since)
    return times


def memory_rows(settings: Settings, options: list[str]) -> list[Row]:
    """Our step and those that keep head outputs, at the batch size for memory.

    Args:
        options: What a process of its own is called with, so that it has these settings.
    """
    batch, rows = settings.memory_batch, []
    if batch is None:
        return []
    for name in ("ours", *FORMS):
        memory = make_step_of(name, batch, settings).memory
        resident = None
        if settings.resident:
            resident = in_fresh_process(SCRIPT, ["--memory-only", name, str(batch), *options])
        rows.append(Row(name, batch, memory=memory, resident=resident))
    return rows


def resident_of(name: str, batch: int, settings: Settings) -> int:
    """Compile one implementation in this process and measure its first step."""
    return resident_increase(make_step_of(name, batch, settings).run)
