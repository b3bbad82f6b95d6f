"""Distances and bounds: enclosures hold against fractions and other routes."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within
from constructions.conversion_cases import applied, reference
from hypothesis import given
from hypothesis import strategies as st

import convattn as ca
from convattn.bounds.approximation import approximate_conv, candidates, stored_numbers
from convattn.bounds.flattened_kernel import flattened_kernel
from convattn.bounds.layer_distance import squared_distance
from convattn.bounds.mixture_candidates import factored_rows
from convattn.bounds.tail_energy import tail_energy_bounds
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.given_kernel import mixture_heads, mixture_layer
from convattn.constructions.li_output_map import token_maps
from convattn.constructions.linear_map import linear_map

SHAPES = (((3, 3, 1, 1), 2), ((5, 1, 2), 2))


def fractions(array):
    return [Fraction(entry) for entry in np.asarray(array, np.float64).ravel().tolist()]


def exact_distance(weights, blocks, maps, keys):
    total = Fraction(0)
    maps = [fractions(block) for block in maps]
    blocks = [fractions(block) for block in blocks]
    rows = [[Fraction(1, keys) + w for w in fractions(row)] for row in weights]
    scales = [1 + sum(fractions(row)) for row in weights]
    for entry in range(len(maps[0])):
        for at, block in enumerate(maps):
            put = sum(b[entry] * r[at] / z for b, r, z in zip(blocks, rows, scales, strict=True))
            total += (put - block[entry]) ** 2
        beyond = sum(b[entry] / (z * keys) for b, z in zip(blocks, scales, strict=True))
        total += (keys - len(maps)) * beyond**2
    return total


@pytest.mark.parametrize("seed", range(4))
def test_the_distance_is_enclosed_for_every_number_of_keys(seed):
    rng = np.random.default_rng(seed)
    weights = rng.random((3, 4)) * (10.0 ** rng.integers(-3, 3))
    blocks, maps = rng.normal(size=(3, 2, 3)), rng.normal(size=(4, 2, 3))
    enclosure = squared_distance(weights, blocks, maps)
    for keys in (4, 5, 17, 4000):
        error = exact_distance(weights, blocks, maps, keys)
        assert enclosure.lower <= error <= enclosure.upper
    assert enclosure.lower in enclosure
    assert enclosure.upper * 2 not in enclosure


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "patch"), SHAPES)
@pytest.mark.parametrize("heads", [1, 3])
def test_the_error_is_the_linear_maps_at_an_interior_query(shape, patch, heads):
    """From the layer as applied: what the middle query's output gets from every input pixel.

    The map in float64 has its own roundings, at most 2⁻⁴⁰ of |F|² for these sizes (sums of up to 45
    products of softmax weights, each exact to 2⁻⁴⁸, and maps that the heads scale by up to 2⁶).
    """
    kernel = jnp.asarray(np.random.default_rng(1).normal(size=shape))
    approximation = approximate_conv(kernel, heads, patch_size=patch)
    axes = len(shape) - 2
    sides = (5 * patch,) * axes
    exact = ca.conv_to_attention(kernel, patch_size=patch, encoding="quadratic")
    gap = np.asarray(linear_map(approximation.layer, sides) - linear_map(exact, sides))
    middle = slice(2 * patch, 3 * patch)
    squared = float((gap[(slice(None),) * axes + (middle,) * axes] ** 2).sum())
    energy = float((np.asarray(flattened_kernel(kernel, patch)) ** 2).sum())
    assert (
        approximation.error.lower - 2.0**-40 * energy
        <= squared
        <= approximation.error.upper + 2.0**-40 * energy
    )


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "patch"), SHAPES)
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_the_bounds_are_below_and_the_error_is_within_one_head(shape, patch, dtype):
    kernel = jnp.asarray(np.random.default_rng(2).normal(size=shape), dtype)
    flattened = np.asarray(flattened_kernel(kernel, patch), np.float64)
    singular = np.linalg.svd(flattened, compute_uv=False)
    energy = float((singular**2).sum())
    slack = 2.0**-40 * energy
    for heads in (1, 3, 12):
        approximation = approximate_conv(kernel, heads, patch_size=patch)
        tails = [float((singular[n:] ** 2).sum()) for n in (heads, heads - 1)]
        assert approximation.layer.heads <= heads
        assert tails[0] - slack <= approximation.lower_bound <= tails[0] + slack
        assert tails[1] - slack <= approximation.next_bound <= tails[1] + slack
        assert approximation.lower_bound <= approximation.error.upper
        if dtype == "float64":
            assert approximation.error.upper <= tails[1] + slack
        assert_dtype(approximation.layer.output, dtype)


def test_one_head_for_an_edge_is_one_tap():
    """The optimum is 1: (a_1 - a_3)² ≤ |a|² for a ≥ 0. The bounds are 0 and 2."""
    approximation = approximate_conv(jnp.array([[[1.0]], [[0.0]], [[-1.0]]], "float64"), 1)
    assert approximation.method == "one-hot heads"
    assert 1.0 in approximation.error
    assert approximation.error.upper < 1 + 1e-12
    mixed = approximate_conv(jnp.ones((3, 3, 1, 1), "float64").at[0].set(-1.0), 1)
    assert 3 - 1e-12 < mixed.error.lower <= mixed.error.upper < 3 + 1e-12  # the six ones


@pytest.mark.slow
@given(
    entries=st.lists(st.integers(-4, 4), min_size=18, max_size=18).filter(any),
    heads=st.integers(1, 9),
    dtype=st.sampled_from(["float64", "float32", "bfloat16"]),
)
def test_the_error_is_the_dense_one_and_no_simpler_layer_is_nearer(entries, heads, dtype):
    """Small kernels: 3 × 3, one channel into two."""
    kernel = jnp.asarray(np.reshape(entries, (3, 3, 1, 2)), dtype)
    approximation = approximate_conv(kernel, heads)
    geometry = ConvolutionGeometry.of((3, 3), 1)
    maps = np.asarray(token_maps(kernel, geometry), np.float64)
    weights, blocks = stored_numbers(approximation.layer)
    slack = 1e-12 * float((maps**2).sum())
    for keys in (9, 50):
        error = exact_distance(weights, blocks, maps, keys)
        assert approximation.error.lower <= error <= approximation.error.upper
        assert approximation.lower_bound <= error
    assert approximation.lower_bound <= approximation.error.upper
    assert approximation.layer.heads <= heads
    loudest = np.argsort(-(maps**2).sum(axis=(1, 2)), kind="stable")[:heads]
    uniform_weight = float(np.finfo("float64" if dtype == "float64" else "float32").eps)
    one_hot = np.eye(9)[loudest] / uniform_weight
    spoken = jnp.asarray(maps[loudest] * (1 + uniform_weight), dtype)
    simple = squared_distance(one_hot, np.asarray(spoken, np.float64), maps)
    assert approximation.error.upper <= simple.upper + slack
    right = np.linalg.svd(maps.reshape(9, 2).T, full_matrices=False)[2][: heads - 1]
    weights, coefficients = mixture_heads(right)
    own = jnp.asarray(np.tensordot(coefficients @ right, maps, 1), dtype)
    truncated = mixture_layer(weights, np.eye(len(weights)), own, geometry)
    if heads <= 2:  # beyond that the rank is reached, and rounding alone is left of both
        assert (
            approximation.error.upper
            <= squared_distance(*stored_numbers(truncated), maps).upper + slack
        )


@pytest.mark.parametrize(
    ("heads", "reached"), [(1, 66.84), (2, 42.31), (4, 16.92)]
)  # the bounds are 63.55, 40.86 and 16.72; one-hot heads have 98.9, 63.6 and 27.3
@pytest.mark.quick(1)
def test_factors_come_nearer_than_singular_vectors(heads, reached):
    kernel = np.random.default_rng(0).normal(size=(3, 3, 3, 4))
    approximation = approximate_conv(jnp.asarray(kernel), heads)
    assert approximation.method == "nonnegative factors"
    assert (
        approximation.lower_bound < approximation.error.upper < reached < approximation.next_bound
    )
    again = approximate_conv(jnp.asarray(kernel), heads)
    for one, other in zip(
        stored_numbers(approximation.layer), stored_numbers(again.layer), strict=True
    ):
        assert_equal(one, other)


@pytest.mark.parametrize(("size", "directions"), [(1.25, 2), (0.75, 1)])
def test_singular_values_that_rounding_may_have_made_are_left_out(size, directions):
    """Up to 3 · 2⁻⁵² of the largest, for F of three rows and two columns."""
    rows = np.array([[2.0, 0.0], [0.0, 0.0], [0.0, 2 * size * 3 * 2.0**-52]])
    candidate = next(candidates(rows, np.ones(3, int), 9, 2.0**-52, 2.0**-53))
    name, weights, mixtures = candidate
    assert name == "singular vectors"
    assert weights.shape == mixtures.shape == (directions + 1, 2)  # one head is uniform


@given(st.integers(0, 2**32 - 1))
def test_factored_rows_are_nonnegative_and_no_worse_than_their_start(seed):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(7, 5))
    gram = matrix.T @ matrix
    start = np.maximum(0.0, rng.normal(size=(3, 5)))
    start[:, seed % 5] += 0.1  # no row is zero
    rows, missed = factored_rows(gram, start)

    def distance(mixing):
        fitted = matrix @ np.linalg.pinv(mixing) @ mixing
        return ((matrix - fitted) ** 2).sum() / (matrix**2).sum()

    assert (rows >= 0).all()
    assert rows.any(axis=1).all()
    assert abs(distance(rows) - missed) <= 1e-9
    assert missed <= distance(start) + 1e-9


def test_tails_are_never_exceeded_where_they_are_integers():
    """Rows that are multiples of unit vectors: G is diagonal, and the tails are known exactly."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        weights, counts = rng.integers(-9, 10, 6), rng.integers(1, 5, 6)
        tails = np.cumsum(np.sort(weights**2 * counts))[::-1]
        bounds = tail_energy_bounds(np.diag(weights).astype(float), counts)
        assert (bounds[:-1] <= tails).all()
        assert bounds[-1] == 0
        assert (bounds[:-1] >= tails - 2.0**-40 * tails[0]).all()


@pytest.mark.parametrize("heads", [0, -1, True, np.True_, 2.0, "2"])
def test_a_budget_that_is_none(heads):
    with pytest.raises(ValueError, match="expected an integer ≥ 1"):
        approximate_conv(jnp.ones((3, 1, 1)), heads)


@pytest.mark.parametrize("power", [-149, 0, 149])
@pytest.mark.parametrize("heads", [1, 2, 3])
def test_at_the_edges_of_the_range_every_figure_holds(power, heads):
    """Times a power of two: the singular values of these taps, in fractions, are known."""
    kernel = np.diag([1.0, 2.0**-200, 0.5])[:, None, :]
    approximation = approximate_conv(jnp.asarray(kernel * 2.0**power), heads)
    tails = [Fraction(2) ** -400 + Fraction(1, 4), Fraction(2) ** -400, Fraction(0)]
    assert Fraction(approximation.lower_bound) <= tails[heads - 1] * Fraction(2) ** (2 * power)
    maps = kernel * 2.0**power
    for keys in (3, 100):
        error = exact_distance(*stored_numbers(approximation.layer), maps, keys)
        assert Fraction(approximation.error.lower) <= error <= Fraction(approximation.error.upper)
        assert Fraction(approximation.lower_bound) <= error


@pytest.mark.parametrize("size", [1e-160, 1e-162, 1e160])
def test_a_kernel_whose_squares_leave_float64_is_refused(size):
    kernel = jnp.asarray(np.random.default_rng(0).normal(size=(3, 1, 2)) * size)
    with pytest.raises(ValueError, match="multiply the kernel by a power of two"):
        approximate_conv(kernel, 1)
    maps = np.asarray(kernel)
    with pytest.raises(ValueError, match="largest entry of kernel"):
        squared_distance(np.zeros((1, 3)), np.zeros((1, 1, 2)), maps)


def test_a_traced_kernel_is_refused():
    with pytest.raises(ValueError, match="not within jit"):
        jax.jit(lambda kernel: approximate_conv(kernel, 2).layer)(jnp.ones((3, 1, 1)))


def test_where_some_candidates_overflow_another_is_taken():
    kernel = jnp.asarray([[[60000.0]], [[-60000.0]], [[60000.0]]], "float16")
    assert approximate_conv(kernel, 2).method == "one-hot heads"


def test_where_all_candidates_overflow_the_remedy_is_said(monkeypatch):
    refuse = "convattn.bounds.approximation.candidates"
    monkeypatch.setattr(refuse, lambda *args: [("one", np.ones((1, 3)), np.full((1, 3), 2.0**10))])
    with pytest.raises(ValueError, match="overflow float16"):
        approximate_conv(jnp.full((3, 1, 1), 60000.0, "float16"), 2)


def test_another_layer_has_no_mixture():
    with pytest.raises(ValueError, match="no mixture heads"):
        stored_numbers(ca.conv_to_attention(jnp.ones((3, 1, 1))))


def test_the_bias_and_the_zero_kernel_pass():
    approximation = ca.approximate_conv(jnp.zeros((3, 1, 2)), 3, bias=jnp.array([1.0, 2.0]))
    assert approximation.layer.heads == 1
    assert approximation.error.upper == 0
    assert ca.apply_attention(approximation.layer, jnp.ones((1, 4, 1)))[0, 0].tolist() == [1.0, 2.0]


@pytest.mark.quick(3)
@pytest.mark.parametrize(("size", "dilation"), [(2, 2), (2, 3), (4, 2), (3, 2), (2, 1)])
def test_the_layer_stands_where_the_convolution_does(size, dilation):
    """T + 1 heads are exact; "SAME" of an even kernel with d > 1 is no symmetric ring."""
    kernel = np.random.default_rng(0).integers(-3, 4, (size, size, 2, 2)).astype(float)
    images = np.random.default_rng(1).normal(size=(1, 9, 8, 2))
    layer = approximate_conv(kernel, size * size + 1, dilation=dilation).layer
    expected = reference(images, kernel, dilation=dilation)
    assert_within(applied(layer, images), expected, 1e-9)
