"""The table of docs/proofs.md: claim, file, theorem, assumptions. Nothing is compiled for it."""

from collections.abc import Sequence

from convattn.ledger.coq.axioms import stated
from convattn.ledger.coq.project import Project
from convattn.ledger.coq.run import named_theorems
from convattn.ledger.coq.source import scan
from convattn.ledger.discovery import Proof

BEGIN = "<!-- table: convattn prove --table docs/proofs.md -->"
END = "<!-- end of the table -->"


def render(project: Project, claims: Sequence[Proof]) -> str:
    """The table as Markdown: the claims in their order, then the theorems that none names.

    Args:
        project: The sources.
        claims: The claims.

    Raises:
        ValueError: If a claim could not be loaded, names no theorem of the sources, or a source
            has no theorem where it must.
    """
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
        for _, claim, file in named_theorems(claims)
    ]
    for claim, file in rows:
        if file not in theorems:
            raise ValueError(f"{claim} names {file}, which has no theorem")
    named = {file for _, file in rows}
    rows += [
        ("the checker" if file.startswith("checker/") else "none", file)
        for file in theorems
        if file not in named
    ]
    lines = ["| claim | file | theorem | assumptions |", "|---|---|---|---|"]
    lines += [
        f"| {claim} | [`{file}`](../proofs/coq/{file}) | `{theorems[file]}` | {stated(file)} |"
        for claim, file in rows
    ]
    count = len({claim for _, claim, _ in named_theorems(claims)})
    lines += ["", f"{len(theorems)} theorems; {count} claims are PROVED."]
    return "\n".join(lines) + "\n"


def with_table(document: str, table: str) -> str:
    """A document with its table replaced.

    Args:
        document: The text, with one table between two marks.
        table: The new table.

    Raises:
        ValueError: If the marks are not there once each.
    """
    if document.count(BEGIN) != 1 or document.count(END) != 1:
        raise ValueError(f"the document must have the lines {BEGIN!r} and {END!r} once each")
    before, rest = document.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table}\n{END}{rest.split(END)[1]}"


def _anchor(claim: str) -> str:
    return claim.lower().replace(".", "")
