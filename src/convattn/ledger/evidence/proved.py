"""Evidence of level PROVED: a theorem of ``proofs/coq/``, quoted whole, which Coq has checked."""

from pathlib import PurePosixPath

from convattn.ledger.claim import Evidence, Level
from convattn.ledger.coq.axioms import ALLOWED, stated
from convattn.ledger.coq.quotation import Quotation


def proved(file: str, statement: str) -> Evidence:
    """The theorem of one file, for all sizes.

    Args:
        file: The file, under `proofs/coq/`.
        statement: Its theorem as it stands there, from `Theorem` to the full stop. White space does
            not count, so that lines may be broken.

    The check fails if the source says something else. It passes if the last `convattn prove` has
    checked these very sources, and is not run if there was none: it takes minutes, and Coq.

    >>> proved("sharpened/finite.v", "Theorem finite : True.").name
    'machine-checked: finite'
    """
    assumes = "Coq's kernel" + (f"; {stated(file)}" if file in ALLOWED else "")
    name = f"machine-checked: {PurePosixPath(file).stem}"
    return Evidence(name, Level.PROVED, Quotation(file, statement), assumes)
