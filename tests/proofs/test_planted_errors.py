"""Every check of a claim turns red on an error that is planted for it.

A plant is the claim, the piece of evidence that must fail, what is replaced (a dotted name within
`convattn`, or a name of the proof file itself) and a change, which takes what stands there and
returns what is to stand there instead. Errors in certificates are planted in tests/convattn_check/,
those in theorems in tests/ledger/coq/, and what pieces made by one function share in that
function's tests.
"""

import importlib
from pathlib import Path

import pytest
from proofs.plants.planting import require_failure

from convattn_ledger import Level, Verdict
from convattn_ledger.discovery import load_claim
from convattn_ledger.locations import proofs_directory

# The name of a file of plants begins with the folder of its claims.
TABLES = {
    path.stem: importlib.import_module(f"proofs.plants.{path.stem}")
    for path in sorted(Path(__file__).with_name("plants").glob("*.py"))
}
PLANTS = [
    (name.partition("_")[0], *plant)
    for name, table in TABLES.items()
    for plant in getattr(table, "PLANTS", ())
]
PLANTED_ELSEWHERE = (Level.CERTIFIED, Level.PROVED)
TWICE = ("C20.lemma2", "distance on images")  # its quick form is planted in
SHARED_MAKERS = ("layer_runs", "enclosures")  # tests/ledger/evidence/ plants in their pieces


@pytest.mark.slow
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: f"{plant[1]}: {plant[2]}")
def test_a_planted_error_is_seen(plant, monkeypatch) -> None:
    require_failure(monkeypatch, *plant)


def test_every_piece_has_a_planted_error() -> None:
    planted = {plant[:3] for plant in PLANTS}
    for path in sorted(proofs_directory().glob("*/*.py")):
        folder, name = path.parent.name, path.stem
        claim, _ = load_claim(path)
        if claim.verdict is Verdict.NOT_RUN:  # a file of their own
            continue
        for piece in claim.evidence:
            maker = piece.check.__module__.rpartition(".")[2]
            elsewhere = piece.level in PLANTED_ELSEWHERE or maker in SHARED_MAKERS
            elsewhere |= (claim.id, piece.name) == TWICE
            assert elsewhere or (folder, name, piece.name) in planted, (claim.id, piece.name)
