"""What counts as an integer: every kind of whole number, and nothing else."""

import jax.numpy as jnp
import numpy as np
import pytest

from convattn.operators.integers import as_integer, per_axis


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), np.array(3), jnp.array(3)])
def test_whole_numbers_of_every_kind_are_integers(value):
    number = as_integer(value, "groups", 1)
    assert type(number) is int
    assert number == 3


@pytest.mark.parametrize(
    "value", [True, np.True_, 2.0, "2", None, np.array([1, 2]), np.array([3]), 0, np.int64(-1)]
)
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(ValueError, match=r"groups=.*but expected an integer ≥ 1"):
        as_integer(value, "groups", 1)


@pytest.mark.parametrize("value", [2, np.int64(2), (2, 2), [2, 2], (np.int32(2), 2)])
@pytest.mark.usefixtures("unchecked")
def test_one_integer_or_one_for_each_axis(value):
    out = per_axis(value, 2, "stride")
    assert out == (2, 2)
    assert all(type(entry) is int for entry in out)


@pytest.mark.parametrize(
    "value", [0, -1, 1.0, "2", "22", None, True, (1,), (1, 2, 3), (1, 0), (1, 1.0), (1, True), []]
)
@pytest.mark.usefixtures("unchecked")
def test_what_is_no_integer_for_each_axis_is_refused(value):
    with pytest.raises(ValueError, match=r"stride=.*but expected an integer ≥ 1"):
        per_axis(value, 2, "stride")


def test_the_most_is_allowed_and_one_more_is_refused():
    assert per_axis((4, 1), 2, "patch_size", most=4) == (4, 1)
    with pytest.raises(ValueError, match="patch_size=5, but expected at most 4"):
        per_axis((4, 5), 2, "patch_size", most=4)
