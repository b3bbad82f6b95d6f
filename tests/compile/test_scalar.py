"""Functions of one number as hidden units."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from convattn.compile.evaluation import apply_units
from convattn.compile.scalar import (
    GELU_DEVIATION,
    IDENTITY,
    Scalar,
    Units,
    chosen,
    combined,
    units_of,
)

NUMBERS = np.linspace(-10, 10, 4001)
SMALL = st.floats(-3, 3).map(lambda number: round(number, 3))


def maximum(one, other):
    return chosen(combined(one, other, np.subtract), one, other)


@given(st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=4))
def test_the_largest_of_lines_is_its_units(lines):
    function = Scalar.affine(*lines[0])
    for slope, shift in lines[1:]:
        function = maximum(function, Scalar.affine(slope, shift))
    expected = np.max([slope * NUMBERS + shift for slope, shift in lines], axis=0)
    units = units_of(function)
    assert np.allclose(apply_units(units, NUMBERS), expected, rtol=0, atol=1e-6)


def test_gelu_is_one_unit_and_other_smooth_functions_none():
    exact = IDENTITY.smooth(lambda z: np.asarray(jax.nn.gelu(z, approximate=False)))
    assert units_of(exact) == Units(is_gelu=True)
    assert units_of(IDENTITY.smooth(np.tanh)) is None


def test_a_function_that_jumps_is_none():
    assert chosen(IDENTITY, Scalar.affine(0.0, 1.0), Scalar.affine(0.0)) is None


@pytest.mark.parametrize("slope", [1.0, 8.0])
def test_what_gelu_leaves_of_relu(slope):
    left = np.maximum(NUMBERS, 0) - NUMBERS * ndtr(slope * NUMBERS)
    assert left.min() >= 0
    assert 0.999 * GELU_DEVIATION <= slope * left.max() <= GELU_DEVIATION
