"""Hooks of the site (mkdocs.yml): its addresses, and links that leave docs/.

- The repository's address and the site's are read from `[project.urls]` of pyproject.toml.
- `[text](../src/x.py)` becomes a link to the repository, if the file exists.
- What a page asks for, such as `<!-- shown: PATH PART -->`, is filled in by site_statements.py.
- CONTRIBUTING.md and CHANGELOG.md become pages, and build/report/ a part of the site.
"""

import logging
import os
import posixpath
import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Link, Navigation, Section
from site_statements import filled

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "build" / "report" / "index.html"
STYLE = ROOT / "src" / "convattn_ledger" / "page" / "assets" / "style.css"
PAGES = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
COLAB = "https://colab.research.google.com/github"
log = logging.getLogger("mkdocs.hooks.site")
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)\s#]+)(#[^)\s]*)?(?=\))")
_FENCED = re.compile(r"(?m)^(```|~~~).*?^\1", re.DOTALL)


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

    pieces, end = [], 0
    for fence in _FENCED.finditer(markdown):
        pieces += [_LINK.sub(target, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*pieces, _LINK.sub(target, markdown[end:])]), broken


def on_config(config: Any) -> Any:
    """Set the addresses, and where Jupyter finds the kernel that runs the tutorials."""
    os.environ["JUPYTER_PATH"] = str(ROOT / "scripts" / "jupyter")
    config.repo_url, config.site_url = addresses()
    config.repo_name = urlsplit(config.repo_url).path.strip("/")
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that stand outside docs/, the colours, and the report if it has been made."""
    colours = re.search(r"(?ms)^:root \{.*?^\}", STYLE.read_text("utf-8"))
    files.append(File.generated(config, "colours.css", content=colours[0] if colours else ""))
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


def on_page_content(html: str, page: Any, files: Files, **_: Any) -> str:
    """Give a notebook its badge, and resolve its links, at which MkDocs does not look."""
    if not page.file.src_uri.endswith(".ipynb"):
        return html

    def resolved(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), match[1]))
        file = files.get_file_from_path(path)
        if file is None:
            log.warning("%s links to %s, which does not exist", page.file.src_uri, match[1])
            return match[0]
        return f'href="{file.url_relative_to(page.file)}{match[2] or ""}"'

    html = re.sub(r'href="([^":#]+\.(?:md|ipynb))(#[^"]*)?"', resolved, html)
    address = colab(f"docs/{page.file.src_uri}")
    return f'<p><a class="md-button" href="{address}">Open in Colab</a></p>\n{html}'


def on_post_page(output: str, config: Any, **_: Any) -> str:
    """Name the card that others show for a link, and leave out what would ask GitHub for stars."""
    card = "".join(
        f'<meta property="{name}" content="{value}">'
        for name, value in (
            ("og:title", config.site_name),
            ("og:description", config.site_description),
            ("og:image", f"{config.site_url}pictures/card.png"),
            ("twitter:card", "summary_large_image"),
        )
    )
    return output.replace('data-md-component="source"', "").replace("</head>", f"{card}</head>", 1)
