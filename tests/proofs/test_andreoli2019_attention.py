"""The claims on adaptive bases (Andreoli, Section 3): what they state, and that plants are seen."""

from pathlib import Path

import pytest
from planted_claims import load, piece_of, require_certificates, require_failure
from proofs.andreoli2019_attention_plants import PLANTS

from convattn.ledger import Kind, Level, Run, Verdict
from convattn.ledger.locations import certificates_directory

FOLDER = "andreoli2019"
CLAIMS = {  # name: verdict
    "attention": "amended",
    "biaffine": "holds",
    "gat": "holds",
    "transformer": "holds",
    "shiftheads": "holds",
}
PIECES = [(name, piece) for name in CLAIMS for piece in load(FOLDER, name).evidence]


@pytest.mark.parametrize("name", CLAIMS)
def test_claims_are_as_stated(name) -> None:
    claim = load(FOLDER, name)
    assert claim.id == f"A19.{name}"
    assert claim.verdict is Verdict(CLAIMS[name])
    assert claim.kinds == (Kind("identity"),)
    assert claim.source.startswith("Andreoli 2019, ")


@pytest.mark.parametrize("name", CLAIMS)
def test_something_is_quick_and_passes(name) -> None:
    claim = load(FOLDER, name)
    quick = [piece for piece in claim.evidence if piece.quick]
    assert quick
    for piece in quick:
        assert piece.level is not Level.BOUNDED  # those run in `verify`
        assert piece.check(Run(1, True, certificates_directory(), claim.id, piece.name))


@pytest.mark.parametrize(
    ("name", "piece"),
    [pair for pair in PIECES if pair[1].level is Level.CERTIFIED],
    ids=lambda value: getattr(value, "name", value),
)
def test_without_certificates_nothing_is_certified(name, piece, tmp_path) -> None:
    require_certificates(piece, Run(0, True, Path(tmp_path), f"A19.{name}", piece.name))


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: f"{plant[0]}: {plant[1]}")
def test_a_planted_error_is_seen(plant, monkeypatch) -> None:
    name, title, where, change = plant
    piece, run = piece_of(FOLDER, name, title)
    require_failure(monkeypatch, piece, run, where, change)


@pytest.mark.parametrize(("name", "piece"), PIECES, ids=lambda value: getattr(value, "name", value))
def test_every_piece_has_a_planted_error(name, piece) -> None:
    planted = {(name, title) for name, title, *_ in PLANTS}
    assert piece.level is Level.CERTIFIED or (name, piece.name) in planted
