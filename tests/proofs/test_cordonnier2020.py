"""The claims of Cordonnier et al.: what they state, and that checks fail on planted errors."""

import dataclasses
import json
import math

import pytest
from planted_claims import PLANTED_ELSEWHERE, load, piece_of, require_failure
from proofs.cordonnier2020_plants import PLANTS

from convattn.ledger import EvidenceFailed

CLAIMS = (
    "eq3",
    "eq7",
    "eq8",
    "lemma1",
    "lemma2",
    "theorem1",
    "padding",
    "stride",
    "dilation",
    "sequence",
    "alpha46",
    "rank",
    "lemma3",
    "eq18",
    "eq19",
    "table1",
)


def test_lemma3_shows_its_counterexamples() -> None:
    piece, run = piece_of("cordonnier2020", "lemma3", "the counterexamples")
    shown = piece.check(run)
    assert "2 heads on 2 pixels span, at each query, what a kernel of size 1 reads" in shown
    assert "separator: ['-3/5', '2/5', '1', '0']" in shown


def ids(plant) -> str:
    return f"{plant[0]}: {plant[1]}"


@pytest.mark.parametrize("plant", PLANTS, ids=ids)
def test_a_planted_error_is_seen(plant, monkeypatch) -> None:
    name, title, where, change = plant
    piece, run = piece_of("cordonnier2020", name, title)
    require_failure(monkeypatch, piece, run, where, change)


def test_every_piece_has_a_planted_error() -> None:
    planted = {(name, title) for name, title, *_ in PLANTS}
    for name in CLAIMS:
        for piece in load("cordonnier2020", name).evidence:
            shared = piece.level in PLANTED_ELSEWHERE or name == "theorem1"
            assert shared or (name, piece.name) in planted or piece.name == "distance on images"


def test_a_counterexample_that_is_none_is_seen(tmp_path) -> None:
    piece, run = piece_of("cordonnier2020", "lemma3", "the counterexamples")
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
