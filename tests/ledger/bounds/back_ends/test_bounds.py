"""How the bounds of back ends are put together, and in which dtypes they are taken."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import convattn as ca
from convattn_ledger.bounds.back_ends.bounds import evaluate_values, prepare, wide
from convattn_ledger.bounds.back_ends.paths import count_roundings, value_majorants

LAYER = ca.conv_to_attention(jnp.array([[[1.0]], [[-2.0]], [[3.0]]]), jnp.array([5.0]))
IMAGES = jnp.array([[[1.0], [-4.0], [2.0], [0.5]]])


def test_a_value_bound_adds_bias_and_cast_to_its_majorants():
    """(1 + 2⁻²⁰)(E + l(G + |b| + E)) + f, E the error and what underflows."""
    grid, roundings = prepare(LAYER, IMAGES, "zeros")
    last, floor = 0.25, 2.0**-9
    for layer, size in ((LAYER, 5.0), (replace(LAYER, bias=None), 0.0)):
        operands = wide(layer), wide(IMAGES), grid, roundings
        (exact, error), lost = jax.jit(value_majorants, static_argnums=2)(*operands)
        bound = np.asarray(error) + float(lost)
        expected = (1 + 2.0**-20) * (bound + last * (np.asarray(exact) + size + bound)) + floor
        result = evaluate_values(*operands, last, floor)
        # A few roundings of positive numbers in float64, below 1e-15 each.
        np.testing.assert_allclose(result, expected, rtol=1e-14)


def test_features_are_those_of_a_patch():
    """Two pixels of three channels, in a batch of five images of four tokens."""
    layer = ca.conv_to_attention(jnp.ones((3, 3, 1)), patch_size=2)
    grid, result = prepare(layer, jnp.ones((5, 8, 3)), "zeros")
    assert grid.queries == (4,)
    assert result == count_roundings(layer, grid, 5, 6, result.unit, result.tiny)


@pytest.mark.parametrize(
    ("layer", "images", "narrowest"),
    [
        ("float64", "float64", "float64"),
        ("float64", "float32", "float32"),
        ("float32", "float64", "float32"),
        ("bfloat16", "float64", "float32"),
    ],
)
def test_the_least_precise_dtype_decides(layer, images, narrowest):
    """Its unit roundoff and its smallest normal number, float32's at the least."""
    typed = jax.tree.map(lambda leaf: leaf.astype(layer), LAYER)
    roundings = prepare(typed, IMAGES.astype(images), "zeros")[1]
    limits = np.finfo(narrowest)
    assert (roundings.unit, roundings.tiny) == (limits.eps / 2, limits.tiny)
