"""docs/glossary.md names files that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMED = re.findall(r"`([\w/]+\.py)`", (ROOT / "docs" / "glossary.md").read_text("utf-8"))


def test_every_file_that_the_glossary_names_exists() -> None:
    assert len(NAMED) > 30
    homes = (ROOT / "src" / "convattn", ROOT)
    missing = [name for name in NAMED if not any((home / name).exists() for home in homes)]
    assert not missing
