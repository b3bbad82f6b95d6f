"""Two runs forward and cotangents back: what each step is charged, in worked examples."""

import jax.numpy as jnp
import numpy as np
import pytest
from bounds.rounding_formula import RELATIVE, SINGLE, TINY
from comparison import assert_equal, assert_within

from convattn.networks.local_errors import LocalError
from convattn.networks.runs import FoldedRun
from convattn.networks.step_errors import linear_error, mean_error, sum_error
from convattn.networks.steps import Convolution, Linear, Mean, Relu, Residual, Scaling
from convattn.networks.walk import Walk

X = np.random.default_rng(0).integers(-8, 9, (2, 3, 2, 2)) / 4  # two images of six pixels
Y = np.random.default_rng(1).integers(-8, 9, (2, 3, 2, 2)) / 4
PIXELS = (2, 3, 2, 2)


def cotangents(*shape: int) -> np.ndarray:
    """Of three classes."""
    return np.random.default_rng(2).integers(-3, 4, (3, *shape)).astype(np.float32)


def charged(cotangent: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Σ |g|·error of each class and image."""
    axes = tuple(range(2, cotangent.ndim))
    return (np.abs(cotangent.astype(float)) * error).sum(axis=axes)


def assert_charged(walk: Walk, expected: np.ndarray) -> None:
    assert_within(walk.bound, expected, RELATIVE * expected)


def test_a_way_back_charges_its_errors_and_what_underflows() -> None:
    """2n·tiny(1 + max|M| + max|g|)·Σ|d| beside Σ|g|·error, once more at each way."""
    walk, local = Walk(FoldedRun(), FoldedRun()), np.abs(X)
    given = cotangents(*PIXELS)
    assert_equal(walk.way(local, lambda g: -g)(given), -given)
    assert_charged(walk, charged(given, local))
    walk = Walk(FoldedRun(), FoldedRun())
    back = walk.way(0 * local, lambda g: g, 3.0, 5, 7.0)
    lost = 2 * 5 * TINY * (1 + 7 + 3) * 3
    back(given)
    assert_charged(walk, np.full((3, 2), lost))
    back(given)
    assert_charged(walk, np.full((3, 2), 2 * lost))
    assert walk.charge(given / 16, local) == 3 / 16  # max|g|, also where it is below 1


def test_the_mean_spreads_cotangents_over_the_pixels() -> None:
    walk = Walk(FoldedRun(), FoldedRun())
    left, right, back = walk.step(Mean(), X, Y)
    assert_within(left, X.mean(axis=(1, 2)), 1e-15)
    assert_within(right, Y.mean(axis=(1, 2)), 1e-15)
    given = cotangents(2, 2) * 6
    assert_equal(back(given), np.broadcast_to(given[:, :, None, None] / 6, (3, *PIXELS)))
    assert_charged(walk, charged(given, mean_error(X, Y)))


def test_a_linear_map_is_transposed() -> None:
    kernel = jnp.array([[1.0, -2, 3], [0, 5, -6]])
    step, (x, y) = Linear(kernel, jnp.ones(3)), (X[:, 0, 0], Y[:, 0, 0])
    walk = Walk(FoldedRun(), FoldedRun())
    left, right, back = walk.step(step, x, y)
    assert_equal(left, x @ np.asarray(kernel) + 1)
    assert_equal(right, y @ np.asarray(kernel) + 1)
    given = cotangents(2, 3)
    assert_equal(back(given), given @ np.asarray(kernel).T)
    assert_charged(walk, charged(given, linear_error(step, x, y)))


@pytest.mark.parametrize(
    ("step", "shape", "terms", "largest"),
    [
        (Mean(), (2, 2), 2, 1),
        (Linear(jnp.array([[1.0, -7, 3], [0, 5, -6]]), jnp.zeros(3)), (2, 3), 7, 7),
        (Convolution(jnp.full((3, 1, 2, 5), -4.0), jnp.zeros(5)), (2, 3, 2, 5), 15, 4),
    ],
    ids=["mean", "linear", "convolution"],
)
def test_products_of_cotangents_underflow(step, shape, terms, largest) -> None:
    """Σ|d|, n and max|M| of each step; a mean of float32 divides once."""
    x, y = (X, Y) if not isinstance(step, Linear) else (X[:, 0, 0], Y[:, 0, 0])
    walk = Walk(FoldedRun(), FoldedRun())
    found = {}

    def way(local, transposed, gap=0.0, terms=0, largest=1.0):
        found.update(gap=gap, terms=terms, largest=largest)
        return transposed

    walk.way = way
    walk.step(step, x, y)
    assert found == {"gap": np.abs(x - y).sum(), "terms": terms, "largest": largest}


class Shifted(FoldedRun):
    """A run that is off by 1/8 and owns up to 1/4."""

    def apply(self, step, images):
        return super().apply(step, images) + 0.125

    def error(self, step, images):
        return LocalError(0.0, np.zeros(2), 0.0, 0.25)


def test_a_convolution_is_charged_for_both_runs_and_compared_at_the_same_input() -> None:
    """The first owns up to 1/4·(1 + max|W|)(1 + max|x|) and the second to next to nothing."""
    step = Convolution(jnp.array([[[[1.0, -2], [3, 0]]]]), jnp.ones(2), 1, "step")
    walk = Walk(Shifted(), FoldedRun())
    left, right, back = walk.step(step, X, Y)
    kernel = np.asarray(step.kernel)[0, 0]
    assert_equal(left, X @ kernel + 1.125)
    assert_equal(right, Y @ kernel + 1)
    given = cotangents(*PIXELS)
    assert_equal(back(given), given @ kernel.T)
    owned = np.full(PIXELS, 0.25 * 4 * (1 + np.abs(X).max()))
    assert_within(walk.bound, charged(given, owned), 1e-4)  # some 100 sums of 16 roundings
    largest = 0.25 * 4 * (1 + np.abs(Y).max())
    assert list(walk.ratios) == ["step"]
    assert_within(walk.ratios["step"], 0.125 / largest, 1e-12)


def test_branch_and_shortcut_are_added_on_both_ways() -> None:
    """The sum of both cotangents rounds by 2⁻²⁴|d|, and that of both results by theirs."""
    doubled = Linear(jnp.array([[2.0, 0], [0, 2]]), jnp.zeros(2))
    step, (x, y) = Residual((doubled, Relu())), (X[:, 0, 0], Y[:, 0, 0])
    walk = Walk(FoldedRun(), FoldedRun())
    left, right, back = walk.step(step, x, y)
    assert_equal(left, np.maximum(2 * x, 0) + x)
    assert_equal(right, np.maximum(2 * y, 0) + y)
    given = cotangents(2, 2)
    found = back(given)
    mixed = (x > 0) != (y > 0)
    rise = np.abs(np.maximum(x, 0) - np.maximum(y, 0))
    slope = np.where(mixed, rise / np.where(mixed, np.abs(x - y), 1), x > 0).astype(np.float32)
    assert mixed.any()
    assert_equal(found, 2 * (given * slope) + given)
    expected = charged(given, sum_error(left, right))
    expected = expected + charged(given, np.where(mixed, 4 * SINGLE * 2 * rise, 0))
    expected += charged(given * slope, linear_error(doubled, x, y))
    expected += charged(np.asarray(found), SINGLE * np.abs(x - y))
    assert_charged(walk, expected)


def test_steps_are_taken_back_in_the_reverse_order() -> None:
    """A scaling first, whose cotangent nobody needs; then two maps that do not commute."""
    turn, stretch = jnp.array([[0.0, 1], [-1, 0]]), jnp.array([[3.0, 0], [0, 1]])
    steps = (
        Scaling(jnp.ones(2), jnp.full(2, 2.0)),
        Linear(turn, jnp.zeros(2)),
        Linear(stretch, jnp.zeros(2)),
    )
    x, y = X[:, 0, 0], Y[:, 0, 0]
    left, right, back = Walk(FoldedRun(), FoldedRun()).chain(steps, x, y)
    both = np.asarray(turn) @ np.asarray(stretch)
    assert_equal(left, 2 * (x - 1) @ both)
    assert_equal(right, 2 * (y - 1) @ both)
    given = cotangents(2, 2)
    assert_equal(back(given), given @ both.T)
