from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from constructions.slow_definitions import taps
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from convattn.bounds.flattened_kernel import exact_rank, flattened_kernel, numerical_rank

# kernel size, patch size, in, out, dilation
SIZES = (
    ((3,), (2,), 2, 3, (1,)),
    ((4,), (3,), 1, 2, (2,)),
    ((3, 3), (1, 1), 3, 2, (1, 1)),
    ((3, 2), (2, 3), 1, 2, (1, 1)),
    ((3, 3), (2, 2), 1, 1, (1, 1)),
    ((5, 3), (2, 2), 1, 1, (1, 2)),
)


def shape_of(size):
    taps, _, width_in, width_out, _ = size
    return (*taps, width_in, width_out)


def slow_flattened_kernel(kernel, patch, dilation):
    """W_t[i, j] at row (p, q, i, j) and column δ where d·t = Pδ + q - p, zero elsewhere."""
    *counts, width_in, width_out = kernel.shape
    entries = {
        tuple(d * t for d, t in zip(dilation, place, strict=True)): kernel[index]
        for index, place in zip(
            product(*map(range, counts)), product(*map(taps, counts)), strict=True
        )
    }
    pixels = list(product(*map(range, patch)))
    read = [
        tuple((x + s) // size for x, s, size in zip(p, shift, patch, strict=True))
        for p in pixels
        for shift in entries
    ]
    offsets = sorted(set(read))
    rows = []
    for p, q, i, j in product(pixels, pixels, range(width_in), range(width_out)):
        shifts = [
            tuple(P * d + b - a for P, d, a, b in zip(patch, delta, p, q, strict=True))
            for delta in offsets
        ]
        rows.append([entries[s][i, j] if s in entries else 0 for s in shifts])
    return np.array(rows)


@given(st.sampled_from(SIZES), seeds())
def test_entries_are_those_of_the_definition(size, seed):
    _, patch, _, _, dilation = size
    kernel = np.random.default_rng(seed).integers(-9, 10, shape_of(size))
    flattened = flattened_kernel(kernel, patch, dilation=dilation)
    assert_dtype(flattened, "int64")
    assert_equal(flattened, slow_flattened_kernel(kernel, patch, dilation))


def test_a_token_is_a_pixel_unless_a_patch_is_named():
    kernel = np.arange(6).reshape(3, 2, 1)
    assert_equal(flattened_kernel(kernel), flattened_kernel(kernel, 1, dilation=1))
    assert flattened_kernel(kernel).shape != flattened_kernel(kernel, 2).shape


def test_a_wrong_order_of_rows_or_columns_is_noticed():
    size = SIZES[3]
    kernel = np.random.default_rng(0).integers(-9, 10, shape_of(size))
    right = slow_flattened_kernel(kernel, size[1], size[4])
    for wrong in (kernel[::-1], kernel[:, ::-1], kernel[..., ::-1]):
        with pytest.raises(AssertionError, match="out"):
            assert_equal(flattened_kernel(wrong, size[1], dilation=size[4]), right)


def generic(generator, shape):
    """Without zeros: a zero at a corner is the whole column of that corner."""
    return generator.integers(1, 10, shape) * generator.choice([-1, 1], shape)


def separable(generator, shape):
    """An outer product over all axes: taps, channels in, channels out."""
    kernel = np.ones((1,) * len(shape), np.int64)
    for axis, n in enumerate(shape):
        kernel = kernel * generator.integers(-3, 4, n).reshape(-1, *[1] * (len(shape) - axis - 1))
    return kernel


def one_pair_of_channels(generator, shape):
    kernel = np.zeros(shape, np.int64)
    kernel[..., 0, -1] = generator.integers(-9, 10, shape[:-2])
    return kernel


def duplicated_taps(generator, shape):
    return np.broadcast_to(generator.integers(-9, 10, (1, *shape[1:])), shape)


def box(generator, shape):
    return np.full(shape, generator.integers(1, 9))


def one_tap(generator, shape):
    kernel = np.zeros(shape, np.int64)
    kernel[(0,) * (len(shape) - 2)] = generator.integers(-9, 10, shape[-2:])
    return kernel


def zero(generator, shape):
    return np.zeros(shape, np.int64)


KINDS = (generic, separable, one_pair_of_channels, duplicated_taps, box, one_tap, zero)


@given(st.sampled_from(SIZES), st.sampled_from(KINDS), seeds())
def test_the_numerical_rank_is_the_exact_one_on_integers(size, kind, seed):
    """Both, on matrices of full and of deficient rank, in float64."""
    kernel = kind(np.random.default_rng(seed), shape_of(size)).astype(float)
    flattened = flattened_kernel(kernel, size[1], dilation=size[4])
    assert int(numerical_rank(flattened)) == exact_rank(flattened)


@pytest.mark.parametrize(
    ("size", "patch", "width_in", "width_out"),
    [
        (1, 1, 1, 1), (3, 1, 1, 1), (3, 1, 2, 3), (3, 1, 3, 3), (3, 1, 3, 4), (5, 1, 4, 5),
        (1, 2, 1, 1), (3, 2, 1, 1), (5, 2, 1, 1), (7, 2, 1, 1), (7, 2, 1, 2), (7, 2, 2, 2),
        (11, 2, 1, 1), (11, 2, 2, 3), (3, 3, 1, 1), (7, 3, 1, 2), (9, 3, 1, 1), (13, 3, 1, 1),
        (3, 5, 1, 1),
    ],
)  # fmt: skip
@pytest.mark.quick(7)
def test_the_rank_of_a_generic_kernel(size, patch, width_in, width_out):
    """S.heads: min((2m+1)², (2P-1)²·D_in·D_out), with m = ⌈(K-1)/(2P)⌉. No kernel exceeds it."""
    m = -(-(size - 1) // (2 * patch))
    expected = min((2 * m + 1) ** 2, (2 * patch - 1) ** 2 * width_in * width_out)
    generator = np.random.default_rng(0)
    kernel = generator.integers(-(10**4), 10**4, (size, size, width_in, width_out))
    flattened = np.asarray(flattened_kernel(kernel, patch))
    assert flattened.shape == (patch**4 * width_in * width_out, (2 * m + 1) ** 2)
    assert exact_rank(flattened) == expected


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64", "int32"])
@pytest.mark.quick(3)
def test_the_numerical_rank_knows_the_precision_it_works_in(dtype):
    """A matrix of rank one, and one that is a unit roundoff away from it: seen in float64 only."""
    assert int(numerical_rank(jnp.ones((4, 2), dtype))) == 1
    nearly = jnp.ones((4, 2), dtype).at[0, 0].add(jnp.asarray(2.0**-20).astype(dtype))
    assert int(numerical_rank(nearly)) == (2 if dtype == "float64" else 1)


@pytest.mark.parametrize(
    ("matrix", "rank"),
    [
        ([[0, 0], [0, 0]], 0),
        (np.zeros((3, 0)), 0),
        ([[1.0, 2.0], [2.0, 4.0]], 1),
        ([[1e30, 0], [0, 1]], 2),
        ([[10**30, 1], [10**30, 1], [1, 0]], 2),
        (np.array([[2**64 - 1, 1], [1, 0]], np.uint64), 2),
        (np.ones((2, 2), bool), 1),
    ],
)
def test_exact_ranks_of_matrices_of_many_kinds(matrix, rank):
    assert exact_rank(matrix) == rank


@pytest.mark.parametrize(
    "matrix", [[[0.5]], [[np.inf, 1.0]], [[np.nan]], [[1, 2, 1.25]], [1, 2], 3, np.ones((1, 1, 1))]
)
def test_what_is_no_matrix_of_integers_is_refused(matrix):
    with pytest.raises(ValueError, match="expected a matrix of integers"):
        exact_rank(matrix)


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        (np.ones((3, 3)), {}),
        (np.full((3, 1, 1), np.nan), {}),
        (np.ones((3, 1, 1)), {"patch_size": 0}),
        (np.ones((3, 1, 1)), {"dilation": (1, 1)}),
    ],
)
def test_what_is_no_kernel_is_refused(kernel, options):
    with pytest.raises(ValueError, match=r"but expected|non-finite|has 2 axes"):
        flattened_kernel(kernel, **options)


@pytest.mark.parametrize("shape", [(3,), (2, 2, 2), (0, 3), (3, 0)])
def test_a_numerical_rank_is_that_of_a_matrix_of_real_numbers(shape):
    for flattened in (jnp.ones(shape), jnp.ones((2, 3), complex)):
        with pytest.raises(ValueError, match=r"flattened has shape .*expected a matrix of real"):
            numerical_rank(flattened)
