"""Certificates that ask for too much are refused, with a code of their own, and soon."""

import signal
from fractions import Fraction

import certificate_builder as build
import pytest
from certificate_cases import CASES, changed, put, verdict_on

from convattn_check import cost
from convattn_check.reject import Reject

# Distinct Mersenne primes: no two of these denominators have a common factor.
PRIMES = [2**n - 1 for n in (127, 107, 89, 61, 31, 521, 607)]


@pytest.fixture(autouse=True)
def no_hang():
    """A check that does not end is interrupted, and fails."""
    signal.alarm(60)
    yield
    signal.alarm(0)


def powers(bases, exponents, kernel=None):
    """S.dp1 on so many offsets; each power would fill the memory, or all of them."""
    body = build.geometry(kernel or (len(bases),))
    attention = {"family": "scalar_power", "bases": bases, "exponents": exponents}
    return build.equality("S.dp1", "finite", body, len(exponents), attention, build.sparse([]))


def long_coefficients(body):
    entries = body["values"]["entries"]
    for entry, prime in zip(entries, PRIMES[5:], strict=False):
        entry[1:] = [0, f"1/{prime}"]
    body["values"]["entries"] = entries[:2]


def separator_of_primes():
    """Seven pixels: the sum of the separator's entries has all denominators together."""
    unit = build.units(7)
    heads, separator = [{"rows": [row] * 7} for row in unit], [f"1/{prime}" for prime in PRIMES]
    return build.no_shared_map(7, heads, [[row] for row in unit], separator * 7)


# Each denominator is short; the sum of the row has both of them.
weights_of_primes = put(["heads", 0, "rows", 0], [f"1/{2**521 - 1}", f"1/{2**607 - 1}"])
REFUSED = {
    "one power": powers(["9" * 4000, "7"], [4096]),
    "all powers": powers([str(n) for n in range(2, 302)], [*range(409)], (20, 15)),
    "a master": changed(CASES["powers_lagrange"], put(["values", "master", 0], 2**1024)),
    "coefficients": changed(CASES["finite"], long_coefficients),
    "a separator": separator_of_primes(),
    "weights": changed(CASES["pixel_heads"], weights_of_primes),
    "a leak": changed(CASES["S.boundary-mean"], put(["tensors", "L", "leak"], f"1/{10**60}")),
    "a tensor": changed(
        CASES["A19.prop1-inverse"],
        lambda body: body["tensors"].update(
            a=[f"1/{PRIMES[0]}", f"1/{PRIMES[1]}", *body["tensors"]["a"][2:]]
        ),
    ),
    "leaks of layers": changed(build.two_layers(image=(5, 5)), put(["leak"], f"1/{10**3999 + 7}")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_long_numbers_are_refused_before_they_are_computed(name):
    verdict = verdict_on(REFUSED[name])
    assert (verdict.accepted, verdict.code) == (False, "cost"), verdict
    assert "expected" in verdict.reason
    assert ": give " in verdict.reason


COUNTED = (
    "finite", "patch_bound", "rank", "commutant_grid", "narrow_heads", "places", "pixel_heads",
    "two_masks", "two_of_three", "two_layers",
)  # fmt: skip


@pytest.mark.parametrize("name", COUNTED)
def test_long_computations_are_counted(name, monkeypatch):
    assert verdict_on(CASES[name]).accepted
    monkeypatch.setattr(cost, "MOST_STEPS", 63)  # a product of two digits takes 64
    verdict = verdict_on(CASES[name])
    assert (verdict.accepted, verdict.code) == (False, "cost"), verdict


@pytest.mark.parametrize(
    ("numbers", "whole", "unit"),
    [
        ([], [], 1),
        (["4", "-4"], [4, -4], 1),
        (["1/2", "-2/4", "3"], [1, -1, 6], 2),
        (["3/2", "5/4"], [6, 5], 4),
        (["4/3"], [4], 3),
    ],
)
def test_numbers_over_a_common_denominator(numbers, whole, unit):
    assert cost.whole_numbers([*map(Fraction, numbers)], "x", 6) == (whole, unit)


@pytest.mark.parametrize("numbers", [["6"], ["-6"], ["7"], ["1/6"], ["1/7"], ["1/3", "1/2"]])
def test_numerators_and_the_common_denominator_stay_below_a_bound(numbers):
    with pytest.raises(Reject) as error:
        cost.whole_numbers([*map(Fraction, numbers)], "x", 6)
    assert error.value.code == "cost"


def test_the_longest_of_some_integers():
    assert cost.longest([]) == cost.longest([0]) == 0
    assert cost.longest([1, -8, 3]) == 4


def test_the_common_denominator_is_bounded_and_not_only_each_denominator():
    numbers = [Fraction(1, 2**521 - 1), Fraction(1, 2**607 - 1)]
    for number in numbers:
        assert cost.whole_numbers([number] * 2, "x") == ([1, 1], number.denominator)
    with pytest.raises(Reject, match=r"common denominator an integer of 1128 bits.*: give"):
        cost.whole_numbers(numbers, "x")
