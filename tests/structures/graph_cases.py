"""Graphs for the tests: those whose degrees make everything exact, and any."""

import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax.experimental.sparse import BCOO


def bcoo(adjacency):
    """As `BCOO.fromdense`, which compiles a program for each shape."""
    places = np.argwhere(np.asarray(adjacency))
    data = np.asarray(adjacency)[tuple(places.T)]
    return BCOO((jnp.asarray(data), jnp.asarray(places)), shape=np.shape(adjacency))


FORMS = {
    "dense": lambda adjacency: adjacency,
    "csr": scipy.sparse.csr_array,
    "coo": scipy.sparse.coo_matrix,
    "bcoo": bcoo,
}


def weighted_graph(nodes, seed, loops=True):
    """An undirected graph with integer weights and no isolated node."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 9, (nodes, nodes)) * rng.integers(0, 2, (nodes, nodes))
    weights = np.triu(weights, 0 if loops else 1)
    ring = np.arange(nodes)
    weights[ring[:-1], ring[1:]] += 1
    return weights + weights.T


def dyadic_graph(nodes, seed, lift=0):
    """Integer weights and degrees (plus `lift`) that are powers of four, by loops of the rest.

    Then D^(-1/2) and every product below are exact in binary.
    """
    adjacency = weighted_graph(nodes, seed, loops=False)
    degrees = adjacency.sum(axis=1) + lift
    powers = 4 ** np.ceil(np.log2(degrees) / 2).astype(int)
    powers[seed % nodes] *= 4  # not all the same
    return adjacency + np.diag(powers - degrees)
