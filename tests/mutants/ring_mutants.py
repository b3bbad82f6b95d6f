"""Slips about the ring of zero tokens, and what stands in its place. Judged on images."""

import jax.numpy as jnp
import pytest
from mutants import plants, subjects
from mutants.mutant import wrong_layer
from mutants.plants import DIFFER, in_dense, trace_afresh

from convattn.operators.shifts import TokenGrid


def mean_ring(right, tokens, ring):
    """Lay the mean token around the grid."""
    mean = tokens.mean(axis=(1, 2), keepdims=True)
    return right(tokens - mean, ring) + mean


def edge_ring(right, tokens, ring):
    """Repeat the outermost tokens."""
    return jnp.pad(tokens, [(0, 0), *ring, (0, 0)], mode="edge")


def query_without_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count queries from the first image token and keys from the first ring token."""
    trace_afresh(monkeypatch)
    right = TokenGrid.shift_index

    def shift_index(self):
        lower = sum(before for before, _ in self.ring[-1:])
        return jnp.clip(right(self) + lower, 0, len(self.shifts) - 1)

    monkeypatch.setattr(TokenGrid, "shift_index", shift_index)


MUTANTS = (
    wrong_layer(
        "ring-missing",
        "'SAME' padding is taken to come by itself: the grid is bare.",
        subjects.PIXEL_LAYER,
        plants.no_ring,
        DIFFER,
        border=True,
    ),
    wrong_layer(
        "ring-before-only",
        "Zero tokens stand before the image, none after it.",
        subjects.PIXEL_LAYER,
        plants.ring_before_only,
        DIFFER,
        border=True,
    ),
    wrong_layer(
        "ring-of-means",
        "The ring holds the mean of the image in place of zeros.",
        subjects.PIXEL_LAYER,
        in_dense("add_zero_ring", mean_ring),
        DIFFER,
        border=True,
    ),
    wrong_layer(
        "ring-of-edges",
        "The ring repeats the edge of the image.",
        subjects.PIXEL_LAYER,
        in_dense("add_zero_ring", edge_ring),
        DIFFER,
        border=True,
    ),
    wrong_layer(
        "queries-counted-without-ring",
        "Queries are counted from the image, keys from the ring, so every shift is off.",
        subjects.PATCH_LAYER,
        query_without_ring,
        DIFFER,
    ),
)
