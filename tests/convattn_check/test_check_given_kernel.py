"""Kernel heads and approximations: what is accepted is true."""

from fractions import Fraction
from itertools import product

import pytest
from certificate_cases import CASES, verdict_on

from convattn_check.approximation import about, negative_eigenvalues
from convattn_check.cost import Work


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
            for other, column, value in body["values"]["entries"]:
                if other == head:
                    mixed = [sum(a * x[q] for a, x in zip(attention, keys, strict=True))
                             for q in range(patch)]  # fmt: skip
                    total += (
                        scale
                        * Fraction(value)
                        * sum(mixed[q] * entry(column - 1, p, q, j) for q in range(patch))
                    )
        expected = sum(
            keys[query + offset][q] * entry(offset, p, q, j)
            for offset, q in product((-1, 0, 1), range(patch))
        )
        assert total == expected


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
