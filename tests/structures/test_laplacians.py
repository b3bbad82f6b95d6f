"""Laplacian, GCN and Chebyshev bases against scipy, fractions and the cosine."""

import re
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse.csgraph
from comparison import assert_equal, assert_within, gamma
from structures.graph_cases import dyadic_graph, weighted_graph

from convattn.structures import chebyshev_basis, gcn_basis, laplacian_basis


def exact_root(value):
    """√value as a fraction, of a power of four."""
    root = round(value**0.5)
    assert root * root == value
    return Fraction(root)


def normalised(adjacency):
    """D^(-1/2) A D^(-1/2) in fractions."""
    roots = [exact_root(int(degree)) for degree in adjacency.sum(axis=1)]
    return np.array(
        [[Fraction(int(w)) / (r * c) for w, c in zip(row, roots, strict=True)]
         for row, r in zip(adjacency, roots, strict=True)]
    )  # fmt: skip


def identity(nodes):
    return np.vectorize(Fraction)(np.eye(nodes, dtype=int))


def power(matrix, exponent):
    result = identity(len(matrix))
    for _ in range(exponent):
        result = result @ matrix
    return result


@pytest.mark.parametrize("seed", range(2))
def test_all_of_it_in_fractions(seed):
    nodes = 3 + seed
    adjacency = dyadic_graph(nodes, seed)
    laplacian = identity(nodes) - normalised(adjacency)
    assert_equal(laplacian_basis(adjacency * 1.0).matrices()[0], laplacian.astype(float))
    lifted = dyadic_graph(nodes, seed, lift=1)
    looped = normalised(lifted + np.eye(nodes, dtype=int))
    assert_equal(gcn_basis(lifted * 1.0).matrices()[0], looped.astype(float))
    scaled = laplacian - identity(nodes)
    explicit = [  # T_0 to T_4 by their coefficients
        power(scaled, 0),
        scaled,
        2 * power(scaled, 2) - power(scaled, 0),
        4 * power(scaled, 3) - 3 * scaled,
        8 * power(scaled, 4) - 8 * power(scaled, 2) + power(scaled, 0),
    ]
    for order in (0, 1, 4):
        found = chebyshev_basis(adjacency * 1.0, order).matrices()
        assert_equal(found, np.stack(explicit[: order + 1]).astype(float))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_scipy(seed, form):
    """Integer degrees are exact; ours takes at most 5 roundings off the diagonal, scipy 5."""
    adjacency = weighted_graph(7, seed, loops=False)
    expected = scipy.sparse.csgraph.laplacian(adjacency.astype(float), normed=True)
    bound = gamma(10, "float64") * np.abs(expected)
    result = laplacian_basis(form(adjacency.astype(float))).matrices()[0]
    assert_within(result, expected, bound)
    assert_equal(result, np.asarray(result).T)
    assert_equal(np.diag(result), np.ones(7))


def test_regular_graphs_are_exact_whatever_their_degree():
    """√(dd) = d: a cycle with weights 3 has degrees 6 and entries 1/2."""
    cycle = 3 * (np.roll(np.eye(5), 1, 0) + np.roll(np.eye(5), -1, 0))
    assert_equal(laplacian_basis(cycle).matrices()[0], np.eye(5) - cycle / 6)
    huge = cycle * 1e250
    assert_equal(laplacian_basis(huge).matrices()[0], np.eye(5) - cycle / 6)


def test_chebyshev_polynomials_are_cosines():
    """T_k(cos t) = cos(kt): on a cycle of n nodes L̃ has the eigenvectors e^(2πijm/n), -cos."""
    nodes = 12
    cycle = np.roll(np.eye(nodes), 1, 0) + np.roll(np.eye(nodes), -1, 0)
    polynomials = np.asarray(chebyshev_basis(cycle, 4).matrices())
    for m in range(nodes):
        angle = 2 * np.pi * m / nodes
        wave = np.cos(angle * np.arange(nodes))
        for k in range(5):
            factor = np.cos(k * (np.pi - angle))
            result = polynomials[k] @ wave
            assert_within(result, factor * wave, gamma(100, "float64") * 3**k, f"T_{k}, {m}")


def test_another_scaling():
    """λ = 1: L̃ = 2L - I; the eigenvalue 2 of an edge goes to 3, T_2(3) = 17."""
    edge = np.array([[0, 1], [1, 0]])
    found = chebyshev_basis(edge, 2, largest_eigenvalue=1.0).matrices()
    assert_equal(found[1], [[1, -2], [-2, 1]])
    assert_equal(found[2] @ jnp.array([1, -1]), [17, -17])
    assert_equal(found[2] @ jnp.array([1, 1]), [1, 1])


@pytest.mark.parametrize(
    ("order", "eigenvalue", "message"),
    [
        (-1, 2.0, "order=-1"),
        (True, 2.0, "order=True"),
        (1.5, 2.0, "order=1.5"),
        (2, 0.0, "largest_eigenvalue=0.0"),
        (2, -1.0, "largest_eigenvalue=-1.0"),
        (2, float("nan"), "largest_eigenvalue=nan"),
        (2, float("inf"), "largest_eigenvalue=inf"),
    ],
)
def test_mistakes_are_refused(order, eigenvalue, message, unchecked):
    with pytest.raises(ValueError, match=re.escape(message)):
        chebyshev_basis([[0, 1], [1, 0]], order, largest_eigenvalue=eigenvalue)


@pytest.mark.slow
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_degrees_may_be_beyond_the_dtype_where_a_factor_cancels(form):
    ones, huge = np.ones((3, 3), np.float32), np.full((3, 3), 3e38, np.float32)
    assert_equal(laplacian_basis(form(huge)).matrices(), laplacian_basis(form(ones)).matrices())
    found, expected = (chebyshev_basis(form(part), 2).matrices() for part in (huge, ones))
    assert_equal(found, expected)
    with pytest.raises(ValueError, match="node 0 add up beyond float32"):
        gcn_basis(form(huge))


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_degrees_of_very_different_sizes_are_no_nan(form):
    """l/h = 2^-160 is zero in float32, √l√h = 2^-20 is exact."""
    path = np.array([[0, 2.0**-100, 0], [2.0**-100, 0, 2.0**60], [0, 2.0**60, 0]], np.float32)
    found = np.asarray(laplacian_basis(form(path)).matrices()[0])
    assert_equal(found, [[1, -(2.0**-80), 0], [-(2.0**-80), 1, -1], [0, -1, 1]])
