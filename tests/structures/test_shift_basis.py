import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal

from convattn.operators.convolution import conv
from convattn.structures import shift_basis, structured_convolution


def test_the_sign_convention() -> None:
    basis = shift_basis(4, [1])  # A19's d = query - key: output n reads input n - 1
    assert basis.offsets == ((-1,),)
    assert basis.gather(jnp.array([[[1], [2], [4], [8]]]))[0, 0, :, 0].tolist() == [0, 1, 2, 4]


def test_a_kernel_as_shifts_is_the_convolution() -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(-9, 10, (2, 4, 5, 2))
    kernel = rng.integers(-9, 10, (3, 3, 2, 3))
    taps = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    basis = shift_basis((4, 5), [(-a, -b) for a, b in taps])
    result = structured_convolution(images.reshape(2, 20, 2), basis, kernel.reshape(9, 2, 3))
    assert_equal(result.reshape(2, 4, 5, 3), conv(images, kernel))


def test_the_basis_is_static() -> None:
    basis = shift_basis((2, 3), [(0, 1), (1, 0)])
    assert jax.tree.leaves(basis) == []
    assert hash(basis) == hash(shift_basis((2, 3), [(0, 1), (1, 0)]))
    assert basis != shift_basis((2, 3), [(1, 0), (0, 1)])


def test_nothing_of_the_size_of_a_matrix_is_made() -> None:
    basis = shift_basis((1000, 1000), [(0, 1), (1, 0)])
    shapes = jax.eval_shape(basis.gather, jax.ShapeDtypeStruct((1, 10**6, 1), jnp.float32))
    assert shapes.shape == (1, 2, 10**6, 1)
    assert basis.nonzeros == 2 * 999 * 1000
    text = str(jax.make_jaxpr(basis.gather)(jnp.zeros((1, 10**6, 1), jnp.float32)))
    assert "1000000,1000000" not in text


@pytest.mark.parametrize(
    ("grid", "shifts", "message"),
    [
        ((), [()], "at least one node"),
        ((3, 0), [(0, 0)], "at least one node"),
        ((3,), [], "takes at least one shift"),
        ((3, 4), [(1,)], "each of 2 integers"),
        ((3,), [1, 0, 1], r"holds \[\(1,\)\] more than once"),
        ((2.7, 3), [(0, 0)], "a side of the grid=2.7, but should be an integer"),
        (True, [0], "a side of the grid=True"),
        (2.0, [0], "a side of the grid=2.0"),
        ((2, 3), [(0, 0.9)], "a shift=0.9, but should be an integer"),
        (3, [0.9], "a shift=0.9"),
        (3, [True], "a shift=True"),
    ],
)
def test_what_is_no_basis_is_refused(grid, shifts, message, unchecked) -> None:
    with pytest.raises(ValueError, match=message):
        shift_basis(grid, shifts)
