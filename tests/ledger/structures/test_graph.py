"""Reading graphs: dense and sparse give the same basis, and what is no such graph is refused."""

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from ledger.structures.graph_cases import FORMS, dyadic_graph

from convattn_ledger.structures import (
    DenseBasis,
    SparseBasis,
    chebyshev_basis,
    gcn_basis,
    laplacian_basis,
    power_basis,
)
from convattn_ledger.structures.graph import graph_basis

BASES = {
    "gcn": gcn_basis,
    "laplacian": laplacian_basis,
    "chebyshev": lambda adjacency: chebyshev_basis(adjacency, 2),
    "powers": lambda adjacency: power_basis(adjacency, 2),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("basis", BASES)
def test_every_form_gives_the_same_basis(form, basis):
    """Exactly, as all degrees are powers of four; those of A + I for the GCN."""
    adjacency = dyadic_graph(6, 2, lift=int(basis == "gcn")).astype(float)
    result = BASES[basis](FORMS[form](adjacency))
    assert isinstance(result, DenseBasis if form == "dense" else SparseBasis)
    assert_equal(result.matrices(), BASES[basis](adjacency).matrices())


def test_dtypes():
    for dtype in ("float32", "bfloat16"):
        assert_dtype(gcn_basis(jnp.asarray([[0, 1], [1, 0]], dtype)), dtype)
    assert_dtype(gcn_basis(np.array([[0, 1], [1, 0]], np.int32)), "float64")
    assert_dtype(power_basis(np.array([[0, 1], [1, 0]], np.int32), 2), "int32")
    assert_equal(graph_basis([np.array([[300]])], np.dtype("int16")).matrices(), [[[300]]])
