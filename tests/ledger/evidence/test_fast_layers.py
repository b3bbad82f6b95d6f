"""The bound that the shift back end keeps is that of the layer, and evidence sees wrong layers."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma

from convattn.bounds.majorant import majorant_of
from convattn.encodings import BiasEncoding, MixtureEncoding
from convattn.encodings.layer import AttentionLayer
from convattn_ledger import EvidenceFailed
from convattn_ledger.evidence import layer_runs
from convattn_ledger.evidence.fast_layers import (
    finite_bound,
    finite_majorant,
    gradients,
    gradients_within,
)

RNG = np.random.default_rng(3)
KERNEL = RNG.integers(-3, 4, (3, 2, 2, 3))
IMAGES = RNG.integers(-9, 10, (2, 8, 12, 2))


def converted(**options) -> AttentionLayer:
    return layer_runs.converted(KERNEL, "float64", **options)


@pytest.mark.slow
@pytest.mark.parametrize("patch", [1, 2])
def test_the_majorant_is_that_of_the_layer(patch):
    layer = converted(patch_size=patch, uniform_weight=0.25)
    keys = (8 // patch + sum(layer.ring[0])) * (12 // patch + sum(layer.ring[1]))
    majorant = finite_majorant(KERNEL, IMAGES, layer.patch_size, 0.25, keys)
    expected = majorant_of(layer, KERNEL, None, IMAGES)
    # At most 154 keys, 14 maps of 8 rows and 15 roundings of a bias below 7: fewer than a thousand.
    assert_within(majorant, expected, 2 * gamma(1000, "float64") * expected)
    assert (finite_bound(layer, KERNEL, IMAGES, "float32") > 0).all()


def test_what_the_bound_does_not_cover_is_refused():
    small = IMAGES[:, :2, :2]
    with pytest.raises(EvidenceFailed, match="is not derived for 6 offsets on 12 keys"):
        finite_bound(converted(uniform_weight=0.25), KERNEL, small, "float32")
    mixture = AttentionLayer(
        MixtureEncoding(jnp.ones((1, 1)), ((0, 0),)), None, jnp.ones((1, 2, 3))
    )
    with pytest.raises(EvidenceFailed, match="derived for leaky biases"):
        finite_bound(mixture, KERNEL, IMAGES, "float32")


@pytest.mark.slow
def test_values_and_gradients_of_one_weight():
    """One head that looks at one key of two: softmax is p, 1 - p, and its slope p(1 - p)."""
    heads = BiasEncoding(jnp.zeros((1, 1)), None, ((0,),))
    layer = AttentionLayer(heads, None, jnp.ones((1, 1, 1)), patch_size=(1,), stride=(1,))
    layer = replace(layer, dilation=(1,), ring=((0, 0),))
    images = jnp.array([[[4.0], [0.0]]], jnp.float64)
    assert_equal(layer_runs.applied(layer, images, "float64", backend="shift"), [[[2.0], [2.0]]])
    of_layer, of_images = gradients("shift", layer, images, jnp.array([[[1.0], [0.0]]]))
    assert_equal(of_layer.encoding.values, [[1.0]])
    assert_equal(of_layer.output, [[[2.0]]])
    assert_equal(of_images, [[[0.5], [0.5]]])
    with pytest.raises(EvidenceFailed, match="zero within the bound"):
        gradients_within("shift", layer, images, jnp.zeros((1, 2, 1)))
