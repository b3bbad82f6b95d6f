"""Planted errors for S.finite, S.dp1 and S.dp2."""

from fractions import Fraction

import jax
from proofs.plants.changes import no_uniform_head, replaced_by, scaled


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


REGIMES = "constructions.regimes"
SHIFT = "fast.shift.back_end.offset_weights"
ONE_TOO_FAR = (("bfloat16", 8, 17),)
ONE_TOO_FEW = (("float16", 11, 45),)
PLANTS = [
    ("finite", "means on the bare grid", f"{REGIMES}.leaky_construction", no_uniform_head),
    ("finite", "fast back end", SHIFT, uniform_head_twice),
    ("finite", "gradients of the fast back end", SHIFT, heads_that_do_not_learn),
    ("dp1", "the layer in fractions", "bases", one_among_them),
    ("dp1", "the layer in fractions", "bases", one_twice),
    ("dp1", "no one-hot head", "middle_weight", scaled(2)),
    ("dp1", "conditioning and refusals", "constructions.scalar.rounding_amplification", scaled(2)),
    (
        "dp1",
        "conditioning and refusals",
        "constructions.scalar.refuse_ill_conditioned",
        never_refused,
    ),
    ("dp2", "distance to hard attention", "head_distance", scaled(0)),
    ("dp2", "distance to hard attention", "head_distance", scaled(2)),
    ("dp2", "scores of the features", "feature_scores", scaled(2)),
    ("dp2", "rounding of the features", "EXACT", replaced_by(ONE_TOO_FAR)),
    ("dp2", "rounding of the features", "EXACT", replaced_by(ONE_TOO_FEW)),
]
