"""Free heads: the product and its written derivative are those of the formula, in integers."""

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from strategies import small_integers

from convattn.fast.separable import axis_mixing
from convattn.fast.separable.axis_mixing import chunk_size, mix_mix_map
from convattn.fast.separable.axis_product import Arithmetic

pytestmark = pytest.mark.usefixtures("quick_compilation")

# heads, i, k, j, l, features, out_features, batch
SIZES = ((2, 3, 4, 5, 6, 2, 7, 6), (1, 1, 3, 4, 1, 1, 2, 1))
FACTORS = ("rows", "columns", "maps", "tokens")


def apply(*args):
    return mix_mix_map(Arithmetic(args[0].dtype, "highest"), *args)


def formula(rows, columns, maps, tokens):
    return jnp.einsum("hik,hjl,hdo,bkld->bijo", rows, columns, maps, tokens)


def make_operands(sizes, dtype="float64"):
    heads, i, k, j, width, d, o, batch = sizes
    rng = np.random.default_rng(2)
    shapes = [(heads, i, k), (heads, j, width), (heads, d, o)]
    shapes += [(batch, k, width, d), (batch, i, j, o)]
    *operands, cotangent = (jnp.asarray(small_integers(rng, *shape), dtype) for shape in shapes)
    return operands, cotangent


def value_and_cotangents(function, operands, cotangent):
    def both(operands, cotangent):
        result, pull = jax.vjp(function, *operands)
        return result, *pull(cotangent)

    return jax.jit(both)(operands, cotangent)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_product_and_its_derivative_are_those_of_the_formula(sizes, dtype):
    operands = make_operands(sizes, dtype)
    # A function of its own each time, so that nothing compiled before is found again.
    actual = value_and_cotangents(lambda *operands: apply(*operands), *operands)
    for one, two in zip(actual, value_and_cotangents(formula, *operands), strict=True):
        assert_dtype(one, dtype)
        assert_equal(one, two)


@pytest.mark.slow
@pytest.mark.parametrize("factor", FACTORS)
def test_a_wrong_derivative_is_seen(factor, monkeypatch):
    index, original = FACTORS.index(factor), mix_mix_map.bwd

    def wrong(*args):
        parts = list(original(*args))
        parts[index] = -parts[index]
        return tuple(parts)

    monkeypatch.setattr(mix_mix_map, "bwd", wrong)
    operands = make_operands(SIZES[0])
    result, *actual = value_and_cotangents(lambda *operands: apply(*operands), *operands)
    value, *expected = value_and_cotangents(formula, *operands)
    assert_equal(result, value)
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(actual[index], expected[index])
    for other in set(range(4)) - {index}:
        assert_equal(actual[other], expected[other])


def test_nothing_but_the_arguments_is_kept_for_the_derivative():
    operands, _ = make_operands(SIZES[0])
    pull = jax.vjp(apply, *operands)[1]
    sizes = sorted(leaf.size for leaf in jax.tree.leaves(pull))
    assert sizes == sorted(part.size for part in operands)
    plain = jax.vjp(formula, *operands)[1]  # what it saves: a plain formula keeps more
    assert sum(leaf.size for leaf in jax.tree.leaves(plain)) > sum(sizes)


@pytest.mark.parametrize("bytes_at_once", [1, 768, 10**9], ids=["one", "two", "all"])
def test_the_images_that_are_taken_together_do_not_matter(bytes_at_once, monkeypatch):
    monkeypatch.setattr(axis_mixing, "CHUNK_BYTES", bytes_at_once)
    operands = make_operands(SIZES[0])
    assert chunk_size(6, 4 * 6 * 2 * 8) == {1: 1, 768: 2, 10**9: 6}[bytes_at_once]
    actual = value_and_cotangents(lambda *operands: apply(*operands), *operands)
    for one, two in zip(actual, value_and_cotangents(formula, *operands), strict=True):
        assert_equal(one, two)
