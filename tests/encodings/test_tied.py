import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal

from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.tied import tied_layer
from convattn.encodings.tied import TiedLayer, untied


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("padding", ["SAME", "VALID", ((0, 1), (2, 0))])
def test_whole_it_is_the_layer_of_the_kernel(dtype, padding):
    kernel = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3, 2, 4)), dtype)
    sizes = {"stride": (2, 1), "dilation": (1, 2), "padding": padding}
    tied = tied_layer(kernel, 0.25, **sizes)
    expected = conv_to_attention(kernel, uniform_weight=0.25, **sizes)
    layer = untied(tied)
    assert (tied.heads, tied.output.shape) == (10, (9, 2, 4))
    assert type(layer) is type(expected)
    assert repr(layer) == repr(expected)
    assert_equal(layer.output, expected.output)
    assert_equal(layer.encoding.values, expected.encoding.values)
    assert layer.encoding.uniform_weight == expected.encoding.uniform_weight
    assert (layer.ring, layer.padding) == (expected.ring, expected.padding)
    assert untied(layer) is layer


def test_a_kernel_with_patches_is_not_tied():
    layer = conv_to_attention(jnp.ones((3, 3, 1, 1)), patch_size=2)
    assert not isinstance(layer, TiedLayer)
