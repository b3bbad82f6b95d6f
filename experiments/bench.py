"""Times attention as fast as its encoding allows against dense attention and a convolution.

Source    C20 §4 (9 heads, D = 400) and its remark that full attention "cannot be applied to bigger
          images"; claims S.separable and S.finite
Command   python experiments/bench.py [--sizes 8 16 …] [--dims 400 64] [--batch 1] [--turns 7]
          [--dtype float32] [--backends …] [--cases …] [--json FILE] [--plot FILE.png] [--quick]
Expected  the list of targets at the end, each met or missed with its figure
Cost      tens of minutes on two cores; --quick takes about two

On every case and size all implementations are compiled and warmed up; then they take turns, and the
median of the turns is printed. Contestants: every back end that serves the layer, `auto` (which
chooses among them), the plain dense layer in JAX, `lax.conv_general_dilated` with the 9·D·D weights
of a 3 × 3 kernel (the floor), on the quadratic encoding also a layer whose centres stand on a grid,
the product with all maps alone (nine images of what the heads have seen are given), and C20's layer
in PyTorch where torch is installed. Backward means output and gradients by images,
maps and encoding in one program. XLA's memory is that program's; resident memory is by how much
running it raises what a fresh process holds.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.cases import CASES
from benchmarks.environment import environment
from benchmarks.growth import growths
from benchmarks.peak import peak
from benchmarks.plot import figure_bytes
from benchmarks.rounds import resident_of, rounds
from benchmarks.rows import Row, by_group, ratio, row_from_json
from benchmarks.settings import GIB, Settings
from benchmarks.table import print_round, print_summary
from benchmarks.targets import targets
from rich.console import Console

from convattn.cli.running import UsageError, guarded
from convattn.fast.selection import BACK_ENDS
from convattn.files import write_file

QUICK: dict[str, Any] = {"sizes": (8, 12), "dims": (16,), "turns": 3, "turn_seconds": 0.002}
WIDTH = 110
PLOT_FORMATS = ("png", "svg")


def arguments() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    default = Settings()
    parser.add_argument("--sizes", type=int, nargs="+", help="n for images of n × n tokens")
    parser.add_argument("--dims", type=int, nargs="+", help="features of a token")
    parser.add_argument("--batch", type=int, default=default.batch, help="images at a time")
    parser.add_argument("--turns", type=int, help="how often each is timed; at least 7 to cite")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default=default.dtype)
    parser.add_argument(
        "--precision",
        choices=("highest", "default"),
        help="of products; highest for float32, default for bfloat16",
    )
    parser.add_argument(
        "--backends",
        nargs="+",
        choices=(*BACK_ENDS, "auto"),
        metavar="NAME",
        help=f"some of {', '.join((*BACK_ENDS, 'auto'))}",
    )
    parser.add_argument(
        "--cases",
        nargs="+",
        choices=tuple(CASES),
        metavar="NAME",
        help=f"some of {', '.join(CASES)}",
    )
    parser.add_argument(
        "--memory-limit", type=float, default=default.memory_limit / GIB, metavar="GIB"
    )
    parser.add_argument("--time-limit", type=float, default=default.time_limit, metavar="SECONDS")
    parser.add_argument("--no-resident", action="store_true", help="XLA's memory figures only")
    parser.add_argument("--json", type=Path, help="where to write everything that was measured")
    parser.add_argument("--plot", type=Path, help="where to draw time and memory, .png or .svg")
    parser.add_argument("--output-dir", type=Path, help="folder for bench.json and bench.png")
    parser.add_argument(
        "--resume", action="store_true", help="go on with what the JSON file holds already"
    )
    parser.add_argument("--date", help="the day of the run, for the record")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that all runs")
    parser.add_argument(
        "--memory-only",
        nargs=4,
        metavar=("CASE", "SIDE", "D", "NAME"),
        help="print by how much one implementation raises this process's resident memory",
    )
    return parser


def settings_from(args: argparse.Namespace) -> Settings:
    """The settings that the options ask for; what --quick sets an option overrides."""
    chosen: dict[str, Any] = dict(QUICK) if args.quick else {}
    for name in ("sizes", "dims"):
        if getattr(args, name) is not None:
            chosen[name] = tuple(getattr(args, name))
    if args.turns is not None:
        chosen["turns"] = args.turns
    if args.no_resident or args.quick:
        chosen["resident_from"] = None
    return Settings(
        batch=args.batch,
        dtype=args.dtype,
        precision=args.precision or ("highest" if args.dtype == "float32" else "default"),
        memory_limit=args.memory_limit * GIB,
        time_limit=args.time_limit,
        back_ends=None if args.backends is None else tuple(args.backends),
        cases=None if args.cases is None else tuple(args.cases),
        quick=args.quick,
        **chosen,
    )


def record(
    rows: list[Row], settings: Settings, date: str | None, reached: dict[str, float]
) -> dict[str, Any]:
    """Everything that was measured, as JSON.

    Args:
        rows: In the order in which they were measured.
        settings: Of the run.
        date: Of the run.
        reached: What the device reaches at best.
    """
    growth = growths(rows)
    return {
        "environment": environment(date),
        "settings": vars(settings),
        "peak": reached,
        "growth": [row._asdict() for row in growth],
        "targets": [target._asdict() for target in targets(rows, growth, settings.batch)],
        "rows": [
            {**row.to_json(), "over_convolution": over}
            for row, over in zip(rows, over_convolution(rows), strict=True)
        ],
    }


def over_convolution(rows: Iterable[Row]) -> list[tuple[float, float, float] | None]:
    """Of each row the quartiles of its time over the convolution's, where both were timed."""
    rows, ratios = list(rows), []
    groups = by_group(row for row in rows if row.skipped is None)
    for row in rows:
        floor = groups.get(row.group, {}).get("lax.conv")
        known = floor is not None and row.skipped is None
        ratios.append(ratio(row, floor) if known and floor is not None else None)
    return ratios


def earlier(path: Path, settings: Settings) -> tuple[list[Row], dict[str, float] | None]:
    """The rows of an earlier part of this run, and what the device reached then.

    Raises:
        UsageError: If the file holds a run with other settings, or is damaged.
    """
    if not path.exists():
        return [], None
    try:
        content = json.loads(path.read_text("utf-8"))
        same = content["settings"] == json.loads(json.dumps(vars(settings)))
        rows = [row_from_json(row) for row in content["rows"]]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is damaged ({error!r}); delete it to begin anew") from error
    if not same:
        raise UsageError(f"{path} holds a run with other settings; give its options, or delete it")
    return rows, content.get("peak")


def main() -> None:
    """Measure, print, and write what is asked for; the JSON file grows with every round."""
    parser = arguments()
    args = parser.parse_args()
    settings = settings_from(args)
    if args.memory_only is not None:
        case, side, features, name = args.memory_only
        print(json.dumps({"resident": resident_of(case, int(side), int(features), name, settings)}))
        return
    json_path, plot_path = args.json, args.plot
    if args.output_dir is not None:
        args.output_dir.mkdir(parents=True, exist_ok=True)
        json_path = json_path or args.output_dir / "bench.json"
        plot_path = plot_path or args.output_dir / "bench.png"
    if plot_path is not None:
        file_format = plot_path.suffix.removeprefix(".")
        if file_format not in PLOT_FORMATS:
            parser.error(f"--plot {plot_path}, but the name should end in .png or .svg")
        if find_spec("matplotlib") is None:
            parser.error("--plot needs matplotlib; pip install matplotlib, or leave --plot out")
    if args.resume and json_path is None:
        parser.error("--resume goes on with a file: give --json or --output-dir too")
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    resumed = args.resume and json_path is not None
    rows, reached = earlier(json_path, settings) if resumed else ([], None)
    reached = reached or peak(settings, time.perf_counter)
    reported: set[tuple[str, str, str]] = set()
    for measured in rounds(settings, list(rows)):
        rows += measured
        print_round(console, measured, reported)
        if json_path is not None:
            content = json.dumps(record(rows, settings, args.date, reached), indent=1) + "\n"
            write_file(json_path, content.encode())
    growth = growths(rows)
    print_summary(console, rows, growth, targets(rows, growth, settings.batch))
    if plot_path is not None:
        write_file(plot_path, figure_bytes(rows, file_format))


if __name__ == "__main__":
    sys.exit(guarded("experiments/bench.py", main))
