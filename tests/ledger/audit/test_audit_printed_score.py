import math
from fractions import Fraction

import jax
import numpy as np
import pytest

from convattn_ledger.audit.float_format import float_format
from convattn_ledger.audit.printed_score import (
    ALPHAS,
    GRID_WINDOW,
    Loss,
    corner_shifts,
    first_loss,
    measure_printed_score,
    safe_below,
)

NEVER = Loss(None, None)


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
def test_never_below_the_proven_side_and_never_centred(name, alpha, axes) -> None:
    row = measure_printed_score(float_format(name), alpha, axes, largest_side=256)
    assert row.centred == NEVER
    assert (row.printed.argmax or math.inf) >= row.argmax_safe_below
    assert (row.printed.weight or math.inf) >= row.weight_safe_below


@pytest.mark.parametrize(("name", "axes"), [("bfloat16", 1), ("float16", 2)])
def test_small_formats_lose_the_target_within_32(name, axes) -> None:
    for alpha in ALPHAS:
        row = measure_printed_score(float_format(name), alpha, axes, largest_side=32)
        assert row.printed.argmax is not None
        assert row.printed.weight <= row.printed.argmax


def test_bfloat16_loss_agrees_with_exact_arithmetic_on_the_stored_scores() -> None:
    """With α = 128 every product is |δ|² or 2Δδ times a power of two: only these two round."""

    def stored(number: int) -> int:
        """The nearest integer of 8 significant bits, ties to even."""
        shift = max(number.bit_length() - 8, 0)
        return round(Fraction(number, 2**shift)) * 2**shift

    def first_lost(*, fused: bool) -> int:
        for side in range(2, 65):
            target = side - 1
            products = [2 * target * each for each in range(side)]
            if not fused:
                products = [stored(product) for product in products]
            scores = [stored(two - stored(each**2)) for each, two in enumerate(products)]
            if max(scores[:-1]) >= scores[-1]:
                return side
        raise AssertionError("no side up to 64 loses the target")

    row = measure_printed_score(float_format("bfloat16"), 128.0, 1, largest_side=64)
    # A device may round the products and their sum, or the sum alone.
    assert row.printed.argmax in (first_lost(fused=True), first_lost(fused=False))


def test_float64_keeps_the_target() -> None:
    with jax.enable_x64(True):
        row = measure_printed_score(float_format("float64"), 46.0, 2, largest_side=64)
    assert row.printed == row.centred == NEVER


def ties_from_side_10(scores):
    scores[9:] = 0
    return scores


@pytest.mark.parametrize(
    ("change", "loss"),
    [(ties_from_side_10, Loss(10, 10)), (lambda scores: scores / 16, Loss(None, 2))],
    ids=["ties", "narrow gap"],
)
def test_planted_losses_are_seen_at_their_least_side(change, loss) -> None:
    def planted(query, keys):
        return change(np.array((query * keys).sum(-1)))

    row = measure_printed_score(float_format("float32"), 128.0, 1, planted, largest_side=16)
    assert row.centred == loss
    assert row.printed == loss or loss.argmax is None


@pytest.mark.parametrize("planted", [np.nan, np.inf])
def test_a_target_that_is_not_finite_is_lost(planted) -> None:
    scores = np.array([[0.0, -50.0], [planted, -50.0]])
    weights = np.array([[1.0, 0.0], [np.nan, 0.0]])
    assert first_loss(scores, weights, np.ones((2, 2), bool)) == Loss(2, 2)


def test_keys_outside_of_the_image_do_not_count() -> None:
    scores, weights = np.array([[0.0, 5.0]]), np.array([[1.0, 0.0]])
    assert first_loss(scores, weights, np.array([[True, False]])) == NEVER
    assert first_loss(scores, weights, np.array([[True, True]])).argmax == 1


@pytest.mark.parametrize("axes", [1, 2])
def test_the_first_key_is_the_target_and_keys_are_distinct(axes) -> None:
    target, shifts = corner_shifts(axes, 40)
    assert np.array_equal(shifts[:, :1], target)
    assert shifts.shape == (40, 40 if axes == 1 else GRID_WINDOW**2, axes)
    assert len(np.unique(shifts[7], axis=0)) == shifts.shape[1]


def test_float16_is_safe_only_below_its_overflow() -> None:
    half = float_format("float16")
    side = safe_below(half, 1, 2048.0, 0.0)
    assert 2 * 2048 * (side - 2) ** 2 < half.largest <= 2 * 2048 * (side - 1) ** 2


def test_no_side_is_safe_where_alpha_is_below_the_gap() -> None:
    assert safe_below(float_format("float32"), 1, 10.0, 18.0) == 1
