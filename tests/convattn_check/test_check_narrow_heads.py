import pytest
from certificate_cases import drop, put, verdict_after, verdict_on
from head_cases import shared_places

# heads of "places": (S_-1 with pixels 2 and 1), (S_-1 + S_0 with 1), (S_1/2 with 0), two at S_0


def alike(body):
    """Both heads of the token itself attend alike."""
    body["heads"][4]["weights"] = ["0", "0", "0"]


def no_head(body):
    body["heads"], body["count"] = [], 0


def many_offsets(body):
    body["kernel_size"], body["patch_size"] = [63], [1]
    body["in_channels"] = body["out_channels"] = 3


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("places", put(["extra"], 1), "malformed"),
        ("places", drop(["regime"]), "malformed"),
        ("places", put(["regime"], "exact"), "malformed"),
        ("places", put(["kernel_size"], [3, 3, 3]), "malformed"),
        ("places", put(["patch_size"], [65]), "range"),
        ("places", put(["in_channels"], 0), "range"),
        ("places", put(["kernel_size"], [63]), "malformed"),
        ("places", many_offsets, "range"),
        ("places", put(["head_dimension"], 0), "range"),
        ("places", put(["head_dimension"], 1), "coordinates"),
        ("places", put(["count"], 4), "malformed"),
        ("places", put(["count"], 6), "heads"),  # as many as one-hot heads
        ("places", no_head, "range"),
        ("places", put(["heads", 0, "extra"], 1), "malformed"),
        ("places", put(["heads", 2, "weights", 2], "7/3"), None),
        ("places", drop(["heads", 0, "weights", 0]), "malformed"),
        ("places", alike, "span"),
        ("places_limit", put(["heads", 0, "coordinates"], [2]), "span"),  # nobody holds pixel 1
        ("places_limit", put(["heads", 0, "weights", 1], "1"), "weights"),
        ("places", put(["regime"], "limit"), "heads"),
    ],
)  # fmt: skip
def test_planted(name, change, code):
    verdict = verdict_after(name, change)
    assert verdict.accepted == (code is None), verdict
    assert verdict.code == (code or ""), verdict


def test_what_is_said():
    finite, limit = (verdict_on(shared_places(regime)).reason for regime in ("finite", "limit"))
    start = (
        "5 heads of dimension 2 are every 3 convolution with 1 channels in and 2 out, patch (3,)"
    )
    assert finite == f"{start}, zero-padded by a ring, at finite scores, exactly"
    assert limit.endswith(", to any accuracy, with maps that grow like its inverse")
