"""``convattn ledger``: print the ledger as Markdown without running anything."""

import sys
from pathlib import Path

from convattn.cli.output_file import require_writable, write_file
from convattn.cli.verify import find_proofs
from convattn.ledger.document import render


def ledger(proofs: Path | None = None, output: Path | None = None) -> int:
    """Print the ledger, or write it to a file.

    Args:
        proofs: The directory of proofs.
        output: The file to write; standard output if ``None``.

    Returns:
        0, or 1 if a proof file could not be loaded.

    Raises:
        UsageError: If the file cannot be written or there are no proofs.
    """
    if output is not None:
        require_writable(output, "--output")
    try:
        text = render(find_proofs(proofs))
    except ValueError as error:
        print(f"convattn ledger: {error}", file=sys.stderr)
        return 1
    if output is None:
        sys.stdout.write(text)
    else:
        write_file(output, text.encode())
    return 0
