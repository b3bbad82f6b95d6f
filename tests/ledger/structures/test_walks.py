"""Bases of walks: forms, dtypes and mistakes; claim A19.graph walks every walk."""

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
def test_counts_up_to_the_end_of_the_dtype(form):
    adjacency = FORMS[form](np.ones((4, 4), np.int32))
    assert_equal(power_basis(adjacency, 15).matrices()[14], np.full((4, 4), 4**14))
