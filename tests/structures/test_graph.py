"""Reading graphs: every form gives the same weights, and what is no such graph is refused."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from comparison import assert_dtype, assert_equal
from jax.experimental.sparse import BCOO
from structures.graph_cases import FORMS, dyadic_graph, weighted_graph

from convattn.structures import (
    DenseBasis,
    SparseBasis,
    chebyshev_basis,
    gcn_basis,
    laplacian_basis,
    power_basis,
)
from convattn.structures.graph import as_sparse, read_graph

BASES = {
    "gcn": gcn_basis,
    "laplacian": laplacian_basis,
    "chebyshev": lambda adjacency: chebyshev_basis(adjacency, 2),
    "powers": lambda adjacency: power_basis(adjacency, 2),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_reads_the_same(form):
    adjacency = weighted_graph(5, 1)
    graph = read_graph(FORMS[form](adjacency), symmetric=True)
    assert graph.nodes == 5
    assert_equal(as_sparse(graph.matrix).toarray(), adjacency)
    assert_dtype(graph, "int64")
    assert scipy.sparse.issparse(graph.matrix) == (form != "dense")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("basis", BASES)
def test_every_form_gives_the_same_basis(form, basis):
    """Exactly, as all degrees are powers of four; those of A + I for the GCN."""
    adjacency = dyadic_graph(6, 2, lift=int(basis == "gcn")).astype(float)
    found = BASES[basis](FORMS[form](adjacency))
    assert isinstance(found, DenseBasis if form == "dense" else SparseBasis)
    assert_equal(found.matrices(), BASES[basis](adjacency).matrices())


def test_what_stands_twice_is_summed_and_padding_of_a_bcoo_is_dropped():
    twice = scipy.sparse.coo_array(([1, 2, 3], ([0, 0, 1], [1, 1, 0])), (2, 2))
    assert_equal(as_sparse(read_graph(twice, symmetric=True).matrix).toarray(), [[0, 3], [3, 0]])
    indices = jnp.array([[0, 1], [1, 0], [2, 2]])  # the last is outside
    padded = BCOO((jnp.array([4, 4, 9]), indices), shape=(2, 2))
    assert_equal(as_sparse(read_graph(padded, symmetric=True).matrix).toarray(), [[0, 4], [4, 0]])
    batched = BCOO((jnp.array([[5], [5]]), jnp.array([[[1]], [[0]]])), shape=(2, 2))
    assert_equal(as_sparse(read_graph(batched, symmetric=True).matrix).toarray(), [[0, 5], [5, 0]])


def test_integers_become_float32_where_roots_are_taken():
    assert_dtype(gcn_basis(jnp.array([[0, 1], [1, 0]], jnp.int32)), "float32")
    assert_dtype(power_basis(jnp.array([[0, 1], [1, 0]], jnp.int32), 2), "int32")


def test_dense_bases_under_jit():
    adjacency = jnp.asarray(dyadic_graph(4, 5), float)
    for name, make in BASES.items():
        traced = jax.jit(lambda a, make=make: make(a).matrices())(adjacency)
        assert_equal(traced, make(adjacency).matrices(), name)


BAD = np.array([[0.0, 1.0], [1.0, 0.0]])


def entry(value):
    changed = BAD.copy()
    changed[0, 1] = changed[1, 0] = value
    return changed


PAIRS = [(form, "powers") for form in FORMS]


@pytest.mark.parametrize(("form", "basis"), PAIRS)
@pytest.mark.parametrize(
    ("adjacency", "message"),
    [
        (np.ones((2, 3)), "adjacency.shape=(2, 3), but expected (N, N)"),
        (entry(np.nan), "2 entries that are not finite, the first is nan at (0, 1)"),
        (entry(np.inf), "2 entries that are not finite, the first is inf at (0, 1)"),
        (entry(-2.0), "2 entries that are negative, the first is -2.0 at (0, 1)"),
    ],
)
def test_no_graph_is_refused_in_every_form(form, basis, adjacency, message, unchecked):
    with pytest.raises(ValueError, match=re.escape(message)):
        BASES[basis](FORMS[form](adjacency))


@pytest.mark.parametrize(
    ("form", "basis"),
    [("dense", "gcn"), ("csr", "gcn"), ("dense", "laplacian"), ("coo", "chebyshev")],
)
def test_directions_are_refused_where_there_are_none(form, basis):
    message = re.escape(
        "adjacency is not symmetric: 1 pairs of entries differ, the first at (0, 1)"
    )
    with pytest.raises(ValueError, match=message):
        BASES[basis](FORMS[form](np.array([[1, 1, 1], [0, 0, 0], [1, 0, 0]])))


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("basis", ["laplacian", "chebyshev"])
def test_isolated_nodes_have_no_normalised_laplacian(form, basis):
    adjacency = np.zeros((4, 4))
    adjacency[0, 2] = adjacency[2, 0] = 1
    with pytest.raises(ValueError, match="has 2 isolated nodes, the first is node 1"):
        BASES[basis](FORMS[form](adjacency))
    assert_equal(gcn_basis(FORMS[form](adjacency)).matrices()[0, 1], [0, 1, 0, 0])


@pytest.mark.parametrize(
    ("adjacency", "message"),
    [
        (np.ones((0, 0)), "adjacency.shape=(0, 0)"),
        (np.ones(3), "adjacency.shape=(3,)"),
        (np.ones((2, 2, 2)), "adjacency.shape=(2, 2, 2)"),
        (np.ones((2, 2)) * 1j, "weights should be real"),
        (np.ones((2, 2), bool), "dtype=bool"),
        (scipy.sparse.csr_array(np.ones((2, 2)) * 1j), "weights should be real"),
        ("graph", "not an array of numbers"),
    ],
)
def test_other_things_are_refused(adjacency, message, unchecked):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_graph(adjacency)


def test_a_traced_bcoo_is_refused_by_name():
    with pytest.raises(ValueError, match="traced BCOO"):
        jax.jit(lambda a: power_basis(a, 1).matrices())(FORMS["bcoo"](np.eye(2)))
