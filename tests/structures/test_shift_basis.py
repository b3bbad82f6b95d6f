"""Strided grid bases against their definition, entry by entry, and against XLA's convolution."""

import re
from itertools import product

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
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
        ((2.7, 3), [(0, 0)], "a side of the grid=2.7, but expected an integer"),
        (True, [0], "a side of the grid=True"),
        (2.0, [0], "a side of the grid=2.0"),
        ((2, 3), [(0, 0.9)], "a shift=0.9, but expected an integer"),
        (3, [0.9], "a shift=0.9"),
        (3, [True], "a shift=True"),
    ],
)
def test_what_is_no_shift_basis_is_refused(grid, shifts, message, unchecked) -> None:
    with pytest.raises(ValueError, match=message):
        shift_basis(grid, shifts)
