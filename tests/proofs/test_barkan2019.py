"""The claims of Barkan: what they state, and that checks fail on planted errors."""

import pytest
from planted_claims import PLANTED_ELSEWHERE, load, piece_of, require_failure
from proofs.barkan2019_plants import PLANTS

CLAIMS = ("lemma1", "softmax", "sa2d", "sac", "msac", "language", "cross")
PIECES = [(name, piece) for name in CLAIMS for piece in load("barkan2019", name).evidence]


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: f"{plant[0]}: {plant[1]}")
def test_a_planted_error_is_seen(plant, monkeypatch) -> None:
    name, title, where, change = plant
    piece, run = piece_of("barkan2019", name, title)
    require_failure(monkeypatch, piece, run, where, change)


@pytest.mark.parametrize(("name", "piece"), PIECES, ids=lambda value: getattr(value, "name", value))
def test_every_piece_has_a_planted_error(name, piece) -> None:
    planted = {(name, title) for name, title, *_ in PLANTS}
    assert piece.level in PLANTED_ELSEWHERE or (name, piece.name) in planted
