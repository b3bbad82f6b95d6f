"""Kernel heads and approximations: what is planted, and what is accepted is true."""

from fractions import Fraction
from itertools import product

import certificate_builder as build
import pytest
from certificate_cases import CASES, changed, drop, put, verdict_after, verdict_on

from convattn_check.approximation import about, negative_eigenvalues
from convattn_check.cost import Work
from convattn_check.reject import Reject


def many_channels(body):
    body["in_channels"] = body["out_channels"] = 129
    body["kernel"] = [0] * 3 * 129 * 129


def many_offsets(body):
    body["kernel_size"], body["patch_size"] = [12, 12], [1, 1]
    body["kernel"] = [1] * (144 * body["in_channels"] * body["out_channels"])


def many_steps(body):
    """81 offsets and 225 · 8 rows."""
    body["kernel_size"], body["patch_size"] = [64, 64], [8, 8]
    body["out_channels"], body["kernel"] = 8, [1] * (64 * 64 * 8)


def many_columns(body):
    body["kernel_size"], body["out_channels"], body["kernel"] = [33], 1, [1] * 33


def distinct_primes(body):
    """Denominators 2^521 - 1 and 2^607 - 1, both below 2^1024, their multiple is not."""
    body["attention"][0][0], body["attention"][0][1] = f"1/{2**521 - 1}", f"1/{2**607 - 1}"


def prime_values(body):
    body["values"]["entries"][0][2], body["values"]["entries"][1][2] = (
        f"1/{2**521 - 1}",
        f"-1/{2**607 - 1}",
    )


def small_image(body):
    """The kernel (0, 1, 0, 0, -1): on two tokens nobody sees the -1."""
    body.update(
        kernel_size=[5],
        kernel=[0, 1, 0, 0, -1],
        attention=[["0", "1", "0", "0", "0", "1"], ["0", "0", "0", "0", "1", "1"]],
        limit={"positive": ["1"] * 5},
    )
    body["values"]["entries"] = [[0, 1, "1"], [1, 1, "-1"]]


def larger_image(body):
    small_image(body)
    body["tokens_per_side"] = [3]


def no_third_tap(body):
    """F has rank 2: two heads have no bound above 0."""
    body["kernel"][-1] = 0
    body["thresholds"], body["error"] = ["3999999/1000000", "0"], "4"


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("two_masks", drop(["unread"]), "malformed"),
        ("two_masks", put(["extra"], 0), "malformed"),
        ("two_masks", put(["kernel"], [1] * 5), "malformed"),
        ("two_masks", many_channels, "range"),
        ("two_masks", many_offsets, "range"),
        ("two_masks", many_steps, "cost"),
        ("two_masks", distinct_primes, "cost"),
        ("two_masks", prime_values, "cost"),
        ("two_masks", put(["attention", 0, 0], str(2**1024)), "cost"),
        ("two_masks", put(["limit", "combination", 0], f"1/{2**1024 + 1}"), "cost"),
        ("mixed_sign", put(["limit", "positive", 0], str(2**1024)), "cost"),
        ("mixed_sign", larger_image, None),
        ("two_of_three", many_columns, "range"),
        ("two_of_three", put(["thresholds", 1], f"1/{10**40}"), "range"),
        ("two_of_three", put(["thresholds", 0], str(10**40)), "range"),
        ("two_masks", put(["heads"], 2), "malformed"),
        ("two_masks", put(["heads"], 130), "range"),
        ("two_masks", put(["attention", 0], ["1", "2", "1"]), "malformed"),
        ("two_masks", put(["values", "entries", 0, 2], "1"), "identity"),
        ("two_masks", put(["values", "family"], "lagrange"), "malformed"),
        ("two_masks", put(["rows", 0, 3], 2), "range"),
        ("two_masks", drop(["columns", 0]), "malformed"),
        ("two_masks", put(["columns", 0], [5000]), "range"),
        ("two_masks", put(["unread"], [3]), "tokens"),
        ("two_masks", put(["limit", "combination"], ["1"]), "malformed"),
        ("two_masks", put(["limit"], []), "malformed"),
        ("two_masks", put(["limit"], 0), "malformed"),
        ("box_of_patches", put(["values", "entries", 3, 2], "0"), "values"),
        ("box_of_patches", put(["rows", 1], [1, 1, 0, 0]), None),
        ("box_of_patches", put(["rows", 0], [1, 1, 0, 0]), "determinant"),
        ("two_of_three", drop(["error"]), "malformed"),
        ("two_of_three", put(["thresholds", 1], "0"), "error"),
        ("two_of_three", drop(["thresholds", 0]), "malformed"),
        ("two_of_three", put(["kernel", 0], 10**19), "range"),
        ("box_in_part", put(["error"], "43/100"), "error"),
        ("box_in_part", put(["thresholds"], ["439/1000"]), "inertia"),
    ],
)  # fmt: skip
def test_planted(name, change, code):
    verdict = verdict_after(name, change)
    assert verdict.accepted == (code is None)
    assert verdict.code == (code or ""), verdict


@pytest.mark.parametrize("name", ["two_masks", "mixed_sign", "box_of_patches"])
@pytest.mark.parametrize("tokens", [1, 3, 4])
def test_the_layer_is_the_convolution(name, tokens):
    """The whole layer by its definition, softmax weights and all, on a ringed sequence."""
    body = CASES[name]["body"]
    (size,), (patch,), outputs = body["kernel_size"], body["patch_size"], body["out_channels"]
    image = [(7 * x * x - 11 * x) % 13 for x in range(tokens * patch)]
    keys = [[0] * patch, *(image[patch * n :][:patch] for n in range(tokens)), [0] * patch]
    assert verdict_on(CASES[name]).accepted

    def entry(offset, p, q, j):
        tap = patch * offset + q - p + size // 2
        return body["kernel"][tap * outputs + j] if 0 <= tap < size else 0

    for query, p, j in product(range(1, tokens + 1), range(patch), range(outputs)):
        total = Fraction(0)
        for head, weights in enumerate(body["attention"]):
            *shares, uniform = map(Fraction, weights)
            scores = [uniform] * len(keys)  # N times a share of the softmax
            for offset in (-1, 0, 1):
                scores[query + offset] += len(keys) * shares[offset + 1]
            attention = [score / sum(scores) for score in scores]
            scale = sum(map(Fraction, weights))
            for other, place, value in body["values"]["entries"]:
                if other == head:
                    mixed = [sum(a * x[q] for a, x in zip(attention, keys, strict=True))
                             for q in range(patch)]  # fmt: skip
                    total += (
                        scale
                        * Fraction(value)
                        * sum(mixed[q] * entry(place - 1, p, q, j) for q in range(patch))
                    )
        wanted = sum(
            keys[query + offset][q] * entry(offset, p, q, j)
            for offset, q in product((-1, 0, 1), range(patch))
        )
        assert total == wanted


@pytest.mark.parametrize("threshold", [Fraction(1, 2), Fraction(3, 2), Fraction(9, 2), Fraction(5)])
def test_inertia_counts_eigenvalues(threshold):
    """[[1, 1, 0], [1, 4, 1], [0, 1, 1]] has the eigenvalues 0.438…, 1 and 4.561…."""
    gram = [[1, 1, 0], [1, 4, 1], [0, 1, 1]]
    expected = sum(value < threshold for value in ((5 - 17**0.5) / 2, 1, (5 + 17**0.5) / 2))
    assert negative_eigenvalues(gram, threshold, Work("minors")) == expected


def test_the_steps_of_leading_minors_are_counted():
    """Of n rows, k at a time, each below takes three products for n - k entries, a digit longer."""
    work, diagonal = Work("minors"), 2**31
    matrix = [[diagonal * (row == at) for at in range(4)] for row in range(4)]
    assert negative_eigenvalues(matrix, Fraction(1), work) == 0
    assert work.steps == 3 * 12 * 9 * 9 + 2 * 9 * 10 * 10 + 6 * 11 * 11


def test_a_vanishing_minor_is_refused():
    with pytest.raises(Reject, match="choose another threshold"):
        negative_eigenvalues([[1, 1], [1, 3]], Fraction(1), Work("minors"))


def test_the_statements_name_the_numbers():
    masks, mixed = (verdict_on(CASES[name]).reason for name in ("two_masks", "mixed_sign"))
    assert "3 heads at finite scores" in masks
    assert "on [3] tokens or more no fewer" in masks
    assert masks.endswith(
        "in the limit it takes exactly 2, with value maps that may grow without bound"
    )
    assert "2 heads at finite scores" in mixed
    assert mixed.endswith("in the limit it takes exactly 2")
    assert "no 2 heads without content come nearer than 0.999999" in (
        verdict_on(CASES["two_of_three"]).reason
    )
    exact = verdict_on(changed(CASES["two_of_three"], no_third_tap)).reason
    assert exact.endswith(
        "all tokens of the image); no 1 heads without content come nearer than 3.999999"
    )


@pytest.mark.parametrize(
    ("number", "low", "high"),
    [
        ("0", "0.000000", "0.000000"),
        ("5/2", "2.500000", "2.500000"),
        ("2/3", "0.666666", "0.666667"),
        ("2/3000000", "0.0000006", "0.0000007"),
        ("1/1000000", "0.000001", "0.000001"),
        ("3/2000000", "0.000001", "0.000002"),
        ("1999999999/1000000000", "1.999999", "2.000000"),
        ("1/" + "9" * 50, "0." + "0" * 40, "0." + "0" * 39 + "1"),
    ],
)
def test_an_error_is_rounded_up_and_a_bound_down(number, low, high):
    assert about(Fraction(number)) == low
    assert about(Fraction(number), up=True) == high


def test_values_that_need_a_minor_of_other_rows_are_accepted():
    def second_rows(body):
        body["rows"], body["determinant"] = body["rows"][::-1], 2
        body["limit"] = {"combination": ["0", "1"]}

    assert verdict_on(changed(CASES["two_masks"], second_rows)).accepted
    assert build.two_masks()["kind"] == "kernel_heads"
