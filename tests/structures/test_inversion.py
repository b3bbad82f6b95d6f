from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma
from hypothesis import given
from strategies import seeds

from convattn.structures import dual_basis, invert_mixed_product, mixed_product
from convattn.structures.inversion import as_fractions, linear_relation, transposed_inverse

FAMILY = np.array([[[1, 1], [0, 2]], [[0, 3], [1, 1]], [[1, 0], [2, 1]], [[0, 0], [1, 4]]])


def test_the_dual_basis_pairs_to_the_identity() -> None:
    dual = dual_basis(FAMILY)
    assert dual.shape == FAMILY.shape
    assert (np.einsum("kst,lst->kl", dual, FAMILY.astype(object)) == np.eye(4, dtype=int)).all()


@pytest.mark.parametrize("kind", [lambda a: a, lambda a: a.astype(object), jnp.asarray])
@pytest.mark.parametrize("rest", [(), (3,), (3, 5)])
def test_the_parameter_is_found(kind, rest) -> None:
    theta = np.random.default_rng(0).integers(-9, 10, (4, *rest))
    phi = mixed_product(FAMILY, theta)
    found = invert_mixed_product(kind(FAMILY), kind(np.asarray(phi)))
    assert found.dtype == object
    assert (found == theta).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_are_inverted_in_floating_point(dtype) -> None:
    dual = dual_basis(jnp.asarray(FAMILY, dtype))
    exact = dual_basis(FAMILY).astype(np.float64)
    assert dual.dtype == dtype
    # Higham, Theorem 9.4: |E| ≤ γ_3n·n·2^(n-1)·max|A|; then as for a perturbed inverse.
    size, inverse = 4, np.abs(exact).reshape(4, 4)
    c = gamma(3 * size, dtype) * size * 2 ** (size - 1) * FAMILY.max()
    growth = c * inverse.sum()
    bound = c * inverse.sum(axis=1, keepdims=True) * inverse.sum(axis=0) / (1 - growth)
    assert_within(dual.reshape(4, 4), exact.reshape(4, 4), bound * (1 + 2**-20) + 2**-53 * inverse)


def test_mixed_operands_are_floats() -> None:
    for family, phi in ((np.eye(2), [[4], [6]]), (np.eye(2, dtype=int), np.array([[4.0], [6.0]]))):
        theta = invert_mixed_product(2 * family, phi)
        assert isinstance(theta, jax.Array)
        assert_equal(theta, [[2], [3]])


def test_it_works_under_jit() -> None:
    family = jnp.asarray([[2.0, 0.0], [0.0, 4.0]])
    assert_equal(jax.jit(invert_mixed_product)(family, family), np.eye(2))
    dual = jax.jit(dual_basis)(jnp.asarray([[2, 0], [0, 4]]))  # traced integers become floats
    assert_equal(dual, [[0.5, 0], [0, 0.25]])


@pytest.mark.parametrize(
    ("family", "message"),
    [
        ([[1, 2, 3]], "has dimension 3: they cannot span it"),
        ([[1], [2]], "has dimension 1: they are dependent"),
        (np.ones((1, 2)), "cannot span"),
        ([[1, 2], [2, 4]], r"2·a_0 - 1·a_1 = 0"),
        ([[1, 0, 1], [0, 1, 1], [3, -2, 1]], r"3·a_0 - 2·a_1 - 1·a_2 = 0"),
        ([[0]], r"1·a_0 = 0"),
        (np.array([[0.1, 0.2], [0.3, 0.6]]), r"dependent up to rounding: .*a_0 .*a_1 has norm"),
        (np.array([[1.0, np.nan], [0.0, 1.0]]), "non-finite"),
        (np.zeros((0, 2)), "all at least 1"),
    ],
)
def test_what_is_no_basis_is_refused(family, message) -> None:
    with pytest.raises(ValueError, match=message):
        dual_basis(family)


def test_a_tensor_of_another_shape_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"phi\.shape=\(3, 2\), but expected to begin with \(2, 2\)"
    ):
        invert_mixed_product(FAMILY, np.ones((3, 2), int))


def test_ragged_lists_are_refused() -> None:
    for family in ([[1.0, 2.0], [2.0]], [[1, 2], [2]]):
        with pytest.raises(ValueError, match=r"rows of different lengths \(ragged\)"):
            dual_basis(family)


@given(seeds())
def test_inverse_or_relation(seed) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 6))
    matrix = rng.integers(-1, 2, (size, size)).astype(object) * Fraction(1, int(rng.integers(1, 9)))
    rows = as_fractions(matrix, "matrix")
    relation = linear_relation(rows)
    if relation is None:
        assert (transposed_inverse(rows).T @ rows == np.eye(size, dtype=int)).all()
    else:
        assert any(relation)
        assert np.gcd.reduce(relation) == 1
        assert not (np.array(relation, object) @ rows).any()
        with pytest.raises(ZeroDivisionError):
            transposed_inverse(rows)


def test_both_cases_occur() -> None:
    assert linear_relation(as_fractions([[0]], "m")) is not None
    assert linear_relation(as_fractions([[1, 1], [1, 1]], "m")) == [1, -1]
    assert linear_relation(as_fractions([[1, 1], [1, 2]], "m")) is None
    assert linear_relation(as_fractions([[1], [2]], "m")) == [2, -1]  # more rows than columns


def test_numpy_integers_are_integers() -> None:
    assert as_fractions(np.arange(2), "row").tolist() == [Fraction(0), Fraction(1)]


@pytest.mark.parametrize("entry", [0.5, True, "1", None])
def test_other_entries_are_refused(entry) -> None:
    with pytest.raises(ValueError, match=r"row\[1\]=.*integer or a Fraction"):
        as_fractions([1, entry], "row")
