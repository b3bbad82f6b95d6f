"""Planted errors for the claims about newer papers."""

from fractions import Fraction

import numpy as np
from proofs.plants.changes import always, one_more, replaced_by, scaled

UNSATURATED = "ledger.evidence.unsaturated_layers"


def whole_centers(original):
    """Half a step aside for even kernels: at integers, where one key is nearest."""
    return lambda heads: [
        tuple(c + (c.denominator - 1) * c for c in center) for center in original(heads)
    ]


def next_head(original):
    return lambda *args: np.roll(original(*args), 1, axis=0)


def no_last_map(original):
    def changed(*args):
        *blocks, uniform = original(*args)
        return [*blocks, 0 * uniform]

    return changed


def one_tap_over(original):
    """The filters of channels that read the first tap read the second."""
    return lambda places, taps: original(np.maximum(places, 1), taps)


def one_channel_fewer(original):
    return lambda kernel: original(kernel)[1:]


def by_place(original):
    """Scores that depend on where a key stands."""

    def changed(*args):
        scores = original(*args)
        return scores + np.arange(scores.size).reshape(scores.shape)

    return changed


def one_pair_fewer(original):
    return lambda pairs, *args: original(pairs, *args)[1:]


def slower(original):
    """Each pair turns half as far per token."""
    return lambda *args: [rotation / 2 for rotation in original(*args)]


def turned_further(original):
    """Each frequency is a third instead of a half of the one before."""
    return lambda *args, **kwargs: original(*args, **kwargs) * 2 / 3


PLANTS = [
    ("gpsa", "positional rows", "quadratic_total_variation_bound", scaled(0.999)),
    ("gpsa", "positional rows", "nearest_key", always(0)),
    ("gpsa", "gated rows", "gate", scaled(1.01)),
    ("gpsa", "one head more", "share_taken_back", no_last_map),
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
    ("disperse", "a sharp function", "finite_values", no_last_map),
    ("impulse", "spans", "impulses", one_tap_over),
    ("impulse", "spans", "products", scaled(0)),
    ("impulse", "probabilities", "all_drawn", scaled(Fraction(99, 100))),
    ("impulse", "probabilities", "comb", one_more),
    ("impulse", "learned mixing", "factors", one_channel_fewer),
    ("disperse", "in floating point", "jax.nn.softmax", scaled(1.001)),
    ("rope", "the norm needed", "angles", one_pair_fewer),
    ("rope", "the norm needed", "loss", scaled(20)),
    ("rope", "the norm needed", "ONCE_AROUND", replaced_by(44)),
    ("rope", "dyadic angles", "dyadic_angles", slower),
    ("rope", "dyadic angles", "dyadic_angles", one_pair_fewer),
    ("rope", "the price on images", "angles", slower),
    ("rope", "the price on images", "dyadic_angles", one_pair_fewer),
    ("rope", "distance to hard attention", "encodings.rotary.axial_turns", turned_further),
    ("rope", "the border of a bare grid", "loss", scaled(-1)),
]
