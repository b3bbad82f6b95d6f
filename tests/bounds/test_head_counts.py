"""Numbers of heads: integers that know their claim, and what JSON can hold of them."""

import json
import pickle

from convattn.bounds.head_counts import HeadCount, HeadCounts, HeadRange

NINE = HeadCount(9, "S.heads", "checked", "the rank of F")
TEN = HeadCount(10, "S.kernel", "proved", "rank F + 1")


def test_a_number_without_a_claim():
    """It is proved by default, and nothing else is said of it."""
    plain = HeadCount(3)
    assert plain == 3
    assert (plain.claim, plain.basis, plain.reason) == ("", "proved", "")
    assert str(plain) == "3"
    assert repr(NINE) == "HeadCount(9, claim='S.heads', basis='checked')"


def test_a_copy_knows_the_same():
    copy = pickle.loads(pickle.dumps(NINE))
    assert (copy, copy.as_dict()) == (9, NINE.as_dict())


def test_every_figure_is_in_the_document():
    nine = {"count": 9, "claim": "S.heads", "basis": "checked", "reason": "the rank of F"}
    ten = {"count": 10, "claim": "S.kernel", "basis": "proved", "reason": "rank F + 1"}
    narrow = HeadRange(NINE, TEN, "open", bounded=TEN, bounded_sufficient=None)
    pair = HeadRange(TEN, TEN, each=(4, 6))
    counts = HeadCounts(25, 9, narrow, pair, {"limit": "one", "exact": "two"})
    assert counts.as_dict() == {
        "offsets": 25,
        "rank": 9,
        "limit": {
            "necessary": nine,
            "sufficient": ten,
            "difference": "open",
            "bounded": ten,
            "bounded_sufficient": None,
        },
        "exact": {
            "necessary": ten,
            "sufficient": ten,
            "difference": "",
            "bounded": None,
            "bounded_sufficient": None,
            "each": (4, 6),
        },
        "regime": {"limit": "one", "exact": "two"},
    }
    assert json.loads(json.dumps(counts.as_dict()))["exact"]["each"] == [4, 6]
