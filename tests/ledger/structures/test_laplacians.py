"""Laplacian, GCN and Chebyshev bases; claim A19.graph has them in fractions and against scipy."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma
from ledger.structures.graph_cases import FORMS

from convattn_ledger.structures import chebyshev_basis, gcn_basis, laplacian_basis


def test_regular_graphs_are_exact_whatever_their_degree():
    """√(dd) = d: a cycle with weights 3 has degrees 6 and entries 1/2."""
    cycle = 3 * (np.roll(np.eye(5), 1, 0) + np.roll(np.eye(5), -1, 0))
    assert_equal(laplacian_basis(cycle).matrices()[0], np.eye(5) - cycle / 6)
    huge = (cycle * 1e38).astype(np.float32)  # degrees are summed in float64
    assert_equal(laplacian_basis(huge).matrices()[0], np.float32(np.eye(5) - cycle / 6))


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


@pytest.mark.parametrize("form", FORMS)
def test_isolated_nodes_have_no_normalised_laplacian(form):
    adjacency = np.zeros((4, 4))
    adjacency[0, 2] = adjacency[2, 0] = 1
    for make in (laplacian_basis, lambda adjacency: chebyshev_basis(adjacency, 1)):
        with pytest.raises(ValueError, match="isolated nodes, such as 1"):
            make(FORMS[form](adjacency))
    assert_equal(gcn_basis(FORMS[form](adjacency)).matrices()[0, 1], [0, 1, 0, 0])


@pytest.mark.parametrize(
    ("order", "eigenvalue", "message"),
    [
        (-1, 2.0, "order=-1"),
        (1.5, 2.0, "order=1.5"),
        (2, 0.0, "largest_eigenvalue=0.0"),
        (2, float("nan"), "largest_eigenvalue=nan"),
        (2, float("inf"), "largest_eigenvalue=inf"),
    ],
)
def test_mistakes_are_refused(order, eigenvalue, message, unchecked):
    with pytest.raises(ValueError, match=re.escape(message)):
        chebyshev_basis([[0, 1], [1, 0]], order, largest_eigenvalue=eigenvalue)
