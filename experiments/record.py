"""Put a finished run on record for a row of the ledger: `python experiments/record.py RUN C20.ROW`.

A run that does not count for the row is refused, with the reasons. `convattn verify --claim
C20.ROW` then compares the record with the paper; the row's verdict is for you to change.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from convattn.cli.running import SUCCESS, UsageError, guarded
from convattn_lab.records.record import write_record

PROGRAM = "experiments/record.py"


@dataclass(frozen=True)
class Arguments:
    """Put a finished run on record for a row of the ledger."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The folder of the run."""
    claim: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="CLAIM")]
    """The row, such as C20.quadratic."""
    replace: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Replace the record of another run."""


def main(arguments: Sequence[str] | None = None, *, proofs: Path | None = None) -> int:
    """Write the record, and say where and which verdict it supports.

    The exit code is 0, or 2 for a run that does not count for the row and other wrong use.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    return guarded(PROGRAM, lambda: record(words, proofs))


def record(words: list[str], proofs: Path | None) -> int:
    """The same, with failures as exceptions."""
    given = tyro.cli(Arguments, args=words, prog=f"python {PROGRAM}")
    try:
        found, check = write_record(given.run, given.claim, proofs, replace=given.replace)
    except ValueError as error:
        raise UsageError(str(error)) from error
    print(f"{check.path}\nit supports the verdict: {check.experiment().verdict_of(found)}")
    print(f"now: convattn verify --claim {given.claim}")
    return SUCCESS


if __name__ == "__main__":
    sys.exit(main())
