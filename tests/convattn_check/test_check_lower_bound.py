import certificate_builder as build
import pytest
from certificate_cases import CASES, changed, drop, put, verdict_after, verdict_on


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("patch_bound", put(["extra"], 1), "malformed"),
        ("patch_bound", drop(["rows"]), "malformed"),
        ("patch_bound", put(["kernel_size"], [3, 3, 3]), "malformed"),
        ("patch_bound", put(["kernel"], [1] * 8), "malformed"),
        ("patch_bound", put(["kernel", 0], "1"), "malformed"),
        ("patch_bound", put(["kernel", 0], 10**19), "range"),
        ("patch_bound", put(["in_channels"], 0), "range"),
        ("patch_bound", put(["out_channels"], True), "malformed"),
        ("patch_bound", put(["heads"], 129), "range"),
        ("patch_bound", drop(["rows", 0]), "malformed"),
        ("patch_bound", drop(["columns", 0]), "malformed"),
        ("patch_bound", put(["rows", 0], [0, 0, 2, 2, 0]), "malformed"),
        ("patch_bound", put(["rows", 0, 0], 3), "range"),
        ("patch_bound", put(["rows", 0, 3], -1), "range"),
        ("patch_bound", put(["columns", 0], [0]), "malformed"),
        ("patch_bound", put(["columns", 0, 0], 5000), "range"),
        ("patch_bound", put(["tokens_per_side"], [2]), "tokens"),
        ("patch_bound", put(["tokens_per_side"], "any"), "tokens"),
        ("patch_bound", put(["columns", 0], [-2, -1]), "determinant"),
        ("patch_bound", put(["determinant"], 1), "determinant"),
        ("patch_bound", put(["kernel", 4], 3), "determinant"),
    ],
)  # fmt: skip
def test_planted(name, change, code):
    verdict = verdict_after(name, change)
    assert not verdict.accepted
    assert verdict.code == code, verdict


@pytest.mark.parametrize("patch", [2, 3, 5])
def test_the_box_kernel_settles_theorem_6(patch):
    """On one axis the minor of the 3-tap box is triangular with ones: its determinant is ±1."""
    certificate = build.patch_bound(patch, kernel=[1] * 9)
    assert abs(certificate["body"]["determinant"]) == 1
    assert verdict_on(certificate).accepted


def test_bounds_are_not_taken_from_fewer_channels():
    """With 4 channels in and 2 out min(K², 8) = 8 heads are needed, and 9 are not claimed."""
    body = CASES["pixel_bound"]["body"]
    kernel = [[[0, 0] for _ in range(4)] for _ in range(9)]
    for tap in range(8):
        kernel[tap][tap // 2][tap % 2] = 1
    smaller = {
        "in_channels": 4,
        "out_channels": 2,
        "kernel": [entry for tap in kernel for row in tap for entry in row],
        "rows": [[0, 0, 0, 0, tap // 2, tap % 2] for tap in range(8)],
        "columns": body["columns"][:8],
        "determinant": 1,
        "heads": 8,
    }
    certificate = changed(CASES["pixel_bound"], lambda body: body.update(smaller))
    assert verdict_on(certificate).accepted
    assert verdict_on(changed(certificate, put(["heads"], 7))).code == "heads"
    assert verdict_on(changed(certificate, put(["heads"], 9))).code == "heads"
