from fractions import Fraction

import certificate_builder as build
import pytest
from certificate_cases import CASES
from hypothesis import given
from hypothesis import strategies as st

from convattn_check import check, reading
from convattn_check.reject import Reject, show

VALID = build.written(CASES["point"])


NOT_CERTIFICATES = {
    "nothing but a newline": ("\n", "malformed"),
    "a number": ("3\n", "malformed"),
    "null": ("null\n", "malformed"),
    "not text": (None, "malformed"),
    "a number of Python": (7, "malformed"),
    "Infinity": (VALID.replace('"heads":1', '"heads":-Infinity'), "malformed"),
    "deep lists": ("[" * 100_000 + "]" * 100_000 + "\n", "malformed"),
    "deep objects": ('{"a":' * 60_000 + "1" + "}" * 60_000 + "\n", "malformed"),
    "a byte order mark": ("\ufeff" + VALID, "encoding"),
    "UTF-16": (VALID.encode("utf-16"), "encoding"),
    "not UTF-8": (VALID.encode() + b"\xff", "encoding"),
    "beyond ASCII": (VALID.replace("in small", "im Kleinen, größer"), "encoding"),
    "a lone surrogate": (VALID + "\udcff", "encoding"),
    "a null byte": (VALID + "\0", "malformed"),
    "a huge integer": (VALID.replace('"heads":1', '"heads":' + "9" * 4001), "range"),
    "a huge file": (" " * (reading.LARGEST_FILE + 1), "range"),
    "unsorted keys": ('{"b":1,"a":2}\n', "canonical"),
}


@pytest.mark.parametrize("name", NOT_CERTIFICATES)
@pytest.mark.parametrize("ignore_digests", [False, True])
def test_bytes_that_are_no_certificate(name, ignore_digests):
    text, code = NOT_CERTIFICATES[name]
    verdict = check(text, ignore_digests=ignore_digests)
    assert not verdict.accepted
    assert verdict.code == code
    assert verdict.reason
    assert verdict.claim == ""


def test_text_and_bytes_are_judged_alike():
    assert check(VALID).accepted
    assert check(VALID.encode()).accepted


@given(st.one_of(st.text(), st.binary()))
def test_nothing_raises(text):
    verdict = check(text)
    assert not verdict.accepted
    assert verdict.code in ("malformed", "encoding", "canonical")


@given(st.binary(min_size=1, max_size=3), st.integers(0, len(VALID)), st.integers(0, 40))
def test_no_edit_of_the_bytes_passes(piece, position, length):
    text = VALID.encode()
    edited = text[:position] + piece + text[position + length :]
    assert check(edited).accepted == (edited == text)


@given(st.fractions())
def test_rationals_are_read_back(value):
    assert reading.rational(str(value), "x") == value


@pytest.mark.parametrize(
    "text",
    ["", "1/1", "2/4", "10/15", "-0", "0/3", "1/0", "1/-2", "+1", "01", "1/02", " 1", "1 ", "1\n",
     "1.5", "1e3", "1_000", "--1", "/2", "1/", "٣", "²", 1, None, True, ["1"], "1/2/3"],
)  # fmt: skip
def test_other_spellings_of_rationals(text):
    with pytest.raises(Reject) as error:
        reading.rational(text, "x")
    assert error.value.code == "malformed"


def test_long_rationals_are_refused_by_name():
    for text in ("9" * 4001, "1/" + "9" * 4001):
        with pytest.raises(Reject, match="4001 digits") as error:
            reading.rational(text, "x")
        assert error.value.code == "range"
    assert reading.rational("9" * 4000, "x") == 10**4000 - 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reading.items("ab", "x"), "x is 'ab', expected a list"),
        (lambda: reading.items([3], "x", 2), "x is 1 items, expected a list of length 2"),
        (lambda: reading.matrix([[1], ["2"]], "x", 2, 1), "x[1][0] is '2', expected an integer"),
    ],
)
def test_a_refusal_names_the_argument_and_is_printed_with_its_code(call, message):
    with pytest.raises(Reject) as error:
        call()
    assert str(error.value) == f"malformed: {message}"


def test_values_are_the_same_if_they_are_written_alike():
    assert reading.same({"b": [1, "1"], "a": None}, {"a": None, "b": [1, "1"]})
    for one, other in ([1], [2]), ([1], [True]), ("1", 1), ({"a": 1}, {"b": 1}), ([], {}):
        assert not reading.same(one, other)
        assert not reading.same(other, one)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Fraction(1, 2), "1/2"),
        (2**256 - 1, str(2**256 - 1)),
        (2**256, "an integer of 257 bits"),
        ("a" * 98, "'" + "a" * 98 + "'"),
        ("a" * 99, "'" + "a" * 96 + "..."),
        (Fraction(6, 2), "3"),
        (Fraction(-6, 5), "-6/5"),
        ("\x1b[31mé\n", "'\\x1b[31m\\xe9\\n'"),
    ],
)
def test_messages_stay_short_and_plain(value, shown):
    assert show(value) == shown


def test_messages_can_name_numbers_that_python_would_not_print():
    assert show(10**5000) == "an integer of 16610 bits"
    assert show(Fraction(10**5000, 7)) == "an integer of 16610 bits/7"
