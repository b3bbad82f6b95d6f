"""The claims on adaptive bases (Andreoli, Section 3): what they state, and that plants are seen."""

import pytest
from planted_claims import PLANTED_ELSEWHERE, load, piece_of, require_failure
from proofs.andreoli2019_attention_plants import PLANTS

FOLDER = "andreoli2019"
CLAIMS = ("attention", "biaffine", "gat", "transformer", "shiftheads")
PIECES = [(name, piece) for name in CLAIMS for piece in load(FOLDER, name).evidence]


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: f"{plant[0]}: {plant[1]}")
def test_a_planted_error_is_seen(plant, monkeypatch) -> None:
    name, title, where, change = plant
    piece, run = piece_of(FOLDER, name, title)
    require_failure(monkeypatch, piece, run, where, change)


@pytest.mark.parametrize(("name", "piece"), PIECES, ids=lambda value: getattr(value, "name", value))
def test_every_piece_has_a_planted_error(name, piece) -> None:
    planted = {(name, title) for name, title, *_ in PLANTS}
    assert piece.level in PLANTED_ELSEWHERE or (name, piece.name) in planted
