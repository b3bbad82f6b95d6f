"""Planted errors for S.vit."""

from dataclasses import replace

import numpy as np
from proofs.plants.changes import always, replaced_by, scaled

from convattn.compile.parameters import CLASS, GRID


def of_offsets(change):
    """Of queries and keys: the queries that read at an offset are changed."""

    def planted(original):
        def changed(self, reading):
            query, key = original(self, reading)
            if reading.kind == "offset":
                change(self, reading, query)
            return query, key

        return changed

    return planted


@of_offsets
def head_turned(builder, reading, query):
    """By one token more on the first axis."""
    angle = builder.plan.steps(reading.code)[0]
    turn = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    query[:2] = np.array(turn) @ query[:2]


@of_offsets
def class_token_that_leaks(builder, reading, query):
    """It scores as much as the target."""
    kappa = 2 * builder.constants.sharpness / builder.plan.gap(reading.code)
    query[4] = kappa * 2 * builder.read(np.array([GRID, CLASS])).sum(axis=0)


def pair_broken(original):
    """What is written comes without its negative."""

    def changed(self, channels):
        result = original(self, channels)
        result[self.half :] = 0
        return result

    return changed


def epsilon_forgotten(original):
    def changed(self, plan, constants, **options):
        original(self, plan, replace(constants, epsilon=0.0), **options)

    return changed


def no_division(original):
    """A norm that is a product."""
    return lambda held, name, tokens, epsilon: tokens * held[f"{name}.weight"]


BUILDER, BOUND, EACH = "compile.parameters.Builder", "compile.bound", "each error alone"
PLANTS = [
    ("vit", "GELU", "compile.scalar.GELU_DEVIATION", lambda deviation: deviation / 2),
    ("vit", "addressing", f"{BUILDER}.scores", head_turned),
    ("vit", "addressing", f"{BUILDER}.scores", class_token_that_leaks),
    ("vit", "whole runs", f"{BUILDER}.written", pair_broken),
    ("vit", "whole runs", f"{BUILDER}.scores", head_turned),
    ("vit", "whole runs", f"{BUILDER}.scores", class_token_that_leaks),
    ("vit", EACH, f"{BUILDER}.__init__", epsilon_forgotten),
    ("vit", EACH, f"{BOUND}.GELU_DEVIATION", replaced_by(0.0)),
    ("vit", EACH, f"{BOUND}._Run._leak", always(0.0)),
    ("vit", EACH, f"{BOUND}._Run.deviation", scaled(0)),  # LayerNorm's factor taken for constant
    ("vit", "never exact", "compile.stock._norm", no_division),
]
