import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within
from sac.random_parameters import apply
from strategies import CONVOLUTION_BUCKETS, FLOATS, largest_sum, make_case

from convattn.operators.convolution import conv
from convattn.sac import limit_error_bound, sac_from_convolution
from convattn.sac.from_convolution import grid_cells
from convattn_ledger.bounds.self_attentive_rounding import two_head_error_bound
from convattn_ledger.evidence.exact_convolution import exact_convolution

BUCKETS = [bucket for bucket in CONVOLUTION_BUCKETS if bucket.groups == 1]
CASES = [(BUCKETS[index], dtype) for index, dtype in zip((1, 2, 4, 5), FLOATS, strict=True)]
reference = jax.jit(conv, static_argnames=("stride", "dilation"))


def exact(case, stride):
    """The convolution without its bias, in integers."""
    return np.asarray(
        reference(case.images, case.kernel, stride=stride, dilation=case.bucket.dilation)
    )


@pytest.mark.slow
@pytest.mark.parametrize("pair", CASES, ids=str)
def test_one_head_in_the_limit_equals_the_convolution(pair) -> None:
    bucket, dtype = pair
    case = make_case(bucket, 1, dtype)
    images, kernel, bias = case.cast()
    parameters = sac_from_convolution(
        kernel, bias, form="limit", stride=bucket.stride, dilation=bucket.dilation
    )
    assert parameters.heads == 1
    result = apply(parameters, images)
    assert_dtype(result, dtype)
    assert_equal(result, exact(case, bucket.stride) + case.bias)


@pytest.mark.slow
@pytest.mark.parametrize("pair", CASES, ids=str)
def test_two_heads_are_within_the_bound(pair) -> None:
    """Keys on the grid of the queries, or, in every other case, on that of the pixels."""
    bucket, dtype = pair
    case = make_case(bucket, 2, dtype)
    images, kernel, bias = case.cast()
    key_stride = (1,) * bucket.axes if CASES.index(pair) % 2 else bucket.stride
    parameters = sac_from_convolution(
        kernel, bias, stride=bucket.stride, dilation=bucket.dilation, key_stride=key_stride
    )
    assert parameters.heads == 2
    at_queries, at_keys = exact(case, bucket.stride), exact(case, key_stride)
    bound = two_head_error_bound(
        at_keys,
        at_queries,
        dtype,
        bias=case.bias,
        magnitude=largest_sum(case.images, case.kernel),
    )
    assert_within(apply(parameters, images), at_queries + case.bias, bound)


@pytest.mark.parametrize("exact", [True, False])
def test_causal_convolutions_too(exact) -> None:
    """Every query counts its own keys: M differs from row to row."""
    kernel = np.random.default_rng(0).integers(-3, 4, (3, 2, 4))
    images = np.random.default_rng(1).integers(0, 9, (2, 8, 2))
    padded = np.pad(images, [(0, 0), (2, 0), (0, 0)])
    expected = exact_convolution(padded, kernel)[:, 1:-1]
    parameters = sac_from_convolution(
        jnp.asarray(kernel, "float64"), form="exact" if exact else "limit", causal=True
    )
    result = apply(parameters, jnp.asarray(images, "float64"))
    if not exact:
        assert_equal(result, expected)
        return
    # Rows of few keys have less error, and another mean: take the largest of all for every row.
    largest = np.full_like(expected, np.abs(expected).max())
    bound = two_head_error_bound(largest, largest, "float64", magnitude=1000)
    assert_within(result, expected, bound)


@pytest.mark.parametrize("logit", [2.0, 9.0])
def test_the_limit_approaches_within_its_bound(logit) -> None:
    """Rounding in float64, at most 2⁻⁴⁰ of the largest value, is added to the bound."""
    kernel = np.random.default_rng(0).integers(-3, 4, (2, 3, 2, 4))
    images = np.random.default_rng(1).integers(0, 9, (2, 5, 6, 2))
    expected = exact_convolution(images, kernel)
    spread = np.ptp(expected, axis=(1, 2), keepdims=True)
    parameters = sac_from_convolution(jnp.asarray(kernel, "float64"), form="limit", sharpness=logit)
    result = apply(parameters, jnp.asarray(images, "float64"))
    cells = grid_cells((5, 6), (1, 1))
    bound = limit_error_bound(logit, cells, spread) + 2.0**-40 * np.abs(expected).max()
    assert_within(result, expected, np.broadcast_to(bound, expected.shape))
    off = np.abs(np.asarray(result) - expected).max()
    assert off > limit_error_bound(logit, cells, spread).max() / 4  # it says something


def test_one_set_of_parameters_serves_every_size() -> None:
    kernel = np.random.default_rng(0).integers(-3, 4, (3, 3, 1, 2))
    parameters = sac_from_convolution(jnp.asarray(kernel, "float32"))
    for size in ((1, 1), (12, 5)):
        images = np.random.default_rng(1).integers(0, 9, (1, *size, 1))
        expected = exact_convolution(images, kernel)
        bound = two_head_error_bound(expected, expected, "float32", magnitude=243)
        result = apply(parameters, jnp.asarray(images, "float32"))
        assert_within(result, expected, bound)


def test_the_bound_refuses_values_that_may_be_rounded() -> None:
    ones = np.ones((1, 2, 1), int)
    with pytest.raises(ValueError, match=r"at most 2\^23"):
        two_head_error_bound(ones, ones, "float32", magnitude=2**23 + 1)
