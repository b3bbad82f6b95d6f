"""docs/glossary.md names files that exist, and so do the links of README.md, from anywhere."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
HOME = PROJECT["urls"]["Repository"]
RAW = HOME.replace("github.com", "raw.githubusercontent.com") + "/main/"
NAMED = re.findall(r"`([\w/]+\.py)`", (ROOT / "docs" / "glossary.md").read_text("utf-8"))


def test_every_file_that_the_glossary_names_exists() -> None:
    assert len(NAMED) > 30
    homes = (ROOT / "src" / "convattn", ROOT / "src", ROOT)
    missing = [name for name in NAMED if not any((home / name).exists() for home in homes)]
    assert not missing


def broken_links(text: str) -> list[str]:
    """Links that a package index cannot follow, or that lead to no file of the repository."""
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    targets += re.findall(r'(?:src|srcset)="([^"]+)"', text)
    broken = []
    for target in targets:
        path = target.partition("#")[0]
        for start in (f"{HOME}/blob/main/", f"{HOME}/tree/main/", RAW):
            if path.startswith(start) and not (ROOT / path.removeprefix(start)).exists():
                broken.append(target)
        if not target.startswith(("https://", "#")):
            broken.append(target)
    return broken


def test_the_links_of_the_readme_work_on_a_package_index() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert text.count(f"{HOME}/blob/main/docs/") > 20
    assert broken_links(text) == []
    assert broken_links(f"[a](docs/trust.md) [b]({HOME}/blob/main/gone.md) [c](#d)") == [
        "docs/trust.md",
        f"{HOME}/blob/main/gone.md",
    ]
