"""Functions of one number as hidden units."""

import jax
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import ndtr

from convattn.compile.scalar import (
    GELU_DEVIATION,
    IDENTITY,
    Scalar,
    Units,
    chosen,
    combined,
    normal_form,
)

NUMBERS = np.linspace(-10, 10, 4001)
SMALL = st.floats(-3, 3)


def maximum(one, other):
    return chosen(combined(one, other, np.subtract), one, other)


def computed(form, numbers):
    return form.outer * form.units.call(form.scale * numbers + form.bias) + form.shift


@given(st.lists(st.tuples(SMALL, SMALL), min_size=2, max_size=4))
@example([(0.0, 0.0), (1.0, 0.0), (2.2e-311, 1.0)])  # lines that cross beyond all numbers
@example([(2.2e-311, 1.0), (0.0, 0.0)])
@example([(1e-307, 3.0), (0.0, 0.0)])
def test_the_largest_of_lines_is_its_units(lines):
    function = Scalar.affine(*lines[0])
    for slope, shift in lines[1:]:
        function = maximum(function, Scalar.affine(slope, shift))
    expected = np.max([slope * NUMBERS + shift for slope, shift in lines], axis=0)
    # a few roundings of numbers up to 33, but where two lines cross beyond 10^8: by their slopes
    assert np.allclose(function.call(NUMBERS), expected, rtol=0, atol=1e-12)
    if function.line is None:
        form = normal_form(function)
        assert np.allclose(computed(form, NUMBERS), expected, rtol=0, atol=1e-12)
        assert form.units.count == len(function.knots)


@pytest.mark.parametrize(
    ("slope", "shift"), [(1 / 3, 0.0), (1 / np.sqrt(1 + 1e-5), 0.1234567890123456), (1e-13, 3e-13)]
)
def test_no_slope_and_no_shift_is_rounded(slope, shift):
    """A batch norm before ReLU, a mean of three, numbers far below one."""
    form = normal_form(maximum(Scalar.affine(slope, shift), Scalar.affine(0.0)))
    assert (form.scale, form.bias) == (slope, shift)
    assert form.units == Units(bends=((0.0, 1.0, -1),))


def test_gelu_is_one_unit_also_in_multiples_and_other_smooth_functions_none():
    exact = IDENTITY.smooth(lambda z: np.asarray(jax.nn.gelu(z, approximate=False)))
    assert normal_form(exact) == (1.0, 0.0, Units(is_gelu=True), 1.0, 0.0)
    outer, shift = normal_form(exact.then(-3.0, 2.0))[3:]
    assert (round(outer, 6), round(shift, 6)) == (-3.0, 2.0)
    assert normal_form(IDENTITY.smooth(np.tanh)) is None
    assert normal_form(IDENTITY.smooth(lambda z: z / (1 + np.exp(-z)))) is None


@pytest.mark.parametrize("above", [(0.0, 1.0), (0.0, 1e-7), (1e-3, 1e-7)])
def test_a_function_that_jumps_is_none(above):
    assert chosen(IDENTITY, Scalar.affine(*above), Scalar.affine(0.0)) is None


def test_constants_that_are_rounded_make_no_jump():
    assert chosen(IDENTITY, Scalar.affine(1.0, 1e-7), Scalar.affine(0.0)) is not None


@pytest.mark.parametrize(
    ("bends", "expected"),
    [
        (((0.0, 1.0, -1),), (0.0, np.inf)),  # ReLU
        (((0.0, 1.0, -1), (6.0, -1.0, 1)), (0.0, 6.0)),
        (((0.0, 0.5, -1),), (-np.inf, np.inf)),
        ((), (-np.inf, np.inf)),
        (((0.0, -2.0, 1),), (-np.inf, 0.0)),  # -|u|
    ],
)
def test_the_range_of_units(bends, expected):
    assert Units(bends).range == expected


@pytest.mark.parametrize("slope", [1.0, 8.0])
def test_what_gelu_leaves_of_relu(slope):
    left = np.maximum(NUMBERS, 0) - NUMBERS * ndtr(slope * NUMBERS)
    assert left.min() >= 0
    assert 0.999 * GELU_DEVIATION <= slope * left.max() <= GELU_DEVIATION
