"""A trained ResNet as a function of bytes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_within
from flax import nnx
from networks.small import MEAN, NAMES, STD, small_attention, small_images, small_model

from convattn.networks.transformation.attention_of import attention_of
from convattn_lab.models.resnet_function import folded, image_function, normalized_convolutions


@pytest.mark.slow
def test_the_function_is_the_model_on_normalised_images() -> None:
    images, model = small_images(), small_model()
    expected = model(jnp.asarray((images / 255 - MEAN) / STD, jnp.float32))
    result = image_function(model, MEAN, STD)(images)
    assert_within(result, expected, 1e-4 * np.abs(expected).max())
    other = image_function(model, MEAN, 2 * STD)(images)
    with pytest.raises(AssertionError):
        assert_within(other, expected, 1e-4 * np.abs(expected).max())


@pytest.mark.slow
def test_every_convolution_becomes_attention_under_its_name() -> None:
    layers, _, report = small_attention()
    assert list(layers) == NAMES
    assert [layer.heads for layer in layers.values()] == [10, 10, 10, 10, 10, 2]
    assert [layer.stride[0] for layer in layers.values()] == [1, 1, 1, 2, 1, 2]
    assert report.passed
    assert report.left == ()


@pytest.mark.slow
def test_one_set_of_layers_serves_every_image_size_in_float64() -> None:
    function = image_function(small_model(), MEAN, STD, np.float64)
    layers, apply, report = attention_of(function, small_images())
    assert report.passed
    assert report.bound < 1e-8
    images = small_images(1, (5, 6))
    expected = np.asarray(function(images))
    assert_within(jax.jit(apply)(layers, images), expected, 1e-10 * np.abs(expected).max())


@pytest.mark.slow
def test_a_folded_model_is_the_model_and_its_norms_only_add() -> None:
    with jax.enable_x64(True):
        model = small_model()
        folded_model = folded(model)
        images = jnp.asarray(small_images() / 128 - 1, jnp.float32)
        expected = np.asarray(model(images))
        # ten roundings of numbers that grow by less than 2¹⁰ on the way: 2⁻²⁴·10·2¹⁰ < 2⁻¹⁰
        assert_within(folded_model(images), expected, 2.0**-10 * np.abs(expected).max())
        for _, layer in normalized_convolutions(folded_model):
            assert (layer.norm.mean[...] == 0).all()
            assert (layer.norm.scale[...] == 1).all()


def test_another_model_is_refused() -> None:
    with pytest.raises(ValueError, match="the model is Linear, but expected a ResNet"):
        image_function(nnx.Linear(2, 3, rngs=nnx.Rngs(0)), MEAN, STD)
