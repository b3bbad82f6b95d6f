"""Graphs for the tests, in both forms, and those whose degrees make everything exact."""

import numpy as np
import scipy.sparse

FORMS = {"dense": lambda adjacency: adjacency, "sparse": scipy.sparse.coo_array}


def dyadic_graph(nodes, seed, lift=0):
    """Integer weights and degrees (plus `lift`) that are powers of four, by loops of the rest.

    Then D^(-1/2) and every product below are exact in binary.
    """
    upper = np.triu(np.random.default_rng(seed).integers(0, 9, (nodes, nodes)), 1)
    upper[np.arange(nodes - 1), np.arange(1, nodes)] += 1  # no isolated node
    adjacency = upper + upper.T
    degrees = adjacency.sum(axis=1) + lift
    powers = 4 ** np.ceil(np.log2(degrees) / 2).astype(int)
    powers[seed % nodes] *= 4  # not all the same
    return adjacency + np.diag(powers - degrees)
