"""Planted errors for S.heads and S.headdim."""

from fractions import Fraction

import numpy as np
from proofs.plants.changes import (
    always,
    first,
    given,
    one_more,
    replaced_by,
    scaled,
    then,
    turned_kernel,
)

# Rows that rise with δ: another matching has the lowest monomial.
falling_the_wrong_way = then(lambda rows: [(-s, d) for s, d in rows])
one_centre_too_far = then(lambda centres: [centre + 1 for centre in centres])
one_window_missing = then(lambda centres: centres[:1] * len(centres))
maps_of_one_value = first(np.ones_like)
units_on_the_diagonal = then(lambda units: [unit.T for unit in units])
full_maps = then(lambda units: [np.ones_like(unit) for unit in units])
lower_triangle = then(lambda kernel: kernel.swapaxes(-1, -2) + kernel)
undilated = given(lambda kernels, patches, dilations: (kernels, patches, (1,) * len(patches)))
as_of_generic = given(lambda *args: ((3, 3), (2, 2), (1, 1), 9))
# The diverging parts are left out: nothing is left of M_1.
ROUNDED = np.array([[Fraction(0), Fraction(1)], [Fraction(0), Fraction(0)]])
rounded = then(lambda heads: [(weights, ROUNDED) for weights, _ in heads])
rank_two = then(lambda heads: [(weights, unit + np.eye(2, dtype=int)) for weights, unit in heads])


def wider_window(original):
    """Powers of two at all taps: a window that reaches beyond its offsets, and all are alike."""
    return lambda size, patch, centre: original(size, patch, 0) + 1


@then
def last_offset_lost(kernel):
    kernel[-2:] = 0  # all that the last offset reads
    return kernel


@then
def centre_alone(kernel):
    kernel[0] = 0
    return kernel


@then
def negative_weights(heads):
    return [({at: -weight for at, weight in weights.items()}, unit) for weights, unit in heads]


@then
def one_tap_twice(kernels):
    """The last kernel has the first one's tap, so the last tap has none."""
    kernels[-1] = kernels[0]
    return kernels


GENERIC, WIDTH = "bounds.generic_rank.generic_rank", "bounds.head_width"
TRIANGULAR = "ledger.certificates.head_dimension.triangular_kernel"
ROWS = "four of five heads on rows of images, K = 9, P = 2"
PLANTS = [
    ("heads", "ranks of generic kernels", "predicted", one_more),
    ("heads", "ranks of generic kernels", "reach", one_more),
    ("heads", "the lowest monomial", "chosen_minor", falling_the_wrong_way),
    ("heads", "windows", "window_centres", one_centre_too_far),
    ("heads", "windows", "window_centres", one_window_missing),
    ("heads", "windows", "window_kernel", wider_window),
    ("heads", "tokens a side", "offsets_of", always({(0, 0)})),
    ("heads", "dilation and unlike axes", GENERIC, as_of_generic),
    ("heads", "even, rectangular and dilated sizes", "flattened_axes", undilated),
    ("heads", "even, rectangular and dilated sizes", GENERIC, as_of_generic),
    ("heads", "zeros that keep the rank down", "bounds.term_rank.term_rank", replaced_by(len)),
    ("heads", "one pattern for all kernels", "one_tap_kernels", one_tap_twice),
    ("heads", ROWS, "copying_line", last_offset_lost),
    ("heads", ROWS, "ledger.evidence.layer_runs.conv_to_attention", turned_kernel),
    ("heads", ROWS, "ledger.evidence.head_floor.floor_below", scaled(10**6)),
    ("headdim", "ranks of the maps", "maps", maps_of_one_value),
    ("headdim", "ranks of the maps", f"{WIDTH}.map_widths", always([1])),
    ("headdim", "the other matricisations", f"{WIDTH}.matricisation_ranks", always((99, 1))),
    ("headdim", "nine heads of dimension one", "unit_maps", units_on_the_diagonal),
    ("headdim", "nine heads of dimension one", "unit_maps", full_maps),
    ("headdim", "substitution", TRIANGULAR, lower_triangle),
    ("headdim", "substitution", TRIANGULAR, centre_alone),
    ("headdim", "balanced kernels", "balanced_kernel", lambda original: lambda drawn: drawn),
    ("headdim", "balanced kernels", f"{WIDTH}.balanced_ranks", always((2, 99))),
    ("headdim", "diverging value maps", "two_for_three", rounded),
    ("headdim", "diverging value maps", "two_for_three", rank_two),
    ("headdim", "diverging value maps", "two_for_three", negative_weights),
    ("headdim", "heads of the library", f"{WIDTH}.split_heads", always(1)),
]  # fmt: skip
