"""The claims of Cordonnier et al.: what they state, and that checks fail on planted errors."""

import dataclasses
import json
import math
from pathlib import Path

import pytest
from planted_claims import require_certificates, require_failure
from proofs.cordonnier2020_plants import PLANTS

from convattn.ledger import EvidenceFailed, Kind, Level, Run, Verdict
from convattn.ledger.discovery import load_claim
from convattn.ledger.locations import certificates_directory, proofs_directory

CLAIMS = {  # id: verdict, kinds
    "eq3": ("holds", "identity"),
    "eq7": ("holds", "identity"),
    "eq8": ("amended", "identity"),
    "lemma1": ("amended", "layer equality"),
    "lemma2": ("amended", "limit"),
    "theorem1": ("amended", "layer equality", "limit"),
    "padding": ("amended", "layer equality", "limit"),
    "stride": ("holds", "layer equality", "limit"),
    "dilation": ("holds", "layer equality", "limit"),
    "sequence": ("holds", "layer equality", "limit"),
    "alpha46": ("refuted", "refutation"),
    "rank": ("refuted", "refutation"),
    "lemma3": ("refuted", "refutation"),
    "eq18": ("holds", "identity"),
    "eq19": ("holds", "identity"),
    "table1": ("amended", "identity"),
}


def load(name: str):
    return load_claim(proofs_directory() / "cordonnier2020" / f"{name}.py")[0]


def piece_of(name: str, title: str):
    claim = load(name)
    (piece,) = (piece for piece in claim.evidence if piece.name == title)
    return piece, Run(0, True, certificates_directory(), claim.id, title)


@pytest.mark.parametrize("name", CLAIMS)
def test_claims_are_as_stated(name) -> None:
    claim, (verdict, *kinds) = load(name), CLAIMS[name]
    assert claim.id == f"C20.{name}"
    assert claim.verdict is Verdict(verdict)
    assert claim.kinds == tuple(Kind(kind) for kind in kinds)
    assert claim.source.startswith("Cordonnier, Loukas, Jaggi 2020, ")


@pytest.mark.parametrize("name", CLAIMS)
def test_something_is_quick_and_passes(name) -> None:
    claim = load(name)
    quick = [piece for piece in claim.evidence if piece.quick]
    assert quick
    for piece in quick:
        if piece.level is not Level.BOUNDED:  # those run in `verify`, on whole images
            assert piece.check(Run(1, True, certificates_directory(), claim.id, piece.name))


def test_every_file_of_the_paper_is_in_the_table() -> None:
    files = {path.stem for path in (proofs_directory() / "cordonnier2020").glob("*.py")}
    assert set(CLAIMS) <= files


def test_lemma3_shows_its_counterexamples() -> None:
    piece, run = piece_of("lemma3", "the counterexamples")
    shown = piece.check(run)
    assert "2 heads on 2 pixels span, at each query, what a kernel of size 1 reads" in shown
    assert "separator: ['-3/5', '2/5', '1', '0']" in shown


@pytest.mark.parametrize(
    ("name", "title"),
    [
        (name, piece.name)
        for name in CLAIMS
        for piece in load(name).evidence
        if piece.level is Level.CERTIFIED
    ],
)
def test_without_certificates_nothing_is_certified(name, title, tmp_path) -> None:
    piece, _ = piece_of(name, title)
    require_certificates(piece, Run(0, True, Path(tmp_path), f"C20.{name}", title))


def ids(plant) -> str:
    return f"{plant[0]}: {plant[1]}"


@pytest.mark.parametrize("plant", PLANTS, ids=ids)
def test_a_planted_error_is_seen(plant, monkeypatch) -> None:
    name, title, where, change = plant
    piece, run = piece_of(name, title)
    require_failure(monkeypatch, piece, run, where, change)


def test_every_piece_has_a_planted_error() -> None:
    planted = {(name, title) for name, title, *_ in PLANTS}
    for name in CLAIMS:
        for piece in load(name).evidence:
            shared = piece.level is Level.CERTIFIED or name == "theorem1"
            assert shared or (name, piece.name) in planted or piece.name == "distance on images"


def test_a_counterexample_that_is_none_is_seen(tmp_path) -> None:
    piece, run = piece_of("lemma3", "the counterexamples")
    for name in ("hard", "softmax", "lemma2"):
        file = f"C20.lemma3-{name}.json"
        certificate = json.loads((run.certificates / file).read_text("ascii"))
        if name == "hard":
            certificate["body"]["heads"][0]["rows"] = [["1", "0"], ["0", "1"]]
        (tmp_path / file).write_text(json.dumps(certificate), "ascii")
    with pytest.raises(EvidenceFailed, match="hard"):
        piece.check(dataclasses.replace(run, certificates=tmp_path))


def test_the_figures_of_the_remark_on_alpha() -> None:
    assert 2.0**82 < math.exp(-46) / 2.0**-149 < 2.0**83
    assert 2.0**59 < math.exp(-46) / 2.0**-126 < 2.0**60
    assert 103.97 < 150 * math.log(2) < 103.98
    assert 87.33 < 126 * math.log(2) < 87.34
