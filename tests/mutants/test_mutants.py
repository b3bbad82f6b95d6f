"""No planted slip survives, every one falls for its own reason, and the harness can tell."""

from dataclasses import replace

import pytest
from mutants import subjects
from mutants.catalogue import MUTANTS
from mutants.mutant import Mutant, planted, require_accepted, require_rejected, text

FEWEST = 30
ORIGINALS = {mutant.original: mutant for mutant in MUTANTS}  # one mutant for each original


def named(mutants):
    return [pytest.param(mutant, id=mutant.name) for mutant in mutants]


@pytest.mark.parametrize("mutant", named(MUTANTS))
def test_mutant_is_rejected_for_its_slip(mutant, monkeypatch):
    require_rejected(mutant, monkeypatch)


@pytest.mark.parametrize("mutant", named(ORIGINALS.values()))
def test_original_without_the_slip_is_accepted(mutant):
    require_accepted(mutant)


def test_the_catalogue_is_large_and_its_names_are_unique():
    assert len(MUTANTS) >= FEWEST
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert {mutant.rejected_by for mutant in MUTANTS} == {"checker", "ledger"}


SURVIVORS = [
    Mutant(f"identity-{judge}", "None.", original, planted(original, lambda _: None), judge, ".*")
    for judge, original in (
        ("checker", text(subjects.FINITE)),
        ("ledger", subjects.PATCH_LAYER),
    )
]


@pytest.mark.parametrize("survivor", named(SURVIVORS))
def test_a_mutant_that_survives_is_red(survivor, monkeypatch):
    with pytest.raises(AssertionError, match=f"survived the {survivor.rejected_by}"):
        require_rejected(survivor, monkeypatch)


def first(judge):
    return next(mutant for mutant in MUTANTS if mutant.rejected_by == judge)


@pytest.mark.parametrize("judge", ["checker", "ledger"])
def test_a_mutant_that_falls_for_another_reason_is_red(judge, monkeypatch):
    mutant = replace(first(judge), reason="no such reason")
    with pytest.raises(AssertionError, match="fell for another reason"):
        require_rejected(mutant, monkeypatch)


@pytest.mark.parametrize("judge", ["checker", "ledger"])
def test_a_mutant_before_the_wrong_judge_is_red(judge, monkeypatch):
    other = "ledger" if judge == "checker" else "checker"
    with pytest.raises(AssertionError, match=f"came before the {judge}"):
        require_rejected(replace(first(judge), rejected_by=other), monkeypatch)


def test_a_slip_at_the_border_that_shows_inside_is_red(monkeypatch):
    mutant = replace(first("ledger"), border=True)
    with pytest.raises(AssertionError, match="shows beyond the border"):
        require_rejected(mutant, monkeypatch)


@pytest.mark.parametrize("mutant", named([first("checker"), first("ledger")]))
def test_an_original_that_is_rejected_is_red(mutant, monkeypatch):
    wrong = mutant.make(monkeypatch)
    with pytest.raises(AssertionError, match=f"the original of {mutant.name} is rejected"):
        require_accepted(replace(mutant, original=lambda: wrong))


def test_evidence_that_breaks_off_has_judged_nothing(monkeypatch):
    def breaks_off(run):
        raise ZeroDivisionError

    original = subjects.PATCH_LAYER()
    mutant = replace(first("ledger"), make=lambda _: replace(original, check=breaks_off))
    with pytest.raises(ZeroDivisionError):
        require_rejected(mutant, monkeypatch)
