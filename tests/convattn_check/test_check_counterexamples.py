"""Border, shared map, rank, saturation."""

import math
from fractions import Fraction

import certificate_builder as build
import pytest
from certificate_cases import CASES, changed, drop, put, verdict_after, verdict_on


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("border", drop(["sums"]), "malformed"),
        ("border", put(["kernel_size"], [33, 3]), "range"),
        ("border", put(["kernel"], [1] * 8), "malformed"),
        ("border", put(["image_size"], [4]), "malformed"),
        ("border", put(["image_size"], [4097, 5]), "range"),
        ("border", put(["queries"], [[0, 2]]), "malformed"),
        ("border", put(["queries", 1], [-1, 0]), "range"),
        ("border", put(["queries", 1], [0]), "malformed"),
        ("border", put(["sums"], [[6], [True]]), "border"),
        ("border", put(["sums"], []), "border"),
        ("border_patches", put(["image_size"], [8, 16]), "border"),
        ("pixel_heads", put(["extra"], 1), "malformed"),
        ("pixel_heads", put(["pixels"], [65]), "range"),
        ("pixel_heads", put(["pixels"], [2, 2]), "malformed"),
        ("pixel_heads", put(["heads", 0], {"rows": [["1", "0"]]}), "malformed"),
        ("pixel_heads", put(["heads", 0], {"scores": []}), "malformed"),
        ("pixel_heads", put(["heads", 0], []), "malformed"),
        ("pixel_heads", put(["heads", 0], 0), "malformed"),
        ("pixel_heads", put(["inclusion", 0], []), "malformed"),
        ("pixel_heads", put(["inclusion", 0, 0], ["1"]), "malformed"),
        ("pixel_heads", put(["inclusion", 0, 0], ["9" * 4000, "9" * 4000]), "cost"),
        ("relative_heads", put(["inclusion", 0, 0], [f"1/{'9' * 3999}", f"1/{'7' * 4000}"]),
         "cost"),
        ("pixel_heads", put(["separator"], ["1", "0", "-1"]), "malformed"),
        ("pixel_heads", put(["tap"], 1), "range"),
        ("hard_heads", drop(["inclusion", 0, 0]), "malformed"),
        ("relative_heads", put(["heads", 0, "relative", 0, 1], "-1"), "realizable"),
        ("relative_heads", put(["heads", 0, "relative", 1, 0], False), "realizable"),
        ("relative_heads", drop(["heads", 0, "relative", 0]), "malformed"),
        ("relative_heads", put(["heads", 0, "relative", 0], [-1]), "malformed"),
        ("relative_heads", put(["heads", 0, "rows"], []), "malformed"),
        ("rank", drop(["rank"]), "malformed"),
        ("rank", put(["value"], [[0, 0], [0, 0], [0, 0]]), "rank"),
        ("rank", put(["value"], [[1, 2], [3, 4]]), "malformed"),
        ("rank", put(["output"], [[1, 0, 2, 0, 3]]), "malformed"),
        ("rank", put(["head_dimension"], 0), "range"),
        ("rank", put(["in_channels"], 65), "range"),
        ("survives", put(["alpha"], 1), "range"),
        ("survives", put(["alpha"], 4097), "range"),
        ("survives", put(["exponent"], 1), "range"),
        ("survives", put(["conclusion"], "fades"), "malformed"),
        ("survives", put(["e_lower"], "0"), "series"),
        ("survives", put(["e_lower"], "1/" + "3" * 200), "range"),
    ],
)  # fmt: skip
def test_planted(name, change, code):
    verdict = verdict_after(name, change)
    assert not verdict.accepted
    assert verdict.code == code, verdict


def test_a_deficient_head_shows_nothing():
    """Rank 1 of a map with D_h = 2 and D_out = 3: not more than a choice of poor matrices."""
    poor = {"value": [[1, 1]] * 3, "output": [[1, 2, 4], [2, 4, 8]], "out_channels": 3, "rank": 1}
    certificate = changed(CASES["rank"], lambda body: body.update(poor))
    assert verdict_on(certificate).code == "rank"


@pytest.mark.parametrize(("dimension", "outputs"), [(2, 2), (2, 4), (1, 2)])
def test_dimensions_that_refute_nothing(dimension, outputs):
    """D_h = D_out, and D_out - D_h = D_h."""

    def change(body):
        body["head_dimension"], body["out_channels"], body["rank"] = dimension, outputs, dimension
        body["value"] = [row[:dimension] for row in body["value"]]
        body["output"] = [[int(i == j) for j in range(outputs)] for i in range(dimension)]

    assert verdict_after("rank", change).code == "rank"


def test_too_many_heads_are_refused_by_name():
    head = {"rows": [["1"]]}
    body = {"kernel_size": [1], "pixels": [1], "inclusion": [], "separator": [], "tap": 0}
    certificate = build.certificate("C20.lemma3", "no_shared_map", body | {"heads": [head] * 1025})
    assert verdict_on(certificate).code == "range"


def test_the_statements_say_which_heads_are_finite():
    assert "finite scores" in verdict_on(CASES["relative_heads"]).reason
    assert "finite scores" not in verdict_on(CASES["hard_heads"]).reason


def test_the_statements_say_what_they_assume():
    assert "whose values carry no positions" in verdict_on(CASES["border"]).reason
    assert "over the reals" in verdict_on(CASES["rank"]).reason


def test_the_weights_lie_where_saturation_says():
    """w = e^-α / Σ: between e^-α / 2 and e^-α for α ≥ 2, summed in floats over a wide grid."""
    for alpha in range(2, 40):
        theta = sum(math.exp(-alpha * n * n) for n in range(-30, 31))
        assert 1 <= theta**2 < 2
    for alpha, exponent in ((46, -68), (86, -126), (102, -149)):
        assert verdict_on(build.saturation(alpha, exponent)).accepted
        assert math.exp(-alpha) / 2 > 2.0**exponent
    for alpha, exponent in ((88, -126), (104, -149), (104, -150)):
        assert verdict_on(build.saturation(alpha, exponent, "vanishes")).accepted
        assert math.exp(-alpha) < 2.0**exponent


def test_the_bounds_of_e_may_be_as_wide_as_suffices():
    body = {"e_lower": "2", "e_upper": str(Fraction(11, 4))}
    assert verdict_on(changed(CASES["survives"], lambda given: given.update(body))).accepted
    assert verdict_on(changed(CASES["vanishes"], put(["e_lower"], "2"))).code == "saturation"
