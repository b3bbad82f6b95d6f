"""Strided grid bases against their definition, entry by entry, and against XLA's convolution."""

import re
from itertools import product

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from hypothesis import given
from jax import lax

from convattn.structures import shift_basis, strided_basis, structured_convolution

CASES = {  # grid, shifts, stride, padding
    "line": ((7,), [(-1,), (0,), (1,)], 2, "SAME"),
    "line, valid": ((8,), [(-2,), (1,), (0,)], 3, "VALID"),
    "beyond the grid": ((4,), [(9,), (-9,), (3,), (4,), (-4,)], 2, "SAME"),
    "one side": ((6,), [(2,), (4,)], 1, "VALID"),
    "image": ((5, 4), [(0, 0), (1, -2), (-1, 1)], (2, 3), "SAME"),
    "image, valid": ((5, 6), [(0, 0), (1, -2), (-1, 1)], (1, 2), "VALID"),
    "volume": ((3, 4, 2), [(1, 0, 0), (0, -1, 1)], (2, 1, 2), "SAME"),
    "stride beyond the grid": ((3, 2), [(0, 0), (1, 1)], 5, "SAME"),
}


def by_definition(grid, shifts, stride, padding):
    """[start + stride·n - m = d_k] for all k, m, n."""
    steps = np.broadcast_to(stride, len(grid))
    high, low = np.max(shifts, 0), np.min(shifts, 0)
    outputs = [
        range(0, side, step) if padding == "SAME" else range(h, side + lo, step)
        for side, step, h, lo in zip(grid, steps, high, low, strict=True)
    ]
    queries, keys = list(product(*outputs)), list(product(*map(range, grid)))
    return np.array(
        [[[int(tuple(np.subtract(q, m)) == d) for q in queries] for m in keys] for d in shifts]
    )


@pytest.mark.parametrize("case", CASES)
def test_matrices_are_their_definition(case):
    grid, shifts, stride, padding = CASES[case]
    basis = strided_basis(grid, shifts, stride, padding=padding)
    expected = by_definition(*CASES[case])
    assert_equal(basis.matrices(), expected)
    assert (basis.size, basis.inputs, basis.outputs) == expected.shape
    assert basis.nonzeros == expected.sum()
    assert basis.dtype == bool


@pytest.mark.parametrize("case", CASES)
def test_what_a_basis_does_is_what_its_matrices_do(case):
    basis = strided_basis(*CASES[case][:3], padding=CASES[case][3])
    matrices = np.asarray(basis.matrices())
    rng = np.random.default_rng(3)
    x = rng.integers(-9, 9, (2, basis.inputs, 3))
    z = rng.integers(-9, 9, (2, basis.size, basis.inputs, 3))
    theta = rng.integers(-9, 9, (basis.size, 3, 4))
    gathered, summed, operator = jax.jit(
        lambda *given: (
            basis.gather(given[0]), basis.scatter_sum(given[1]), basis.operator(given[2])
        )
    )(x, z, theta)  # fmt: skip
    assert_equal(gathered, np.einsum("kmn,bmp->bknp", matrices, x))
    assert_equal(summed, np.einsum("kmn,bkmp->bnp", matrices, z))
    assert_equal(operator, np.einsum("kmn,kpq->mnpq", matrices, theta))


@pytest.mark.parametrize("order", ["basis_first", "parameter_first", "operator"])
def test_the_three_orders_under_jit(order):
    basis = strided_basis((5, 4), [(0, 0), (1, -2), (-1, 1)], (2, 3))
    rng = np.random.default_rng(4)
    x, theta = rng.integers(-9, 9, (2, 20, 3)), rng.integers(-9, 9, (3, 3, 4))
    result = jax.jit(structured_convolution, static_argnames="order")(x, basis, theta, order=order)
    assert_equal(result, np.einsum("kmn,bmp,kpq->bnq", np.asarray(basis.matrices()), x, theta))


@given(st.data())
def test_any_small_grid(data):
    axes = data.draw(st.integers(1, 2))
    grid = data.draw(st.tuples(*[st.integers(1, 5)] * axes))
    shift = st.tuples(*[st.integers(-6, 6)] * axes)
    shifts = data.draw(st.lists(shift, min_size=1, max_size=3, unique=True))
    stride = data.draw(st.tuples(*[st.integers(1, 4)] * axes))
    basis = strided_basis(grid, shifts, stride)
    dense = np.zeros((basis.size, basis.inputs, basis.outputs), int)
    dense[basis.entries()] += 1
    assert_equal(dense, by_definition(grid, shifts, stride, "SAME"))


def test_stride_one_is_the_shift_basis():
    shifts = [(0, 1), (-2, 0), (1, 1)]
    strided, plain = strided_basis((4, 3), shifts), shift_basis((4, 3), shifts)
    assert_equal(strided.matrices(), plain.matrices())
    assert strided.output_grid == strided.grid == plain.grid


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_xla(padding):
    """δ = -d from -1 to 1 and from 0 to 1, strides 2 and 3."""
    grid, taps = (7, 8), list(product((-1, 0, 1), (0, 1)))
    basis = strided_basis(grid, [(-a, -b) for a, b in taps], (2, 3), padding=padding)
    rng = np.random.default_rng(5)
    x, kernel = rng.integers(-9, 9, (2, *grid, 3)), rng.integers(-9, 9, (3, 2, 3, 4))
    pads = [(1, 1), (0, 1)] if padding == "SAME" else [(0, 0), (0, 0)]
    expected = lax.conv_general_dilated(
        x.astype(float),
        kernel.astype(float),
        (2, 3),
        pads,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    result = structured_convolution(x.reshape(2, -1, 3), basis, kernel.reshape(6, 3, 4))
    assert_equal(result.reshape(expected.shape), expected)


def test_a_basis_is_static_and_its_gather_has_a_gradient():
    basis = strided_basis((5,), [(0,), (-1,)], 2)
    assert jax.tree.leaves(basis) == []
    assert hash(basis) == hash(strided_basis(5, [0, -1], 2))
    weights = jnp.arange(6.0).reshape(1, 2, 3, 1)
    gradient = jax.grad(lambda x: jnp.sum(basis.gather(x) * weights))(jnp.zeros((1, 5, 1)))
    assert_equal(gradient[0, :, 0], [0.0, 3.0, 1.0, 4.0, 2.0])  # node 5, read by output 2, is none


def test_half_types_are_summed_in_float32():
    x = jnp.ones((1, 4, 2), jnp.bfloat16)
    assert_dtype(strided_basis(4, [0, 1], 2).gather(x), "float32")
    result = structured_convolution(x, strided_basis(4, [0, 1], 2), jnp.ones((2, 2, 2), "bfloat16"))
    assert_dtype(result, "bfloat16")
    assert_equal(result[0, :, 0], [2, 4])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((5, [-3, 3], 1), {"padding": "VALID"}, "window of (7,) nodes, which does not fit"),
        ((5, [0], 0), {}, "stride=0"),
        ((5, [0], (1, 1)), {}, "stride=(1, 1)"),
        ((5, [0]), {"padding": "EDGE"}, "padding='EDGE'"),
        ((5, [(0, 0)]), {}, "each of 1 integers"),
        (((5, 0), [(0, 0)]), {}, "at least one node"),
        ((5, [1, 1]), {}, "more than once"),
    ],
)
def test_mistakes_are_refused(arguments, options, message, unchecked):
    with pytest.raises(ValueError, match=re.escape(message)):
        strided_basis(*arguments, **options)
