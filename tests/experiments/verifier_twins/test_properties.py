"""Properties: their conditions, and the text of VNN-LIB."""

from fractions import Fraction

import numpy as np
from verifier_twins.catalogue import PAIRS
from verifier_twins.exact import Certified, logits, network_rows, rational
from verifier_twins.properties import (
    Condition,
    certified_least,
    conditions,
    decimal,
    least_found,
    vnnlib,
)

LOWER = np.array([[[0.25, 0.5]], [[-1.0, 2.0**-12]]])
UPPER = LOWER + 0.125


def test_the_two_texts_say_the_same_box_and_condition():
    asked = (Condition(0, 1), Condition(0, 2))
    old, new = vnnlib(LOWER, UPPER, 3, asked)
    assert old.splitlines()[:7] == [
        *(f"(declare-const X_{n} Real)" for n in range(4)),
        *(f"(declare-const Y_{n} Real)" for n in range(3)),
    ]
    assert "(assert (>= X_3 0.000244140625))" in old
    assert "(assert (<= X_2 -0.875))" in old
    assert old.splitlines()[-1] == "(assert (or (and (<= Y_0 Y_1)) (and (<= Y_0 Y_2))))"
    assert "(declare-input X float32 [1,2,1,2])" in new
    assert "(assert (>= X[0,1,0,1] 0.000244140625))" in new
    assert new.splitlines()[-1] == "(assert (or (and (<= Y[0,0] Y[0,1])) (and (<= Y[0,0] Y[0,2]))))"
    threshold, _ = vnnlib(LOWER, UPPER, 3, (Condition(0, Fraction(-3, 8)),))
    assert threshold.splitlines()[-1] == "(assert (or (and (<= Y_0 -0.375))))"


def test_numbers_are_written_whole():
    assert [decimal(x) for x in (3, -0.125, Fraction(5, 4096))] == [
        "3.0",
        "-0.125",
        "0.001220703125",
    ]
    assert Fraction(decimal(2.0**-30)) == Fraction(1, 2**30)


def test_values_are_positive_where_a_condition_is_not_met():
    assert Condition(0, 1).value([Fraction(2), Fraction(5)]) == -3
    assert Condition(1, Fraction(4)).value([Fraction(2), Fraction(5)]) == 1
    assert Condition(0, 1).room(np.array([1.0, 2.0, 4.0])) == 3.0
    assert [held.larger for held in conditions("class", 3)] == [1, 2]


def test_the_smallest_value_that_is_found_is_one_of_the_box_and_above_the_certified_one():
    pair = next(pair for pair in PAIRS if pair.name.endswith("two-layers"))
    middle = np.random.default_rng(1).integers(32, 225, pair.network.image) / 256
    layers, asked = network_rows(pair.network), conditions("class", 3)
    box = rational(middle - 1 / 64), rational(middle + 1 / 64)
    certified = Certified(layers, *box)
    value, image = least_found(certified, layers, asked)
    assert all(low <= x <= high for low, x, high in zip(box[0], image, box[1], strict=True))
    assert value == min(condition.value(logits(layers, image)) for condition in asked)
    assert certified_least(certified, layers, asked) <= value
