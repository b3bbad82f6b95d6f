"""What counts as an integer: every kind of whole number, and nothing else."""

import jax.numpy as jnp
import numpy as np
import pytest

from convattn.operators.integers import as_integer


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), np.array(3), jnp.array(3)])
def test_whole_numbers_of_every_kind_are_integers(value):
    number = as_integer(value, "groups", 1)
    assert type(number) is int
    assert number == 3


@pytest.mark.parametrize(
    "value", [True, np.True_, 2.0, "2", None, np.array([1, 2]), np.array([3]), 0, np.int64(-1)]
)
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(ValueError, match=r"groups=.*but should be an integer ≥ 1"):
        as_integer(value, "groups", 1)
