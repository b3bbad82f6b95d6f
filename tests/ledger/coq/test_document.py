"""docs/proofs.md has the table of the present proofs, and the claims name them."""

from pathlib import Path

import pytest

from convattn_ledger.coq.axioms import ALLOWED
from convattn_ledger.coq.document import render, with_table
from convattn_ledger.coq.rules import scan
from convattn_ledger.coq.run import named_theorems
from convattn_ledger.coq.sources import read_project
from convattn_ledger.discovery import discover
from convattn_ledger.locations import coq_directory, proofs_directory

DOCUMENT = Path(__file__).parents[3] / "docs" / "proofs.md"


@pytest.fixture(scope="module")
def project():
    return read_project(coq_directory())


@pytest.fixture(scope="module")
def claims():
    return discover(proofs_directory())


def test_the_table_is_up_to_date(project, claims):
    text = DOCUMENT.read_text("utf-8")
    assert with_table(text, render(project, claims)) == text, "run make ledger"


def test_at_least_twenty_claims_are_proved(claims):
    assert len({claim for _, claim, *_ in named_theorems(claims)}) >= 20


def test_every_source_may_be_as_it_is(project):
    assert project.failures == ()
    for file in project.files:
        assert scan(file, project.text(file))[1] == []


def test_every_theorem_of_a_paper_is_named(project, claims):
    """Those of the checkers and of the definitions belong to no claim alone."""
    named = {file for _, _, file, _ in named_theorems(claims)}
    theorems = {file for file in project.files if scan(file, project.text(file))[0]}
    excluded = ("checker/", "definitions/", "extracted/")
    assert {file for file in theorems - named if not file.startswith(excluded)} == set()


def test_the_files_with_axioms_are_there(project):
    assert ALLOWED.keys() <= set(project.files)


@pytest.mark.parametrize("text", ["", "<!-- end of the table -->", "x"])
def test_a_document_without_marks_is_refused(text):
    with pytest.raises(ValueError, match="must have the lines"):
        with_table(text, "| a |")
