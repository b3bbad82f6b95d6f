"""Planted errors for the claims of Cordonnier et al."""

from dataclasses import replace

import numpy as np
from proofs.plants.changes import (
    always,
    first,
    full_rank,
    given,
    replaced_by,
    scaled,
    then,
    turned_around,
    turned_kernel,
    with_options,
    with_ring,
)

positions_ignored = given(lambda tokens, positions, *maps: (tokens, 0 * positions, *maps))
content_lost = first(lambda tokens: 0 * tokens)
no_neighbours = then(lambda rows: tuple(replace(row, rival_at_claimed=0.0) for row in rows))


@then
def ramped(result):
    """Adds the number of the token to its row: position enters, or equivariance breaks."""
    return result + np.arange(result.shape[-1]).astype(result.dtype)


@then
def along_tokens(result):
    shape = [1, -1] + [1] * (result.ndim - 2)
    return result + np.arange(result.shape[1]).reshape(shape).astype(result.dtype)


def of_term(index, change):
    """Of the terms of a score: one is changed."""
    return then(
        lambda terms: terms._replace(**{terms._fields[index]: change(lambda: terms[index])()})
    )


def other_encoding(encoding):
    return with_options(encoding=encoding, form="limit")


def with_settings(**changes):
    """Of a layer that has settings: these are others."""

    @given
    def changed(settings, *args):
        kept = {"heads": settings.heads, "width": settings.width}
        return type(settings)(settings.encoding, **kept, **changes), *args

    return changed


def images_back(original):
    return lambda layer, images, **kwargs: images


def rank_off_by_one(original):
    class Matrix:
        def __init__(self, rows):
            self.matrix = rows if isinstance(rows, original) else original(rows)

        def __mul__(self, other):
            return Matrix(self.matrix * other.matrix)

        def rank(self):
            return self.matrix.rank() + 1

    return Matrix


def saturating_at(**changes):
    return then(
        lambda rows: tuple(replace(row, alpha=replace(row.alpha, **changes)) for row in rows)
    )


@given
def two_channels_swapped(image, kernel):
    return image, kernel[..., :: -1 if kernel.shape[-1] == 2 else 1]


RUNS = "ledger.evidence.layer_runs"
CONVERT, APPLY = f"{RUNS}.conv_to_attention", "fast.application.apply_attention"
LAYER = "lab.models.positional_attention.PositionalAttention"
QUADRATIC = "encodings.quadratic.QuadraticEncoding"
GAUSSIAN, TARGET = "encodings.gaussian", "encodings.quadratic.printed_target"
SCORES, IS_SCORE = "ledger.evidence.scores", "ledger.evidence.matrix_shapes.is_score"
MEASURED = "ledger.audit.saturation.measure_quadratic_saturation"
TOKEN_MAPS = "constructions.li_output_map.token_maps"
SHARPNESS = "operators.roundoff.one_hot_sharpness"
LEAST, SIZE = "least α on this device, {}".format, "ledger.evidence.model_size"
PLANTS = [
    ("eq3", "exact, without positions", f"{SCORES}.content_scores", ramped),
    ("eq3", "planted, with positions", f"{SCORES}.position_added_scores", positions_ignored),
    ("eq3", "pixels of images reordered", APPLY, along_tokens),
    ("eq7", "exact integers", f"{SCORES}.absolute_score_terms", of_term(-1, scaled(0))),
    ("eq7", "shapes of the print", IS_SCORE, always(True)),
    ("eq7", "shapes of the print", IS_SCORE, always(False)),
    ("eq7", "pixels of images", f"{SCORES}.absolute_score_terms", of_term(-1, scaled(0))),
    ("eq8", "exact scores by shift", f"{SCORES}.relative_score_terms", of_term(0, ramped)),
    ("eq8", "content breaks it", f"{SCORES}.relative_score_terms", content_lost),
    ("eq8", "shapes of the print", IS_SCORE, always(True)),
    ("eq8", "shapes of the print", IS_SCORE, always(False)),
    ("eq8", "translated images", f"{QUADRATIC}.positional_scores", ramped),
    ("lemma1", "a random bijection on images", TOKEN_MAPS, turned_around),
    ("lemma1", "(10) at the border", "constructions.geometry.zero_ring", always(((0, 1), (1, 1)))),
    ("lemma1", "a fixed W_out", "flint.fmpz_mat", full_rank),
    ("lemma1", "sign of f", "operators.shifts.from_query_minus_key", replaced_by(tuple)),
    ("lemma2", "distance on images, quick", f"{QUADRATIC}.shift_scores", scaled(0.75)),
    ("lemma2", "one-hot on images, border included", SHARPNESS, always(2.0)),
    ("padding", "pad, apply, crop", CONVERT, turned_kernel),
    ("padding", "edge on the bare grid", f"{RUNS}.apply_attention", with_ring),
    ("padding", "edge on the bare grid", CONVERT, other_encoding("bias")),
    ("dilation", "a ring of one zero", CONVERT, other_encoding("bias")),
    ("dilation", "a ring of one zero", CONVERT, other_encoding("quadratic")),
    ("sequence", "two features", TARGET, scaled(-1)),
    ("alpha46", LEAST("float32"), MEASURED, saturating_at(rounds_to_one=46.0)),
    ("alpha46", LEAST("float32"), MEASURED, saturating_at(one_hot=46.0)),
    ("alpha46", LEAST("other dtypes"), MEASURED, no_neighbours),
    ("alpha46", "black pixels of images", SHARPNESS, always(46.0)),
    ("alpha46", "black pixels of images", f"{QUADRATIC}.shift_scores", scaled(2)),
    ("rank", "ranks of random factors", "flint.fmpz_mat", rank_off_by_one),
    ("rank", "D_h of D_out channels", "ledger.evidence.exact_convolution", two_channels_swapped),
    ("rank", "D_h of D_out channels", "flint.fmpz_mat", full_rank),
    ("lemma3", "the repaired equivalence", "shared_map_exists", always(True)),
    ("lemma3", "the repaired equivalence", "spans_hold", always(False)),
    ("lemma3", "the counterexamples", "shared_map_exists", always(True)),
    ("lemma3", "the counterexamples", "spans_hold", always(False)),
    ("lemma3", "best maps on pieces of images", APPLY, images_back),
    ("eq18", "exact weights", TARGET, scaled(2)),
    ("eq18", "weights and pixels of images", f"{QUADRATIC}.shift_scores", scaled(1.001)),
    ("eq19", "exact five features", f"{GAUSSIAN}.gaussian_target", scaled(2)),
    *(
        ("eq19", name, f"{GAUSSIAN}.GaussianEncoding.shift_scores", scaled(1.001))
        for name in ("exact square root form", "weights and pixels of images")
    ),
    ("table1", "the printed sizes", f"{SIZE}.INNER", replaced_by(2048)),
    ("table1", "the printed sizes", "PRUNED", replaced_by((0,) * 6)),
    ("table1", "what the print leaves out", "PRUNED", replaced_by((2, 4, 2, 2, 6, 0))),
    ("table1", "the modules have these sizes", f"{SIZE}.HEADS", replaced_by(8)),
    # The variances of the authors' code.
    *(
        (row, "before training", LAYER, with_settings(**{name: other}))
        for row in ("quadratic", "gaussian", "heads16")
        for name, other in (("center_variance", 4.0), ("spread_variance", 0.0001))
    ),
    ("remarks", "operations", APPLY, with_options(backend="dense")),
]
