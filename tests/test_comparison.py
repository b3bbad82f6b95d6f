"""The comparisons fail when they should, and say what is wrong."""

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within, gamma


def test_equal_numbers_in_different_types_are_equal():
    assert_equal(jnp.array([1, 2], "bfloat16"), np.array([1, 2]))
    assert_equal(np.array([1, 2], np.uint8), [1.0, 2.0])
    assert_equal(jnp.zeros((0, 3)), np.zeros((0, 3)))
    assert_equal(-0.0, 0.0)


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        ([1.0, 2.0], [1.0, 3.0], r"out\[1\]=2.0, but expected 3.0 \(1 of 2 entries differ\)"),
        (1.0, 2.0, r"out\[\(\)\]=1.0, but expected 2.0"),
        ([[1.0, 2.0]], [1.0, 2.0], r"out.shape=\(1, 2\), but expected \(2,\)"),
        ([1.0], [1.0, 1.0], r"out.shape=\(1,\), but expected \(2,\)"),  # no broadcasting
        ([np.nan], [np.nan], r"out\[0\]=nan"),
        ([1.0], [np.nextafter(1.0, 2.0)], r"1 of 1 entries differ"),
        ([2**53], [2**53 + 1], r"expected 9007199254740993"),
    ],
)
def test_equality_fails(actual, expected, message):
    with pytest.raises(AssertionError, match=message):
        assert_equal(actual, expected)


def test_the_name_stands_in_the_message():
    with pytest.raises(AssertionError, match=r"kernel.shape=\(2,\), but expected \(1,\)"):
        assert_equal([1, 2], [1], name="kernel")


def test_within_holds_at_the_bound_and_not_beyond():
    assert_within([1.0, 2.0], [1.5, 2.0], 0.5)
    assert_within([1.0, 2.0], [1.5, 2.0], [0.5, 0.0])
    with pytest.raises(AssertionError, match=r"within 0.49 of 1.5; the distance is 0.5"):
        assert_within([1.0, 2.0], [1.5, 2.0], 0.49)
    with pytest.raises(AssertionError, match=r"out\[1\]=2.0, but expected within 0.0 of 2.5"):
        assert_within([1.0, 2.0], [1.5, 2.5], [0.5, 0.0])


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_within_fails_for_numbers_that_are_not_finite(number):
    with pytest.raises(AssertionError, match="1 of 2 entries are too far"):
        assert_within([number, 1.0], [1.0, 1.0], 1e300)


@pytest.mark.parametrize("bound", [np.inf, np.nan, -1.0, [0.0, np.inf]])
def test_a_bound_that_nothing_fails_is_refused(bound):
    with pytest.raises(ValueError, match="finite and ≥ 0"):
        assert_within([1.0, 1.0], [1.0, 1.0], bound)


def test_within_compares_shapes():
    with pytest.raises(AssertionError, match=r"out.shape=\(1,\), but expected \(\)"):
        assert_within([1.0], 1.0, 1.0)


def test_dtypes_are_compared():
    assert_dtype(jnp.ones(1, "bfloat16"), "bfloat16")
    with pytest.raises(AssertionError, match=r"out\.dtype=float32, but expected float64"):
        assert_dtype(jnp.ones(1, "float32"), "float64")


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([1j]), np.array([None])])
def test_what_is_not_real_is_refused(array):
    with pytest.raises(TypeError, match="expected real numbers"):
        assert_equal(array, array)


def test_gamma_is_the_units_of_roundoff_and_a_little_more():
    assert 3 * 2.0**-24 < gamma(3, "float32") < 3 * 2.0**-24 * (1 + 2.0**-20)
    assert gamma(1, "bfloat16") == 1 / 255
    with pytest.raises(ValueError, match="bound nothing"):
        gamma(256, "bfloat16")
