"""Products sum in the dtype asked for, at the precision asked for, whatever the operands are."""

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from fast.programs import product_dtypes
from jax import lax

from convattn.fast.products import is_highest, product

FLOAT32, FLOAT64 = np.dtype("float32"), np.dtype("float64")


@pytest.mark.parametrize("precision", ["highest", "default"])
@pytest.mark.parametrize("narrow", ["bfloat16", "float16"])
def test_sums_of_narrow_numbers_are_taken_in_float32(narrow, precision):
    """Ones added up one after the other stop growing at 2^8 in bfloat16, at 2^11 in float16."""
    ones = jnp.ones((4099,), narrow)
    total = product("i,i->", ones, ones, dtype=FLOAT32, precision=precision)
    assert_dtype(total, FLOAT32)
    assert_equal(total, 4099)
    narrowly = jnp.einsum("i,i->", ones, ones, preferred_element_type=jnp.dtype(narrow))
    assert float(narrowly) != 4099  # what the product guards against does exist


@pytest.mark.parametrize(
    ("precision", "expected"),
    [("highest", "float32"), ("default", "bfloat16"), ("high", "bfloat16")],
)
def test_operands_are_wide_at_the_highest_precision_and_the_narrowest_at_another(
    precision, expected
):
    def multiply(left, right):
        return product("ij,jk->ik", left, right, dtype=FLOAT32, precision=precision)

    arguments = jnp.ones((2, 3)), jnp.ones((3, 4), jnp.bfloat16)
    assert product_dtypes(multiply, *arguments) == [(expected, expected, "float32")]
    assert_dtype(multiply(*arguments), FLOAT32)


@pytest.mark.parametrize(
    ("precision", "expected"),
    [
        ("highest", True),
        ("float32", True),
        (lax.Precision.HIGHEST, True),
        ((lax.Precision.HIGHEST, lax.Precision.HIGHEST), True),
        ((lax.Precision.HIGHEST, lax.Precision.DEFAULT), False),
        (lax.Precision.HIGH, False),
        ("high", False),
        ("bfloat16", False),
        (None, False),
    ],
)
def test_which_precisions_are_the_highest(precision, expected):
    assert is_highest(precision) is expected
