"""Distances and bounds: enclosures hold against fractions and other routes."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype

import convattn as ca
from convattn.bounds.approximation import approximate_convolution, leaking_heads, stored_numbers
from convattn.bounds.flattened_kernel import flattened_kernel
from convattn.bounds.layer_distance import squared_distance
from convattn.bounds.tail_energy import tail_energy_bounds
from convattn.constructions.recovery import linear_map

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
    found = squared_distance(weights, blocks, maps)
    for keys in (4, 5, 17, 4000):
        error = exact_distance(weights, blocks, maps, keys)
        assert found.lower <= error <= found.upper
    assert found.lower in found
    assert found.upper * 2 not in found


@pytest.mark.parametrize(("shape", "patch"), SHAPES)
@pytest.mark.parametrize("heads", [1, 3])
def test_the_error_is_the_linear_maps_at_an_interior_query(shape, patch, heads):
    """From the layer as applied: what the middle query's output gets from every input pixel.

    The map in float64 has its own roundings, at most 2⁻⁴⁰ of |F|² for these sizes (sums of up to 45
    products of softmax weights, each exact to 2⁻⁴⁸, and maps that the heads scale by up to 2⁶).
    """
    kernel = jnp.asarray(np.random.default_rng(1).normal(size=shape))
    found = approximate_convolution(kernel, heads, patch_size=patch)
    axes = len(shape) - 2
    sides = (5 * patch,) * axes
    exact = ca.conv_to_attention(kernel, patch_size=patch, encoding="quadratic")
    gap = np.asarray(linear_map(found.layer, sides) - linear_map(exact, sides))
    middle = slice(2 * patch, 3 * patch)
    squared = float((gap[(slice(None),) * axes + (middle,) * axes] ** 2).sum())
    energy = float((np.asarray(flattened_kernel(kernel, patch)) ** 2).sum())
    assert found.error.lower - 2.0**-40 * energy <= squared <= found.error.upper + 2.0**-40 * energy


@pytest.mark.parametrize(("shape", "patch"), SHAPES)
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_the_bounds_are_below_and_the_error_is_within_one_head(shape, patch, dtype):
    kernel = jnp.asarray(np.random.default_rng(2).normal(size=shape), dtype)
    flattened = np.asarray(flattened_kernel(kernel, patch), np.float64)
    singular = np.linalg.svd(flattened, compute_uv=False)
    energy = float((singular**2).sum())
    slack = 2.0**-40 * energy
    for heads in (1, 3, 12):
        found = approximate_convolution(kernel, heads, patch_size=patch)
        tails = [float((singular[n:] ** 2).sum()) for n in (heads, heads - 1)]
        assert found.layer.heads <= heads
        assert tails[0] - slack <= found.lower_bound <= tails[0] + slack
        assert tails[1] - slack <= found.next_bound <= tails[1] + slack
        assert found.lower_bound <= found.error.upper
        if dtype == "float64":
            assert found.error.upper <= tails[1] + slack
        assert_dtype(found.layer.output, dtype)


def test_all_directions_where_the_kernel_is_positive():
    box = jnp.ones((3, 3, 1, 1))
    found = approximate_convolution(box, 1)
    assert (found.directions, found.layer.heads) == (1, 1)
    assert found.error.upper < 1e-6
    mixed = approximate_convolution(box.at[0].set(-1.0), 1)
    assert mixed.directions == 0
    assert mixed.error.lower <= 9 <= mixed.error.upper * (1 + 1e-6)


def test_no_positive_vector_no_leaking_heads():
    assert leaking_heads(np.array([[1.0, -1.0]]) / 2**0.5, 2.0**-20) is None
    weights, coefficients = leaking_heads(np.array([[0.6, 0.8, 0.0]]), 2.0**-20)
    assert (weights >= 0).all()
    assert weights[0, 2] == 0
    row = weights[0] / (1 + weights[0].sum())
    assert np.abs(coefficients[0, 0] * row - [0.6, 0.8, 0.0]).max() < 2.0**-50


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


@pytest.mark.parametrize("heads", [0, -1, True])
def test_a_budget_that_is_none(heads):
    with pytest.raises(ValueError, match="should be an integer ≥ 1"):
        approximate_convolution(jnp.ones((3, 1, 1)), heads)


def test_a_traced_kernel_is_refused():
    with pytest.raises(ValueError, match="not within jit"):
        jax.jit(lambda kernel: approximate_convolution(kernel, 2).layer)(jnp.ones((3, 1, 1)))


def test_another_layer_has_no_mixture():
    with pytest.raises(ValueError, match="no mixture heads"):
        stored_numbers(ca.conv_to_attention(jnp.ones((3, 1, 1))))


def test_the_bias_and_the_zero_kernel_pass():
    found = ca.approximate_convolution(jnp.zeros((3, 1, 2)), 3, bias=jnp.array([1.0, 2.0]))
    assert found.layer.heads == 1
    assert found.error.upper == 0
    assert ca.apply_attention(found.layer, jnp.ones((1, 4, 1)))[0, 0].tolist() == [1.0, 2.0]
