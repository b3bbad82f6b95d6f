"""Counts of walks against walking: every walk is written down and counted."""

import re
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from comparison import assert_dtype, assert_equal
from jax.experimental.sparse import BCOO
from structures.graph_cases import FORMS

from convattn.structures import SparseBasis, power_basis, walk_basis


def walks(steps):
    """How many walks lead from m to n whose i-th step is an edge of the i-th graph."""
    nodes = range(len(steps[0]))
    found = np.zeros((len(nodes), len(nodes)), int)
    for places in product(nodes, repeat=len(steps) + 1):
        edges = zip(steps, places, places[1:], strict=False)
        found[places[0], places[-1]] += int(np.prod([graph[a, b] for graph, a, b in edges]))
    return found


def directed(seed, nodes=4, largest=1):
    return np.random.default_rng(seed).integers(0, largest + 1, (nodes, nodes))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("largest", [1, 3])
def test_powers_count_walks(form, largest):
    adjacency = directed(largest, largest=largest)
    basis = power_basis(FORMS[form](adjacency), 4)
    assert basis.size == 4
    assert_equal(basis.matrices(), np.stack([walks([adjacency] * k) for k in (1, 2, 3, 4)]))
    assert_dtype(basis, "int64")


FILM = ("Nimoy", "Spock", "StarTrek", "SciFi", "Quinto", "Drama")
FACTS = {
    "played": [("Nimoy", "Spock"), ("Quinto", "Spock")],
    "characterIn": [("Spock", "StarTrek")],
    "genre": [("StarTrek", "SciFi"), ("StarTrek", "Drama")],
}


def relation(pairs):
    matrix = np.zeros((len(FILM), len(FILM)), int)
    for a, b in pairs:
        matrix[FILM.index(a), FILM.index(b)] = 1
    return matrix


RELATIONS = {name: relation(pairs) for name, pairs in FACTS.items()}
SORTS = ["played.characterIn.genre", ("played",), ["genre", "played"]]


@pytest.mark.parametrize("form", FORMS)
def test_the_films_of_the_paper(form):
    """Leonard Nimoy, Spock, Star Trek, science fiction."""
    basis = walk_basis({name: FORMS[form](graph) for name, graph in RELATIONS.items()}, SORTS)
    steps = [sort.split(".") if isinstance(sort, str) else sort for sort in SORTS]
    expected = np.stack([walks([RELATIONS[name] for name in sort]) for sort in steps])
    assert_equal(basis.matrices(), expected)
    assert expected[0, FILM.index("Nimoy"), FILM.index("SciFi")] == 1
    assert not expected[2].any()  # nobody plays a genre
    genres = basis.gather(jnp.asarray(np.eye(len(FILM), dtype=int))[None, :, :1])
    assert genres[0, 0, FILM.index("SciFi"), 0] == 1  # output n gathers from m: A_kᵀ x


def test_forms_and_dtypes_may_be_mixed():
    mixed = RELATIONS | {"genre": scipy.sparse.csr_array(RELATIONS["genre"].astype(np.float32))}
    basis = walk_basis(mixed, SORTS[:2])
    assert isinstance(basis, SparseBasis)
    assert_dtype(basis, jnp.result_type(jnp.int64, jnp.float32))
    assert_equal(basis.matrices(), walk_basis(RELATIONS, SORTS[:2]).matrices())


@pytest.mark.parametrize("form", FORMS)
def test_counts_that_overflow_are_refused(form):
    ones = jnp.ones((4, 4), jnp.int32)
    adjacency = FORMS[form](ones if form in ("dense", "bcoo") else np.asarray(ones))
    assert_equal(power_basis(adjacency, 15).matrices()[14], np.full((4, 4), 4**14))
    with pytest.raises(ValueError, match=r"4.29e\+09 walks of length 16 .* int32 ends at 2.15e"):
        power_basis(adjacency, 16)


def test_floats_overflow_too_and_a_part_can_be_what_does():
    large = jnp.full((2, 2), 2.0**60, jnp.float32)
    with pytest.raises(ValueError, match=re.escape("walks of length 3 (or parts of them)")):
        power_basis(large, 3)
    small = jnp.zeros((2, 2), jnp.float32)
    with pytest.raises(ValueError, match=re.escape("walks a.a.a.b (or parts of them)")):
        walk_basis({"a": large, "b": small}, ["a.a.a.b"])


def test_under_jit_nothing_is_looked_at():
    traced = jax.jit(lambda a: power_basis(a, 16).matrices())(jnp.ones((4, 4), jnp.float32))
    assert_equal(traced[15], np.full((4, 4), 4.0**15))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: power_basis(np.eye(2), 0), "order=0"),
        (lambda: power_basis(np.eye(2), True), "order=True"),
        (lambda: power_basis(np.eye(2), 2.0), "order=2.0"),
        (lambda: walk_basis(RELATIONS, []), "sorts=[], but expected at least one sort"),
        (lambda: walk_basis(RELATIONS, [()]), "none of them empty"),
        (lambda: walk_basis(RELATIONS, ["played.in"]), "the sorts name ['in']"),
        (lambda: walk_basis(RELATIONS, ["played."]), "the sorts name ['']"),
        (lambda: walk_basis({"a": np.eye(2), "b": np.eye(3)}, ["a.b"]), "{'a': 2, 'b': 3} nodes"),
        (lambda: walk_basis({"a": -np.eye(2)}, ["a"]), "relations['a'] has 2 entries that are neg"),
    ],
)
def test_mistakes_are_refused(call, message, unchecked):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


@pytest.mark.parametrize("form", ["coo", "bcoo"])
def test_parallel_edges_are_summed_without_wrapping_around(form):
    def graph(values):
        places = np.zeros(len(values), int), np.ones(len(values), int)
        if form == "coo":
            return scipy.sparse.coo_array((values, places), (2, 2))
        return BCOO((jnp.asarray(values), jnp.asarray(np.stack(places, 1))), shape=(2, 2))

    with pytest.raises(ValueError, match="adjacency at one place add up to 300, but uint8 ends at"):
        power_basis(graph(np.array([200, 100], np.uint8)), 1)
    basis = power_basis(graph(np.array([200, 50], np.uint8)), 1)
    assert_dtype(basis, "uint8")
    assert_equal(basis.matrices(), [[[0, 250], [0, 0]]])
