"""Fits the rates of the cost model of the fast back ends to what the benchmark has measured.

Source    the rates are those of convattn.fast.cost_model
Command   python experiments/fit_cost_model.py bench.json [more.json …] [--json FILE] [--install]
Expected  the model's choice is the fastest back end, or within 10 % of it, nearly always
Cost      a second

A row for every back end, case and size that bench.py has timed, forward and backward. The rates
r ≥ 0 minimize Σ (work·r / seconds - 1)², by nonnegative least squares. The choice is made among the
back ends that `"auto"` chooses among: those that serve the layer, without the windowed one.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.rows import Row, by_group, row_from_json
from scipy.optimize import nnls

from convattn.cli.running import guarded
from convattn.fast.backend import Work
from convattn.fast.cost_model import Rates, rates_file, rates_of, read_rates
from convattn.fast.selection import BACK_ENDS
from convattn.files import write_file

CLOSE = 1.1
NOT_CHOSEN = ("windowed",)


class Choice(NamedTuple):
    """What the model chooses on one case and size, and what was fastest.

    `regret` is the time of the choice over that of the fastest.
    """

    group: tuple[str, int, int, int]
    chosen: str
    fastest: str
    regret: float


def fitted_rates(rows: Iterable[Row]) -> Rates:
    """The nonnegative rates with the least sum of squared relative errors.

    Raises:
        ValueError: Without a row of a back end that was timed.
    """
    counted = [row for row in rows if row.work is not None and row.skipped is None]
    if not counted:
        raise ValueError(
            "no row of a back end that was timed; run bench.py with --json and without --backends"
        )
    seconds = np.array([row.backward_seconds for row in counted])
    relative = np.array([row.work for row in counted], np.float64) / seconds[:, None]
    # Counts differ by ten orders of magnitude; unit columns keep the solver's tolerance meaningful.
    norms = np.linalg.norm(relative, axis=0)
    norms[norms == 0] = 1.0
    solution, _ = nnls(relative / norms, np.ones(len(counted)))
    return Rates(*(float(rate) for rate in solution / norms))


def expected(row: Row, rates: Rates) -> float:
    """The model's time for a row."""
    assert row.work is not None
    return sum(rate * count for rate, count in zip(rates, Work(*row.work), strict=True))


def choices(rows: Iterable[Row], rates: Rates) -> list[Choice]:
    """The model's choice on every case and size with two back ends to choose from."""
    listed = []
    able = (
        row
        for row in rows
        if row.contestant in BACK_ENDS
        and row.contestant not in NOT_CHOSEN
        and row.skipped is None
        and row.work is not None  # of a layer: a network's rows have none
    )
    for group, members in by_group(able).items():
        if len(members) < 2:
            continue
        seconds = {name: row.backward_seconds for name, row in members.items()}
        chosen = min(members, key=lambda name: expected(members[name], rates))
        fastest = min(seconds, key=seconds.__getitem__)
        listed.append(Choice(group, chosen, fastest, seconds[chosen] / seconds[fastest]))
    return listed


def read(paths: Iterable[Path]) -> tuple[str, str, list[Row]]:
    """The platform, the kind of device and the rows of several files of bench.py.

    Raises:
        ValueError: Where they come from several platforms or kinds of devices.
    """
    records: list[dict[str, Any]] = [json.loads(path.read_text()) for path in paths]
    devices = {
        (record["environment"]["backend"], record["environment"]["device"]) for record in records
    }
    if len(devices) != 1:
        raise ValueError(f"files from {sorted(devices)}, but one device is fitted at a time")
    rows = [row_from_json(row) for record in records for row in record["rows"]]
    return *devices.pop(), rows


def total_regret(rows: Iterable[Row], rates: Rates) -> float:
    """By how much its choices are slower than the fastest, over all cases and sizes."""
    return sum(choice.regret - 1 for choice in choices(rows, rates))


def installed(device: str, rows: list[Row], fitted: Rates, standing: Rates) -> str:
    """Write rates where `auto` reads them, if they choose no worse: what was done, in words."""
    before, after = total_regret(rows, standing), total_regret(rows, fitted)
    losses = f"choices lose {after:.2f} times the fastest in all, {before:.2f} as it stands"
    if after > before:
        return f"The rates that stand are kept: {losses}."
    path = rates_file()
    known = {kind: rates._asdict() for kind, rates in read_rates(path).items()}
    content = json.dumps({**known, device: fitted._asdict()}, indent=1, sort_keys=True) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, content.encode())
    return f"The fitted rates stand in {path}, where backend='auto' reads them: {losses}."


def describe(name: str, rows: list[Row], rates: Rates) -> None:
    """Print the rates, their errors and the choices they lead to."""
    counted = [row for row in rows if row.work is not None and row.skipped is None]
    errors = [abs(expected(row, rates) / row.backward_seconds - 1) for row in counted]
    print(f"{name}: " + ", ".join(f"{rate:.2g}" for rate in rates))
    print(f"  relative error: median {np.median(errors):.0%}, largest {max(errors):.0%}")
    chosen = choices(rows, rates)
    strict = sum(choice.chosen == choice.fastest for choice in chosen)
    close = sum(choice.regret <= CLOSE for choice in chosen)
    print(f"  choice: fastest in {strict} of {len(chosen)}, within 10 % in {close}")
    for choice in chosen:
        if choice.regret > CLOSE:
            case, features, batch, side = choice.group
            print(
                f"  {case}, {side}², D = {features}, batch {batch}: chose {choice.chosen}, "
                f"{choice.regret:.2f}× the time of {choice.fastest}"
            )


def main() -> None:
    """Fit, and print the rates for pasting besides those that stand in the library."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", metavar="FILE", type=Path, nargs="+", help="of bench.py --json")
    parser.add_argument("--json", type=Path, help="where to write the rates")
    parser.add_argument(
        "--install", action="store_true", help="put them where backend='auto' reads them"
    )
    args = parser.parse_args()
    platform, device, rows = read(args.files)
    fitted, standing = fitted_rates(rows), rates_of(platform)
    describe("as it stands", rows, standing)
    describe("fitted", rows, fitted)
    values = ", ".join(f"{rate:.1e}" for rate in fitted)
    print(f'"{platform}": Rates({values})')
    message = "The rates were not installed."
    if args.install:
        message = installed(device, rows, fitted, standing)
        print(message)
    if args.json is not None:
        rates = fitted._asdict()
        record = {"device": device, "platform": platform, "says": message, "rates": rates}
        write_file(args.json, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    sys.exit(guarded("experiments/fit_cost_model.py", main))
