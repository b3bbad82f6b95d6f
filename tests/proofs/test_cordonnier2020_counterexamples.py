"""C20.lemma3 shows its counterexamples, and the numbers of the remark on α are as printed."""

import dataclasses
import json
import math

import pytest
from proofs.plants.planting import piece_of

from convattn_ledger import EvidenceFailed


def test_lemma3_shows_its_counterexamples() -> None:
    piece, run = piece_of("cordonnier2020", "lemma3", "the counterexamples")
    detail = piece.check(run)
    assert "2 heads on 2 pixels span, at each query, what a kernel of size 1 reads" in detail
    assert "separator: ['-3/5', '2/5', '1', '0']" in detail


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


def test_the_numbers_of_the_remark_on_alpha() -> None:
    assert 2.0**82 < math.exp(-46) / 2.0**-149 < 2.0**83
    assert 2.0**59 < math.exp(-46) / 2.0**-126 < 2.0**60
    assert 103.97 < 150 * math.log(2) < 103.98
    assert 87.33 < 126 * math.log(2) < 87.34
