"""Slips about layers that are exact at finite parameters: leaks, biases M(N), gains Z(N)."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import pytest
from mutants import subjects
from mutants.mutant import wrong_layer
from mutants.plants import EXCEED, heads, method

from convattn.constructions import conversion
from convattn.encodings.base import RelativePosition
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.scalar import ScalarEncoding

NOT_A_NUMBER = r"float\d+: the bound is not finite"


def queries_for_keys(right, self, grid):
    """The scores, but N counts the image's own tokens, without the ring."""
    table = self.shift_scores(grid.shifts, math.prod(grid.queries))
    return table[:, grid.shift_index()]


def leak_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take ε = 1 where the scores are made, past the guard: every head is uniform."""
    right = conversion.leaky_construction

    def planted(maps, sizes, leak):
        encoding, blocks = right(maps, sizes, leak)
        return replace(encoding, leak=jnp.ones_like(encoding.leak)), blocks

    monkeypatch.setattr(conversion, "leaky_construction", planted)


def uniform_head(change: Callable[[Any], Any]):
    """Another map of the uniform head."""
    return heads(
        "leaky_construction",
        lambda encoding, maps: (encoding, jnp.concatenate([maps[:-1], change(maps[-1:])])),
    )


MUTANTS = (
    wrong_layer(
        "no-one-over-one-minus-leak",
        "The maps are not divided by 1 - ε.",
        subjects.FINITE_LAYER,
        heads(
            "leaky_construction", lambda e, m: (e, jnp.concatenate([m[:-1] * (1 - e.leak), m[-1:]]))
        ),
        EXCEED,
    ),
    wrong_layer(
        "uniform-head-idle",
        "The uniform head does not take the leak back.",
        subjects.FINITE_LAYER,
        uniform_head(jnp.zeros_like),
        EXCEED,
    ),
    wrong_layer(
        "uniform-head-adds",
        "The uniform head adds the leak once more: its sign is wrong.",
        subjects.FINITE_LAYER,
        uniform_head(jnp.negative),
        EXCEED,
    ),
    wrong_layer(
        "leak-of-one",
        "ε = 1 leaves nothing of the target.",
        subjects.FINITE_LAYER,
        leak_of_one,
        NOT_A_NUMBER,
    ),
    wrong_layer(
        "leaky-bias-one-nat-low",
        "M(N) is one nat lower than the leak asks for.",
        subjects.FINITE_LAYER,
        method(BiasEncoding, "scale", lambda right, self, n: right(self, n) - 1),
        EXCEED,
    ),
    wrong_layer(
        "leaky-bias-without-ring",
        "M(N) counts the image's tokens, but softmax runs over the ring as well.",
        subjects.FINITE_LAYER,
        method(RelativePosition, "positional_scores", queries_for_keys),
        EXCEED,
    ),
    wrong_layer(
        "leaky-bias-frozen",
        "M(N) is frozen at the size of another image.",
        subjects.FINITE_LAYER,
        method(BiasEncoding, "scale", lambda right, self, n: right(self, 16)),
        EXCEED,
    ),
    wrong_layer(
        "gains-without-ring",
        "Z_h(N) of a scalar head counts the image's tokens without the ring.",
        subjects.SCALAR_LAYER,
        method(ScalarEncoding, "head_gains", lambda right, self, n: right(self, n - 2)),
        EXCEED,
    ),
    wrong_layer(
        "gains-left-out",
        "The maps of the scalar heads do not undo the normalisation.",
        subjects.SCALAR_LAYER,
        method(ScalarEncoding, "head_gains", lambda right, self, n: None),
        EXCEED,
    ),
)
