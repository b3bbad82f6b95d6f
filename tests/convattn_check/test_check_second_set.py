"""Two layers and exponentials: every refusal of their checks, and that falsehoods are refused."""

from itertools import product

import certificate_builder as build
import pytest
from certificate_cases import CASES, put, verdict_after, verdict_on

from convattn_check.exponentials import determinant, differences


def far_target(body):
    body["first"]["targets"][0] = [-2, 0]


def many_heads(body):
    body["second"]["targets"] *= 20


def large_image(body):
    body["image"] = [20, 20]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (far_target, "attention"),
        (put(["first", "targets"], []), "range"),
        (many_heads, "range"),
        (large_image, "range"),
        (put(["blocks"], 2), "malformed"),
        (put(["blocks"], 0), "range"),
        (put(["margin", 0, 0], -1), "range"),
        (put(["second", "maps", 0], [4, 0, 0, "1"]), "range"),
        (put(["second", "maps", 0], [0, 0, 9, "1"]), "range"),
        (put(["second", "maps", 0], [0, 0, 0]), "malformed"),
        (put(["second", "maps", 0], [0, 3, 0, "1"]), "range"),
        (put(["kernel_size"], [3]), "malformed"),
    ],
)
def test_two_layers_that_are_no_convolution(change, code):
    verdict = verdict_after("two_layers", change)
    assert not verdict.accepted
    assert verdict.code == code, verdict


@pytest.mark.parametrize("size", [*product((1, 2, 3), (2, 3))], ids=str)
@pytest.mark.parametrize("image", [(1, 1), (1, 3), (3, 2)], ids=str)
def test_two_layers_of_all_parities(size, image):
    """Images as small as the reach are refused for that alone, after the identity."""
    for leak, patch in product(("0", "1/2", "3/7"), ((1, 1), (2, 3))):
        verdict = verdict_on(build.two_layers(size, patch, image, leak))
        reach = [-(-(k // 2) // p) for k, p in zip(size, patch, strict=True)]
        room = all(n > m for n, m in zip(image, reach, strict=True))
        assert (verdict.accepted, verdict.code) == (room, "" if room else "tokens")


@pytest.mark.parametrize("size", [(1, 2), (2, 2)], ids=str)
def test_the_margin_may_be_as_narrow_as_the_reach(size):
    """Before the image the reach ahead, after it the reach back, on axis 1."""
    wide = build.two_layers(size, (1, 1), (2, 2), "1/2")
    assert verdict_on(wide).accepted
    narrow = build.two_layers(size, (1, 1), (2, 2), "1/2", narrow=True)
    assert verdict_on(narrow).accepted
    assert narrow["body"]["margin"] != wide["body"]["margin"]


def test_what_the_sentences_say():
    assert "two layers of 3 and 4 heads (finite scores)" in verdict_on(CASES["two_layers"]).reason
    limit = verdict_on(CASES["two_layers_limit"]).reason
    assert "two layers of 2 and 3 heads (scores in the limit)" in limit
    assert "no 3 quadratic heads" in verdict_on(CASES["exponentials"]).reason


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (put(["places"], [[0, 2]]), "malformed"),
        (put(["heads"], 8), "range"),
        (put(["tokens"], 0), "range"),
        (put(["tokens"], 1), "heads"),
        (put(["kernel_size"], [3, 3]), "malformed"),
    ],
)
def test_exponentials_that_say_too_much(change, code):
    verdict = verdict_after("exponentials", change)
    assert not verdict.accepted
    assert verdict.code == code, verdict


@pytest.mark.parametrize("size", range(1, 6))
def test_vandermonde(size):
    assert determinant(size) == differences(size)
    assert len(determinant(size)) == [1, 1, 2, 6, 24, 120][size]


def test_a_wrong_determinant_is_seen(monkeypatch):
    monkeypatch.setattr("convattn_check.exponentials.differences", lambda size: {})
    assert verdict_on(CASES["exponentials"]).code == "determinant"
