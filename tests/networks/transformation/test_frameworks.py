"""Networks of other packages, unknown to the transformation: within the derived bounds.

Each has what is its own: Flax strides, a scan over rematerialised blocks, statistics that change;
Equinox channels first under vmap; Haiku and Keras depthwise and separable layers; and all of them
transposed convolutions.
"""

import os

import equinox
import haiku
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from convattn.networks.transformation.attention_of import attention_of
from convattn.networks.transformation.contents import remaining_convolutions
from convattn.networks.transformation.with_attention import with_attention

os.environ["KERAS_BACKEND"] = "jax"  # before it is imported
IMAGES = jax.random.normal(jax.random.key(0), (2, 12, 10, 3))


class Block(linen.Module):
    """One step of a scan."""

    @linen.compact
    def __call__(self, images, _):
        return images + linen.gelu(linen.Conv(4, (3, 3))(linen.GroupNorm(2)(images))), None


class Network(linen.Module):
    """Strides, a scan over rematerialised blocks, a transposed convolution, batch norm."""

    @linen.compact
    def __call__(self, images):
        images = linen.relu(linen.Conv(4, (3, 3), strides=2, name="stem")(images))
        parameters = {"variable_axes": {"params": 0}, "split_rngs": {"params": True}}
        blocks = linen.scan(linen.remat(Block), length=2, **parameters)
        images, _ = blocks(name="blocks")(images, None)
        images = linen.ConvTranspose(4, (3, 3), strides=(2, 2))(images)
        images = linen.max_pool(images, (2, 2), (2, 2))
        images = linen.BatchNorm(use_running_average=True)(images)
        return linen.Dense(5)(images.mean((1, 2)))


@pytest.mark.slow
def test_a_linen_network_with_a_scan():
    model = Network()
    variables = jax.jit(model.init)(jax.random.key(1), IMAGES)
    variables = jax.tree.map(lambda leaf: leaf.astype(np.float64), variables)
    layers, apply, report = attention_of(lambda images: model.apply(variables, images), IMAGES)
    assert {name: layer.output.shape for name, layer in layers.items()} == {
        "Network/stem": (10, 3, 4),
        "Network/blocks/Conv_0": (2, 10, 4, 4),  # one for each step
        "Network/ConvTranspose_0": (10, 4, 4),
    }
    assert (report.passed, report.left, report.without_rule) == (True, (), None)
    assert report.bound < 1e-9
    result = apply(layers, IMAGES)
    expected = model.apply(variables, IMAGES)
    assert float(jnp.abs(result - expected).max()) <= report.bound
    attended = with_attention(model.apply)  # parameters as arguments
    assert remaining_convolutions(attended, variables, IMAGES) == ()
    assert float(jnp.abs(attended(variables, IMAGES) - expected).max()) <= report.bound


def in_float64(tree):
    """Parameters in float64."""
    return jax.tree.map(
        lambda leaf: leaf.astype(np.float64) if isinstance(leaf, jax.Array) else leaf, tree
    )


def nnx_network():
    rngs = {"rngs": nnx.Rngs(0), "param_dtype": np.float64}
    net = nnx.Sequential(
        nnx.Conv(3, 6, (3, 3), padding="CIRCULAR", **rngs),
        nnx.BatchNorm(6, **rngs),
        nnx.silu,
        nnx.Conv(6, 6, (5, 5), feature_group_count=6, strides=2, **rngs),
        nnx.Conv(6, 4, (1, 1), **rngs),
    )
    net.train()  # a model in training changes its statistics
    return lambda images: nnx.clone(net)(images), [10, 26, 2], 1e-9


def equinox_network():
    keys = jax.random.split(jax.random.key(1), 3)
    depthwise = equinox.nn.Conv2d(8, 8, (1, 7), groups=8, padding="SAME", key=keys[1])
    model = equinox.nn.Sequential(
        [
            equinox.nn.Conv2d(3, 8, 3, stride=2, padding=1, key=keys[0]),
            equinox.nn.Lambda(jax.nn.relu),
            equinox.nn.MaxPool2d(2, 2),
            depthwise,
            equinox.nn.ConvTranspose2d(8, 4, 3, stride=2, key=keys[2]),
        ]
    )
    model = in_float64(model)
    return lambda images: jax.vmap(model)(images.transpose(0, 3, 1, 2)), [10, 8, 10], 1e-9


def haiku_network():
    def forward(images):
        images = jax.nn.gelu(haiku.Conv2D(6, 3, rate=2)(images))
        images = haiku.DepthwiseConv2D(2, 3, stride=2)(images)
        images = haiku.LayerNorm(-1, create_scale=True, create_offset=True)(images)
        return haiku.Conv2DTranspose(4, 3, stride=2)(images)

    model = haiku.without_apply_rng(haiku.transform(forward))
    parameters = in_float64(model.init(jax.random.key(0), IMAGES))
    return lambda images: model.apply(parameters, images), [10, 10, 10], 1e-9


def keras_network():
    import keras

    keras.config.set_floatx("float64")
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Conv2D(6, 3, padding="same", activation="relu"),
            layers.SeparableConv2D(4, 3),
            layers.BatchNormalization(),
            layers.Conv2DTranspose(4, 3, strides=2),
            layers.GlobalAveragePooling2D(),
            layers.Dense(4),
        ]
    )
    model(np.asarray(IMAGES))
    # BatchNormalization computes in float32, whatever the dtype.
    return lambda images: model(images, training=False), [10, 10, 2, 10], 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("network", [nnx_network, equinox_network, haiku_network, keras_network])
def test_a_network_of_another_package(network):
    function, heads, most = network()
    layers, apply, report = attention_of(function, IMAGES)
    assert [layer.heads for layer in layers.values()] == heads
    assert (report.passed, report.left, report.without_rule) == (True, (), None)
    assert report.bound < most
    expected = function(IMAGES)
    np.testing.assert_allclose(apply(layers, IMAGES), expected, rtol=0, atol=report.bound)
    attended = with_attention(function)
    assert remaining_convolutions(attended, IMAGES) == ()
    np.testing.assert_allclose(jax.jit(attended)(IMAGES), expected, rtol=0, atol=most)
