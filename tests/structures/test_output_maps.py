"""Eq. 10 both ways: blocks, products, and factors of what has a small enough rank."""

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma
from strategies import small_integers

from convattn.structures import maps_from_parameter, parameter_from_maps, split_output_map

HEADS, P, Q, WIDTH = 3, 4, 6, 2


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Θ_value `[heads, P, D]` and Θ_O `[Q, K·D]`, in integers."""
    rng = np.random.default_rng(seed)
    return small_integers(rng, HEADS, P, WIDTH), small_integers(rng, Q, HEADS * WIDTH)


@pytest.mark.parametrize("seed", range(2))
def test_concatenating_and_mapping_is_summing_products(seed):
    value, output = drawn(seed)
    mixed = small_integers(np.random.default_rng(seed + 1), HEADS, 5, P)  # A_kᵀ x, five queries
    expected = np.concatenate([m @ v for m, v in zip(mixed, value, strict=True)], 1) @ output.T
    theta = parameter_from_maps(jnp.asarray(value), split_output_map(jnp.asarray(output), HEADS))
    assert_equal(np.einsum("knp,kpq->nq", mixed, np.asarray(theta)), expected)
    swapped = split_output_map(jnp.asarray(output), HEADS)[::-1]
    wrong = parameter_from_maps(jnp.asarray(value), swapped)
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(np.einsum("knp,kpq->nq", mixed, np.asarray(wrong)), expected)


@pytest.mark.parametrize("shape", [(HEADS, P, Q), (HEADS, Q, P), (HEADS, P, P)])
def test_full_width_rounds_nothing(shape):
    theta = jnp.asarray(small_integers(np.random.default_rng(2), *shape))
    maps = maps_from_parameter(theta)
    assert maps.value.shape == (shape[0], shape[1], P)
    assert maps.output.shape == (shape[0], P, shape[2])
    assert_equal(parameter_from_maps(maps.value, maps.output), theta)
    assert_equal(maps.residual, np.zeros(HEADS))
    again = maps_from_parameter(theta, P)
    assert_equal(again.output, maps.output)


def backward_error(theta: np.ndarray) -> np.ndarray:
    """What the decomposition may be off by: a multiple of u·|Θ|_F that Householder's and the QR
    algorithm's analysis bounds by a low polynomial; here (P + Q)² for reduction, iteration and
    the product of the factors."""
    return gamma(4 * (P + Q) ** 2, "float64") * np.linalg.norm(theta, axis=(1, 2))


@pytest.mark.parametrize("seed", range(2))
def test_what_has_rank_d_is_recovered_from_maps_of_width_d(seed):
    value, output = drawn(seed)
    blocks = split_output_map(jnp.asarray(output), HEADS)
    theta = np.asarray(parameter_from_maps(jnp.asarray(value), blocks))
    maps = maps_from_parameter(jnp.asarray(theta), WIDTH)
    bound = backward_error(theta)
    assert maps.value.shape == value.shape
    assert maps.output.shape == blocks.shape
    product = parameter_from_maps(maps.value, maps.output)
    assert_within(product, theta, bound[:, None, None])
    assert_within(maps.residual, np.zeros(HEADS), bound)


def test_the_residual_is_what_is_lost_and_nothing_loses_less():
    """Θ = diag(4, 3, 2, 1): without the two largest, √(2² + 1²) is left."""
    theta = jnp.asarray(np.eye(P)[None] * np.array([2.0, 4.0, 1.0, 3.0]))
    maps = maps_from_parameter(theta, WIDTH)
    bound = backward_error(np.asarray(theta))
    assert_within(maps.residual, [np.sqrt(5.0)], bound)
    lost = theta - parameter_from_maps(maps.value, maps.output)
    assert_within(jnp.linalg.norm(lost, axis=(1, 2)), [np.sqrt(5.0)], bound)
    assert_within(lost[0], np.diag([2.0, 0, 1.0, 0]), bound[0])


@pytest.mark.parametrize("width", [0, P + 1])
def test_widths_without_a_meaning_are_refused(width):
    with pytest.raises(ValueError, match=rf"width={width}, but expected a width from 1 to {P}"):
        maps_from_parameter(jnp.ones((HEADS, P, Q)), width)


@pytest.mark.parametrize("heads", [0, 4])
def test_heads_that_do_not_divide_the_output_map_are_refused(heads):
    with pytest.raises(ValueError, match=f"{heads} heads do not divide"):
        split_output_map(jnp.ones((Q, HEADS * WIDTH)), heads)
