"""The rounding bound of limit layers: it covers what is seen, and refuses what is no limit."""

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_within

import convattn as ca
from convattn.bounds.limit_rounding import limit_rounding_bound

KERNEL = np.random.default_rng(0).standard_normal((3, 2, 2))
BIAS = np.array([0.1, -0.7])
IMAGES = np.random.default_rng(1).integers(-8, 9, (1, 6, 2)).astype(np.float64)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize(
    "encoding", ["bias", "quadratic", "enumerated", "polygon", "rotary", "scalar"]
)
def test_what_is_seen_lies_within_the_bound(encoding, dtype):
    kernel, bias, images = (jnp.asarray(part, dtype) for part in (KERNEL, BIAS, IMAGES))
    if (encoding, dtype) == ("scalar", "bfloat16"):
        pytest.skip("rounding swallows the scalar encoding in bfloat16, and it is refused")
    layer = ca.conv_to_attention(kernel, bias, encoding=encoding, exact=False)
    bound = limit_rounding_bound(layer, images, kernel, bias)
    exact = ca.conv(*(np.asarray(part).astype(np.float64) for part in (images, kernel, bias)))
    own = 20 * np.finfo(np.float64).eps * 100  # fewer than 20 roundings of sums below 100
    out = ca.apply_attention(layer, images)
    assert_within(out, exact, bound + own)
    # The bound is not so wide that a wrong layer would pass: one tap changed by a part in ten.
    wrong = ca.conv(np.asarray(images).astype(np.float64), KERNEL * [[[1.1]], [[1]], [[1]]], BIAS)
    assert (np.abs(np.asarray(out, np.float64) - np.asarray(wrong)) > bound).any()


def test_weights_that_have_not_underflowed_are_refused():
    for options in ({"encoding": "quadratic", "alpha": 8.0}, {"logit": 20.0, "exact": False}):
        layer = ca.conv_to_attention(KERNEL, **options)
        with pytest.raises(ValueError, match="should have underflowed; leave out alpha and logit"):
            limit_rounding_bound(layer, IMAGES, KERNEL, None)
    layer = ca.conv_to_attention(KERNEL, encoding="scalar", exact=False, logit=3.0)
    with pytest.raises(ValueError, match="all but 3 should have underflowed"):
        limit_rounding_bound(layer, IMAGES, KERNEL, None)
