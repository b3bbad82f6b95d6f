"""What each step adds to the difference of two runs: worked examples of the formulas."""

import jax.numpy as jnp
import numpy as np
import pytest
from bounds.rounding_formula import RELATIVE, SINGLE, TINY
from comparison import assert_equal, assert_within
from roundings import gamma, roundoff

from convattn.networks.local_errors import LocalError, local_error
from convattn.networks.step_errors import (
    convolution_error,
    linear_error,
    mean_error,
    pulled,
    rectified,
    sum_error,
    times_transpose,
    worst_ratio,
)
from convattn.networks.steps import Convolution, Linear


def two_runs(*shape: int, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    """Activations of two runs: multiples of 1/4, so that sums and differences are exact."""
    draw = np.random.default_rng(0).integers(-20, 21, (2, *shape)) / 4
    return draw[0].astype(dtype), draw[1].astype(dtype)


def test_a_convolution_errs_by_both_runs_and_by_its_transpose() -> None:
    """ρ(x) + ρ'(x') + γ_n|W||d|, each at its own input, and the ratio at the input x'."""
    kernel, bias = np.array([[[[1.0, -2, 3], [-4, 5, 0.5]]]]), np.array([-1.0, 2, 0])
    step = Convolution(jnp.asarray(kernel), jnp.asarray(bias), 1, "step")
    x, y = two_runs(1, 2, 3, 2)
    errors = (
        LocalError(0.5, np.array([1.0, 0, 0]), 0.25, 0.0625),
        LocalError(0.125, np.array([0, 2.0, 0]), 0.5, 0.25),
        LocalError(2.0, np.array([0, 0, 3.0]), 0.0, 0.5),
    )
    gap, size = np.abs(x - y), np.abs(kernel[0, 0])
    of_run, of_run_there, of_other, moved = (
        local_error(step, at, np.abs(at) @ size + shift, error)
        for at, shift, error in (
            (x, np.abs(bias), errors[0]),
            (y, np.abs(bias), errors[0]),
            (y, np.abs(bias), errors[1]),
            (gap, 0, errors[2]),
        )
    )
    same = np.zeros((1, 2, 3, 3))
    right = np.linspace(-1, 1, same.size).reshape(same.shape)
    local, worst, total = convolution_error(step, x, y, same, right, errors)
    expected = of_run + of_other + moved
    assert_within(local, expected, RELATIVE * expected)
    ratio = (np.abs(right) / (of_run_there + of_other)).max()
    assert_within(worst, ratio, RELATIVE * ratio)
    assert total == gap.sum()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_mean_errs_by_the_roundings_of_its_pixels(dtype) -> None:
    """γ_n of |x| + |y|, γ_n of float32 of |x - y|, n four more than the pixels; and 8 tiny."""
    x, y = two_runs(2, 3, 5, 4, dtype=dtype)
    size, gap = np.abs(x).astype(float) + np.abs(y), np.abs(x.astype(float) - y)
    expected = (gamma(19, roundoff(dtype)) * size + gamma(19, SINGLE) * gap).mean(axis=(1, 2))
    assert_within(mean_error(x, y), expected, RELATIVE * expected)
    assert_equal(mean_error(0 * x, 0 * y), np.full((2, 4), 8 * TINY))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_linear_map_errs_by_the_roundings_of_its_longer_side(dtype, turned) -> None:
    """γ_n of (|x| + |y|)|W| + 2|b| and, in float32, of |x - y||W|, n four more than 5."""
    kernel = np.random.default_rng(1).integers(-6, 7, (5, 3)).astype(dtype)
    kernel = kernel.T if turned else kernel
    bias = np.arange(-1.0, kernel.shape[1] - 1, dtype=dtype)
    step = Linear(jnp.asarray(kernel), jnp.asarray(bias))
    x, y = two_runs(2, kernel.shape[0], dtype=dtype)
    size, gap, wide = np.abs(x).astype(float) + np.abs(y), np.abs(x.astype(float) - y), abs(kernel)
    expected = gamma(9, roundoff(dtype)) * (size @ wide + 2 * np.abs(bias))
    expected += gamma(9, SINGLE) * (gap @ wide)
    assert_within(linear_error(step, x, y), expected, RELATIVE * expected)
    small = Linear(step.kernel, 0 * step.bias)  # beside 0 and 0.75·tiny the floor is what is left
    apart = linear_error(small, 0 * x, 0 * y)
    assert_within(apart, np.full(apart.shape, 4 * 9 * TINY * 7), 36 * TINY * RELATIVE)
    assert linear_error(step, x[:0], y[:0]).shape == (0, kernel.shape[1])


def test_the_floor_of_a_linear_map_grows_with_both_runs_and_their_gap() -> None:
    """4·n·tiny(1 + max(|x| + |y| + |x - y|))(1 + max|W|) beside a kernel of one entry."""
    step = Linear(jnp.array([[0.0, -4.0]]), jnp.zeros(2))
    found = linear_error(step, np.array([[3.0]]), np.array([[-2.0]]))
    expected = 4 * 6 * TINY * (1 + 10) * (1 + 4)
    assert_within(found[0, 0], expected, RELATIVE * expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_sum_errs_by_one_rounding_of_both_runs(dtype) -> None:
    x, y = two_runs(2, 3, dtype=dtype)
    expected = roundoff(dtype) * (np.abs(x).astype(float) + np.abs(y))
    assert_within(sum_error(x, y), expected, RELATIVE * expected + 2 * TINY)
    assert_equal(sum_error(0 * x, 0 * y), np.full((2, 3), TINY))


def test_a_rectifier_has_the_secant_s_slope() -> None:
    """1 or 0 where both signs agree, zero counting as negative; else the secant, which rounds."""
    x = np.array([3.0, -3, 0, 3, -1, 0, 1.5])
    y = np.array([1.0, -1, 0, -1, 3, 2, 0])
    left, right, slope, local = rectified(x, y)
    assert_equal(left, [3, 0, 0, 3, 0, 0, 1.5])
    assert_equal(right, [1, 0, 0, 0, 3, 2, 0])
    assert_equal(slope, [1, 0, 0, 0.75, 0.75, 1, 1])
    assert slope.dtype == np.float32
    expected = 4 * SINGLE * np.array([0, 0, 0, 3, 3, 2, 1.5])
    assert_within(local, expected, RELATIVE * expected)
    least = rectified(x * 2.0**-1000, y * 2.0**-1000)[3]  # relative to that the roundings are 0
    assert_equal(least, 2 * TINY * np.array([0, 0, 0, 1, 1, 1, 1]))


def test_the_worst_ratio_is_infinite_for_what_is_not_finite() -> None:
    one, two, allowed = np.array([1.0, -2, 5]), np.array([3.0, 1, 5]), np.array([4.0, 4, 0])
    assert worst_ratio(one, two, allowed) == 0.75
    assert worst_ratio(one, two, 0 * allowed) == np.inf
    assert worst_ratio(one[:0], two[:0], allowed[:0]) == 0
    for place in range(3):
        parts = [one.copy(), two.copy(), allowed.copy()]
        parts[place][0] = np.nan
        assert worst_ratio(*parts) == np.inf


def test_transposes_are_those_of_the_maps() -> None:
    """⟨g, W x⟩ = ⟨Wᵀg, x⟩ of integers, in float32."""
    kernel = np.arange(6.0).reshape(2, 3) - 2
    cotangent = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    found = times_transpose(cotangent, kernel)
    assert found.dtype == np.float32
    assert_equal(found, cotangent @ kernel.T)
    taps = np.arange(9.0).reshape(3, 1, 1, 3) - 4
    found = pulled(taps, cotangent[:, :, None, None], (2, 1, 1), 2)
    assert found.dtype == np.float32
    assert_equal(found[..., 0, 0], cotangent @ taps[1:, 0, 0].T)
