"""The claims of Barkan: what they state, and that checks fail on planted errors."""

from pathlib import Path

import pytest
from planted_claims import load, piece_of, require_certificates, require_failure
from proofs.barkan2019_plants import PLANTS

from convattn.ledger import Kind, Level, Run, Verdict
from convattn.ledger.locations import certificates_directory, proofs_directory

CLAIMS = {  # name: verdict, kinds
    "lemma1": ("amended", "identity"),
    "softmax": ("amended", "identity"),
    "sa2d": ("amended", "identity"),
    "sac": ("sharpened", "identity", "layer equality", "limit"),
    "msac": ("amended", "identity"),
    "language": ("amended", "identity"),
    "cross": ("amended", "identity"),
}
PIECES = [(name, piece) for name in CLAIMS for piece in load("barkan2019", name).evidence]


@pytest.mark.parametrize("name", CLAIMS)
def test_claims_are_as_stated(name) -> None:
    claim, (verdict, *kinds) = load("barkan2019", name), CLAIMS[name]
    assert claim.id == f"B19.{name}"
    assert claim.verdict is Verdict(verdict)
    assert claim.kinds == tuple(Kind(kind) for kind in kinds)
    assert claim.source.startswith("Barkan 2019, ")


def test_every_file_of_the_paper_is_in_the_table() -> None:
    files = {path.stem for path in (proofs_directory() / "barkan2019").glob("*.py")}
    assert set(CLAIMS) == files


@pytest.mark.parametrize("name", CLAIMS)
def test_something_is_quick_and_passes(name) -> None:
    claim = load("barkan2019", name)
    quick = [piece for piece in claim.evidence if piece.quick]
    assert quick
    for piece in quick:
        assert piece.check(Run(1, True, certificates_directory(), claim.id, piece.name))


@pytest.mark.parametrize(
    ("name", "piece"),
    [pair for pair in PIECES if pair[1].level is Level.CERTIFIED],
    ids=lambda value: getattr(value, "name", value),
)
def test_without_certificates_nothing_is_certified(name, piece, tmp_path) -> None:
    require_certificates(piece, Run(0, True, Path(tmp_path), f"B19.{name}", piece.name))


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: f"{plant[0]}: {plant[1]}")
def test_a_planted_error_is_seen(plant, monkeypatch) -> None:
    name, title, where, change = plant
    piece, run = piece_of("barkan2019", name, title)
    require_failure(monkeypatch, piece, run, where, change)


@pytest.mark.parametrize(("name", "piece"), PIECES, ids=lambda value: getattr(value, "name", value))
def test_every_piece_has_a_planted_error(name, piece) -> None:
    planted = {(name, title) for name, title, *_ in PLANTS}
    assert piece.level is Level.CERTIFIED or (name, piece.name) in planted
