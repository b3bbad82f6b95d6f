"""Average pooling as a convolution, against `lax.reduce_window` and a loop."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within, gamma
from jax import lax

from convattn.structures import pooling_basis, structured_convolution, window_basis

CASES = {  # grid, window, stride, dilation
    "tiles that leave a rest": ((9,), (4,), None, (1,)),
    "with gaps": ((9, 7), (2, 3), (3, 4), (1, 1)),
    "dilated": ((7, 8), (2, 4), (1, 1), (3, 2)),
    "volume": ((4, 5, 6), (2, 1, 4), (2, 3, 1), (1, 1, 1)),
}


def sums_by_xla(images, window, stride, dilation):
    axes = len(window)
    return lax.reduce_window(
        images,
        0.0,
        lax.add,
        (1, *window, 1),
        (1, *(stride or window), 1),
        [(0, 0)] * (axes + 2),
        window_dilation=(1, *dilation, 1),
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_average_pooling(case):
    """Equal where 1/|w| is a power of two, within |w| + 2 roundings where it is not."""
    grid, window, stride, dilation = CASES[case]
    images = np.random.default_rng(1).integers(-99, 99, (2, *grid, 3)).astype(float)
    sums = sums_by_xla(images, window, stride, dilation)
    basis = pooling_basis(grid, window, stride, dilation)
    assert (basis.size, basis.inputs) == (1, np.prod(grid))
    assert basis.outputs == np.prod(sums.shape[1:-1])
    result = jax.jit(structured_convolution)(images.reshape(2, -1, 3), basis, jnp.eye(3)[None])
    count = int(np.prod(window))
    expected = np.asarray(sums) / count
    if count & (count - 1) == 0:
        assert_equal(result.reshape(expected.shape), expected)
    largest = sums_by_xla(np.abs(images), window, stride, dilation) / count
    bound = gamma(count + 2, "float64") * np.asarray(largest)
    assert_within(result.reshape(expected.shape), expected, bound)


@pytest.mark.parametrize("case", CASES)
def test_as_many_shifts_as_the_window_has_nodes(case):
    """Σ_k A_kᵀ x I is the sum over the window: H = 1 of A19 eq. 5."""
    grid, window, stride, dilation = CASES[case]
    images = np.random.default_rng(2).integers(-99, 99, (2, *grid, 3))
    basis = window_basis(grid, window, stride, dilation)
    theta = np.broadcast_to(np.eye(3, dtype=int), (basis.size, 3, 3))
    result = jax.jit(structured_convolution)(images.reshape(2, -1, 3), basis, theta)
    expected = sums_by_xla(images.astype(float), window, stride, dilation)
    assert_equal(result.reshape(expected.shape), expected)
    assert basis.size == np.prod(window)
    assert basis.nonzeros == basis.size * basis.outputs  # every window lies in the grid


def test_each_output_sums_to_one_and_dtypes():
    basis = pooling_basis((4, 4), 2, dtype="bfloat16")
    assert_dtype(basis, "bfloat16")
    assert_equal(basis.matrices().sum(axis=1), [[1, 1, 1, 1]])
    assert_dtype(pooling_basis(4, 2), "float64")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((4, 4), 5), "window of (5, 5) nodes, which does not fit into the grid (4, 4)"),
        ((5, 3, 1, 3), "window of (7,) nodes"),
        ((4, 0), "window=0"),
        ((4, 2, 0), "stride=0"),
        ((4, (2, 2)), "window=(2, 2)"),
        ((4, 2, 2, 0), "dilation=0"),
        ((0, 1), "at least one node"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message, unchecked):
    for make in (window_basis, pooling_basis):
        with pytest.raises(ValueError, match=re.escape(message)):
            make(*arguments)


def test_an_integer_average_is_refused():
    with pytest.raises(ValueError, match="an average is a fraction"):
        pooling_basis(4, 2, dtype="int32")
