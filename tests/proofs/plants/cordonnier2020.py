"""Planted errors for the claims of Cordonnier et al."""

import dataclasses

import numpy as np
from proofs.plants.changes import always, scaled, turned_kernel


def ramped(original):
    """Adds the number of the token to its row: position enters, or equivariance breaks."""

    def changed(*args, **kwargs):
        result = original(*args, **kwargs)
        return result + np.arange(result.shape[-1]).astype(result.dtype)

    return changed


def along_tokens(original):
    def changed(*args, **kwargs):
        result = original(*args, **kwargs)
        shape = [1, -1] + [1] * (result.ndim - 2)
        return result + np.arange(result.shape[1]).reshape(shape).astype(result.dtype)

    return changed


def positions_ignored(original):
    return lambda tokens, positions, *maps: original(tokens, 0 * positions, *maps)


def last_term_lost(original):
    def changed(*args):
        terms = original(*args)
        return terms._replace(**{terms._fields[-1]: 0 * terms[-1]})

    return changed


def first_term_ramped(original):
    def changed(*args):
        terms = original(*args)
        return terms._replace(**{terms._fields[0]: ramped(lambda: terms[0])()})

    return changed


def content_lost(original):
    return lambda tokens, *args: original(0 * tokens, *args)


def other_encoding(encoding):
    def change(original):
        return lambda *args, **kwargs: original(
            *args, **{**kwargs, "encoding": encoding, "form": "limit"}
        )

    return change


def with_ring(original):
    return lambda layer, images, border="zeros": original(layer, images)


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


def full_rank(original):
    class Matrix(original):
        def rank(self):
            return min(self.nrows(), self.ncols())

    return Matrix


def saturating_at(**changes):
    def change(original):
        def changed(score):
            return tuple(
                dataclasses.replace(row, alpha=dataclasses.replace(row.alpha, **changes))
                for row in original(score)
            )

        return changed

    return change


def no_neighbours(original):
    return lambda score: tuple(
        dataclasses.replace(row, rival_at_claimed=0.0) for row in original(score)
    )


def two_channels_swapped(original):
    return lambda image, kernel: original(image, kernel[..., :: -1 if kernel.shape[-1] == 2 else 1])


RUNS = "ledger.evidence.layer_runs"
QUADRATIC = "encodings.quadratic.QuadraticEncoding"
SCORES = "ledger.evidence.scores"
PLANTS = [
    ("eq3", "exact, without positions", f"{SCORES}.content_scores", ramped),
    ("eq3", "planted, with positions", f"{SCORES}.position_added_scores", positions_ignored),
    ("eq3", "pixels of images reordered", "fast.application.apply_attention", along_tokens),
    ("eq7", "exact integers", f"{SCORES}.absolute_score_terms", last_term_lost),
    ("eq7", "shapes of the print", "ledger.evidence.matrix_shapes.is_score", always(True)),
    (
        "eq7",
        "shapes of the print",
        "ledger.evidence.matrix_shapes.is_score",
        always(False),
    ),
    ("eq7", "pixels of images", f"{SCORES}.absolute_score_terms", last_term_lost),
    ("eq8", "exact scores by shift", f"{SCORES}.relative_score_terms", first_term_ramped),
    ("eq8", "content breaks it", f"{SCORES}.relative_score_terms", content_lost),
    ("eq8", "shapes of the print", "ledger.evidence.matrix_shapes.is_score", always(True)),
    (
        "eq8",
        "shapes of the print",
        "ledger.evidence.matrix_shapes.is_score",
        always(False),
    ),
    ("eq8", "translated images", f"{QUADRATIC}.positional_scores", ramped),
    (
        "lemma1",
        "a random bijection on images",
        "constructions.li_output_map.token_maps",
        lambda original: lambda kernel, geometry: original(kernel, geometry)[::-1],
    ),
    ("lemma1", "(10) at the border", "constructions.geometry.zero_ring", always(((0, 1), (1, 1)))),
    ("lemma1", "a fixed W_out", "flint.fmpz_mat", full_rank),
    ("lemma1", "sign of f", "operators.shifts.from_query_minus_key", lambda original: tuple),
    ("lemma2", "distance on images, quick", f"{QUADRATIC}.shift_scores", scaled(0.75)),
    (
        "lemma2",
        "one-hot on images, border included",
        "operators.roundoff.one_hot_sharpness",
        always(2.0),
    ),
    ("padding", "pad, apply, crop", f"{RUNS}.conv_to_attention", turned_kernel),
    ("padding", "edge on the bare grid", f"{RUNS}.apply_attention", with_ring),
    ("padding", "edge on the bare grid", f"{RUNS}.conv_to_attention", other_encoding("bias")),
    ("dilation", "a ring of one zero", f"{RUNS}.conv_to_attention", other_encoding("bias")),
    ("dilation", "a ring of one zero", f"{RUNS}.conv_to_attention", other_encoding("quadratic")),
    ("sequence", "two features", "encodings.quadratic.printed_target", scaled(-1)),
    (
        "alpha46",
        "least α on this device, float32",
        "ledger.audit.saturation.measure_quadratic_saturation",
        saturating_at(rounds_to_one=46.0),
    ),
    (
        "alpha46",
        "least α on this device, float32",
        "ledger.audit.saturation.measure_quadratic_saturation",
        saturating_at(one_hot=46.0),
    ),
    (
        "alpha46",
        "least α on this device, other dtypes",
        "ledger.audit.saturation.measure_quadratic_saturation",
        no_neighbours,
    ),
    ("alpha46", "black pixels of images", "operators.roundoff.one_hot_sharpness", always(46.0)),
    ("alpha46", "black pixels of images", f"{QUADRATIC}.shift_scores", scaled(2)),
    ("rank", "ranks of random factors", "flint.fmpz_mat", rank_off_by_one),
    (
        "rank",
        "D_h of D_out channels",
        "ledger.evidence.exact_convolution",
        two_channels_swapped,
    ),
    ("rank", "D_h of D_out channels", "flint.fmpz_mat", full_rank),
    ("lemma3", "the repaired equivalence", "shared_map_exists", always(True)),
    ("lemma3", "the repaired equivalence", "spans_hold", always(False)),
    ("lemma3", "the counterexamples", "shared_map_exists", always(True)),
    ("lemma3", "the counterexamples", "spans_hold", always(False)),
    ("lemma3", "best maps on pieces of images", "fast.application.apply_attention", images_back),
    ("eq18", "exact weights", "encodings.quadratic.printed_target", scaled(2)),
    ("eq18", "weights and pixels of images", f"{QUADRATIC}.shift_scores", scaled(1.001)),
    ("eq19", "exact five features", "encodings.gaussian.gaussian_target", scaled(2)),
    (
        "eq19",
        "exact square root form",
        "encodings.gaussian.GaussianEncoding.shift_scores",
        scaled(1.001),
    ),
    (
        "eq19",
        "weights and pixels of images",
        "encodings.gaussian.GaussianEncoding.shift_scores",
        scaled(1.001),
    ),
    (
        "table1",
        "the printed sizes",
        "ledger.evidence.model_size.INNER",
        lambda original: 2048,
    ),
    ("table1", "the printed sizes", "PRUNED", lambda original: (0,) * 6),
    ("table1", "what the print leaves out", "PRUNED", lambda original: (2, 4, 2, 2, 6, 0)),
    (
        "table1",
        "the modules have these sizes",
        "ledger.evidence.model_size.HEADS",
        lambda original: 8,
    ),
    (
        "remarks",
        "operations",
        "fast.application.apply_attention",
        lambda original: lambda layer, images, backend: original(layer, images, backend="dense"),
    ),
]
