import jax.numpy as jnp
import numpy as np
import pytest

from convattn_ledger.audit.matmul_precision import (
    BITS,
    PATTERNS,
    PRECISIONS,
    measure_dot,
    measure_matmul_precision,
    operand_name,
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


def test_the_emulated_rounding_is_that_of_bfloat16() -> None:
    numbers = probe_numbers().ravel()
    expected = numbers.astype(jnp.bfloat16).astype(np.float32)
    assert np.array_equal(rounded(numbers, 8), expected)


@pytest.mark.parametrize(
    ("bits", "count", "lowest", "highest", "name"),
    [
        (11, 1, 11, 11, "TF32 or float16"),
        (8, 1, 8, 8, "bfloat16"),
        (8, 3, 16, 17, "bfloat16, 3 passes"),
        (11, 3, 22, 23, "TF32, 3 passes"),
    ],
)
def test_planted_downgrades_are_detected(bits, count, lowest, highest, name) -> None:
    found = measure_dot(passes(bits, count), "planted")
    assert lowest <= found.left_bits <= highest
    assert lowest <= found.right_bits <= highest
    assert found.accumulator_bits == BITS
    assert found.name.startswith(name)


def test_a_downgrade_of_one_operand_alone_is_detected() -> None:
    left = measure_dot(lambda a, b: rounded(a, 11) @ b, "left")
    assert (left.left_bits, left.right_bits) == (11, 24)
    right = measure_dot(lambda a, b: a @ rounded(b, 8), "right")
    assert (right.left_bits, right.right_bits) == (24, 8)
    assert right.name == "bfloat16"


def test_a_narrow_accumulator_is_detected() -> None:
    def half_sums(left, right):
        total = np.zeros((len(left), right.shape[1]), np.float32)
        for index in range(left.shape[1]):
            total = rounded(total + left[:, index, None] * right[index], 11)
        return total

    found = measure_dot(half_sums, "planted")
    assert found.accumulator_bits == 11
    assert found.name.endswith("11-bit sums")


def test_float64_products_keep_everything() -> None:
    found = measure_dot(lambda a, b: a.astype(np.float64) @ b.astype(np.float64), "float64")
    assert (found.left_bits, found.right_bits, found.accumulator_bits) == (24, 24, 24)
    assert found.name == "float32"


def test_probe_numbers_have_exactly_so_many_bits() -> None:
    numbers = probe_numbers()
    assert numbers.shape == (BITS, PATTERNS)
    for bits in range(1, BITS + 1):
        scaled = numbers[bits - 1].astype(np.float64) * 2 ** (bits - 1)
        assert np.array_equal(scaled % 2, np.ones(PATTERNS))
        assert ((numbers[bits - 1] >= 1) & (numbers[bits - 1] < 2)).all()


def test_highest_is_full_float32_on_this_device() -> None:
    found = {row.precision: row for row in measure_matmul_precision()}
    assert found.keys() == PRECISIONS.keys()
    assert found["HIGHEST"].name == "float32"
    order = [found[name] for name in ("DEFAULT", "HIGH", "HIGHEST")]
    bits = [min(row.left_bits, row.right_bits) for row in order]
    assert bits == sorted(bits)


def test_unknown_widths_are_named_by_their_bits() -> None:
    assert operand_name(13) == "13 bits"
