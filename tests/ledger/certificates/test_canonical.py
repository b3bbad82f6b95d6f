import errno
import hashlib
import json
import os
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convattn_check import check
from convattn_check.reading import canonical as checker_canonical
from convattn_check.reading import rational as checker_rational
from convattn_ledger.certificates import canonical as module
from convattn_ledger.certificates.canonical import (
    CONVENTIONS,
    SCHEMA,
    canonical,
    certificate,
    rational,
)

SPECIFICATION = ("schema", "claim", "kind", "statement", "conventions")
VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=40)
@given(VALUES)
def test_one_text_for_one_value(value):
    text = canonical(value)
    assert text.isascii()
    assert json.loads(text) == value
    assert text == checker_canonical(value)


@given(st.fractions() | st.integers())
def test_rationals_are_in_lowest_terms(number):
    text = rational(number)
    assert Fraction(text) == number
    assert checker_rational(text, "number") == number


def test_the_digests_are_those_of_the_parts():
    written = certificate("C20.rank", "rank", "A statement.", {"rank": 1})
    specification = {name: written[name] for name in SPECIFICATION}
    parts = {"specification": specification, "body": {"rank": 1}}
    assert written["digests"] == {
        name: hashlib.sha256(canonical(part).encode()).hexdigest() for name, part in parts.items()
    }
    assert (written["schema"], written["conventions"]) == (SCHEMA, CONVENTIONS)
    assert sorted(written) == sorted([*SPECIFICATION, "body", "digests"])
    other = certificate("C20.rank", "rank", "Another.", {"rank": 1})
    assert other["digests"]["specification"] != written["digests"]["specification"]
    assert other["digests"]["body"] == written["digests"]["body"]


def test_what_is_written_can_be_read(tmp_path):
    path = tmp_path / "a.json"
    module.write({"b": 1, "a": [2]}, path)
    assert path.read_bytes() == b'{"a":[2],"b":1}\n'
    assert check(path.read_bytes()).code == "malformed"  # canonical, but no certificate
    assert [child.name for child in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("before", [None, b"old\n"])
@pytest.mark.parametrize("moment", ["writing", "moving"])
def test_a_failure_in_the_middle_leaves_no_half_file(tmp_path, monkeypatch, before, moment):
    path = tmp_path / "a.json"
    if before is not None:
        path.write_bytes(before)

    def fail(*args):
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as planted:
        planted.setattr(os, "fsync" if moment == "writing" else "replace", fail)
        with pytest.raises(OSError, match="full"):
            module.write({"a": "long enough"}, path)
    files = {child.name: child.read_bytes() for child in tmp_path.iterdir()}
    assert files == ({} if before is None else {"a.json": before})


def test_what_json_cannot_hold_leaves_the_old_file(tmp_path):
    (tmp_path / "a.json").write_bytes(b"old\n")
    with pytest.raises(TypeError):
        module.write({"a": Fraction(1, 2)}, tmp_path / "a.json")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old\n"]
