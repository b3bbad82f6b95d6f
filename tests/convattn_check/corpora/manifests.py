"""What a checker is to say of each certificate, and why; the manifests are written by hand."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
MANIFESTS = {
    folder: json.loads((ROOT / folder / "manifest.json").read_text("ascii"))
    for folder in ("incorrect", "correct")
}
INCORRECT, CORRECT = (manifest["certificates"] for manifest in MANIFESTS.values())
