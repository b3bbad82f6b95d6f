import numpy as np
import pytest
from flint import arb, ctx

from convattn_ledger.evidence.softmax_rounding import Within, mixture_within, weights_within


def exact_row(scores: np.ndarray) -> list[arb]:
    with ctx.workprec(300):
        powers = [arb(float(score)).exp() for score in scores]
        total = sum(powers, arb(0))
        return [power / total for power in powers]


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_the_reference_is_within_the_bound_of_ball_arithmetic(dtype) -> None:
    scores = -np.random.default_rng(1).integers(0, 400, (3, 50)) / 8
    reference, bound = weights_within(scores, dtype)
    for row, weights, allowed in zip(scores, reference, bound, strict=True):
        for true, weight, limit in zip(exact_row(row), weights, allowed, strict=True):
            assert abs(true - arb(float(weight))) < float(limit)


def test_a_coarse_softmax_stays_within_and_a_wrong_one_does_not() -> None:
    scores = -np.random.default_rng(2).integers(0, 400, (20, 100)) / 8
    reference, bound = weights_within(scores, "float32")
    narrow = np.exp((scores - scores.max(axis=1, keepdims=True)).astype(np.float32))
    coarse = (narrow / narrow.sum(axis=1, keepdims=True)).astype(np.float64)
    assert (np.abs(coarse - reference) <= bound).all()
    half = coarse.astype(np.float16).astype(np.float64)
    assert not (np.abs(half - reference) <= bound).all()


def test_a_score_error_moves_the_weights_and_the_bound_covers_it() -> None:
    scores = np.array([[0.0, -1.0, -2.0]])
    moved = scores + 1e-3 * np.array([[1, -1, 1]])
    reference, bound = weights_within(scores, "float64", 1e-3)
    shifted, own = weights_within(moved, "float64")
    assert (np.abs(shifted - reference) <= bound).all()
    assert not (np.abs(shifted - reference) <= own).all()


def test_where_nothing_can_be_said_it_is_refused() -> None:
    with pytest.raises(ValueError, match="compute the scores more exactly"):
        weights_within(np.zeros((1, 2)), "float32", 1.0)


@pytest.mark.parametrize(("dtype", "other"), [("float32", "bfloat16"), ("float64", "float16")])
def test_a_mixture_is_bounded_in_its_own_dtype_and_not_in_a_narrower_one(dtype, other) -> None:
    import jax.numpy as jnp

    rng = np.random.default_rng(3)
    weights = weights_within(-rng.integers(0, 9, (6, 40)).astype(float), dtype)
    tokens = rng.integers(0, 256, (40, 5)).astype(float)
    reference, bound = mixture_within(weights, tokens, dtype)
    stored = np.asarray(jnp.asarray(reference, dtype), np.float64)
    narrower = np.asarray(jnp.asarray(reference, other), np.float64)
    assert (np.abs(stored - reference) <= bound).all()
    assert not (np.abs(narrower - reference) <= bound).all()


def test_an_exact_mixture_has_its_own_rounding_only() -> None:
    exact = Within(np.eye(3), np.zeros((3, 3)))
    reference, bound = mixture_within(exact, 2.0**10 * np.ones((3, 2)), "float32")
    assert (reference == 2**10).all()
    assert 0 < bound.max() < 2**10 * 8 * 2.0**-24
