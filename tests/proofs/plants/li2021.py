"""Planted errors for the claims of Li et al."""

import numpy as np
from proofs.plants.changes import (
    always,
    given,
    one_more,
    replaced_by,
    scaled,
    then,
    turned_around,
    turned_kernel,
    with_ring,
)

sign_ignored = given(lambda images, kernel, patch, sign=1: (images, kernel, patch))
wider = given(lambda size, patch: (size + 2, patch))
negated_rows = then(lambda rows: [[-entry for entry in row] for row in rows])


@then
def one_square_lost(channels):
    channels[..., 2] = channels[..., 0] ** 2
    return channels


@then
def one_tap_lost(kernel):
    kernel[-1, -1] = 0
    return kernel


def no_maps(original):
    return lambda fields, targets, heads: np.full((8, 12, targets.shape[1]), np.nan)


RUNS = "ledger.evidence.layer_runs"
CONVERT = f"{RUNS}.conv_to_attention"
RANK = "bounds.flattened_kernel.exact_rank"
CONVOLUTION = "ledger.evidence.exact_convolution"
BLOCKS = "ledger.evidence.printed_output_map.output_blocks"
FLOOR, ABSOLUTE = "ledger.evidence.head_floor", "ledger.certificates.equality.absolute_form"
WEIGHT_ONE_TOO_FAR = (("float64", 53, (15, 16), (27, 28)),)
DENOMINATOR_ONE_TOO_FAR = (("float64", 53, (14, 15), (28, 29)),)
PLANTS = [
    ("lemma2", "M = 40, rounded", "ROUNDING", replaced_by(WEIGHT_ONE_TOO_FAR)),
    ("lemma2", "M = 40, rounded", "ROUNDING", replaced_by(DENOMINATOR_ONE_TOO_FAR)),
    ("lemma2", "one head on images", "operators.shifts.from_query_minus_key", replaced_by(tuple)),
    ("lemma2", "heads on images", "ledger.bounds.saturation.bias_total_variation", scaled(1.01)),
    ("theorem1", "bare grid: the mean for a missing patch", f"{RUNS}.apply_attention", with_ring),
    ("theorem1", "patch embeddings", BLOCKS, turned_around),
    ("theorem1", "head dimensions", CONVERT, turned_kernel),
    ("wo", "the formula, in integers", BLOCKS, turned_around),
    ("wo", "the library's blocks", "constructions.li_output_map.token_maps", turned_around),
    ("wo", "(0, 0) is absent, not the centre", "on_tokens", scaled(2)),
    ("wo", "the signs disagree", "on_tokens", sign_ignored),
    ("cor3", "ranks of the maps", RANK, one_more),
    ("cor3", "64 output channels with d_H = 3", CONVERT, turned_kernel),
    ("cor3", "d_H = 3 on pixels of 48 channels", CONVERT, turned_kernel),
    ("cor4", "nine offsets iff K ≤ 2P + 1", "patches_read", wider),
    ("cor4", "beyond, nine are too few", RANK, always(9)),
    ("variants", "stride and patches", "sampled_pixels", always([(0,)])),
    ("variants", "translation invariance is used", RANK, always(9)),
    ("variants", "locality is used", RANK, always(9)),
    ("absolute", "the form is quadratic", ABSOLUTE, negated_rows),
    ("absolute", "content that fills R^d", "score_conditions", scaled(0)),
    ("absolute", "content that fills R^d", RANK, one_more),
    ("absolute", "3 × 3 on pixels", "position_channels", one_square_lost),
    ("absolute", "3 × 3, P = 4, positions in the input", "position_channels", one_square_lost),
    ("theorem5", "ranks of generic kernels", RANK, one_more),
    ("theorem5", "offsets that occur", "shifts_between", always(())),
    ("theorem5", "one pixel takes one head", CONVOLUTION, scaled(2)),
    ("theorem5", "content scores do not help", "allowed_change", scaled(0)),
    ("theorem5", "eight of nine heads on images", f"{FLOOR}.copying_kernel", one_tap_lost),
    ("theorem5", "eight of nine heads on images", CONVERT, turned_kernel),
    ("theorem5", "eight of nine heads on images", f"{FLOOR}.floor_below", scaled(10**6)),
    ("theorem6", "ranks over sizes", "embedded_box", scaled(0)),
    ("theorem6", "the last step of the proof", RANK, always(9)),
    ("theorem6", "two patches a side", "offsets_at", always(frozenset({(0, 0)}))),
    ("theorem6", "one patch takes one head", CONVOLUTION, scaled(2)),
    ("theorem6", "eight of nine heads, K = 3, P = 2", f"{FLOOR}.output_blocks", turned_around),
    ("theorem6", "eight of nine heads, K = 5, P = 2", f"{FLOOR}.least_squares_maps", no_maps),
    ("fewer", "two heads on pixels", "ledger.evidence.exact_convolution", scaled(2)),
    ("fewer", "pixels against patches", "bounds.flattened_kernel.exact_rank", one_more),
    ("fewer", "heads in both regimes", "said", always("fewer")),
    ("encodings", "T5's buckets", "FURTHEST", replaced_by(256)),
    ("encodings", "heads of T5", "BUCKETS", replaced_by(64)),
    ("encodings", "nine offsets", "BUCKETS", replaced_by(512)),
    ("encodings", "sinusoids", "frequencies", always(2 * np.pi * np.ones(32))),
    ("encodings", "windows", "table_entry", lambda original: lambda at, n: at[..., 0] * n),
    ("limitations", "kernels that take fewer", "ledger.evidence.exact_convolution", scaled(2)),
    ("limitations", "two layers", "ledger.evidence.exact_convolution", scaled(2)),
    ("table1", "weights of the layers", "SIZES", replaced_by({"CMHSA": (12, 12, 64, 768, 3072)})),
    ("table1", "training times", "TIMES", replaced_by({"CMHSA-3": (45, 148, 98)})),
]
