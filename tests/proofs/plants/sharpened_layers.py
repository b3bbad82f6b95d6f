"""Planted errors for S.finite, S.dp1, S.dp2 and S.polygon."""

from fractions import Fraction

import jax
from flint import arb
from proofs.plants.changes import (
    always,
    given,
    no_uniform_head,
    replaced_by,
    scaled,
    then,
)

# Right weights, which pass nothing back.
heads_that_do_not_learn = then(jax.lax.stop_gradient)
keys_not_counted = given(lambda tap, far, pole, keys: (tap, far, pole, keys % 2))


def one_among_them(original):
    return lambda count: [Fraction(1), *original(count - 1)]


def one_twice(original):
    return lambda count: [original(1)[0], *original(count - 1)]


@then
def uniform_head_twice(weights):
    """The mean no longer cancels."""
    return weights._replace(everywhere=weights.everywhere.at[-1].multiply(2))


def neighbour_alone(original):
    """The centre is forgotten."""
    return lambda count: 1 - (arb(2) / count).cos_pi()


def leads_of_neighbours(original):
    """The spare feature, the last point, is forgotten."""
    return lambda points, count: original(points[:, :count] if count > 1 else points, count)


@then
def pinched(corners):
    """The second corner is nearer to the first one."""
    corners[1:2] = (corners[1:2] + corners[:1]) / 2
    return corners


REGIMES, CONDITIONING = "constructions.table", "conditioning and refusals"
SHIFT = "fast.shift.back_end.offset_weights"
ONE_TOO_FAR = (("bfloat16", 8, 17),)
ONE_TOO_FEW = (("float16", 11, 45),)
PLANTS = [
    ("finite", "means on the bare grid", f"{REGIMES}.finite_construction", no_uniform_head),
    ("finite", "fast back end", SHIFT, uniform_head_twice),
    ("finite", "fixed biases and maps", "fixed_weight", keys_not_counted),
    ("finite", "gradients of the fast back end", SHIFT, heads_that_do_not_learn),
    ("dp1", "the layer in fractions", "bases", one_among_them),
    ("dp1", "the layer in fractions", "bases", one_twice),
    ("dp1", "no one-hot head", "middle_weight", scaled(2)),
    ("dp1", CONDITIONING, "constructions.scalar.rounding_amplification", scaled(2)),
    ("dp1", CONDITIONING, "constructions.scalar.refuse_ill_conditioned", always(None)),
    ("dp2", "distance to hard attention", "head_distance", scaled(0)),
    ("dp2", "distance to hard attention", "head_distance", scaled(2)),
    ("dp2", "scores of the features", "feature_scores", scaled(2)),
    ("dp2", "rounding of the features", "EXACT", replaced_by(ONE_TOO_FAR)),
    ("dp2", "rounding of the features", "EXACT", replaced_by(ONE_TOO_FEW)),
    ("polygon", "norms", "lead", scaled(2)),
    ("polygon", "norms", "lead", neighbour_alone),
    ("polygon", "norms", "square_norm", scaled(2)),
    ("polygon", "distance to hard attention", "head_distance", scaled(0)),
    ("polygon", "distance to hard attention", "lead", scaled(2)),
    ("polygon", "no other features", "LARGEST", replaced_by({1: 2.0, 2: 1.5, 3: 1.0})),
    ("polygon", "no other features", "leads", leads_of_neighbours),
    ("polygon", "no other features", "encodings.polygon.polygon_corners", pinched),
    ("polygon", "half precision", "HALVES", replaced_by({"bfloat16": (134, 56, 17, 32)})),
    ("polygon", "half precision", "HALVES", replaced_by({"float16": (25, 120, 46, 90)})),
    ("polygon", "half precision", "encodings.polygon.polygon_corners", pinched),
]
