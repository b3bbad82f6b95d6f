"""Two layers: the convolution, exactly where nothing rounds, within the bound elsewhere."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import convattn as ca
from convattn.bounds.two_layers import two_layers_bound

sides = st.integers(1, 4)


def operands(kernel_size, patch, tokens, channels=(2, 3), seed=0):
    rng = np.random.default_rng(seed)
    kernel = rng.integers(-4, 5, (*kernel_size, *channels)).astype(np.float32)
    shape = (2, *(patch * n for n in tokens), channels[0])
    return kernel, rng.integers(-4, 5, channels[1]), rng.integers(-9, 10, shape).astype(np.float32)


@pytest.mark.slow
@settings(max_examples=8)  # each compiles anew
@given(st.tuples(sides, sides), st.integers(1, 3), st.tuples(sides, sides), st.integers(1, 2))
def test_the_limit_is_the_convolution_of_integers(kernel_size, patch, tokens, stride):
    kernel, bias, images = operands(kernel_size, patch, tokens)
    layers = ca.conv_to_two_layers(kernel, bias, patch_size=patch, stride=stride, form="limit")
    expected = ca.conv(images, kernel, bias, stride=stride, padding="SAME_TORCH")
    assert np.array_equal(layers(images), expected)
    if patch == 1:
        assert layers.heads == kernel_size


@pytest.mark.slow
@settings(max_examples=8)
@given(
    st.tuples(sides, sides),
    st.integers(1, 3),
    st.tuples(sides, sides),
    st.sampled_from([0.5, 0.1, 0.9]),
)
def test_the_exact_form_is_within_its_bound(kernel_size, patch, tokens, uniform_weight):
    kernel, bias, images = operands(kernel_size, patch, tokens)
    layers = ca.conv_to_two_layers(kernel, bias, patch_size=patch, uniform_weight=uniform_weight)
    error = np.abs(np.asarray(layers(images)) - np.asarray(ca.conv(images, kernel, bias)))
    bound = two_layers_bound(layers, images)
    assert (error <= bound).all()
    assert bound.max() < 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("dilation", "groups"), [((2, 1), 1), ((1, 3), 2), ((2, 3), 1)])
def test_dilation_and_groups(dilation, groups):
    kernel, bias, images = operands((3, 2), 1, (5, 6), (2, 4))
    grouped = kernel[:, :, : 2 // groups]
    options = {"dilation": dilation, "groups": groups}
    expected = ca.conv(images, grouped, bias, **options, padding="SAME_TORCH")
    for exact in (True, False):
        layers = ca.conv_to_two_layers(grouped, bias, form="exact" if exact else "limit", **options)
        assert layers.first.dilation == (dilation[0], 1)
        assert layers.second.dilation == (1, dilation[1])
        assert np.allclose(
            layers(images), expected, rtol=0, atol=two_layers_bound(layers, images).max()
        )


def test_the_margin_is_the_longer_reach_of_an_even_kernel():
    assert ca.conv_to_two_layers(np.ones((4, 2, 1, 1)), form="limit").margin == (2, 1)


@pytest.mark.slow
def test_strides_of_the_two_axes_differ():
    kernel, bias, images = operands((3, 2), 1, (5, 6))
    layers = ca.conv_to_two_layers(kernel, bias, stride=(2, 3), form="limit")
    expected = ca.conv(images, kernel, bias, stride=(2, 3), padding="SAME_TORCH")
    assert np.array_equal(layers(images), expected)


@pytest.mark.slow
def test_the_gain_depends_on_the_image_and_on_nothing_else():
    kernel, _, images = operands((3, 3), 1, (4, 3))
    layers = ca.conv_to_two_layers(kernel)
    small, large = layers.second_at((6, 5)), layers.second_at((60, 5))
    assert np.array_equal(small.output[:-1], large.output[:-1])
    assert not np.array_equal(small.output[-1], large.output[-1])
    wrong = replace(layers, exact=False)  # the gain of a layer that stands alone
    error = np.abs(np.asarray(wrong(images)) - np.asarray(ca.conv(images, kernel)))
    assert error.max() > two_layers_bound(layers, images).max()


@pytest.mark.slow
def test_one_program_and_its_gradient():
    kernel, _, images = operands((3, 3), 1, (4, 5))

    def loss(kernel):
        return (ca.conv_to_two_layers(kernel)(images) ** 2).sum()

    def direct(kernel):
        return (ca.conv(images, kernel) ** 2).sum()

    actual, expected = (jax.jit(jax.grad(f))(jnp.asarray(kernel)) for f in (loss, direct))
    assert np.allclose(actual, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.slow
def test_the_layers_are_an_argument_of_a_program():
    kernel, _, images = operands((3, 3), 2, (4, 6))
    layers = ca.conv_to_two_layers(kernel, patch_size=2)
    result = jax.jit(lambda layers, images: layers(images))(layers, images)
    assert np.allclose(result, layers(images), rtol=0, atol=two_layers_bound(layers, images).max())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": np.ones((3, 1, 1))}, "a kernel of one axis has nothing to divide"),
        ({"dilation": 2, "patch_size": 2}, "expected one of them to be 1"),
        ({"dilation": (1, 3), "patch_size": (2, 1)}, "expected one of them to be 1"),
        ({"sharpness": 3.0}, "belongs to the limit form"),
        ({"uniform_weight": 1.5}, "strictly between 0 and 1"),
        ({"bias": np.ones(2)}, "one entry for each output channel"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ca.conv_to_two_layers(**({"kernel": np.ones((3, 3, 1, 1))} | arguments))


@pytest.mark.parametrize("shape", [(3, 3, 1), (1, 3, 3, 2), (1, 3, 4, 1)])
def test_images_that_do_not_fit(shape):
    layers = ca.conv_to_two_layers(np.ones((3, 3, 1, 1)), patch_size=2)
    with pytest.raises(ValueError, match=r"but expected|do not divide"):
        layers(np.ones(shape))
