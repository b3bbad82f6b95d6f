"""The tables of docs/proofs.md: the theorems, and the definitions that they reach.

Nothing is compiled for them: the definitions are those of the lock.
"""

from collections import Counter
from collections.abc import Sequence

from convattn_ledger.coq.axioms import stated
from convattn_ledger.coq.lock import definitions, read_lock
from convattn_ledger.coq.rules import scan
from convattn_ledger.coq.run import named_theorems
from convattn_ledger.coq.sources import Project
from convattn_ledger.discovery import Proof

BEGIN = "<!-- table: convattn prove --table docs/proofs.md -->"
END = "<!-- end of the table -->"


def render(project: Project, claims: Sequence[Proof]) -> str:
    """The tables as Markdown: the claims in their order, then the theorems that none names."""
    if broken := [proof.label for proof in claims if proof.problem]:
        raise ValueError(f"{', '.join(broken)} could not be loaded (convattn verify shows more)")
    theorems = {}
    for file in project.files:
        theorem, failures = scan(file, project.text(file))
        if failures:
            raise ValueError(str(failures[0]))
        if theorem is not None:
            theorems[file] = theorem.name
    rows = [
        (f"[{claim}](ledger.md#{_anchor(claim)})", file)
        for _, claim, file, _ in named_theorems(claims)
    ]
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
    lines = [
        "| claim | file | theorem | assumptions | definitions |",
        "|---|---|---|---|---:|",
    ]
    lines += [
        f"| {claim} | [`{file}`](../proofs/coq/{file}) | `{theorems[file]}` | {stated(file)} | "
        f"{len(reached.get(file, ()))} |"
        for claim, file in rows
    ]
    count = len({claim for _, claim, *_ in named_theorems(claims)})
    lines += ["", f"{len(theorems)} theorems; {count} claims are PROVED.", ""]
    return "\n".join([*lines, *_definitions(project, reached)]) + "\n"


def _definitions(project: Project, reached: dict[str, list[str]]) -> list[str]:
    """The definitions to read, by their files, each with the number of theorems that reach it."""
    uses = Counter(name for names in reached.values() for name in names)
    known = definitions(project, project.files)
    places = definitions(project, project.files, but=("Let", "Notation"))
    files: dict[str, list[str]] = {}
    for name in sorted(uses, key=lambda name: places.get(name, ("", 0))):
        file, _ = places.get(name, ("", 0))
        files.setdefault(file, []).append(f"`{name.rpartition('.')[2]}` {uses[name]}")
    most = max((len(names) for names in reached.values()), default=0)
    return [
        "## The definitions to read",
        "",
        f"The statements reach {len(uses.keys() & known)} definitions of the {len(known)} in these "
        f"sources, and the statements of {len(uses.keys() - known)} lemmas; none more than {most}. "
        "A number is that of the theorems whose statements reach the name, directly or through "
        "others.",
        "",
        "| file | definitions |",
        "|---|---|",
        *(f"| [`{file}`](../proofs/coq/{file}) | {', '.join(n)} |" for file, n in files.items()),
    ]


def with_table(document: str, table: str) -> str:
    """A document with its table replaced."""
    if document.count(BEGIN) != 1 or document.count(END) != 1:
        raise ValueError(f"the document must have the lines {BEGIN!r} and {END!r} once each")
    before, rest = document.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table}\n{END}{rest.split(END)[1]}"


def _anchor(claim: str) -> str:
    return claim.lower().replace(".", "")
