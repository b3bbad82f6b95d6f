"""``convattn ledger``: print the ledger as Markdown without running anything."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from convattn.cli.output import require_outputs
from convattn.cli.running import FAILED, SUCCESS, Flag, Proofs, option
from convattn.files import write_file
from convattn_ledger.commands.verify import find_proofs
from convattn_ledger.document import render, render_errata
from convattn_ledger.locations import proofs_directory


@dataclass(frozen=True)
class Ledger:
    """Print the ledger as Markdown without running anything.

    Attributes:
        output: Write to this file; default: standard output.
        errata: The errata of the papers instead.
    """

    output: Annotated[Path | None, option("FILE")] = None
    errata: Flag = False
    proofs: Proofs = None

    def __call__(self) -> int:
        """Print the ledger, or write it to a file.

        Returns:
            0, or 1 if a proof file could not be loaded.
        """
        read = (self.proofs or proofs_directory()).rglob("*")
        require_outputs({"--output": self.output}, {"--proofs": read})
        try:
            text = (render_errata if self.errata else render)(find_proofs(self.proofs))
        except ValueError as error:
            print(f"convattn ledger: {error}", file=sys.stderr)
            return FAILED
        if self.output is None:
            sys.stdout.write(text)
        else:
            write_file(self.output, text.encode())
        return SUCCESS
