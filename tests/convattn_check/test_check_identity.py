"""Identities: formulas, and what a grid gives."""

from fractions import Fraction

import pytest
from identity_cases import IDENTITIES

from convattn_check import formula as formulas_of
from convattn_check.formula import Evaluation, entry_text, read_formula
from convattn_check.formulas import FORMULAS
from convattn_check.grid_matrices import read_grid
from convattn_check.identity import _require_equal
from convattn_check.polynomial import add_entry, add_monomial, constant, flat, multiply
from convattn_check.reject import Reject


def test_every_identity_has_a_certificate():
    identities = {(case["claim"], case["body"]["identity"]) for case in IDENTITIES.values()}
    assert identities == FORMULAS.keys()


# Polynomials and formulas.


def number(entries):
    """A tensor of numbers from {index: value}."""
    return {index: constant(value) for index, value in entries.items() if value}


def evaluated(text, sizes, **tensors):
    evaluation = Evaluation(sizes)
    evaluation.tensors.update(tensors)
    parsed = read_formula(text)
    evaluation.define(parsed)
    return evaluation.tensors[parsed.left.name]


MATRIX = ((2, 3), number({(0, 0): 1, (0, 1): 2, (0, 2): 3, (1, 0): 4, (1, 1): 5, (1, 2): 6}))
SQUARE = ((2, 2), number({(0, 0): 1, (0, 1): 2, (1, 0): 3, (1, 1): 4}))
SIZES = {"i": 2, "j": 3, "k": 2, "e": 6}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Y[ji] = M[ij]", {(0, 0): 1, (1, 0): 2, (2, 0): 3, (0, 1): 4, (1, 1): 5, (2, 1): 6}),
        ("Y[i] = M[ij]", {(0,): 6, (1,): 15}),
        ("Y[] = M[ij]", {(): 21}),
        ("Y[i] = S[ii]", {(0,): 1, (1,): 4}),
        ("Y[] = S[ii]", {(): 5}),
        ("Y[ik] = S[ik] - S[ki]", {(0, 1): -1, (1, 0): 1}),
        ("Y[j] = 1/2 S[ik] M[ij]", {(0,): Fraction(31, 2), (1,): Fraction(41, 2), (2,): 51 / 2}),
        ("Y[(ij)] = M[ij]", {(n,): n + 1 for n in range(6)}),
        ("Y[(ji)] = M[ij]", {(0,): 1, (1,): 4, (2,): 2, (3,): 5, (4,): 3, (5,): 6}),
        ("Y[ij] = M[ij] - 2 M[ij] + M[ij]", {}),
    ],
)
def test_formulas_are_evaluated_as_written(text, expected):
    _, entries = evaluated(text, SIZES, M=MATRIX, S=SQUARE)
    assert entries == number({index: Fraction(value) for index, value in expected.items()})


def test_a_composite_axis_is_read_apart():
    row = (6,), number({(n,): n for n in range(6)})
    lengths, entries = evaluated("Y[ji] = R[(ij)]", SIZES, R=row)
    assert lengths == (3, 2)
    assert entries == number({(j, i): 3 * i + j for i in range(2) for j in range(3)})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Y[i]", "has no ' = '"),
        ("Y[i] = M", "not of the form"),
        ("Y[i] = M[iJ]", "not of the form"),
        ("Y[i] = M[ij] N[j]", "'N' is not defined yet"),
        ("Y[ii] = M[ij]", "repeats an index"),
        ("M[i] = M[ij]", "M is defined twice"),
        ("Y[i] = M[ix]", "['x'] have no size"),
        ("Y[i] = M[ji]", "have other sizes"),
        ("Y[i] = M[ik]", "have other sizes"),
        ("Y[ik] = M[ij]", "['k'] do not occur in every term"),
    ],
)
def test_formulas_that_make_no_sense(text, reason):
    with pytest.raises(Reject) as caught:
        evaluated(text, SIZES, M=MATRIX)
    assert caught.value.code == "formula"
    assert reason in caught.value.reason


def test_the_work_is_bounded(monkeypatch):
    monkeypatch.setattr(formulas_of, "MOST_STEPS", 20)
    with pytest.raises(Reject, match="more than 20 steps"):
        evaluated("Y[] = M[ij] S[ik] S[ki]", SIZES, M=MATRIX, S=SQUARE)


def test_polynomials():
    assert (constant(0), constant(2)) == ({}, {(): 2})
    x, y = {(0,): Fraction(1)}, {(1,): Fraction(1)}
    assert multiply(x, y) == multiply(y, x) == {(0, 1): Fraction(1)}
    total = dict(x)
    add_monomial(total, (0,), Fraction(-1))
    assert total == {}
    tensor = {(0,): dict(x)}
    add_entry(tensor, (0,), x, Fraction(-1))
    assert tensor == {}
    assert flat((), ()) == 0
    assert entry_text({}) == "0"
    assert entry_text({(0, 1): Fraction(1, 2)}) == "1/2*x0*x1"
    three = {(n,): Fraction(1) for n in range(3)}
    assert entry_text(three) == "1*x0 + 1*x1 + 1*x2"
    assert entry_text(three | {(3,): Fraction(1)}) == "1*x0 + 1*x1 + 1*x2 + ..."


# What a grid gives.


def grid(**changes):
    line = {"border": "zero", "grid": [3], "shifts": [[1]], "stride": 1}
    return read_grid(line | changes, "here")


def dense(border, **changes):
    (shifts, queries, keys), entries, name = grid(border=border, **changes)
    assert name == border
    value = {index: entry[()] for index, entry in entries.items()}
    return [
        [[value.get((d, q, k), 0) for k in range(keys)] for q in range(queries)]
        for d in range(shifts)
    ]


third = Fraction(1, 3)


@pytest.mark.parametrize(
    ("border", "last"),
    [
        ("zero", [0, 0, 0]),
        ("torus", [1, 0, 0]),
        ("edge", [0, 0, 1]),
        ("nearest", [0, 0, 1]),
        ("mean", [third] * 3),
    ],
)
def test_borders(border, last):
    assert dense(border) == [[[0, 1, 0], [0, 0, 1], last]]


def test_leaky_rows():
    half = Fraction(1, 2)
    background, target = half * third, half + half * third
    assert dense("leaky", leak="1/2") == [
        [
            [background, target, background],
            [background, background, target],
            [third] * 3,
        ]
    ]


def test_strides_and_axes():
    assert dense("zero", stride=2, shifts=[[0], [1]]) == [
        [[1, 0, 0], [0, 0, 1]],
        [[0, 1, 0], [0, 0, 0]],
    ]
    rows = dense("edge", grid=[2, 2], shifts=[[1, -1]])
    assert rows == [[[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 1, 0]]]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"grid": [2, 2, 2, 2]}, "range"),
        ({"grid": []}, "range"),
        ({"grid": [65]}, "range"),
        ({"grid": [9, 9], "shifts": [[0, 0]]}, "range"),
        ({"shifts": []}, "range"),
        ({"shifts": [[0]] * 65}, "range"),
        ({"shifts": [[0, 0]]}, "malformed"),
        ({"border": "other"}, "malformed"),
        ({"border": "leaky"}, "malformed"),
        ({"border": "leaky", "leak": "1"}, "range"),
        ({"leak": "1/2"}, "malformed"),
    ],
)
def test_grids_that_are_refused(changes, code):
    with pytest.raises(Reject) as caught:
        grid(**changes)
    assert caught.value.code == code


@pytest.mark.parametrize("pair", ["AB", "BA"])
def test_shapes_of_both_sides_must_agree(pair):
    evaluation = Evaluation({})
    evaluation.tensors |= {"A": ((2,), {}), "B": ((3,), {})}
    with pytest.raises(Reject, match=r"^identity: . has the shape"):
        _require_equal(*pair, evaluation)
