"""Bases of walks: forms, dtypes and mistakes; claim A19.graph walks every walk."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from comparison import assert_dtype, assert_equal
from ledger.structures.graph_cases import FORMS

from convattn_ledger.structures import SparseBasis, power_basis, walk_basis

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
    """Leonard Nimoy, Spock, Star Trek, science fiction; nobody plays a genre."""
    basis = walk_basis({name: FORMS[form](graph) for name, graph in RELATIONS.items()}, SORTS)
    actors = relation([(a, b) for a in ("Nimoy", "Quinto") for b in ("SciFi", "Drama")])
    assert_equal(basis.matrices(), np.stack([actors, RELATIONS["played"], 0 * actors]))
    genres = basis.gather(jnp.asarray(np.eye(len(FILM), dtype=int))[None, :, :1])
    assert genres[0, 0, FILM.index("SciFi"), 0] == 1  # output n gathers from m: A_kᵀ x


def test_forms_and_dtypes_may_be_mixed():
    mixed = RELATIONS | {"genre": scipy.sparse.csr_array(RELATIONS["genre"].astype(np.float32))}
    basis = walk_basis(mixed, SORTS[:2])
    assert isinstance(basis, SparseBasis)
    assert_dtype(basis, jnp.result_type(jnp.int64, jnp.float32))
    assert_equal(basis.matrices(), walk_basis(RELATIONS, SORTS[:2]).matrices())


@pytest.mark.parametrize("form", FORMS)
def test_counts_that_the_dtype_cannot_hold_are_refused(form):
    adjacency = FORMS[form](np.ones((4, 4), np.int32))
    assert_equal(power_basis(adjacency, 15).matrices()[14], np.full((4, 4), 4**14))
    with pytest.raises(ValueError, match=r"an entry is 4.29e\+09, .* where int32 ends"):
        power_basis(adjacency, 17)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: power_basis(np.eye(2), 0), "order=0"),
        (lambda: power_basis(np.eye(2), 2.0), "order=2.0"),
        (lambda: walk_basis(RELATIONS, []), "sorts=[], but expected at least one"),
        (lambda: walk_basis(RELATIONS, [()]), "one or more of"),
        (lambda: walk_basis(RELATIONS, ["played.in"]), "sorts=['played.in']"),
        (lambda: walk_basis({"a": np.eye(2), "b": np.eye(3)}, ["a.b"]), "{'a': 2, 'b': 3} nodes"),
        (lambda: walk_basis({"a": -np.eye(2)}, ["a"]), "relations['a'] has weights"),
    ],
)
def test_mistakes_are_refused(call, message, unchecked):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
