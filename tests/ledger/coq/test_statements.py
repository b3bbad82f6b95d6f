"""What is shown of a theorem is what stands in its source."""

import json

import pytest

from convattn.ledger.coq import statements
from convattn.ledger.coq.statements import DATA, all_statements, statement
from convattn.ledger.locations import coq_directory
from ledger.coq.coq_tree import write_sources

TEXT = "Theorem one :\n\n  1 = 1. (* 1. *)\nProof. by []. Qed.\n"


def test_the_copy_in_the_package_is_up_to_date():
    assert json.loads(DATA.read_text("utf-8")) == all_statements(coq_directory()), "run make ledger"


def test_a_statement_is_shown_line_by_line_without_comments(tmp_path, monkeypatch):
    monkeypatch.setattr(statements, "coq_directory", lambda: tmp_path)
    write_sources(tmp_path, p__one=TEXT, foundation__a="Lemma a : True. Proof. by []. Qed.")
    assert statement("p/one.v") == "Theorem one :\n  1 = 1."
    for file in ("foundation/a.v", "p/two.v"):
        with pytest.raises(ValueError, match=rf"file='{file}', but expected a theorem"):
            statement(file)


def test_without_the_sources_the_copy_is_shown(tmp_path, monkeypatch):
    here = statement("sharpened/finite.v")
    monkeypatch.setattr(statements, "coq_directory", lambda: tmp_path)
    assert statement("sharpened/finite.v") == here
