"""Planted errors for S.width."""

from dataclasses import replace

import numpy as np
from proofs.plants.changes import turned_kernel


def heads_alike(original):
    """All heads of the token itself attend alike, so that nothing fixes what is put there."""

    def changed(*args):
        heads = original(*args)
        weights = heads.weights.copy()
        weights[:, args[1]] = 1
        return replace(heads, weights=weights)

    return changed


def coarse(original):
    """ε is taken too large by a factor of four."""
    return lambda supports, centre, width, epsilon: original(supports, centre, width, 4 * epsilon)


def one_head_twice(original):
    """The last head is given once more."""

    def changed(*args):
        heads = original(*args)
        last = [
            np.concatenate([part, 0 * part[-1:]])
            for part in (heads.weights, heads.coordinates, heads.coefficients)
        ]
        return replace(heads, **dict(zip(vars(heads), last, strict=True)))

    return changed


def one_place_lost(original):
    """A head forgets its first coordinate."""

    def changed(*args):
        heads = original(*args)
        coefficients = heads.coefficients.copy()
        coefficients[0, 0] = 0
        return replace(heads, coefficients=coefficients)

    return changed


def alike(original):
    """X = Y commute."""
    return lambda kernel, patch, x, y: original(kernel, patch, x, x)


def other_sign(original):
    """Outer taps of unlike signs: a weight is negative."""
    return lambda w: original((-w[0], *w[1:]))


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
    ("width", "mixed coordinates", "limit_heads", lambda original: lambda *args: 3),
    ("width", "maps of any shape", "small_terms", lambda original: lambda *args: args[0]),
    (
        "width",
        "maps of any shape",
        "small_terms",
        lambda original: lambda matrix, rank, spare: original(matrix, rank - 1, spare),
    ),
    ("width", IMAGES("exactly", "float64"), "conv_to_attention", turned_kernel),
    ("width", IMAGES("exactly", "float32"), "conv_to_attention", turned_kernel),
    ("width", IMAGES("in the limit", "float64"), "conv_to_attention", turned_kernel),
    ("width", IMAGES("in the limit", "float64"), f"{NARROW}.limit_layout", one_place_lost),
]
