import pytest

from convattn_ledger import Level
from convattn_ledger.discovery import discover
from convattn_ledger.selection import NothingSelected, matching, select
from ledger.proof_files import claim, evidence, write


@pytest.fixture
def proofs(tmp_path):
    proved = evidence(level="PROVED", name="p", quick=False)
    write(
        tmp_path,
        p__a=claim("C20.lemma1", evidence(), proved),
        p__b=claim("C20.lemma2"),
        p__c=claim("S.finite", evidence(quick=False)),
        p__d="1/0",
    )
    return discover(tmp_path)


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ([], ["C20.lemma1", "C20.lemma2", "S.finite", "p/d.py"]),  # also what could not be loaded
        (["S.finite"], ["S.finite"]),
        (["C20.*"], ["C20.lemma1", "C20.lemma2"]),
        (["S.*", "C20.lemma1"], ["C20.lemma1", "S.finite"]),
        (["p/d.py"], ["p/d.py"]),
    ],
)
def test_patterns_select_in_the_order_of_the_ledger(proofs, patterns, expected):
    assert [proof.name for proof in matching(proofs, patterns)] == expected


@pytest.mark.parametrize("pattern", ["C20.lema1", "c20.lemma1"])
def test_a_pattern_that_matches_nothing_is_refused_with_the_closest_ids(proofs, pattern):
    with pytest.raises(NothingSelected, match=r"closest ids: C20\.lemma1") as caught:
        matching(proofs, ["S.*", pattern])
    assert "1 proof file(s) could not be loaded" in str(caught.value)
    with pytest.raises(NothingSelected, match="none is similar"):
        matching(proofs, ["zzzzzz"])


def test_a_full_selection_requires_the_levels_of_the_kinds(proofs):
    selected, left_out = select(proofs)
    assert left_out == 0
    assert [len(item.evidence) for item in selected] == [2, 1, 1, 0]
    assert selected[0].required == {Level.TESTED}
    assert "ZeroDivisionError" in selected[3].problem


def test_quick_fails_a_claim_without_quick_evidence(proofs):
    selected, left_out = select(proofs, quick=True)
    assert left_out == 0
    assert [len(item.evidence) for item in selected] == [1, 1, 0, 0]
    assert "marked quick" in selected[2].problem
    assert selected[0].required == frozenset()


def test_levels_leave_out_claims_without_them_and_count_them(proofs):
    selected, left_out = select(proofs, [Level.PROVED])
    assert [(item.proof.name, len(item.evidence)) for item in selected] == [
        ("C20.lemma1", 1),
        ("p/d.py", 0),
    ]
    assert left_out == 2
    assert selected[0].required == frozenset()


def test_a_level_that_no_claim_has_is_refused(proofs):
    with pytest.raises(NothingSelected, match="has evidence of level ENCLOSED"):
        select(proofs, [Level.ENCLOSED])
    with pytest.raises(NothingSelected, match="has quick evidence of level PROVED"):
        select(proofs[:2], [Level.PROVED], quick=True)
