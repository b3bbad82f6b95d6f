"""Planted errors for S.vit."""

from dataclasses import replace

import numpy as np
from proofs.plants.changes import replaced_by

from convattn.compile.parameters import CLASS, GRID


def head_turned(original):
    """By one token more on the first axis."""

    def changed(self, reading):
        query, key = original(self, reading)
        if reading.kind == "offset":
            angle = self.plan.steps(reading.code)[0]
            turn = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
            query[:2] = np.array(turn) @ query[:2]
        return query, key

    return changed


def class_token_that_leaks(original):
    """It scores as much as the target."""

    def changed(self, reading):
        query, key = original(self, reading)
        if reading.kind == "offset":
            kappa = 2 * self.constants.sharpness / self.plan.gap(reading.code)
            query[4] = kappa * 2 * self.read(np.array([GRID, CLASS])).sum(axis=0)
        return query, key

    return changed


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


def no_deviation(original):
    """LayerNorm's factor is taken for constant."""
    return lambda *args: 0 * original(*args)


def half(original):
    return original / 2


BUILDER = "compile.parameters.Builder"
PLANTS = [
    ("vit", "GELU", "compile.scalar.GELU_DEVIATION", half),
    ("vit", "addressing", f"{BUILDER}.scores", head_turned),
    ("vit", "addressing", f"{BUILDER}.scores", class_token_that_leaks),
    ("vit", "whole runs", f"{BUILDER}.written", pair_broken),
    ("vit", "whole runs", f"{BUILDER}.scores", head_turned),
    ("vit", "whole runs", f"{BUILDER}.scores", class_token_that_leaks),
    ("vit", "each error alone", f"{BUILDER}.__init__", epsilon_forgotten),
    ("vit", "each error alone", "compile.bound.GELU_DEVIATION", replaced_by(0.0)),
    ("vit", "each error alone", "compile.bound._Run._leak", replaced_by(lambda *args: 0.0)),
    ("vit", "each error alone", "compile.bound._Run.deviation", no_deviation),
    ("vit", "never exact", "compile.stock._norm", no_division),
]
