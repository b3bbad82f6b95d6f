"""Every quotation in a proof file stands in one of the four papers, word for word up to symbols."""

import ast
import functools
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from convattn_ledger.locations import proofs_directory
from convattn_ledger.quotations import quotations, stands

HERE = Path(__file__).parent
KNOWN = np.load(HERE / "quotations.npy")
# Of the newer papers, whose texts were read elsewhere and in part: digests of what is quoted.
ELSEWHERE = json.loads((HERE / "quotations_elsewhere.json").read_text("utf-8"))
FILES = sorted(proofs_directory().glob("*/*.py"))


@functools.cache
def quoted(file: Path) -> list[list[str]]:
    """The quotations in the docstring of a proof file."""
    return list(quotations(ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""))


def digest(quotation: list[str]) -> str:
    """Of one quotation."""
    return hashlib.sha256(" ".join(quotation).encode()).hexdigest()[:16]


@pytest.mark.quick(20)
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_quotations_stand_in_the_papers(file: Path) -> None:
    elsewhere = ELSEWHERE.get(f"{file.parent.name}/{file.name}", {"quotations": []})
    lost = [
        " ".join(quotation)
        for quotation in quoted(file)
        if not stands(quotation, KNOWN) and digest(quotation) not in elsewhere["quotations"]
    ]
    assert lost == []


def test_what_was_read_elsewhere_is_of_newer_papers_and_still_quoted() -> None:
    for name, entry in ELSEWHERE.items():
        assert name.startswith("newer/")
        assert "arXiv:" in entry["source"]
        assert set(entry["quotations"]) == {
            digest(quotation)
            for quotation in quoted(proofs_directory() / name)
            if not stands(quotation, KNOWN)
        }


@pytest.mark.parametrize(
    "text",
    [
        '"Our proposed training pipeline largely improves performance"',
        '"every pair and triplet of words to attend all other pairs and triplets"',
        '"easily generalised"',
        '"The correct way to alleviate these effects is to pad the input image"',
    ],
)
def test_a_word_that_differs_is_found(text: str) -> None:
    assert not all(stands(quotation, KNOWN) for quotation in quotations(text))


def test_enough_is_quoted() -> None:
    quotations = [quotation for file in FILES for quotation in quoted(file) if len(quotation) > 1]
    assert len(quotations) > 120
