import numpy as np
import pytest

from convattn_ledger.audit.matmul_precision import (
    BITS,
    PATTERNS,
    PRECISIONS,
    measure_dot,
    measure_matmul_precision,
    probe_numbers,
)


def rounded(array, bits):
    """Round float32 to a significand of so many bits, to nearest, ties to even."""
    dropped = BITS - bits
    pattern = array.view(np.uint32)
    half = np.uint32((1 << (dropped - 1)) - 1)
    even = (pattern >> np.uint32(dropped)) & np.uint32(1)
    return ((pattern + half + even) >> np.uint32(dropped) << np.uint32(dropped)).view(np.float32)


def passes(bits, count):
    """A product of operands split into parts of so many bits: 1 part, or the 3 products of 2."""

    def dot(left, right):
        left_high, right_high = rounded(left, bits), rounded(right, bits)
        result = left_high @ right_high
        if count == 3:
            left_low = rounded(left - left_high, bits)
            right_low = rounded(right - right_high, bits)
            result = result + (left_high @ right_low + left_low @ right_high)
        return result

    return dot


def half_sums(left, right):
    total = np.zeros((len(left), right.shape[1]), np.float32)
    for index in range(left.shape[1]):
        total = rounded(total + left[:, index, None] * right[index], 11)
    return total


@pytest.mark.parametrize(
    ("bits", "count", "lowest", "highest", "name"),
    [
        (11, 1, 11, 11, "TF32 or float16"),
        (8, 1, 8, 8, "bfloat16"),
        (13, 1, 13, 13, "13 bits"),  # which has no name
        (8, 3, 16, 17, "bfloat16, 3 passes"),
        (11, 3, 22, 23, "TF32, 3 passes"),
    ],
)
def test_planted_downgrades_are_detected(bits, count, lowest, highest, name) -> None:
    measured = measure_dot(passes(bits, count), "planted")
    assert lowest <= measured.left_bits <= highest
    assert lowest <= measured.right_bits <= highest
    assert measured.accumulator_bits == BITS
    assert measured.name.startswith(name)


@pytest.mark.parametrize(
    ("dot", "left", "right", "accumulator", "name"),
    [
        (lambda a, b: rounded(a, 11) @ b, 11, 24, 24, ""),
        (lambda a, b: a @ rounded(b, 8), 24, 8, 24, "bfloat16"),
        (half_sums, 11, 11, 11, "11-bit sums"),
        (lambda a, b: a.astype(np.float64) @ b.astype(np.float64), 24, 24, 24, "float32"),
    ],
    ids=["left", "right", "narrow sums", "float64"],
)
def test_each_operand_and_the_sums_are_measured_apart(dot, left, right, accumulator, name) -> None:
    measured = measure_dot(dot, "planted")
    assert (measured.left_bits, measured.right_bits, measured.accumulator_bits) == (
        left,
        right,
        accumulator,
    )
    assert measured.name.endswith(name)


def test_probe_numbers_have_exactly_so_many_bits() -> None:
    numbers = probe_numbers()
    assert numbers.shape == (BITS, PATTERNS)
    for bits in range(1, BITS + 1):
        scaled = numbers[bits - 1].astype(np.float64) * 2 ** (bits - 1)
        assert np.array_equal(scaled % 2, np.ones(PATTERNS))
        assert ((numbers[bits - 1] >= 1) & (numbers[bits - 1] < 2)).all()


def test_highest_is_full_float32_on_this_device() -> None:
    measured = {row.precision: row for row in measure_matmul_precision()}
    assert measured.keys() == PRECISIONS.keys()
    assert measured["HIGHEST"].name == "float32"
    order = [measured[name] for name in ("DEFAULT", "HIGH", "HIGHEST")]
    bits = [min(row.left_bits, row.right_bits) for row in order]
    assert bits == sorted(bits)
