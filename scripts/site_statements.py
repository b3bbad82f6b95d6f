"""Statements, evidence and names in pages, taken from where they stand.

- `<!-- shown: PATH PART -->` asks for that part of a proof file, a Coq file or a certificate. It
  stands between this mark and `<!-- end -->`, so that GitHub shows it too.
- `<!-- names: PACKAGE -->` asks for the reference of each name that the package exports. It is
  filled in when the site is built.

Usage: python scripts/site_statements.py docs/trust.md [...]

writes what the pages show anew.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_SHOWN = re.compile(r"(<!-- shown: (\S+) (\w+) -->)(.*?)(<!-- end -->)", re.DOTALL)
_NAMES = re.compile(r"<!-- names: (\S+) -->")


def exported(package: str) -> Iterator[tuple[str, str]]:
    """The names that a package re-exports, each with the path of what it names."""
    tree = ast.parse((ROOT / "src" / Path(*package.split(".")) / "__init__.py").read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(package):
            for alias in node.names:
                if alias.asname == alias.name:
                    yield alias.name, f"{node.module}.{alias.name}"


def render(path: str, field: str) -> str:
    """A part of a file of the repository, as Markdown.

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
    lines = escape(getattr(sections, field)).splitlines()
    return "\n".join(f"> {line}".rstrip() for line in lines)


def refreshed(markdown: str) -> str:
    """A page in which what it shows is as in the files."""

    def content(match: re.Match[str]) -> str:
        start, path, field, before, end = match.groups()
        space = "\n\n" if "\n" in before else ""
        return f"{start}{space}{render(path, field)}{space}{end}"

    return _SHOWN.sub(content, markdown)


def filled(markdown: str) -> str:
    """A page as the site shows it."""

    def names(match: re.Match[str]) -> str:
        return "\n\n".join(f"::: {path}" for _, path in sorted(exported(match[1])))

    return _NAMES.sub(names, refreshed(markdown))


def main() -> None:
    """Write each page anew."""
    for page in map(Path, sys.argv[1:]):
        page.write_text(refreshed(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
