"""Reading graphs: dense and sparse give the same basis, and what is no such graph is refused."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
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
from convattn_ledger.structures.graph import graph_basis, read_graph

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
    found = BASES[basis](FORMS[form](adjacency))
    assert isinstance(found, DenseBasis if form == "dense" else SparseBasis)
    assert_equal(found.matrices(), BASES[basis](adjacency).matrices())


def test_dtypes():
    for dtype in ("float32", "bfloat16"):
        assert_dtype(gcn_basis(jnp.asarray([[0, 1], [1, 0]], dtype)), dtype)
    assert_dtype(gcn_basis(np.array([[0, 1], [1, 0]], np.int32)), "float64")
    assert_dtype(power_basis(np.array([[0, 1], [1, 0]], np.int32), 2), "int32")


def entry(value):
    return np.array([[0.0, value], [value, 0.0]])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("adjacency", "message"),
    [
        (np.ones((2, 3)), "adjacency.shape=(2, 3), but expected (N, N)"),
        (entry(np.nan), "not finite"),
        (entry(np.inf), "not finite"),
        (entry(-2.0), "negative"),
        (entry(1j), "complex"),
        (np.array([[0, 1], [0, 0]]), "adjacency is not symmetric"),
    ],
)
def test_no_graph_is_refused(form, adjacency, message, unchecked):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_graph(FORMS[form](adjacency), symmetric=True)


def test_what_the_dtype_cannot_hold_is_refused():
    for matrix in (np.array([[300]]), scipy.sparse.csr_array(np.array([[300]]))):
        assert_equal(graph_basis([matrix], np.dtype("int16")).matrices(), [[[300]]])
        with pytest.raises(ValueError, match="an entry is 300, but expected at most 255"):
            graph_basis([matrix], np.dtype("uint8"))
