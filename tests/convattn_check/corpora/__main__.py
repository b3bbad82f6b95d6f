"""``python -m corpora``: write the certificates of tests/incorrect/ and tests/correct/ again."""

import os
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

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
from corpora.manifests import ROOT

FALSE = (
    *(false_forms, false_layer_labels, false_labels, false_geometry, false_attention),
    *(false_bounds, false_kernels, false_counterexamples, false_identities),
)
TRUE = (true_equality, true_bounds, true_others)


def files(modules: Iterable[ModuleType]) -> dict[str, bytes]:
    """The certificates of a corpus, by the names of their files."""
    return {f"{name}.json": text for each in modules for name, text in each.CERTIFICATES.items()}


CORPORA = {"incorrect": files(FALSE), "correct": files(TRUE)}


def write(content: bytes, path: Path) -> None:
    """Beside its place, then there: never half a file."""
    beside = path.with_name(path.name + ".part")
    beside.write_bytes(content)
    os.replace(beside, path)


if __name__ == "__main__":
    for folder, contents in CORPORA.items():
        for file, content in contents.items():
            write(content, ROOT / folder / file)
        for other in (ROOT / folder).glob("*.json"):
            if other.name not in {*contents, "manifest.json"}:
                other.unlink()
        print(f"{len(contents)} files in {ROOT / folder}")
