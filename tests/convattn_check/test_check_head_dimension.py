import certificate_builder as build
import pytest
from certificate_cases import CASES, changed, drop, put, verdict_after, verdict_on
from head_cases import triangular

# body["kernel"]: taps -1, 0, 1, each (in 0 to out 0, 0 to 1, 1 to 0, 1 to 1)


def no_rows(body):
    body["rows"], body["columns"], body["determinant"] = [], [], 1


def many_rows(body):
    body["rows"], body["columns"] = body["rows"] * 65, body["columns"] * 65


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("narrow_heads", put(["extra"], 1), "malformed"),
        ("narrow_heads", drop(["regime"]), "malformed"),
        ("narrow_heads", put(["regime"], "exact"), "malformed"),
        ("narrow_heads", put(["kernel_size"], [3, 3, 3]), "malformed"),
        ("narrow_heads", put(["patch_size"], [2, 2]), "malformed"),
        ("narrow_heads", put(["patch_size"], [65]), "range"),
        ("narrow_heads", put(["kernel"], [0] * 11), "malformed"),
        ("narrow_heads", put(["kernel", 1], "3"), "malformed"),
        ("narrow_heads", put(["in_channels"], 0), "range"),
        ("narrow_heads", put(["head_dimension"], 0), "range"),
        ("narrow_heads", put(["kernel", 7], 0), "triangular"),
        ("narrow_heads", put(["kernel", 11], 1), "triangular"),
        ("narrow_heads", put(["kernel", 5], 9), None),  # above the diagonal W_0 is free
        ("narrow_heads", put(["determinant"], 1), "determinant"),
        ("narrow_heads", put(["determinant"], "15"), "malformed"),
        ("narrow_heads", no_rows, "range"),
        ("narrow_heads", many_rows, "range"),
        ("narrow_heads", drop(["columns", 0]), "malformed"),
        ("narrow_heads", put(["columns", 0], [0, 1]), "malformed"),
        ("narrow_heads", put(["rows", 0], [0, 1, 0]), "malformed"),
        ("narrow_heads", put(["rows", 0, 0], 2), "range"),
        ("narrow_heads", put(["rows", 0, 3], 2), "range"),
        ("narrow_heads", put(["tokens_per_side"], [3]), "tokens"),
        ("narrow_heads", put(["tokens_per_side"], 2), "tokens"),
        ("narrow_heads", drop(["tokens_per_side"]), "malformed"),
        ("narrow_heads_finite", put(["tokens_per_side"], [4]), "tokens"),
        ("narrow_heads_unlike", put(["tokens_per_side"], [2, 3]), "tokens"),
        ("narrow_heads_many", put(["necessary"], 11), "heads"),
    ],
)  # fmt: skip
def test_planted(name, change, code):
    verdict = verdict_after(name, change)
    assert verdict.accepted == (code is None)
    assert verdict.code == (code or ""), verdict


def test_the_widest_patch_is_walked():
    assert verdict_on(triangular(patch=64, dimension=10)).accepted


@pytest.mark.parametrize("patch", [2, 3, 5])
@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("regime", ["limit", "finite"])
def test_other_sizes(patch, dimension, regime):
    certificate = triangular(regime, dimension, patch)
    verdict = verdict_on(certificate)
    assert verdict.accepted, verdict
    assert f"take at least {certificate['body']['necessary']}" in verdict.reason
    assert ("finite scores" in verdict.reason) == (regime == "finite")
    assert f"on [{3 if regime == 'finite' else 2}] tokens or more" in verdict.reason


def test_by_hand():
    """P = 2, two channels, d_H = 3: two offsets and ⌈4/3⌉ heads; 2 + 1 + 1 suffice, exactly 6."""
    limit, finite = CASES["narrow_heads"]["body"], CASES["narrow_heads_finite"]["body"]
    assert (limit["necessary"], limit["sufficient"]) == (4, 4)
    assert (finite["necessary"], finite["sufficient"]) == (5, 6)
    many = CASES["narrow_heads_many"]["body"]  # 2 · 6 dimensions, more than 2 + 1 + 6
    assert many["necessary"] == 12


def test_a_kernel_of_another_claim_is_refused():
    certificate = changed(CASES["narrow_heads"], lambda body: None)
    assert verdict_on(build.sealed(certificate | {"claim": "C20.rank"})).code == "claim"
