"""Hooks of the site (mkdocs.yml): addresses, links that leave docs/, statements shown where they stand.

- The repository's address and the site's are read from `[project.urls]` of pyproject.toml.
- `[text](../src/x.py)` becomes a link to the repository, if the file exists.
- `<!-- shown: PATH PART -->` is followed by that part of a proof file, a Coq file or a certificate.
- `<!-- names: PACKAGE -->` is followed by the reference of each name that the package exports.
- CONTRIBUTING.md and CHANGELOG.md become pages, and build/report/ a part of the site.
"""

import ast
import logging
import posixpath
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Link, Navigation, Section

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "build" / "report" / "index.html"
PAGES = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
COLAB = "https://colab.research.google.com/github"
log = logging.getLogger("mkdocs.hooks.site")
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)\s#]+)(#[^)\s]*)?(?=\))")
_FENCED = re.compile(r"(?m)^(```|~~~).*?^\1", re.DOTALL)
_SHOWN = re.compile(r"<!-- (shown|names): (\S+) ?(\w*) -->")


def addresses(root: Path = ROOT) -> tuple[str, str]:
    """The repository's address and the site's."""
    urls = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
    return urls["Repository"].rstrip("/"), urls["Documentation"].rstrip("/") + "/"


def colab(notebook: str) -> str:
    """Where Colab opens a notebook of the repository."""
    return f"{COLAB}{urlsplit(addresses()[0]).path}/blob/main/{notebook}"


def linked(markdown: str, source: str, root: Path = ROOT) -> tuple[str, list[str]]:
    """A page with its links as the site needs them, and the links that lead nowhere.

    Args:
        markdown: The page.
        source: Its path in the repository.
        root: The repository.
    """
    repository, broken = addresses(root)[0], []
    served = {f"docs/{page}": file for page, file in PAGES.items()}
    here = next((page for page, file in served.items() if file == source), source)

    def target(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1]))
        anchor = match[2] or ""
        if not (root / path).exists():
            broken.append(match[1])
            return match[0]
        path = next((page for page, file in served.items() if file == path), path)
        if path.startswith("docs/") and not (root / path).is_dir():
            return posixpath.relpath(path, posixpath.dirname(here)) + anchor
        return f"{repository}/{'tree' if (root / path).is_dir() else 'blob'}/main/{path}{anchor}"

    parts, end = [], 0
    for fence in _FENCED.finditer(markdown):
        parts += [_LINK.sub(target, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, _LINK.sub(target, markdown[end:])]), broken


def exported(package: str) -> Iterator[tuple[str, str]]:
    """The names that a package re-exports, each with the path of what it names."""
    tree = ast.parse((ROOT / "src" / Path(*package.split(".")) / "__init__.py").read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(package):
            for alias in node.names:
                if alias.asname == alias.name:
                    yield alias.name, f"{node.module}.{alias.name}"


def shown(path: str, part: str) -> str:
    """A part of a file of the repository, as Markdown; nothing is written down twice.

    Args:
        path: A proof file, a Coq file or a certificate.
        part: A section of a proof file (`printed`, `verified`, `repair`, `proof`), its `verdict` or its
            `evidence`; the `theorem` of a Coq file, or what it `assumes`; the checker's `verdict`.
    """
    file = ROOT / path
    if file.suffix == ".v":
        from convattn.ledger.coq.axioms import stated
        from convattn.ledger.coq.statements import statement

        name = path.removeprefix("proofs/coq/")
        return f"*{stated(name)}*" if part == "assumes" else f"```coq\n{statement(name)}\n```"
    if file.suffix == ".json":
        from convattn_check import check

        verdict = check(file.read_bytes())
        return f"```text\n{'ACCEPT' if verdict.accepted else 'REJECT'}  {verdict.reason}\n```"
    from convattn.ledger.discovery import load_claim, parse_statement
    from convattn.ledger.document import escape, evidence_table

    if part in ("verdict", "evidence"):
        claim, _ = load_claim(file)
        return f"**{claim.verdict}**" if part == "verdict" else "\n".join(evidence_table(claim))
    statement = parse_statement(ast.get_docstring(ast.parse(file.read_text("utf-8"))))
    return "\n".join(f"> {line}" for line in escape(getattr(statement, part)).splitlines())


def filled(markdown: str) -> str:
    """A page with what its marks ask for after them."""

    def content(match: re.Match[str]) -> str:
        if match[1] == "shown":
            return shown(match[2], match[3])
        return "\n\n".join(f"::: {path}" for _, path in sorted(exported(match[2])))

    return _SHOWN.sub(content, markdown)


def on_config(config: Any) -> Any:
    """Set the addresses."""
    config.repo_url, config.site_url = addresses()
    config.repo_name = urlsplit(config.repo_url).path.strip("/")
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that stand outside docs/, and the report if it has been made."""
    for page, source in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    if REPORT.is_file():
        files.append(File.generated(config, "report/index.html", abs_src_path=str(REPORT)))
    return files


def on_nav(nav: Navigation, **_: Any) -> Navigation:
    """Link the report from the ledger's section."""
    for section in nav.items:
        if isinstance(section, Section) and section.title == "Ledger" and REPORT.is_file():
            section.children.insert(0, Link("The report", "report/index.html"))
    return nav


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in what stands elsewhere, then rewrite the links."""
    source = PAGES.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    text, broken = linked(filled(markdown), source)
    for link in broken:
        log.warning("%s links to %s, which does not exist", source, link)
    return text


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Give a notebook its badge."""
    if not page.file.src_uri.endswith(".ipynb"):
        return html
    address = colab(f"docs/{page.file.src_uri}")
    return f'<p><a class="md-button" href="{address}">Open in Colab</a></p>\n{html}'
