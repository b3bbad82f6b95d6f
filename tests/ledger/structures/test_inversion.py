"""The parameter of a mixed product by the dual basis, exactly and in floating point."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within, gamma
from hypothesis import given
from strategies import seeds

from convattn_ledger.structures import dual_basis, invert_mixed_product, mixed_product
from convattn_ledger.structures.inversion import linear_relation, transposed_inverse

FAMILY = np.array([[[1, 1], [0, 2]], [[0, 3], [1, 1]], [[1, 0], [2, 1]], [[0, 0], [1, 4]]])


@pytest.mark.parametrize("kind", [lambda a: a, lambda a: a.astype(object), jnp.asarray])
@pytest.mark.parametrize("rest", [(), (3, 5)])
def test_the_parameter_is_found(kind, rest) -> None:
    theta = np.random.default_rng(0).integers(-9, 10, (4, *rest))
    result = invert_mixed_product(kind(FAMILY), kind(np.asarray(mixed_product(FAMILY, theta))))
    assert result.dtype == object
    assert (result == theta).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_are_inverted_in_floating_point(dtype) -> None:
    dual = dual_basis(jnp.asarray(FAMILY, dtype))
    exact = dual_basis(FAMILY).astype(np.float64)
    assert_dtype(dual, dtype)
    # Higham, Theorem 9.4: |E| ≤ γ_3n·n·2^(n-1)·max|A|; then as for a perturbed inverse.
    size, inverse = 4, np.abs(exact).reshape(4, 4)
    c = gamma(3 * size, dtype) * size * 2 ** (size - 1) * FAMILY.max()
    growth = c * inverse.sum()
    bound = c * inverse.sum(axis=1, keepdims=True) * inverse.sum(axis=0) / (1 - growth)
    assert_within(dual.reshape(4, 4), exact.reshape(4, 4), bound * (1 + 2**-20) + 2**-53 * inverse)


def test_mixed_operands_are_floats() -> None:
    for family, phi in ((np.eye(2), [[4], [6]]), (np.eye(2, dtype=int), np.array([[4.0], [6.0]]))):
        assert_equal(invert_mixed_product(2 * family, phi), [[2], [3]])


@given(seeds())
def test_inverse_or_relation(seed) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 6))
    rows = rng.integers(-1, 2, (size, size)).astype(object) * Fraction(1, int(rng.integers(1, 9)))
    relation = linear_relation(rows)
    if relation is None:
        assert (transposed_inverse(rows).T @ rows == np.eye(size, dtype=int)).all()
    else:
        assert np.gcd.reduce(relation) == 1
        assert not (np.array(relation, object) @ rows).any()
        with pytest.raises(ZeroDivisionError):
            transposed_inverse(rows)
