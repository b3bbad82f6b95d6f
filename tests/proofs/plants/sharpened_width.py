"""Planted errors for S.width."""

from dataclasses import replace

import numpy as np
from proofs.plants.changes import always, first, given, then, turned_kernel

# ε is taken too large by a factor of four.
coarse = given(lambda supports, centre, width, epsilon: (supports, centre, width, 4 * epsilon))
# X = Y commute.
alike = given(lambda kernel, patch, x, y: (kernel, patch, x, x))
# Outer taps of unlike signs: a weight is negative.
other_sign = first(lambda w: (-w[0], *w[1:]))
too_low = given(lambda matrix, rank, spare: (matrix, rank - 1, spare))


def heads_alike(original):
    """All heads of the token itself attend alike, so that nothing fixes what is put there."""

    def changed(*args):
        heads = original(*args)
        weights = heads.weights.copy()
        weights[:, args[1]] = 1
        return replace(heads, weights=weights)

    return changed


@then
def one_head_twice(heads):
    """The last head is given once more."""
    parts = (heads.weights, heads.coordinates, heads.coefficients)
    last = [np.concatenate([part, 0 * part[-1:]]) for part in parts]
    return replace(heads, **dict(zip(vars(heads), last, strict=True)))


@then
def one_place_lost(heads):
    """A head forgets its first coordinate."""
    coefficients = heads.coefficients.copy()
    coefficients[0, 0] = 0
    return replace(heads, coefficients=coefficients)


IMAGES = "K = 3, P = 16, d_H = 64, {}, {}".format
NARROW = "constructions.narrow_heads"
PLANTS = [
    ("width", "places", "exact_layout", heads_alike),
    ("width", "places", "exact_layout", one_place_lost),
    ("width", "places", "exact_layout", one_head_twice),
    ("width", "places", "limit_layout", coarse),
    ("width", "places", "limit_layout", one_place_lost),
    ("width", "commutators", "commutator_rank", alike),
    ("width", "mixed coordinates", "three_heads", other_sign),
    ("width", "mixed coordinates", "limit_heads", always(3)),
    ("width", "maps of any shape", "small_terms", lambda original: lambda *args: args[0]),
    ("width", "maps of any shape", "small_terms", too_low),
    ("width", IMAGES("exactly", "float64"), "conv_to_attention", turned_kernel),
    ("width", IMAGES("exactly", "float32"), "conv_to_attention", turned_kernel),
    ("width", IMAGES("in the limit", "float64"), "conv_to_attention", turned_kernel),
    ("width", IMAGES("in the limit", "float64"), f"{NARROW}.limit_layout", one_place_lost),
]
