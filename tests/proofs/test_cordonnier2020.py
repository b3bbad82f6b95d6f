"""The claims of Cordonnier et al.: what they state, and that checks fail on planted errors."""

import dataclasses
import json
import math
import pkgutil
from pathlib import Path

import numpy as np
import pytest

import convattn.evidence as evidence
from convattn.ledger import EvidenceFailed, Kind, Level, Run, Verdict
from convattn.ledger.discovery import load_claim
from convattn.ledger.locations import certificates_directory, proofs_directory

CLAIMS = {  # id: verdict, kinds
    "eq3": ("holds", "identity"),
    "eq7": ("holds", "identity"),
    "eq8": ("amended", "identity"),
    "lemma1": ("amended", "layer equality"),
    "lemma2": ("amended", "limit"),
    "theorem1": ("amended", "layer equality", "limit"),
    "padding": ("amended", "layer equality"),
    "stride": ("holds", "layer equality"),
    "dilation": ("holds", "layer equality"),
    "sequence": ("holds", "layer equality"),
    "alpha46": ("refuted", "refutation"),
    "rank": ("refuted", "refutation"),
    "lemma3": ("refuted", "refutation"),
    "eq18": ("holds", "identity"),
    "eq19": ("holds", "identity"),
    "table1": ("amended", "identity"),
}


def load(name: str):
    return load_claim(proofs_directory() / "cordonnier2020" / f"{name}.py")[0]


def piece_of(name: str, title: str):
    claim = load(name)
    (piece,) = (piece for piece in claim.evidence if piece.name == title)
    return piece, Run(0, True, certificates_directory(), claim.id, title)


@pytest.mark.parametrize("name", CLAIMS)
def test_claims_are_as_stated(name) -> None:
    claim, (verdict, *kinds) = load(name), CLAIMS[name]
    assert claim.id == f"C20.{name}"
    assert claim.verdict is Verdict(verdict)
    assert claim.kinds == tuple(Kind(kind) for kind in kinds)
    assert claim.source.startswith("Cordonnier, Loukas, Jaggi 2020, ")


@pytest.mark.parametrize("name", CLAIMS)
def test_something_is_quick_and_passes(name) -> None:
    claim = load(name)
    quick = [piece for piece in claim.evidence if piece.quick]
    assert quick
    for piece in quick:
        if piece.level is not Level.BOUNDED:  # those run in `verify`, on whole images
            assert piece.check(Run(1, True, certificates_directory(), claim.id, piece.name))


def test_every_file_of_the_paper_is_in_the_table() -> None:
    files = {path.stem for path in (proofs_directory() / "cordonnier2020").glob("*.py")}
    assert set(CLAIMS) <= files


def test_lemma3_shows_its_counterexamples() -> None:
    piece, run = piece_of("lemma3", "the counterexamples")
    shown = piece.check(run)
    assert "Two pixels, K = 1" in shown
    assert "separator: ['-3/5', '2/5', '1', '0']" in shown


@pytest.mark.parametrize(
    ("name", "title"),
    [
        (name, piece.name)
        for name in CLAIMS
        for piece in load(name).evidence
        if piece.level is Level.CERTIFIED
    ],
)
def test_without_certificates_nothing_is_certified(name, title, tmp_path) -> None:
    piece, _ = piece_of(name, title)
    with pytest.raises(EvidenceFailed, match="no certificate matches"):
        piece.check(Run(0, True, Path(tmp_path), f"C20.{name}", title))


# Planted errors. A change takes what stands there and returns what is to stand there instead.


def scaled(factor):
    return lambda original: lambda *given, **named: factor * original(*given, **named)


def ramped(original):
    """Adds the number of the token to its row: position enters, or equivariance breaks."""

    def changed(*given, **named):
        result = original(*given, **named)
        return result + np.arange(result.shape[-1]).astype(result.dtype)

    return changed


def along_tokens(original):
    def changed(*given, **named):
        result = original(*given, **named)
        shape = [1, -1] + [1] * (result.ndim - 2)
        return result + np.arange(result.shape[1]).reshape(shape).astype(result.dtype)

    return changed


def positions_ignored(original):
    return lambda tokens, positions, *maps: original(tokens, 0 * positions, *maps)


def last_term_lost(original):
    def changed(*given):
        terms = original(*given)
        return terms._replace(**{terms._fields[-1]: 0 * terms[-1]})

    return changed


def first_term_ramped(original):
    def changed(*given):
        terms = original(*given)
        return terms._replace(**{terms._fields[0]: ramped(lambda: terms[0])()})

    return changed


def content_lost(original):
    return lambda tokens, *given: original(0 * tokens, *given)


def always(value):
    return lambda original: lambda *given, **named: value


def turned_kernel(original):
    def changed(kernel, *given, **named):
        axes = tuple(range(kernel.ndim - 2))
        return original(np.flip(np.asarray(kernel), axes), *given, **named)

    return changed


def without(option):
    def change(original):
        return lambda *given, **named: original(*given, **{**named, option: 1})

    return change


def other_encoding(encoding):
    def change(original):
        return lambda kernel, **named: original(
            kernel, **{**named, "encoding": encoding, "exact": False}
        )

    return change


def with_ring(original):
    return lambda layer, images, ring=None: original(layer, images)


def images_back(original):
    return lambda layer, images, **named: images


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


RUNS = "convattn.evidence.layer_runs"
QUADRATIC = "convattn.encodings.quadratic.QuadraticEncoding"
PLANTS = [
    ("eq3", "exact, without positions", "convattn.attention.content_scores", ramped),
    (
        "eq3",
        "planted, with positions",
        "convattn.attention.position_added_scores",
        positions_ignored,
    ),
    ("eq3", "pixels of images reordered", "convattn.application.apply_attention", along_tokens),
    ("eq7", "exact integers", "convattn.attention.absolute_score_terms", last_term_lost),
    ("eq7", "shapes of the print", "convattn.evidence.matrix_shapes.is_score", always(True)),
    ("eq7", "shapes of the print", "convattn.evidence.matrix_shapes.is_score", always(False)),
    ("eq7", "pixels of images", "convattn.attention.absolute_score_terms", last_term_lost),
    ("eq8", "exact scores by shift", "convattn.attention.relative_score_terms", first_term_ramped),
    ("eq8", "content breaks it", "convattn.attention.relative_score_terms", content_lost),
    ("eq8", "shapes of the print", "convattn.evidence.matrix_shapes.is_score", always(True)),
    ("eq8", "shapes of the print", "convattn.evidence.matrix_shapes.is_score", always(False)),
    (
        "eq8",
        "translated images",
        f"{QUADRATIC}.positional_scores",
        ramped,
    ),
    (
        "lemma1",
        "a random bijection on images",
        "convattn.constructions.cordonnier_lemma1.value_maps_for_bijection",
        lambda original: lambda maps, offsets, looks_at: maps,
    ),
    (
        "lemma1",
        "(10) at the border",
        "convattn.constructions.geometry.zero_ring",
        always(((0, 1), (1, 1))),
    ),
    ("lemma1", "a fixed W_out", "flint.fmpz_mat", full_rank),
    ("lemma1", "sign of f", "convattn.shifts.from_query_minus_key", lambda original: tuple),
    (
        "lemma2",
        "distance to the nearest key",
        "convattn.evidence.enclosures.quadratic_total_variation_bound",
        scaled(0.5),
    ),
    (
        "lemma2",
        "distance on images, quick",
        f"{QUADRATIC}.shift_scores",
        scaled(0.75),
    ),
    (
        "lemma2",
        "one-hot on images, border included",
        "convattn.constructions.cordonnier_lemma2.one_hot_sharpness",
        always(2.0),
    ),
    ("padding", "3 × 3 with the ring", f"{RUNS}.conv_to_attention", turned_kernel),
    ("padding", "pad, apply, crop", "convattn.constructions.conv_to_attention", turned_kernel),
    ("padding", "edge on the bare grid", "convattn.application.apply_attention", with_ring),
    (
        "padding",
        "edge on the bare grid",
        "convattn.constructions.conv_to_attention",
        other_encoding("bias"),
    ),
    ("stride", "3 × 3, stride 2", f"{RUNS}.conv_to_attention", without("stride")),
    ("stride", "3 × 3, stride 3", f"{RUNS}.conv_to_attention", turned_kernel),
    ("dilation", "3 × 3, dilation 2", f"{RUNS}.conv_to_attention", without("dilation")),
    ("dilation", "3 × 3, dilation 3", f"{RUNS}.conv_to_attention", turned_kernel),
    (
        "dilation",
        "a ring of one zero",
        "convattn.constructions.conv_to_attention",
        other_encoding("bias"),
    ),
    (
        "dilation",
        "a ring of one zero",
        "convattn.constructions.conv_to_attention",
        other_encoding("quadratic"),
    ),
    (
        "sequence",
        "two features",
        "convattn.encodings.quadratic.printed_target",
        scaled(-1),
    ),
    ("sequence", "K = 3 on rows of images", f"{RUNS}.conv_to_attention", turned_kernel),
    ("sequence", "K = 7 on rows of images", f"{RUNS}.conv_to_attention", turned_kernel),
    (
        "alpha46",
        "least α on this device, float32",
        "convattn.audit.quadratic_saturation.measure_quadratic_saturation",
        saturating_at(rounds_to_one=46.0),
    ),
    (
        "alpha46",
        "least α on this device, float32",
        "convattn.audit.quadratic_saturation.measure_quadratic_saturation",
        saturating_at(one_hot=46.0),
    ),
    (
        "alpha46",
        "least α on this device, other dtypes",
        "convattn.audit.quadratic_saturation.measure_quadratic_saturation",
        no_neighbours,
    ),
    (
        "alpha46",
        "black pixels of images",
        "convattn.constructions.cordonnier_lemma2.one_hot_sharpness",
        always(46.0),
    ),
    (
        "alpha46",
        "black pixels of images",
        f"{QUADRATIC}.shift_scores",
        scaled(2),
    ),
    ("rank", "ranks of random factors", "flint.fmpz_mat", rank_off_by_one),
    ("rank", "D_h of D_out channels", "convattn.evidence.exact_convolution", two_channels_swapped),
    ("rank", "D_h of D_out channels", "flint.fmpz_mat", full_rank),
    ("lemma3", "the repaired equivalence", "shared_map_exists", always(True)),
    ("lemma3", "the repaired equivalence", "spans_hold", always(False)),
    ("lemma3", "the counterexamples", "shared_map_exists", always(True)),
    ("lemma3", "the counterexamples", "spans_hold", always(False)),
    (
        "lemma3",
        "best maps on pieces of images",
        "convattn.application.apply_attention",
        images_back,
    ),
    ("eq18", "exact weights", "convattn.encodings.quadratic.printed_target", scaled(2)),
    (
        "eq18",
        "weights and pixels of images",
        f"{QUADRATIC}.shift_scores",
        scaled(1.001),
    ),
    ("eq19", "exact five features", "convattn.encodings.gaussian.gaussian_target", scaled(2)),
    (
        "eq19",
        "exact square root form",
        "convattn.encodings.gaussian.GaussianEncoding.shift_scores",
        scaled(1.001),
    ),
    (
        "eq19",
        "weights and pixels of images",
        "convattn.encodings.gaussian.GaussianEncoding.shift_scores",
        scaled(1.001),
    ),
    ("table1", "the printed sizes", "convattn.evidence.model_size.INNER", lambda original: 2048),
    ("table1", "the printed sizes", "PRUNED", lambda original: (0,) * 6),
    ("table1", "what the print leaves out", "PRUNED", lambda original: (2, 4, 2, 2, 6, 0)),
]


def ids(plant) -> str:
    return f"{plant[0]}: {plant[1]}"


@pytest.mark.parametrize("plant", PLANTS, ids=ids)
def test_a_planted_error_is_seen(plant, monkeypatch) -> None:
    name, title, where, change = plant
    piece, run = piece_of(name, title)
    all_images = evidence.whole_images
    for module in ("convattn.evidence", RUNS):
        monkeypatch.setattr(f"{module}.whole_images", lambda run: all_images(run, 2))
    if "." in where:
        path, _, attribute = where.rpartition(".")
        owner = pkgutil.resolve_name(path)
        monkeypatch.setattr(owner, attribute, change(getattr(owner, attribute)))
    else:
        names = piece.check.__globals__
        monkeypatch.setitem(names, where, change(names[where]))
    with pytest.raises(EvidenceFailed):
        piece.check(run)


def test_every_piece_has_a_planted_error() -> None:
    planted = {(name, title) for name, title, *_ in PLANTS}
    for name in CLAIMS:
        for piece in load(name).evidence:
            shared = piece.level is Level.CERTIFIED or name == "theorem1"
            assert shared or (name, piece.name) in planted or piece.name == "distance on images"


def test_a_counterexample_that_is_none_is_seen(tmp_path) -> None:
    piece, run = piece_of("lemma3", "the counterexamples")
    for name in ("hard", "softmax", "lemma2"):
        file = f"C20.lemma3-{name}.json"
        certificate = json.loads((run.certificates / file).read_text("ascii"))
        if name == "hard":
            certificate["body"]["heads"][0]["rows"] = [["1", "0"], ["0", "1"]]
        (tmp_path / file).write_text(json.dumps(certificate), "ascii")
    with pytest.raises(EvidenceFailed, match="hard"):
        piece.check(dataclasses.replace(run, certificates=tmp_path))


def test_the_figures_of_the_remark_on_alpha() -> None:
    assert 2.0**82 < math.exp(-46) / 2.0**-149 < 2.0**83
    assert 2.0**59 < math.exp(-46) / 2.0**-126 < 2.0**60
    assert 103.97 < 150 * math.log(2) < 103.98
    assert 87.33 < 126 * math.log(2) < 87.34
