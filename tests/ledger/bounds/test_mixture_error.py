"""The rounding bound of mixture heads, worked out from its formula."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from bounds.rounding_formula import (
    INFLATION,
    NARROW,
    RELATIVE,
    SINGLE,
    formula_bound,
    softmax_factors,
)
from roundings import gamma

from convattn.bounds.rounding import underflow_bound
from convattn.constructions.given_kernel import given_kernel_layer
from convattn.encodings.layer import AttentionLayer
from convattn.encodings.mixture import MixtureEncoding
from convattn.operators.padding import Padding
from convattn_ledger.bounds.mixture_error import mixture_error_bound


def test_scores_of_mixtures_are_off_by_fifteen_roundings():
    """S = log(1 + N w) for the largest w, inflated by 2⁻²⁰, and e = γ_15 S."""
    encoding = MixtureEncoding(jnp.array([[0.5, 0.0], [2.0, 7.0]], jnp.float32), ((0,), (1,)))
    layer = AttentionLayer(encoding, None, None, None, None, (1,), (1,), (1,), ((0, 1),))
    result = layer.encoding.score_error(11)
    height = math.log(1 + 11 * 7) * INFLATION
    assert (result.dtype, result.gain) == (np.float32, 0)
    assert result.range == pytest.approx(height, rel=RELATIVE)
    assert result.absolute == pytest.approx(gamma(15, SINGLE) * height, rel=RELATIVE)


MEAN = Padding("MEAN", ((1, 1), (0, 1)), ((1, 1), (0, 1)))


@pytest.mark.parametrize("padding", ["SAME", MEAN], ids=["zeros", "mean"])
def test_the_bound_of_mixture_heads_is_that_of_the_formula(padding):
    """Π - 1 times the majorant, the mean of the image in the ring counted, and what underflows."""
    kernel = jnp.array([1.0, -2.0, 0.0, 0.5, 4.0, 3.0], jnp.bfloat16).reshape(3, 2, 1, 1)
    layer = given_kernel_layer(kernel, padding=padding)
    images = jnp.linspace(-3.0, 2.0, 20, dtype=jnp.float32).reshape(1, 5, 4, 1)
    grid = layer.token_grid((5, 4))
    keys, offsets = grid.number_of_keys, len(layer.encoding.offsets)
    assert (keys, offsets) == (7 * 5, 6)
    spread = math.log(1 + keys * float(layer.encoding.weights.max())) * INFLATION
    heads, features, width = layer.output.shape
    assert (layer.value, features, width) == (None, 1, 1)
    factors = softmax_factors(SINGLE, keys, gamma(15, SINGLE) * spread, spread, 0.0)
    factors += [gamma(offsets + 4, SINGLE), NARROW, gamma(keys, SINGLE), gamma(heads, SINGLE)]
    factors += [SINGLE, SINGLE]  # the bias, and the cast to the dtype of the images
    factors += [] if padding == "SAME" else [gamma(20 + 1, SINGLE)]
    majorant = np.arange(20.0).reshape(1, 5, 4, 1)
    lost = underflow_bound(layer, images, grid, np.float32, np.float32, False)
    expected = formula_bound(factors, majorant, lost)
    result = mixture_error_bound(layer, images, majorant)
    np.testing.assert_allclose(result, expected, rtol=RELATIVE)
    assert 0 < result[0, 0, 0, 0] == lost
