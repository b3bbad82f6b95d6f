"""Planted errors for S.heads and S.headdim."""

from fractions import Fraction

import numpy as np
from proofs.plants.changes import always, one_more, turned_kernel


def falling_the_wrong_way(original):
    """Rows that rise with δ: another matching has the lowest monomial."""
    return lambda size, patch: [(-s, d) for s, d in original(size, patch)]


def one_centre_too_far(original):
    return lambda *args: [centre + 1 for centre in original(*args)]


def one_window_missing(original):
    return lambda size, patch, pairs: [original(size, patch, pairs)[0]] * pairs


def wider_window(original):
    """Powers of two at all taps: a window that reaches beyond its offsets, and all are alike."""

    def changed(size, patch, centre):
        return original(size, patch, 0) + 1

    return changed


def no_shifts(original):
    return lambda side, m: {(0, 0)}


def last_offset_lost(original):
    def changed(*args):
        kernel = original(*args)
        kernel[-2:] = 0  # all that the last offset reads
        return kernel

    return changed


def maps_of_one_value(original):
    return lambda kernel, patch: original(np.ones_like(kernel), patch)


def units_on_the_diagonal(original):
    return lambda channels: [unit.T for unit in original(channels)]


def full_maps(original):
    return lambda channels: [unit + 1 - unit for unit in original(channels)]


def lower_triangle(original):
    def changed(*args, **kwargs):
        return original(*args, **kwargs).swapaxes(-1, -2) + original(*args, **kwargs)

    return changed


def centre_alone(original):
    def changed(*args, **kwargs):
        kernel = original(*args, **kwargs)
        kernel[0] = 0
        return kernel

    return changed


def rounded(original):
    """The diverging parts are left out: nothing is left of M_1."""
    return lambda scale: [
        (weights, np.array([[Fraction(0), Fraction(1)], [Fraction(0), Fraction(0)]]))
        for weights, _ in original(scale)
    ]


def rank_two(original):
    return lambda scale: [
        (weights, unit + np.eye(2, dtype=int)) for weights, unit in original(scale)
    ]


def negative_weights(original):
    return lambda scale: [
        ({offset: -weight for offset, weight in weights.items()}, unit)
        for weights, unit in original(scale)
    ]


def full_rank(original):
    return lambda *args: original((3, 3), (2, 2), (1, 1), 9)


def undilated(original):
    return lambda kernels, patches, dilations: original(kernels, patches, (1,) * len(patches))


def one_tap_twice(original):
    """The last kernel has the first one's tap, so the last tap has none."""

    def changed(size):
        kernels = original(size)
        kernels[-1] = kernels[0]
        return kernels

    return changed


GENERIC = "bounds.generic_rank.generic_rank"
WIDTH = "bounds.head_width"
ROWS = "four of five heads on rows of images, K = 9, P = 2"
PLANTS = [
    ("heads", "ranks of generic kernels", "predicted", one_more),
    ("heads", "ranks of generic kernels", "reach", one_more),
    ("heads", "the lowest monomial", "chosen_minor", falling_the_wrong_way),
    ("heads", "windows", "window_centres", one_centre_too_far),
    ("heads", "windows", "window_centres", one_window_missing),
    ("heads", "windows", "window_kernel", wider_window),
    ("heads", "tokens a side", "offsets_of", no_shifts),
    ("heads", "dilation and unlike axes", GENERIC, full_rank),
    ("heads", "even, rectangular and dilated sizes", "flattened_axes", undilated),
    ("heads", "even, rectangular and dilated sizes", GENERIC, full_rank),
    (
        "heads",
        "zeros that keep the rank down",
        "bounds.term_rank.term_rank",
        lambda original: lambda columns: len(columns),
    ),
    ("heads", "one pattern for all kernels", "one_tap_kernels", one_tap_twice),
    ("heads", ROWS, "copying_line", last_offset_lost),
    ("heads", ROWS, "ledger.evidence.layer_runs.conv_to_attention", turned_kernel),
    (
        "heads",
        ROWS,
        "ledger.evidence.head_floor.floor_below",
        lambda original: lambda *args: 10**6 * original(*args),
    ),
    ("headdim", "ranks of the maps", "maps", maps_of_one_value),
    ("headdim", "ranks of the maps", f"{WIDTH}.map_widths", always([1])),
    ("headdim", "the other matricisations", f"{WIDTH}.matricisation_ranks", always((99, 1))),
    ("headdim", "nine heads of dimension one", "unit_maps", units_on_the_diagonal),
    ("headdim", "nine heads of dimension one", "unit_maps", full_maps),
    (
        "headdim",
        "substitution",
        "ledger.certificates.head_dimension.triangular_kernel",
        lower_triangle,
    ),
    (
        "headdim",
        "substitution",
        "ledger.certificates.head_dimension.triangular_kernel",
        centre_alone,
    ),
    ("headdim", "balanced kernels", "balanced_kernel", lambda original: lambda drawn: drawn),
    ("headdim", "balanced kernels", f"{WIDTH}.balanced_ranks", always((2, 99))),
    ("headdim", "diverging value maps", "two_for_three", rounded),
    ("headdim", "diverging value maps", "two_for_three", rank_two),
    ("headdim", "diverging value maps", "two_for_three", negative_weights),
    ("headdim", "heads of the library", f"{WIDTH}.split_heads", always(1)),
]  # fmt: skip
