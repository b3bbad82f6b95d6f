"""For the site: statements, evidence and names, taken from where they stand.

- `<!-- shown: PATH PART -->` gives way to that part of a proof file, a Coq file or a certificate.
- `<!-- names: PACKAGE -->` gives way to the reference of each name that the package exports.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_MARK = re.compile(r"<!-- (shown|names): (\S+) ?(\w*) -->")


def exported(package: str) -> Iterator[tuple[str, str]]:
    """The names that a package re-exports, each with the path of what it names."""
    tree = ast.parse((ROOT / "src" / Path(*package.split(".")) / "__init__.py").read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(package):
            for alias in node.names:
                if alias.asname == alias.name:
                    yield alias.name, f"{node.module}.{alias.name}"


def render(path: str, field: str) -> str:
    """A part of a file of the repository, as Markdown; nothing is written down twice.

    Args:
        path: A proof file, a Coq file or a certificate.
        field: A section of a proof file (`printed`, `verified`, `repair`, `proof`), its `verdict`
            or its `evidence`; the `theorem` of a Coq file, or what it `assumes`; the checker's
            `verdict`.
    """
    from convattn_ledger.document import escape, evidence_table

    file = ROOT / path
    if file.suffix == ".v":
        from convattn_ledger.coq.axioms import stated
        from convattn_ledger.coq.statements import statement

        name = path.removeprefix("proofs/coq/")
        return f"*{stated(name)}*" if field == "assumes" else f"```coq\n{statement(name)}\n```"
    if file.suffix == ".json":
        from convattn_check import check

        verdict = check(file.read_bytes())
        return f"> **{'ACCEPT' if verdict.accepted else 'REJECT'}** {escape(verdict.reason)}"
    from convattn_ledger.discovery import load_claim, parse_statement

    if field in ("verdict", "evidence"):
        claim, _ = load_claim(file)
        return f"**{claim.verdict}**" if field == "verdict" else "\n".join(evidence_table(claim))
    sections = parse_statement(ast.get_docstring(ast.parse(file.read_text("utf-8"))))
    return "\n".join(f"> {line}" for line in escape(getattr(sections, field)).splitlines())


def filled(markdown: str) -> str:
    """A page with what its marks ask for."""

    def content(match: re.Match[str]) -> str:
        if match[1] == "shown":
            return render(match[2], match[3])
        return "\n\n".join(f"::: {path}" for _, path in sorted(exported(match[2])))

    return _MARK.sub(content, markdown)
