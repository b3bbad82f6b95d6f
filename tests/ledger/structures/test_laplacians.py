"""Laplacian and Chebyshev bases; claim A19.graph has them in fractions, and every T_k."""

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from ledger.structures.graph_cases import FORMS

from convattn_ledger.structures import chebyshev_basis, gcn_basis, laplacian_basis


def test_regular_graphs_are_exact_whatever_their_degree():
    """√(dd) = d: a cycle with weights 3 has degrees 6 and entries 1/2."""
    cycle = 3 * (np.roll(np.eye(5), 1, 0) + np.roll(np.eye(5), -1, 0))
    assert_equal(laplacian_basis(cycle).matrices()[0], np.eye(5) - cycle / 6)
    huge = (cycle * 1e38).astype(np.float32)  # degrees are summed in float64
    assert_equal(laplacian_basis(huge).matrices()[0], np.float32(np.eye(5) - cycle / 6))


def test_another_scaling():
    """λ = 1: L̃ = 2L - I; the eigenvalue 2 of an edge goes to 3, T_2(3) = 17."""
    edge = np.array([[0, 1], [1, 0]])
    result = chebyshev_basis(edge, 2, largest_eigenvalue=1.0).matrices()
    assert_equal(result[1], [[1, -2], [-2, 1]])
    assert_equal(result[2] @ jnp.array([1, -1]), [17, -17])
    assert_equal(result[2] @ jnp.array([1, 1]), [1, 1])


@pytest.mark.parametrize("form", FORMS)
def test_a_gcn_has_isolated_nodes(form):
    adjacency = np.zeros((4, 4))
    adjacency[0, 2] = adjacency[2, 0] = 1
    assert_equal(gcn_basis(FORMS[form](adjacency)).matrices()[0, 1], [0, 1, 0, 0])
