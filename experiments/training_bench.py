"""Times a training step of C20's quadratic model beside its PyTorch form, and weighs its memory.

Source    C20 §4, Tables 1 and 2: 6 layers, 9 heads, D = 400, images of 32 × 32
Command   python experiments/training_bench.py [--batches 20 …] [--memory-batch 100] [--turns 7]
          [--json FILE] [--quick]
Expected  the list of targets at the end, each met or missed with its figure
Cost      about ten minutes on two cores, and 8 GiB of memory; --quick takes seconds

Contestants: the trainer's own step; the same model in its plain form, whose dense attention keeps
what every head has seen; the same with separable attention that keeps it, so that the price of not
keeping it shows; and C20's model in PyTorch, where torch is installed, with the fastest of three
ways to write its attention. All take the same batch and the same dropout rate forward, backward and
through the update, in turns. Ratios are those of single turns.
"""

import argparse
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.environment import environment
from benchmarks.training.rounds import memory_rows, resident_of, timed_rows
from benchmarks.training.rows import Row
from benchmarks.training.settings import QUICK, Settings
from benchmarks.training.targets import targets
from rich.console import Console
from rich.table import Table

from convattn.cli.running import guarded
from convattn.files import write_file


def arguments() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--batches", type=int, nargs="+", help="images in a step, to be timed")
    parser.add_argument("--memory-batch", type=int, help="the same for memory")
    parser.add_argument("--no-memory", action="store_true", help="time only")
    parser.add_argument("--no-time", action="store_true", help="memory only")
    parser.add_argument("--turns", type=int, help="how often each is timed; at least 7 to cite")
    parser.add_argument("--json", type=Path, help="where to write everything that was measured")
    parser.add_argument("--date", help="the day of the run, for the record")
    parser.add_argument("--quick", action="store_true", help="a tiny model, to see that all runs")
    parser.add_argument(
        "--memory-only",
        nargs=2,
        metavar=("NAME", "BATCH"),
        help="print by how much one implementation raises this process's resident memory",
    )
    return parser


def settings_from(args: argparse.Namespace) -> Settings:
    """The settings that the options ask for; what --quick sets an option overrides."""
    chosen: dict[str, Any] = {}
    if args.batches is not None:
        chosen["batches"] = tuple(args.batches)
    if args.turns is not None:
        chosen["turns"] = args.turns
    if args.memory_batch is not None:
        chosen["memory_batch"] = args.memory_batch
    if args.no_memory:
        chosen["memory_batch"] = None
    if args.no_time:
        chosen["batches"] = ()
    return replace(QUICK if args.quick else Settings(), **chosen)


def record(
    timed: list[Row], memory: list[Row], settings: Settings, date: str | None
) -> dict[str, Any]:
    """Everything that was measured, as JSON."""
    return {
        "environment": environment(date),
        "settings": asdict(settings),
        "targets": [target._asdict() for target in targets(timed, memory)],
        "rows": [row.to_json() for row in (*timed, *memory)],
    }


def print_rows(console: Console, rows: list[Row]) -> None:
    """A line for each implementation."""
    table = Table("batch", "contestant", "images/s", "XLA's memory", "resident")
    for row in rows:
        speed = f"{row.images_per_second:.2f}" if row.wall else ""
        peak = "" if row.memory is None else f"{row.memory.peak / 2**30:.2f} GiB"
        resident = "" if row.resident is None else f"{row.resident / 2**30:.2f} GiB"
        table.add_row(str(row.batch), row.contestant, speed, peak, resident)
    console.print(table)


def main() -> None:
    """Measure, print, and write what is asked for."""
    args = arguments().parse_args()
    settings = settings_from(args)
    if args.memory_only is not None:
        name, batch = args.memory_only
        print(json.dumps({"resident": resident_of(name, int(batch), settings)}))
        return
    console = Console()
    memory = memory_rows(settings, ["--quick"] if args.quick else [])
    timed: list[Row] = []
    for measured in timed_rows(settings):
        timed += measured
    print_rows(console, [*timed, *memory])
    for target in targets(timed, memory):
        console.print(f"{target.asked}: {target.measured} {target.verdict}".rstrip())
    if args.json is not None:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        content = json.dumps(record(timed, memory, settings, args.date), indent=1) + "\n"
        write_file(args.json, content.encode())


if __name__ == "__main__":
    sys.exit(guarded("experiments/training_bench.py", main))
