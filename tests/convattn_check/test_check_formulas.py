"""The identities are those that docs/identities.md prints for readers."""

import importlib.util
from pathlib import Path

import convattn_check

ROOT = Path(convattn_check.__file__).parents[2]


def test_the_page_has_every_identity_word_for_word():
    path = ROOT / "scripts" / "list_identities.py"
    spec = importlib.util.spec_from_file_location("list_identities", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert (ROOT / "docs" / "identities.md").read_text("utf-8") == script.page()
