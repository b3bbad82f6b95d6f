"""Compares reports of `convattn verify --json`: of two runs, two machines, or two versions of JAX.

Usage: python scripts/reliability/compare_reports.py FIRST.json SECOND.json … [--verdicts]

All that the reports say must be the same, but for times and the `environment` that each names.
With `--verdicts` the numbers that checks print may differ too, since other versions of the packages
round otherwise: then claims, evidence, levels and results must be the same. Prints each difference
from the first report; the exit status is 1 if there is one, and 2 for a file that is no report.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TIMES = ("seconds",)
NUMBERS = ("detail", "problems")


def leaves(report: Any, left_out: tuple[str, ...], at: str = "") -> Iterator[tuple[str, Any]]:
    """Each plain value of a report with where it stands: claims and evidence by their names."""
    if isinstance(report, dict):
        for key in sorted(report.keys() - {*left_out}):
            yield from leaves(report[key], left_out, f"{at}/{key}" if at else key)
    elif isinstance(report, list) and all(isinstance(item, dict) for item in report):
        for item in report:
            yield from leaves(item, left_out, f"{at}/{item.get('id', item.get('name'))}")
    else:
        yield at, report


def differences(first: Any, second: Any, left_out: tuple[str, ...]) -> Iterator[str]:
    """What the second report says otherwise than the first, a line each."""
    before, after = (dict(leaves(report, left_out)) for report in (first, second))
    for at in sorted(before.keys() | after.keys()):
        was, became = before.get(at, "nothing"), after.get(at, "nothing")
        if was != became:
            yield f"{at}: {was!r} became {became!r}"


def read(path: Path) -> Any:
    """A report, without the environment it was made in; it must have claims."""
    try:
        report = json.loads(path.read_text())
        if not (isinstance(report, dict) and report.get("claims")):
            raise ValueError("it has no claims")
    except (OSError, ValueError) as problem:
        print(f"{path}: {problem}; expected what convattn verify --json wrote", file=sys.stderr)
        raise SystemExit(2) from problem
    return {key: value for key, value in report.items() if key != "environment"}


def main() -> int:
    """Compare the reports that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reports", type=Path, nargs="+", help="two or more, the first to compare")
    parser.add_argument("--verdicts", action="store_true", help="the printed numbers may differ")
    options = parser.parse_args()
    if len(options.reports) < 2:
        parser.error("one report was given; compare at least two")
    left_out = TIMES + NUMBERS * options.verdicts
    first, *others = map(read, options.reports)
    count = 0
    for path, other in zip(options.reports[1:], others, strict=True):
        for line in differences(first, other, left_out):
            print(f"{path}: {line}")
            count += 1
    print(f"{len(others)} compared with {options.reports[0]}: {count} differences")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
