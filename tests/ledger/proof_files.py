"""Writing tiny proof files into a directory."""

from pathlib import Path

DOCSTRING = '''"""A tiny claim.

Claimed. One is one.
True. It is.

Printed. One is one.

Verified. One is one.

Nothing to repair.

Proof. By reflexivity.
"""'''
IMPORTS = """
import os, signal, time
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, NotRunHere, Verdict

def fail(reason):
    raise EvidenceFailed(reason)

def absent(reason):
    raise NotRunHere(reason)

def error():
    raise KeyError("no such thing")
"""


def evidence(expression: str = "'1 = 1'", level: str = "TESTED", name: str = "e", **fields) -> str:
    """The source of an `Evidence` whose check returns the value of an expression in ``run``."""
    more = "".join(f", {key}={value!r}" for key, value in fields.items())
    return f"Evidence({name!r}, Level.{level}, lambda run: {expression}{more})"


def claim(
    id: str, *items: str, kinds: str = "Kind.IDENTITY", verdict: str = "HOLDS", top: str = ""
) -> str:
    """The source of a proof file."""
    inside = "".join(f"    {item},\n" for item in items or (evidence(),))
    return (
        f"{DOCSTRING}\n{IMPORTS}\n{top}\nCLAIM = Claim({id!r}, 'A source, §1', Verdict.{verdict}, "
        f"({kinds},), (\n{inside}))\n"
    )


def write(directory: Path, **files: str) -> Path:
    """Write proof files; ``paper__name`` becomes ``paper/name.py``."""
    for name, text in files.items():
        path = directory.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return directory
