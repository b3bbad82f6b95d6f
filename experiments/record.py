"""Put a finished run on record for a row of the ledger: `python experiments/record.py RUN C20.ROW`.

A run that does not count for the row is refused, with the reasons. `convattn verify --claim
C20.ROW` then compares the record with the paper; the row's verdict is for you to change.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import tyro

from convattn.cli.running import SUCCESS, run_program
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
    return run_program(PROGRAM, Arguments, partial(_record, proofs), arguments)


def _record(proofs: Path | None, args: Arguments) -> int:
    record, check = write_record(args.run, args.claim, proofs, replace=args.replace)
    print(f"{check.path}\nit supports the verdict: {check.experiment().verdict_of(record)}")
    print(f"now: convattn verify --claim {args.claim}")
    return SUCCESS


if __name__ == "__main__":
    sys.exit(main())
