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
    whole = untied(tied)
    assert (tied.heads, tied.output.shape) == (10, (9, 2, 4))
    assert type(whole) is type(expected)
    assert repr(whole) == repr(expected)
    assert_equal(whole.output, expected.output)
    assert_equal(whole.encoding.values, expected.encoding.values)
    assert whole.encoding.uniform_weight == expected.encoding.uniform_weight
    assert (whole.ring, whole.padding) == (expected.ring, expected.padding)
    assert untied(whole) is whole


def test_a_kernel_with_patches_is_not_tied():
    layer = conv_to_attention(jnp.ones((3, 3, 1, 1)), patch_size=2)
    assert not isinstance(layer, TiedLayer)
