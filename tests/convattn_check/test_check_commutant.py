"""Commutants: the dimension is right, everything else is refused."""

import certificate_builder as build
import pytest
from certificate_cases import CASES, drop, put, verdict_after, verdict_on
from hypothesis import given
from hypothesis import strategies as st

from convattn_check.commutant import MOST_NODES, commuting_equations, unit_shifts
from convattn_check.elimination import eliminate


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("commutant_line", drop(["boundary"]), "malformed"),
        ("commutant_line", put(["boundary"], "sphere"), "malformed"),
        ("commutant_line", put(["grid"], 4), "malformed"),
        ("commutant_line", put(["grid"], []), "range"),
        ("commutant_line", put(["grid"], [0]), "range"),
        ("commutant_line", put(["grid"], [MOST_NODES + 1]), "range"),
        ("commutant_grid", put(["grid"], [2, 5]), "range"),
        ("commutant_grid", put(["grid"], [1, 2, 1, 3]), "range"),
        ("commutant_grid", put(["grid"], [6]), "malformed"),
        ("commutant_line", put(["grid"], [MOST_NODES] * 5000), "range"),
        ("commutant_line", put(["shifts"], []), "range"),
        ("commutant_line", put(["shifts"], [[0]] * 2), "range"),
        ("commutant_line", put(["shifts"], [[d] for d in range(-8, 9)]), "range"),
        ("commutant_line", put(["shifts", 0], [MOST_NODES + 1]), "range"),
        ("commutant_line", put(["shifts", 0], [True]), "malformed"),
        ("commutant_line", put(["shifts", 0], [2]), "claim"),
        ("commutant_line", put(["shifts"], [[1], [-1], [2]]), "claim"),
        ("commutant_line", put(["dimension"], -1), "range"),
        ("commutant_line", put(["dimension"], 17), "range"),
    ],
)  # fmt: skip
def test_planted(name, change, code):
    verdict = verdict_after(name, change)
    assert not verdict.accepted
    assert verdict.code == code, verdict


def test_a_wrong_dimension_falls_by_the_mathematics():
    verdict = verdict_after("commutant_line", put(["shifts"], [[1]]))
    assert verdict.code == "commutant"
    assert "dimension 1, computed 4" in verdict.reason


@pytest.mark.parametrize(
    ("grid", "boundary", "shifts", "text"),
    [
        ((2, 3), "torus", [[0, 0]], "as many as nodes on a torus"),
        ((1, 1), "bare", None, "at least two nodes"),
    ],
)
def test_what_is_sound_and_says_nothing(grid, boundary, shifts, text):
    verdict = verdict_on(build.commutant(grid, boundary, shifts))
    assert verdict.code == "claim"
    assert text in verdict.reason


def test_the_conclusions_are_told_apart():
    bare, torus = (verdict_on(CASES[name]) for name in ("commutant_grid", "commutant_torus"))
    assert bare.reason.startswith("on the bare grid 2x3 the real matrices that commute")
    assert bare.reason.endswith("[0, 1], [0, -1] are the multiples of the identity alone")
    assert torus.reason.startswith("on the torus 3x2 the real matrices that commute")
    assert torus.reason.endswith(" are a space of dimension 6")


@pytest.mark.parametrize("grid", [(1,), (9,), (3, 3), (2, 2, 2), (1, 5), (2, 4)])
@pytest.mark.parametrize("boundary", ["bare", "torus"])
def test_one_on_every_bare_grid_and_all_nodes_on_every_torus(grid, boundary):
    """Also at the largest sizes that are let through."""
    certificate = build.commutant(grid, boundary)
    nodes = len(list(build.product(*map(range, grid))))
    assert certificate["body"]["dimension"] == (nodes if boundary == "torus" else 1)
    verdict = verdict_on(certificate)
    assert verdict.accepted == (nodes > 1), verdict


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=2),
    st.sampled_from(["bare", "torus"]),
    st.data(),
)
def test_the_system_is_that_of_the_classes_of_entries(grid, boundary, data):
    """Elimination against union of equal entries, for any shifts, beyond the grid too."""
    shift = st.tuples(*[st.integers(-3, 3)] * len(grid))
    shifts = data.draw(st.lists(shift, min_size=1, max_size=4, unique=True))
    unknowns = len(list(build.product(*map(range, grid)))) ** 2
    equations = commuting_equations(tuple(grid), shifts, boundary == "torus")
    rank = eliminate(equations)[0] if equations else 0
    assert unknowns - rank == build.commuting_dimension(grid, boundary, shifts)


def test_at_the_border_a_shift_commutes_with_itself_and_not_with_the_one_back():
    shift = [int(n - m == 1) for m in range(3) for n in range(3)]  # entry by entry
    for step, commutes in ((1, True), (-1, False)):
        equations = commuting_equations((3,), [(step,)], False)
        sums = [sum(a * b for a, b in zip(row, shift, strict=True)) for row in equations]
        assert any(sums) != commutes


def test_unit_shifts():
    assert unit_shifts(1) == [(1,), (-1,)]
    assert len(set(unit_shifts(3))) == 6
