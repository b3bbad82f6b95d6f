import jax.numpy as jnp
import pytest
from comparison import assert_equal

from convattn.structures import dense_basis


def test_one_matrix_is_a_basis_of_size_one() -> None:
    assert_equal(dense_basis([[1, 2, 3]]).matrices(), [[[1, 2, 3]]])


@pytest.mark.parametrize("shape", [(3,), (2, 0, 3), (2, 2, 2, 2)])
def test_other_shapes_are_refused(shape) -> None:
    with pytest.raises(ValueError, match=r"should be \(K, M, N\)"):
        dense_basis(jnp.ones(shape))
