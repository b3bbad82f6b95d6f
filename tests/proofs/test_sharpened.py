"""The claims of this project: what they state, and that checks fail on planted errors."""

from fractions import Fraction

import jax
import pytest
from planted_claims import (
    PLANTED_ELSEWHERE,
    load,
    piece_of,
    replaced_by,
    require_failure,
    scaled,
    turned_kernel,
)

CLAIMS = ("finite", "dp1", "dp2")
PIECES = [(name, piece) for name in CLAIMS for piece in load("sharpened", name).evidence]


def no_uniform_head(original):
    def changed(*given):
        heads, blocks = original(*given)
        return heads, blocks.at[-1].set(0)

    return changed


def one_among_them(original):
    return lambda count: [Fraction(1), *original(count - 1)]


def one_twice(original):
    return lambda count: [original(1)[0], *original(count - 1)]


def never_refused(original):
    return lambda *given: None


def uniform_head_twice(original):
    """The mean no longer cancels."""

    def changed(*given):
        found = original(*given)
        return found._replace(everywhere=found.everywhere.at[-1].multiply(2))

    return changed


def heads_that_do_not_learn(original):
    """Right weights, which pass nothing back."""
    return lambda *given: jax.lax.stop_gradient(original(*given))


CONVERSION = "convattn.constructions.conversion"
SHIFT = "convattn.fast.shift.back_end.offset_weights"
RUNS = "convattn.ledger.evidence.layer_runs.conv_to_attention"
ONE_TOO_FAR = (("bfloat16", 8, 17),)
ONE_TOO_FEW = (("float16", 11, 45),)
PLANTS = [
    ("finite", "3 × 3, pixels", f"{CONVERSION}.leaky_construction", no_uniform_head),
    ("finite", "5 × 5, P = 4", f"{CONVERSION}.leaky_construction", no_uniform_head),
    ("finite", "3 × 3, P = 16, ε = 1/4", RUNS, turned_kernel),
    ("finite", "means on the bare grid", f"{CONVERSION}.leaky_construction", no_uniform_head),
    ("finite", "fast back end", SHIFT, uniform_head_twice),
    ("finite", "gradients of the fast back end", SHIFT, heads_that_do_not_learn),
    ("dp1", "the layer in fractions", "bases", one_among_them),
    ("dp1", "the layer in fractions", "bases", one_twice),
    ("dp1", "no one-hot head", "middle_weight", scaled(2)),
    (
        "dp1",
        "conditioning and refusals",
        "convattn.constructions.scalar.rounding_amplification",
        scaled(2),
    ),
    (
        "dp1",
        "conditioning and refusals",
        "convattn.constructions.scalar.refuse_ill_conditioned",
        never_refused,
    ),
    ("dp1", "K = 3, rows as sequences", RUNS, turned_kernel),
    ("dp1", "3 × 3, pixels", RUNS, turned_kernel),
    ("dp2", "distance to hard attention", "head_distance", scaled(0)),
    ("dp2", "distance to hard attention", "head_distance", scaled(2)),
    ("dp2", "scores of the features", "feature_scores", scaled(2)),
    ("dp2", "rounding of the features", "EXACT", replaced_by(ONE_TOO_FAR)),
    ("dp2", "rounding of the features", "EXACT", replaced_by(ONE_TOO_FEW)),
    ("dp2", "3 × 3, pixels", RUNS, turned_kernel),
    ("dp2", "5 × 5, P = 4", RUNS, turned_kernel),
]


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: f"{plant[0]}: {plant[1]}")
def test_a_planted_error_is_seen(plant, monkeypatch) -> None:
    name, title, where, change = plant
    piece, run = piece_of("sharpened", name, title)
    require_failure(monkeypatch, piece, run, where, change)


@pytest.mark.parametrize(("name", "piece"), PIECES, ids=lambda value: getattr(value, "name", value))
def test_every_piece_has_a_planted_error(name, piece) -> None:
    planted = {(name, title) for name, title, *_ in PLANTS}
    assert piece.level in PLANTED_ELSEWHERE or (name, piece.name) in planted
