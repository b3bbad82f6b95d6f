"""The statements of the theorems, for readers: from the sources, or the copy in the package.

``python -m convattn.ledger.coq.statements`` writes the copy, `statements.json` beside this module.
"""

import json
from functools import cache
from pathlib import Path

from convattn.ledger.coq.rules import scan
from convattn.ledger.coq.sources import read_project
from convattn.ledger.locations import coq_directory

DATA = Path(__file__).with_name("statements.json")


def statement(file: str) -> str:
    """The theorem of a file, from ``Theorem`` to the full stop, without comments.

    Args:
        file: The file, under ``proofs/coq/``.

    Raises:
        ValueError: If there is no such theorem.

    Example:
        >>> statement("checker/rank.v").partition(" ")[0]
        'Theorem'
    """
    source = coq_directory() / file
    if not source.is_file():
        if file not in (known := _installed()):
            raise ValueError(f"file={file!r}, but expected a theorem such as 'sharpened/finite.v'")
        return known[file]
    theorem, failures = scan(file, source.read_text("utf-8"))
    if theorem is None:
        reason = failures[0] if failures else "it is no file of theorems"
        raise ValueError(f"file={file!r}, but expected a theorem; {reason}")
    return theorem.text


def all_statements(directory: Path) -> dict[str, str]:
    """Every statement of a folder of sources, by the file."""
    project = read_project(directory)
    theorems = (scan(file, project.text(file))[0] for file in project.files)
    return {theorem.file: theorem.text for theorem in theorems if theorem is not None}


@cache
def _installed() -> dict[str, str]:
    return json.loads(DATA.read_text("utf-8"))


if __name__ == "__main__":
    content = json.dumps(all_statements(coq_directory()), indent=1, ensure_ascii=False)
    DATA.write_text(f"{content}\n", "utf-8")
