"""Put a finished run on record for a row of the ledger: `python experiments/record.py RUN C20.ROW`.

`convattn verify --claim C20.ROW` then holds it against the paper; the row's verdict is for you to
change.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from convattn.commands.guard import SUCCESS, guarded
from convattn.commands.usage import UsageError
from convattn.runs.record import write_record

PROGRAM = "experiments/record.py"


@dataclass(frozen=True)
class Arguments:
    """Put a finished run on record for a row of the ledger."""

    run: Annotated[Path, tyro.conf.Positional]
    """The folder of the run."""
    claim: Annotated[str, tyro.conf.Positional]
    """The row, such as C20.quadratic."""


def record(words: list[str]) -> int:
    """Write the record and say where."""
    given = tyro.cli(Arguments, args=words, prog=f"python {PROGRAM}")
    try:
        path = write_record(given.run, given.claim)
    except ValueError as error:
        raise UsageError(str(error)) from error
    print(f"{path}\nnow: convattn verify --claim {given.claim}")
    return SUCCESS


if __name__ == "__main__":
    sys.exit(guarded(PROGRAM, lambda: record(sys.argv[1:])))
