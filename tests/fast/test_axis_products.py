"""Heads that share their mixings and free ones: products and written derivatives of the formulas.

Everything is integers below 2²⁴, so whatever the order of the sums the numbers are the same.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from strategies import small_integers

from convattn.fast.separable import axis_mixing
from convattn.fast.separable.axis_mixing import chunk_size, mix_mix_map
from convattn.fast.separable.axis_product import Arithmetic, mix_map_mix

FACTORS = ("rows", "columns", "maps", "tokens")
# The product, and its operands and result by their axes.
PRODUCTS = {
    "shared": (mix_map_mix, "rik,cjl,cdro,lkbd->ijbo"),
    "free": (mix_mix_map, "hik,hjl,hdo,bkld->bijo"),
}
SIZES = {
    "shared": [(2, 3, 4, 3, 5, 6, 2, 7, 2), (1, 1, 3, 2, 4, 1, 1, 3, 1)],  # r i k c j l d o b
    "free": [(2, 3, 4, 5, 6, 2, 7, 6), (1, 1, 3, 4, 1, 1, 2, 1)],  # h i k j l d o b
}
AXES = {"shared": "rikcjldob", "free": "hikjldob"}


class Product:
    """A product of operands in one dtype, its formula, and integers of the sizes of a case."""

    def __init__(self, name: str, case: int = 0, dtype: str = "float64") -> None:
        self.product, self.formula = PRODUCTS[name]
        self.arithmetic = Arithmetic(np.dtype(dtype), "highest")
        self.sizes = dict(zip(AXES[name], SIZES[name][case], strict=True))
        rng, (left, result) = np.random.default_rng(2), self.formula.split("->")
        *self.operands, self.cotangent = (
            jnp.asarray(small_integers(rng, *(self.sizes[axis] for axis in axes)), dtype)
            for axes in (*left.split(","), result)
        )

    def apply(self, *operands):
        return self.product(self.arithmetic, *operands)

    def by_formula(self, *operands):
        return jnp.einsum(self.formula, *operands)

    def both(self):
        """The result and the cotangents of the product, and those of the formula."""

        def values(function):
            def run(operands, cotangent):
                result, pull = jax.vjp(lambda *args: function(*args), *operands)
                return result, *pull(cotangent)

            return jax.jit(run)(self.operands, self.cotangent)

        return values(self.apply), values(self.by_formula)


@pytest.mark.slow
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("case", [0, 1])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_product_and_its_derivative_are_those_of_the_formula(name, case, dtype):
    for actual, expected in zip(*Product(name, case, dtype).both(), strict=True):
        assert_dtype(actual, dtype)
        assert_equal(actual, expected)


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        *(("shared", factor) for factor in FACTORS),
        *(pytest.param("free", factor, marks=pytest.mark.slow) for factor in FACTORS),
    ],
)
def test_a_wrong_derivative_is_seen(name, factor, monkeypatch):
    case, index = Product(name), FACTORS.index(factor)
    original = case.product.bwd

    def wrong(*args):
        parts = list(original(*args))
        parts[index] = 2 * parts[index]
        return tuple(parts)

    monkeypatch.setattr(case.product, "bwd", wrong)
    (result, *actual), (value, *expected) = case.both()
    assert_equal(result, value)
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(actual[index], expected[index])
    for other in set(range(4)) - {index}:
        assert_equal(actual[other], expected[other])


@pytest.mark.parametrize("name", PRODUCTS)
def test_what_is_kept_for_the_derivative(name):
    """The arguments; of shared mixings also one image for each row group, Z, and U not."""
    case = Product(name)
    pull = jax.vjp(case.apply, *case.operands)[1]
    sizes = [leaf.size for leaf in jax.tree.leaves(pull)]
    kept = [int(np.prod([case.sizes[axis] for axis in "rkjbo"]))] if name == "shared" else []
    assert sorted(sizes) == sorted([*(part.size for part in case.operands), *kept])
    if name == "free":  # what it saves: a plain formula keeps more
        plain = jax.vjp(case.by_formula, *case.operands)[1]
        assert sum(leaf.size for leaf in jax.tree.leaves(plain)) > sum(sizes)


@pytest.mark.parametrize(("bytes_at_once", "images"), [(1, 1), (768, 2), (10**9, 6)])
@pytest.mark.quick(1)
def test_the_images_that_are_taken_together_do_not_matter(bytes_at_once, images, monkeypatch):
    monkeypatch.setattr(axis_mixing, "CHUNK_BYTES", bytes_at_once)
    assert chunk_size(6, 4 * 6 * 2 * 8) == images
    for actual, expected in zip(*Product("free").both(), strict=True):
        assert_equal(actual, expected)
