"""The claims of Li et al.: what they state, and that checks fail on planted errors."""

import numpy as np
import pytest
from planted_claims import (
    PLANTED_ELSEWHERE,
    always,
    doubled_kernel,
    load,
    one_more,
    piece_of,
    replaced_by,
    require_failure,
    scaled,
    turned_around,
    turned_kernel,
    without,
)

CLAIMS = (
    "lemma2",
    "theorem1",
    "wo",
    "cor3",
    "cor4",
    "variants",
    "absolute",
    "theorem5",
    "theorem6",
    "fewer",
    "table1",
)
PIECES = [(name, piece) for name in CLAIMS for piece in load("li2021", name).evidence]


def with_ring(original):
    return lambda layer, images, ring=None: original(layer, images)


def sign_ignored(original):
    return lambda images, kernel, patch, sign=1: original(images, kernel, patch)


def wider(original):
    return lambda size, patch: original(size + 2, patch)


def negated_rows(original):
    return lambda *given: [[-entry for entry in row] for row in original(*given)]


def one_square_lost(original):
    def changed(rows, columns):
        channels = original(rows, columns)
        channels[..., 2] = channels[..., 0] ** 2
        return channels

    return changed


def one_tap_lost(original):
    def changed(*given):
        kernel = original(*given)
        kernel[-1, -1] = 0
        return kernel

    return changed


RUNS = "convattn.ledger.evidence.layer_runs.conv_to_attention"
CONVERT = "convattn.constructions.conv_to_attention"
RANK = "convattn.bounds.flattened_kernel.exact_rank"
CONVOLUTION = "convattn.ledger.evidence.exact_convolution"
BLOCKS = "convattn.ledger.evidence.printed_output_map.output_blocks"
DISTANCE = "convattn.ledger.evidence.enclosures.bias_total_variation"
FLOOR = "convattn.ledger.evidence.head_floor"
WEIGHT_ONE_TOO_FAR = (("float64", 53, (15, 16), (27, 28)),)
DENOMINATOR_ONE_TOO_FAR = (("float64", 53, (14, 15), (28, 29)),)
PLANTS = [
    ("lemma2", "distance to one-hot", DISTANCE, scaled(0)),
    ("lemma2", "M = 40, rounded", "ROUNDING", replaced_by(WEIGHT_ONE_TOO_FAR)),
    ("lemma2", "M = 40, rounded", "ROUNDING", replaced_by(DENOMINATOR_ONE_TOO_FAR)),
    (
        "lemma2",
        "one head on images",
        "convattn.operators.shifts.from_query_minus_key",
        replaced_by(tuple),
    ),
    (
        "lemma2",
        "heads on images",
        "convattn.bounds.saturation.bias_total_variation",
        scaled(1.01),
    ),
    ("theorem1", "distance to hard attention", DISTANCE, scaled(0)),
    ("theorem1", "3 × 3, P = 2", RUNS, turned_kernel),
    ("theorem1", "5 × 5, P = 4", RUNS, turned_kernel),
    ("theorem1", "3 × 3, P = 16", RUNS, turned_kernel),
    (
        "theorem1",
        "bare grid: the mean for a missing patch",
        "convattn.fast.application.apply_attention",
        with_ring,
    ),
    ("theorem1", "patch embeddings", BLOCKS, turned_around),
    ("theorem1", "head dimensions", CONVERT, turned_kernel),
    ("wo", "the formula, in integers", BLOCKS, turned_around),
    (
        "wo",
        "the library's blocks",
        "convattn.constructions.li_output_map.token_maps",
        turned_around,
    ),
    ("wo", "(0, 0) is absent, not the centre", "on_tokens", scaled(2)),
    ("wo", "the signs disagree", "on_tokens", sign_ignored),
    ("wo", "3 × 3, P = 4", RUNS, turned_kernel),
    ("wo", "7 × 7, P = 2", RUNS, turned_kernel),
    ("cor3", "distance to hard attention", DISTANCE, scaled(0)),
    ("cor3", "ranks of the maps", RANK, one_more),
    ("cor3", "3 × 3 on pixels", RUNS, turned_kernel),
    ("cor3", "64 output channels with d_H = 3", CONVERT, turned_kernel),
    ("cor3", "d_H = 3 on pixels of 48 channels", CONVERT, turned_kernel),
    ("cor4", "distance to hard attention", DISTANCE, scaled(0)),
    ("cor4", "nine offsets iff K ≤ 2P + 1", "patches_read", wider),
    ("cor4", "beyond, nine are too few", RANK, always(9)),
    ("cor4", "5 × 5, P = 2", RUNS, turned_kernel),
    ("cor4", "9 × 9, P = 4", RUNS, turned_kernel),
    ("variants", "distance to hard attention", DISTANCE, scaled(0)),
    ("variants", "stride and patches", "kept_pixels", always([(0,)])),
    ("variants", "translation invariance is used", RANK, always(9)),
    ("variants", "locality is used", RANK, always(9)),
    ("variants", "3 × 3, P = 2, stride 3, subsampled", RUNS, without("stride")),
    ("variants", "3 × 3, P = 4, dilation 2", RUNS, without("dilation")),
    ("variants", "5 × 5, P = 4, stride 2 in tokens, dilation 3", RUNS, turned_kernel),
    (
        "absolute",
        "distance to hard attention",
        "convattn.ledger.evidence.enclosures.quadratic_total_variation_bound",
        scaled(0.5),
    ),
    (
        "absolute",
        "the form is quadratic",
        "convattn.ledger.certificates.equality.absolute_form",
        negated_rows,
    ),
    ("absolute", "content that fills R^d", "score_conditions", scaled(0)),
    ("absolute", "content that fills R^d", RANK, one_more),
    ("absolute", "3 × 3 on pixels", "position_channels", one_square_lost),
    ("absolute", "3 × 3, P = 4, positions in the input", "position_channels", one_square_lost),
    ("theorem5", "ranks of generic kernels", RANK, one_more),
    ("theorem5", "offsets that occur", "shifts_between", always(())),
    ("theorem5", "one pixel takes one head", CONVOLUTION, scaled(2)),
    ("theorem5", "content scores do not help", "allowed_change", scaled(0)),
    ("theorem5", "eight of nine heads on images", f"{FLOOR}.copying_kernel", one_tap_lost),
    ("theorem5", "eight of nine heads on images", f"{FLOOR}.conv_to_attention", turned_kernel),
    ("theorem5", "eight of nine heads on images", f"{FLOOR}.floor_below", scaled(10**6)),
    ("theorem6", "ranks over sizes", "embedded_box", scaled(0)),
    ("theorem6", "the last step of the proof", RANK, always(9)),
    ("theorem6", "two patches a side", "offsets_at", always(frozenset({(0, 0)}))),
    ("theorem6", "one patch takes one head", CONVOLUTION, scaled(2)),
    ("theorem6", "eight of nine heads, K = 3, P = 2", f"{FLOOR}.output_blocks", turned_around),
    (
        "theorem6",
        "eight of nine heads, K = 5, P = 2",
        f"{FLOOR}.least_squares_maps",
        lambda original: lambda fields, wanted, kept: np.full((8, 12, wanted.shape[1]), np.nan),
    ),
    ("theorem6", "K = 1, P = 2: one head in the limit", RUNS, doubled_kernel),
    ("theorem6", "K = 1, P = 2: two heads exactly", RUNS, doubled_kernel),
    ("fewer", "two heads on pixels", "convattn.ledger.evidence.exact_convolution", scaled(2)),
    ("fewer", "pixels against patches", "convattn.bounds.flattened_kernel.exact_rank", one_more),
    ("table1", "weights of the layers", "SIZES", replaced_by({"CMHSA": (12, 12, 64, 768, 3072)})),
    ("table1", "training times", "TIMES", replaced_by({"CMHSA-3": (45, 148, 98)})),
]


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: f"{plant[0]}: {plant[1]}")
def test_a_planted_error_is_seen(plant, monkeypatch) -> None:
    name, title, where, change = plant
    piece, run = piece_of("li2021", name, title)
    require_failure(monkeypatch, piece, run, where, change)


@pytest.mark.parametrize(("name", "piece"), PIECES, ids=lambda value: getattr(value, "name", value))
def test_every_piece_has_a_planted_error(name, piece) -> None:
    planted = {(name, title) for name, title, *_ in PLANTS}
    assert piece.level in PLANTED_ELSEWHERE or (name, piece.name) in planted
