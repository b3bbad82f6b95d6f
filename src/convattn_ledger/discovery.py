"""Finding the claims: one proof file each, ``<proofs>/<paper>/<name>.py``.

A proof file defines ``CLAIM`` and has a docstring with sections, each opened by its name at the
start of a line and a full stop or a colon::

    Lemma 1: one head per tap.

    Claimed. In one plain sentence, what the paper says.
    True. In one more, what became of it.

    Printed. What the paper says.

    Verified. What is true, in the same notation.

    Repair. What had to change, or "Nothing to repair." in place of the section.

    Errata.
    - where | what is printed there | what should be | further claims

    Proof. Why it is true.

Errata may be left out.

Each file stands alone: it is loaded under a private module name and cannot import its neighbours. A
file that cannot be loaded is kept, with the problem, so that it shows up as a failing row and not
as a crash or, worse, not at all.
"""

import hashlib
import importlib.util
import inspect
import re
import sys
import traceback
from dataclasses import dataclass, replace
from pathlib import Path

from convattn_ledger.claim import Claim

PAPERS = {
    "C20": "Cordonnier, Loukas, Jaggi 2020",
    "L21": "Li et al. 2021",
    "A19": "Andreoli 2019",
    "B19": "Barkan 2019",
    "S": "sharpened here",
    "N": "newer papers",
}
_NOT_CLAIMS = ("coq",)
_HEADING = re.compile(
    r"(?P<name>Claimed|True|Printed|Verified|Repair|Nothing to repair|Errata|Proof)[.:]"
    r"(?:\s+(?P<text>.*))?"
)
_BRIEF = ("Claimed", "True")
_REQUIRED = (*_BRIEF, "Printed", "Verified", "Repair", "Proof")
MAX_BRIEF = 220  # characters


@dataclass(frozen=True)
class Erratum:
    """A passage of a paper, and what should stand there.

    Attributes:
        where: The place in the paper.
        printed: What stands there.
        correction: What should.
        further: Ids of other claims that bear on it.
    """

    where: str
    printed: str
    correction: str
    further: tuple[str, ...] = ()


@dataclass(frozen=True)
class Statement:
    """The sections of a proof file's docstring.

    Attributes:
        title: What stands before the first section.
        claimed: In one plain sentence, what the paper says.
        true: In one plain sentence, what is true of it.
        printed: What the paper says.
        verified: What was verified.
        repair: What had to be changed; starts with "Nothing to repair." if nothing had.
        proof: Why it is true.
        errata: Passages of the paper to be corrected.
    """

    title: str
    claimed: str
    true: str
    printed: str
    verified: str
    repair: str
    proof: str
    errata: tuple[Erratum, ...] = ()


@dataclass(frozen=True)
class Proof:
    """A proof file: its claim and statement, or the problem that kept them from being loaded.

    Attributes:
        path: The file.
        label: What to call it: its path under the proofs directory.
        claim: Its claim; ``None`` if the problem is that there is none.
        statement: The sections of its docstring.
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


def parse_statement(docstring: str | None) -> Statement:
    """Split a proof file's docstring into its sections.

    Args:
        docstring: The module's docstring.

    Raises:
        ValueError: If the docstring is missing, a section is missing, empty or there twice, or the
            errata cannot be read.

    Example:
        >>> text = '''Softmax rows sum to one.
        ...
        ... Claimed. Attention weights sum to one.
        ... True. They do, unless all scores are minus infinity.
        ...
        ... Printed. They do.
        ...
        ... Verified. They do, if one score is finite.
        ...
        ... Repair: ask for one finite score.
        ...
        ... Proof. The denominator is then positive.'''
        >>> parse_statement(text).repair
        'ask for one finite score.'
    """
    title: list[str] = []
    sections: dict[str, list[str]] = {}
    current = title
    for line in inspect.cleandoc(docstring or "").splitlines():
        heading, text = _HEADING.fullmatch(line), line
        if heading:
            name, text = heading["name"], heading["text"] or ""
            if name == "Nothing to repair":
                name, text = "Repair", f"Nothing to repair. {text}".strip()
            if name in sections:
                raise ValueError(f"the docstring has the section {name!r} twice; keep one")
            current = sections[name] = []
        current.append(text)
    texts = {name: "\n".join(lines).strip() for name, lines in sections.items()}
    missing = [name for name in _REQUIRED if not texts.get(name)]
    if missing:
        raise ValueError(
            f"the docstring lacks {' and '.join(missing)}, or leaves it empty, but expected the "
            f"sections {', '.join(_REQUIRED)}, each opened by its name at the start of a line, "
            "such as 'Printed. ...'; 'Nothing to repair.' may stand for Repair"
        )
    for name in _BRIEF:
        if len(" ".join(texts[name].split())) > MAX_BRIEF:
            raise ValueError(
                f"the section {name} has more than {MAX_BRIEF} characters, but expected one plain "
                "sentence; the sections Printed and Verified have room for the rest"
            )
    return Statement(
        title="\n".join(title).strip(),
        claimed=texts["Claimed"],
        true=texts["True"],
        printed=texts["Printed"],
        verified=texts["Verified"],
        repair=texts["Repair"],
        proof=texts["Proof"],
        errata=_errata(texts.get("Errata", "")),
    )


def _errata(text: str) -> tuple[Erratum, ...]:
    """The items of the section, each a line and its continuations."""
    errata = []
    for item in re.split(r"^- ", text, flags=re.MULTILINE)[1:]:
        parts = [part.strip() for part in " ".join(item.split()).split(" | ")]
        if len(parts) not in (3, 4) or not all(parts):
            raise ValueError(
                f"the docstring's errata hold {item.strip()!r}, but expected 'where | printed | "
                "correction', and ' | further claims' at most"
            )
        where, printed, correction, *further = parts
        ids = tuple(further[0].split(", ")) if further else ()
        errata.append(Erratum(where, printed, correction, ids))
    if text and not errata:
        raise ValueError("the docstring's errata have no item; begin each with '- '")
    return tuple(errata)


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
            f"the file defines CLAIM={claim!r}, but expected a convattn_ledger.Claim; "
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
