"""Evidence of level PROVED: a theorem of ``proofs/coq/``, which Coq has checked."""

from functools import partial
from pathlib import PurePosixPath

from convattn_ledger.claim import Evidence, Level
from convattn_ledger.coq.axioms import ALLOWED, stated
from convattn_ledger.coq.statements import statement
from convattn_ledger.coq.theorem_check import TheoremCheck


def proved(file: str, *, covers: str = "") -> Evidence:
    """The theorem of one file, for all sizes.

    The check passes if the last ``convattn prove`` has checked these very sources, and is not run
    if there was none: it takes minutes, and Coq.

    Args:
        file: The file, under ``proofs/coq/``; its statement is read from there.
        covers: Which clauses of the claim the theorem states; all of them if empty.

    Returns:
        The evidence, named after the file.

    Example:
        >>> proved("sharpened/finite.v").name
        'machine-checked: finite'
    """
    assumes = "Coq's kernel" + (f"; {stated(file)}" if file in ALLOWED else "")
    name = f"machine-checked: {PurePosixPath(file).stem}"
    return Evidence(
        name,
        Level.PROVED,
        TheoremCheck(file, covers),
        assumes,
        covers=covers,
        theorem=partial(statement, file),
        files=(f"proofs/coq/{file}",),
    )
