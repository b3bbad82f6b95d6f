from itertools import product

import certificate_builder as build
from hypothesis import given
from hypothesis import strategies as st

from convattn_check.commutant import commuting_equations
from convattn_check.elimination import eliminate


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=2),
    st.sampled_from(["bare", "torus"]),
    st.data(),
)
def test_the_system_is_that_of_the_classes_of_entries(grid, boundary, data):
    """Elimination against union of equal entries, for any shifts, beyond the grid too."""
    shift = st.tuples(*[st.integers(-3, 3)] * len(grid))
    shifts = data.draw(st.lists(shift, min_size=1, max_size=4, unique=True))
    unknowns = len(list(product(*map(range, grid)))) ** 2
    equations = commuting_equations(tuple(grid), shifts, boundary == "torus")
    rank = eliminate(equations)[0] if equations else 0
    assert unknowns - rank == build.commuting_dimension(grid, boundary, shifts)


def test_at_the_border_a_shift_commutes_with_itself_and_not_with_the_one_back():
    shift = [int(n - m == 1) for m in range(3) for n in range(3)]  # entry by entry
    for step, commutes in ((1, True), (-1, False)):
        equations = commuting_equations((3,), [(step,)], False)
        sums = [sum(a * b for a, b in zip(row, shift, strict=True)) for row in equations]
        assert any(sums) != commutes
