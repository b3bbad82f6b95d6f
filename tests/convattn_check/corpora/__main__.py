"""``python -m corpora``: write tests/incorrect/ and tests/correct/ anew."""

import os
from pathlib import Path

from corpora import (
    false_attention,
    false_bounds,
    false_counterexamples,
    false_forms,
    false_geometry,
    false_identities,
    false_kernels,
    false_labels,
    false_layer_labels,
    true_bounds,
    true_equality,
    true_others,
)
from corpora.entry import ROOT, Entry, manifest

INCORRECT = [
    *false_forms.ENTRIES,
    *false_layer_labels.ENTRIES,
    *false_labels.ENTRIES,
    *false_geometry.ENTRIES,
    *false_attention.ENTRIES,
    *false_bounds.ENTRIES,
    *false_kernels.ENTRIES,
    *false_counterexamples.ENTRIES,
    *false_identities.ENTRIES,
]
CORRECT = [*true_equality.ENTRIES, *true_bounds.ENTRIES, *true_others.ENTRIES]
ABOUT = {
    "incorrect": "Certificates that a checker must refuse. What `code` and `reason` say is what "
    "convattn_check answers: a rejection code, and a part of the reason.",
    "correct": "Certificates at the edges of the format that a checker must accept. `reason` is a "
    "part of the sentence that convattn_check gives, `steps` what it counts against its bounds.",
}


def files(folder: str, entries: list[Entry]) -> dict[str, bytes]:
    """What stands in a corpus, by file name."""
    found = {each.file: each.content for each in entries if each.content is not None}
    return found | {"manifest.json": manifest(entries, ABOUT[folder]).encode()}


CORPORA = {"incorrect": files("incorrect", INCORRECT), "correct": files("correct", CORRECT)}


def write(content: bytes, path: Path) -> None:
    """Beside its place, then there: never half a file."""
    beside = path.with_name(path.name + ".part")
    beside.write_bytes(content)
    os.replace(beside, path)


if __name__ == "__main__":
    for name, contents in CORPORA.items():
        place = ROOT / name
        place.mkdir(exist_ok=True)
        for file, content in contents.items():
            write(content, place / file)
        for other in place.glob("*.json"):
            if other.name not in contents:
                other.unlink()
        print(f"{len(contents)} files in {place}")
