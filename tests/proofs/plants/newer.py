"""Planted errors for the claims about newer papers."""

from fractions import Fraction

import numpy as np
from proofs.plants.changes import (
    always,
    first,
    last_map_lost,
    one_fewer,
    one_more,
    replaced_by,
    scaled,
    then,
)

UNSATURATED = "ledger.evidence.unsaturated_layers"
next_head = then(lambda maps: np.roll(maps, 1, axis=0))
# The filters of channels that read the first tap read the second.
one_tap_over = first(lambda places: np.maximum(places, 1))
# Scores that depend on where a key stands.
by_place = then(lambda scores: scores + np.arange(scores.size).reshape(scores.shape))
# Each pair turns half as far per token.
slower = then(lambda rotations: [rotation / 2 for rotation in rotations])
# Each frequency is a third instead of a half of the one before.
turned_further = scaled(2 / 3)


@then
def whole_centers(centers):
    """Half a step aside for even kernels: at integers, where one key is nearest."""
    return [tuple(c + (c.denominator - 1) * c for c in center) for center in centers]


PLANTS = [
    ("gpsa", "positional rows", "quadratic_total_variation_bound", scaled(0.999)),
    ("gpsa", "positional rows", "nearest_key", always(0)),
    ("gpsa", "gated rows", "gate", scaled(1.01)),
    ("gpsa", "one head more", "share_taken_back", last_map_lost),
    ("gpsa", "even kernels", "released_centers", whole_centers),
    ("gpsa", "values as printed", "value_slices", next_head),
    ("gpsa", "on the bare grid", f"{UNSATURATED}.PADDINGS", replaced_by({"quadratic": "mean"})),
    ("mimetic", "equivariance", "content_scores", by_place),
    ("mimetic", "zero content", "mimetic_layer", scaled(-1)),
    ("mimetic", "sharp content", "content_scores", scaled(0)),
    ("mimetic", "positional rows", "sinusoids", one_more),
    ("mimetic", "odd kernels", "even_scores", by_place),
    ("disperse", "bounds in fractions", "least_weight", scaled(2)),
    ("disperse", "bounds in fractions", "greatest_weight", scaled(2)),
    ("disperse", "bounded scores", "greatest_weight", scaled(2)),
    ("disperse", "the price", "score_needed", scaled(0.999)),
    ("disperse", "scores that grow", "quadratic_total_variation", scaled(1.0001)),
    ("disperse", "a sharp function", "finite_values", last_map_lost),
    ("impulse", "spans", "impulses", one_tap_over),
    ("impulse", "spans", "products", scaled(0)),
    ("impulse", "probabilities", "all_drawn", scaled(Fraction(99, 100))),
    ("impulse", "probabilities", "comb", one_more),
    ("impulse", "learned mixing", "factors", one_fewer),
    ("disperse", "in floating point", "jax.nn.softmax", scaled(1.001)),
    ("rope", "the norm needed", "angles", one_fewer),
    ("rope", "the norm needed", "loss", scaled(20)),
    ("rope", "the norm needed", "ONCE_AROUND", replaced_by(44)),
    ("rope", "dyadic angles", "dyadic_angles", slower),
    ("rope", "dyadic angles", "dyadic_angles", one_fewer),
    ("rope", "the price on images", "angles", slower),
    ("rope", "the price on images", "dyadic_angles", one_fewer),
    ("rope", "distance to hard attention", "encodings.rotary.axial_turns", turned_further),
    ("rope", "the border of a bare grid", "loss", scaled(-1)),
]
