"""The site: every link and anchor resolves, statements and addresses stand in one place."""

import json
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

mkdocs_build = pytest.importorskip("mkdocs.commands.build")
pytest.importorskip("mkdocs_jupyter")
from mkdocs.config import load_config  # noqa: E402
from mkdocs.exceptions import Abort  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
sys.path.insert(0, str(ROOT / "scripts"))
import site_hooks  # noqa: E402
import site_statements  # noqa: E402


class Anchors(HTMLParser):
    """What a page links to, and where it can be entered."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.ids |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        self.links += [attributes[name] for name in ("href", "src") if attributes.get(name)]


def broken_links(site: Path) -> list[str]:
    """The links of a built site, below its own address, that lead nowhere."""
    pages = {path.resolve(): Anchors(path.read_text("utf-8")) for path in site.rglob("*.html")}
    prefix, broken = urlsplit(URLS["Documentation"]).path + "/", []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("javascript:"):
                continue
            place = unquote(parts.path)
            base = site if place.startswith(prefix) else path.parent
            target = (base / place.removeprefix(prefix)).resolve() if place else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            known = target in pages and (not anchor or anchor in pages[target].ids)
            if not known and (anchor or not target.is_file()):
                broken.append(f"{path.relative_to(site)}: {link}")
    return broken


@pytest.mark.slow
def test_the_site_builds_strictly_and_every_link_resolves(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path / "site"))
    config.plugins["mkdocs-jupyter"].config["execute"] = False  # `make docs` runs the tutorials
    mkdocs_build.build(config)
    site = (tmp_path / "site").resolve()
    assert broken_links(site) == []
    assert len([*site.rglob("index.html")]) > 30
    page = site / "start" / "index.html"
    text = page.read_text("utf-8")
    page.write_text(f'{text}<a href="../trust/#nowhere">1</a><a href="../gone/">2</a>', "utf-8")
    assert broken_links(site) == [
        "start/index.html: ../trust/#nowhere",
        "start/index.html: ../gone/",
    ]
    for text in (path.read_text("utf-8") for path in site.rglob("*.html")):
        assert not re.search(r'(?:src|<link[^>]* href)="https?://(?!convattn)', text)


@pytest.mark.slow
@pytest.mark.parametrize("planted", ["[a](gone.md)", "[a](#nowhere)", "[a](../src/gone.py)"])
def test_a_planted_link_ends_the_build(planted, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# A page\n\n{planted}\n", "utf-8")
    options = {"docs_dir": str(tmp_path / "docs"), "site_dir": str(tmp_path / "site")}
    config = load_config(str(ROOT / "mkdocs.yml"), nav=["index.md"], plugins=[], **options)
    monkeypatch.setattr(site_hooks, "PAGES", {})
    with pytest.raises(Abort):
        mkdocs_build.build(config)


def test_links_that_leave_the_pages_lead_to_the_repository():
    text = "[a](../src/convattn/files.py) [b](../proofs) [c](trust.md#x) [d](../gone.py) [e](#y)"
    linked, broken = site_hooks.linked(f"{text}\n```\n[f](gone.md)\n```\n", "docs/start.md")
    home = URLS["Repository"]
    assert (
        linked.split()
        == (
            f"[a]({home}/blob/main/src/convattn/files.py) [b]({home}/tree/main/proofs) "
            "[c](trust.md#x) [d](../gone.py) [e](#y) ``` [f](gone.md) ```"
        ).split()
    )
    assert broken == ["../gone.py"]
    assert site_hooks.linked("[a](docs/trust.md)", "CONTRIBUTING.md") == ("[a](trust.md)", [])


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        ("proofs/coq/sharpened/finite.v theorem", "```coq\nTheorem finite "),
        ("proofs/cordonnier2020/lemma1.py printed", "> N\\_h = K² heads"),
        ("certificates/C20.lemma1-K3-P1.json verdict", "> **ACCEPT** for every 3x3 kernel"),
    ],
)
def test_what_a_page_asks_for_is_taken_from_its_file(mark, expected):
    start, end = f"<!-- shown: {mark} -->", "<!-- end -->"
    page = site_statements.filled(f"{start}\n\nanother text\n\n{end}")
    assert page.startswith(f"{start}\n\n{expected}")
    assert page.endswith(f"\n\n{end}")
    assert "another text" not in page


def test_the_names_of_a_package():
    expected = "::: convattn_check.verdict.Verdict"
    assert site_statements.filled("<!-- names: convattn_check -->").startswith(expected)


def test_pages_show_what_stands_in_the_files():
    marked = 0
    for page in (ROOT / "docs").glob("*.md"):
        text = page.read_text("utf-8")
        marked += text.count("<!-- shown: ")
        assert text.count("<!-- shown: ") == text.count("<!-- end -->")
        assert site_statements.refreshed(text) == text, f"{page.name}: run make ledger"
    assert marked > 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_tutorials_are_committed_without_outputs(path):
    nbformat = pytest.importorskip("nbformat")
    notebook = json.loads(path.read_text("utf-8"))
    nbformat.validate(notebook)
    cells = notebook["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell for cell in code if cell["outputs"] or cell["execution_count"]] == []
    assert "pip install" in "".join(code[0]["source"])
    assert site_hooks.colab(path.relative_to(ROOT).as_posix()).endswith(f"/{path.name}")


def test_the_address_stands_in_one_place():
    home, site = (urlsplit(URLS[name]) for name in ("Repository", "Documentation"))
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f'repository-code: "{home.geturl()}"\nurl: "{site.geturl()}"' in citation
    words = ["git", "grep", "-lF", "-e", home.netloc + home.path, "-e", site.netloc + site.path]
    process = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert {*process.stdout.split()} <= {"CITATION.cff", "pyproject.toml", "README.md"}
