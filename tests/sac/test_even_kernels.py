import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma

from convattn.sac import even_part, sac_from_even_kernel, with_zero_ring
from convattn_ledger.evidence.exact_convolution import exact_convolution


def even(size, *channels):
    kernel = np.random.default_rng(0).integers(-3, 4, (*size, *channels))
    for axis in range(len(size)):
        kernel = kernel + np.flip(kernel, axis)
    return kernel


@pytest.mark.slow
@pytest.mark.parametrize(("size", "uniform_weight"), [((5,), 0.25), ((3, 5), 0.5)])
def test_even_kernels_are_expressed_at_every_pixel(size, uniform_weight) -> None:
    """Scores up to S = log1p(3N) < 6 for N ≤ 99 keys are off by at most γ_15·S, so weights by

    γ_330 of themselves (`convattn_ledger.bounds.self_attentive_rounding`, 1 and 2), the sums of 7N
    products by γ_700, the filters by γ_4: together below 2γ_1000. The rows sum to one, so Σ_h |W_h|
    times the largest token, 9, is a majorant.
    """
    kernel = even(size, 2, 3)
    space = (7, 4)[: len(size)]
    images = np.random.default_rng(1).integers(-9, 10, (2, *space, 2))
    parameters = sac_from_even_kernel(jnp.asarray(kernel, "float64"), uniform_weight=uniform_weight)
    assert parameters.heads == np.prod([s // 2 + 1 for s in size]) + 1
    ring = tuple(s // 2 for s in size)
    result = jax.jit(with_zero_ring, static_argnums=2)(
        parameters, jnp.asarray(images, "float64"), ring
    )
    majorant = 9 * np.abs(np.asarray(parameters.value)).sum(axis=(0, *range(1, 2 + len(size))))
    bound = 2 * gamma(1000, jnp.float64) * np.broadcast_to(majorant, result.shape)
    assert_within(result, exact_convolution(images, kernel), bound)


def test_the_even_part_is_the_mean_of_the_reflections() -> None:
    kernel = np.random.default_rng(0).integers(-9, 10, (3, 5, 2, 2))
    flips = [kernel, kernel[::-1], kernel[:, ::-1], kernel[::-1, ::-1]]
    assert_equal(even_part(jnp.asarray(kernel, "float32")), sum(flips) / 4)


def test_an_even_kernel_may_be_traced() -> None:
    kernel = jnp.array([2.0, 5.0, 2.0]).reshape(3, 1, 1)
    assert_equal(jax.jit(sac_from_even_kernel)(kernel).value.ravel(), [10, 6, -7])
