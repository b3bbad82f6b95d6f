"""Finding the claims: one proof file each, ``<proofs>/<paper>/<name>.py``.

A proof file defines ``CLAIM`` and has a docstring with four sections (see `convattn.ledger.
statement`). Each file stands alone: it is loaded under a private module name and cannot import its
neighbours. A file that cannot be loaded is kept, with the problem, so that it shows up as a failing
row and not as a crash or, worse, not at all.
"""

import hashlib
import importlib.util
import re
import sys
import traceback
from dataclasses import dataclass, replace
from pathlib import Path

from convattn.ledger.claim import Claim
from convattn.ledger.statement import Statement, parse_statement

PAPERS = {
    "C20": "Cordonnier, Loukas, Jaggi 2020",
    "L21": "Li et al. 2021",
    "A19": "Andreoli 2019",
    "B19": "Barkan 2019",
    "S": "sharpened here",
}
_NOT_CLAIMS = ("coq",)


@dataclass(frozen=True)
class Proof:
    """A proof file: its claim and statement, or the problem that kept them from being loaded.

    Attributes:
        path: The file.
        label: What to call it: its path under the proofs directory.
        claim: Its claim; ``None`` if the problem is that there is none.
        statement: Its docstring, taken apart.
        problem: Why the file is not a proof; empty if it is one.
    """

    path: Path
    label: str
    claim: Claim | None = None
    statement: Statement | None = None
    problem: str = ""

    @property
    def name(self) -> str:
        """The id of the claim, or the label if there is a problem."""
        return self.claim.id if self.claim and not self.problem else self.label


def load_claim(path: Path) -> tuple[Claim, str | None]:
    """Execute a proof file.

    Args:
        path: The file.

    Returns:
        Its claim and its docstring.

    Raises:
        ValueError: If the file defines no `Claim` named ``CLAIM``.
        BaseException: Whatever the file raises while it is executed.
    """
    path = path.resolve()
    name = f"_convattn_proof_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} cannot be loaded as a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    claim = getattr(module, "CLAIM", None)
    if not isinstance(claim, Claim):
        raise ValueError(
            f"the file defines CLAIM = {claim!r}, but expected a convattn.ledger.Claim; "
            "a file that is not a claim has a name that starts with '_'"
        )
    return claim, module.__doc__


def discover(directory: Path) -> list[Proof]:
    """Load every proof file, in the order of the ledger: by paper, then by id.

    Args:
        directory: The directory of proofs.

    Returns:
        One `Proof` for each file; those with a problem come last.

    Raises:
        NotADirectoryError: If there is no such directory.
    """
    if not directory.is_dir():
        raise NotADirectoryError(f"{directory} is not a directory")
    proofs: list[Proof] = []
    taken: dict[str, str] = {}
    for path in sorted(directory.rglob("*.py")):
        parts = path.relative_to(directory).parts
        if parts[0] in _NOT_CLAIMS or any(part.startswith(("_", ".")) for part in parts):
            continue
        proof = _load(path, "/".join(parts), misplaced=len(parts) != 2)
        if proof.claim:
            first = taken.setdefault(proof.claim.id, proof.label)
            if first != proof.label:
                problem = f"the id {proof.claim.id} is already taken by {first}"
                proof = replace(proof, problem=problem)
        proofs.append(proof)
    return sorted(proofs, key=_order)


def _load(path: Path, label: str, misplaced: bool) -> Proof:
    if misplaced:
        return Proof(path, label, problem="expected one folder a paper: <paper>/<name>.py")
    claim = None
    try:
        claim, docstring = load_claim(path)
        return Proof(path, label, claim, parse_statement(docstring))
    except KeyboardInterrupt:
        raise
    except ValueError as error:
        return Proof(path, label, claim, problem=str(error))
    except BaseException as error:
        trace = "".join(traceback.format_exception(error, limit=-3)).rstrip()
        return Proof(path, label, problem=f"cannot be imported: {error!r}\n{trace}")


def _order(proof: Proof) -> tuple[bool, int, tuple[tuple[str, int], ...]]:
    paper = proof.claim.paper if proof.claim else ""
    order = list(PAPERS)
    rank = order.index(paper) if paper in PAPERS else len(order)
    parts = re.findall(r"(\D*)(\d*)", proof.name)
    return bool(proof.problem), rank, tuple((text, int(digits or 0)) for text, digits in parts)
