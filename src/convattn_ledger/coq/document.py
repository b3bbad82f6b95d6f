"""The tables of docs/proofs.md: the theorems, and the definitions that they reach.

Nothing is compiled for them: the definitions are those of the lock.
"""

from collections import Counter
from collections.abc import Sequence

from convattn_ledger.coq.axioms import ALLOWED, CLOSED, stated
from convattn_ledger.coq.lock import definitions, read_lock
from convattn_ledger.coq.rules import scan
from convattn_ledger.coq.run import named_theorems
from convattn_ledger.coq.sources import Project
from convattn_ledger.discovery import Proof
from convattn_ledger.document import link

BEGIN = "<!-- table: convattn prove --table docs/proofs.md -->"
END = "<!-- end of the table -->"


def render(project: Project, claims: Sequence[Proof]) -> str:
    """The tables as Markdown: the claims in their order, then the theorems that none names."""
    if broken := [proof.label for proof in claims if proof.problem]:
        raise ValueError(f"{', '.join(broken)} could not be loaded (convattn verify shows more)")
    theorems = []
    for file in project.files:
        theorem, failures = scan(file, project.text(file))
        if failures:
            raise ValueError(str(failures[0]))
        if theorem is not None:
            theorems.append(file)
    rows = [(link(claim), file) for _, claim, file, _ in named_theorems(claims)]
    for claim, file in rows:
        if file not in theorems:
            raise ValueError(f"{claim} names {file}, which has no theorem")
    named = {file for _, file in rows}
    others = {
        "checker": "the checker",
        "definitions": "the definitions",
        "extracted": "the second checker",
    }
    rows += [
        (others.get(file.partition("/")[0], "none"), file) for file in theorems if file not in named
    ]
    lock = read_lock(project) or {"theorems": {}}
    reached = {file: entry["definitions"] for file, entry in lock["theorems"].items()}
    listed: dict[str, list[str]] = {}
    for claim, file in rows:
        listed.setdefault(claim, []).append(f"{_link(file)} {len(reached.get(file, ()))}")
    axioms = [f"`{file}`: {stated(file)}" for file in theorems if file in ALLOWED]
    count = len({claim for _, claim, *_ in named_theorems(claims)})
    return "\n".join(
        [
            f"{len(theorems)} theorems; {count} claims are PROVED. A theorem is named as its file. "
            "A number is that of the definitions that its statement reaches.",
            "",
            f"All are {CLOSED}{', but for:' if axioms else '.'}",
            "",
            *(f"- {axiom}" for axiom in axioms),
            *([""] if axioms else []),
            "| claim | theorems |",
            "|---|---|",
            *(f"| {claim} | {', '.join(files)} |" for claim, files in listed.items()),
            "",
            *_definitions(project, reached),
            "",
        ]
    )


def _definitions(project: Project, reached: dict[str, list[str]]) -> list[str]:
    """The definitions to read, by their files, each with the number of theorems that reach it."""
    uses = Counter(name for names in reached.values() for name in names)
    known = definitions(project, project.files)
    locations = definitions(project, project.files, but=("Let", "Notation"))
    files: dict[str, list[str]] = {}
    for name in sorted(uses, key=lambda name: locations.get(name, ("", 0))):
        file, _ = locations.get(name, ("", 0))
        number = f" {uses[name]}" if uses[name] > 1 else ""
        files.setdefault(file, []).append(f"`{name.rpartition('.')[2]}`{number}")
    most = max((len(names) for names in reached.values()), default=0)
    return [
        "## The definitions to read",
        "",
        f"The statements depend on {len(uses.keys() & known)} definitions and the statements of "
        f"{len(uses.keys() - known)} lemmas; a single one on at most {most}. A number is that of "
        "the theorems whose statements depend on the name, directly or through others; without "
        "one it is a single theorem.",
        "",
        "| file | definitions |",
        "|---|---|",
        *(f"| {_link(file)} | {', '.join(names)} |" for file, names in files.items()),
    ]


def _link(file: str) -> str:
    return f"[`{file}`](../proofs/coq/{file})"


def with_table(document: str, table: str) -> str:
    """A document with its table replaced."""
    if document.count(BEGIN) != 1 or document.count(END) != 1:
        raise ValueError(f"the document must have the lines {BEGIN!r} and {END!r} once each")
    before, rest = document.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table}\n{END}{rest.split(END)[1]}"
