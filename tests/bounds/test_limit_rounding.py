"""The rounding bound of limit layers: it covers what is seen, and refuses what is no limit."""

import math
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from bounds.rounding_formula import NARROW, RELATIVE, SINGLE, formula_bound, softmax_factors
from comparison import assert_within
from roundings import gamma

import convattn as ca
from convattn.bounds.limit_rounding import limit_rounding_bound, one_hot_bound
from convattn.bounds.majorant import majorant_layer
from convattn.bounds.rounding import underflow_bound
from convattn.fast.dense import softmax_weights

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
    layer = ca.conv_to_attention(kernel, bias, encoding=encoding, form="limit")
    bound = limit_rounding_bound(layer, images, kernel, bias)
    exact = ca.conv(*(np.asarray(part).astype(np.float64) for part in (images, kernel, bias)))
    own = 20 * np.finfo(np.float64).eps * 100  # fewer than 20 roundings of sums below 100
    out = ca.apply_attention(layer, images)
    assert_within(out, exact, bound + own)
    # The bound is not so wide that a wrong layer would pass: one tap changed by a part in ten.
    wrong = ca.conv(np.asarray(images).astype(np.float64), KERNEL * [[[1.1]], [[1]], [[1]]], BIAS)
    assert (np.abs(np.asarray(out, np.float64) - np.asarray(wrong)) > bound).any()


@pytest.mark.slow
def test_weights_that_have_not_underflowed_are_refused():
    for options in (
        {"encoding": "quadratic", "sharpness": 8.0},
        {"sharpness": 20.0, "form": "limit"},
    ):
        layer = ca.conv_to_attention(KERNEL, **options)
        with pytest.raises(ValueError, match="should have underflowed; leave out alpha and logit"):
            limit_rounding_bound(layer, IMAGES, KERNEL, None)
    layer = ca.conv_to_attention(KERNEL, encoding="scalar", form="limit", sharpness=3.0)
    with pytest.raises(ValueError, match="all but 3 should have underflowed"):
        limit_rounding_bound(layer, IMAGES, KERNEL, None)


PICTURE = jnp.linspace(-3.0, 2.0, 20, dtype=jnp.float32).reshape(1, 5, 4, 1)


@pytest.mark.quick(1)
@pytest.mark.parametrize("padding", ["SAME", "MEAN"])
def test_the_bound_of_one_hot_heads_is_that_of_the_formula(padding):
    """The sums, maps, bias, cast and fill; where the majorant is zero what underflows is left."""
    kernel = jnp.arange(12.0, dtype=jnp.bfloat16).reshape(3, 2, 1, 2)
    layer = ca.conv_to_attention(kernel, encoding="quadratic", padding=padding)
    grid, keys, heads = layer.token_grid((5, 4)), 7 * 5, 6
    assert (grid.number_of_keys, layer.output.shape) == (keys, (heads, 1, 2))
    factors = [gamma(keys, SINGLE), gamma(heads, SINGLE), NARROW, SINGLE, SINGLE]
    factors += [gamma(20 + 1, SINGLE)] if padding == "MEAN" else []
    majorant = np.arange(40.0).reshape(1, 5, 4, 2)
    lost = underflow_bound(layer, PICTURE, grid, np.float32, np.float32, True)
    expected = formula_bound(factors, majorant, lost)
    bound = one_hot_bound(layer, PICTURE, majorant)
    np.testing.assert_allclose(bound, expected, rtol=RELATIVE)
    assert 0 < bound[0, 0, 0, 0] == lost


@pytest.mark.parametrize("padding", ["SAME", "MEAN"])
@pytest.mark.slow
def test_the_bound_of_scalar_heads_is_that_of_the_formula(padding):
    """Scores are off by γ_11 of the largest; the gain by as much, by exp, its sum and a product."""
    kernel = jnp.array([-2.0, 5.0], jnp.float32).reshape(2, 1, 1, 1)
    layer = ca.conv_to_attention(kernel, encoding="scalar", form="limit", padding=padding)
    grid, keys, (heads, _, width) = layer.token_grid((5, 4)), 6 * 4, layer.output.shape
    assert (grid.number_of_keys, width) == (keys, 1)
    exponents, logs = (
        np.asarray(part, np.float64)
        for part in (layer.encoding.exponents, layer.encoding.log_bases)
    )
    spread = float(exponents.max() * np.abs(logs).max())
    off = gamma(11, SINGLE) * spread
    gain = off + math.log1p(8 * SINGLE) + math.log1p(gamma(2 + 1, SINGLE)) + math.log1p(SINGLE)
    factors = softmax_factors(SINGLE, keys, off, spread, gain)
    factors += [
        gamma(2 + 4, SINGLE),
        SINGLE,
        gamma(keys, SINGLE),
        gamma(heads, SINGLE),
        SINGLE,
        SINGLE,
    ]
    factors += [gamma(20 + 1, SINGLE)] if padding == "MEAN" else []
    absolute_layer = majorant_layer(layer, kernel, None)
    majorant = np.asarray(ca.apply_attention(absolute_layer, jnp.abs(PICTURE).astype(np.float64)))
    lost = underflow_bound(layer, PICTURE, grid, np.float32, np.float32, True)
    expected = formula_bound(factors, majorant, lost)
    bound = limit_rounding_bound(layer, PICTURE, kernel, None)
    np.testing.assert_allclose(bound, expected, rtol=RELATIVE)


@pytest.mark.slow
def test_fewer_nonzero_weights_than_offsets_are_as_good():
    """Where powers underflow a row has one weight, and all of its others are exactly zero."""
    kernel = jnp.array([-2.0, 5.0], jnp.float32).reshape(2, 1, 1)
    layer = ca.conv_to_attention(kernel, encoding="scalar", form="limit")
    steep = replace(layer.encoding, exponents=jnp.full(layer.heads, 1e4, jnp.float32))
    layer = replace(layer, encoding=steep)
    weights = np.asarray(softmax_weights(layer, layer.token_grid((4,)), None))
    assert ((weights != 0).sum(axis=-1) == 1).all()
    assert (limit_rounding_bound(layer, jnp.ones((1, 4, 1)), kernel, None) > 0).all()


@pytest.mark.slow
def test_a_weight_that_is_no_number_is_refused():
    """The softmax of a single key is one, or nothing at all."""
    kernel = jnp.ones((1, 1, 1), jnp.float32)
    layer = ca.conv_to_attention(kernel, form="limit")
    pixel = jnp.ones((1, 1, 1), jnp.float32)
    assert (limit_rounding_bound(layer, pixel, kernel, None) > 0).all()
    broken = replace(layer.encoding, values=jnp.full_like(layer.encoding.values, jnp.nan))
    with pytest.raises(ValueError, match="should have underflowed"):
        limit_rounding_bound(replace(layer, encoding=broken), pixel, kernel, None)
