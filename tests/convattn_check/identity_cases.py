"""Certificates of the kind `identity`: the committed ones, read as files."""

import json
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "certificates"


def committed_identities():
    """File name without its suffix, and certificate."""
    for path in sorted(FOLDER.glob("*.json")):
        certificate = json.loads(path.read_text())
        if certificate["kind"] == "identity":
            yield path.stem, certificate


IDENTITIES = dict(committed_identities())
