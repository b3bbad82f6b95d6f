"""Heads that share their mixings: the product and its written derivative are those of the formula.

Everything is integers below 2²⁴, so whatever the order of the sums the numbers are the same.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from strategies import small_integers

from convattn.fast.separable.axis_product import Arithmetic, mix_map_mix

pytestmark = pytest.mark.usefixtures("quick_compilation")

# r, i, k, c, j, l, features, out_features, batch
SIZES = ((2, 3, 4, 3, 5, 6, 2, 7, 2), (1, 1, 3, 2, 4, 1, 1, 3, 1))
FACTORS = ("rows", "columns", "maps", "tokens")


def arithmetic(dtype="float64"):
    return Arithmetic(np.dtype(dtype), "highest")


def make_operands(sizes, dtype="float64"):
    r, i, k, c, j, width, d, o, batch = sizes
    rng = np.random.default_rng(1)
    shapes = (r, i, k), (c, j, width), (c, d, r, o), (width, k, batch, d), (i, j, batch, o)
    *operands, cotangent = (jnp.asarray(small_integers(rng, *shape), dtype) for shape in shapes)
    return operands, cotangent


def formula(rows, columns, maps, tokens):
    return jnp.einsum("rik,cjl,cdro,lkbd->ijbo", rows, columns, maps, tokens)


def value_and_cotangents(function, operands, cotangent):
    def both(operands, cotangent):
        result, pull = jax.vjp(function, *operands)
        return result, *pull(cotangent)

    return jax.jit(both)(operands, cotangent)


def actual_and_expected(sizes, dtype="float64"):
    operands, cotangent = make_operands(sizes, dtype)
    actual = value_and_cotangents(
        lambda *args: mix_map_mix(arithmetic(dtype), *args), operands, cotangent
    )
    return actual, value_and_cotangents(formula, operands, cotangent)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_product_and_its_derivative_are_those_of_the_formula(sizes, dtype):
    for actual, expected in zip(*actual_and_expected(sizes, dtype), strict=True):
        assert_dtype(actual, dtype)
        assert_equal(actual, expected)


@pytest.mark.parametrize("factor", FACTORS)
def test_a_wrong_derivative_is_seen(factor, monkeypatch):
    index, original = FACTORS.index(factor), mix_map_mix.bwd

    def wrong(*args):
        parts = list(original(*args))
        parts[index] = 2 * parts[index]
        return tuple(parts)

    monkeypatch.setattr(mix_map_mix, "bwd", wrong)
    (result, *actual), (value, *expected) = actual_and_expected(SIZES[0])
    assert_equal(result, value)
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(actual[index], expected[index])
    for other in set(range(4)) - {index}:
        assert_equal(actual[other], expected[other])


def test_one_image_for_each_row_group_is_kept_for_the_derivative():
    """Z, and the arguments; U is computed again."""
    operands, _ = make_operands(SIZES[0])
    pull = jax.vjp(lambda *args: mix_map_mix(arithmetic(), *args), *operands)[1]
    r, _, k, _, j, _, _, out, batch = SIZES[0]
    sizes = sorted(leaf.size for leaf in jax.tree.leaves(pull))
    assert sizes == sorted([*(part.size for part in operands), r * k * j * batch * out])
