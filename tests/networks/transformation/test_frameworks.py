"""Networks of Flax, their own modules unknown to the transformation: within the derived bounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from convattn.networks.transformation.attention_of import attention_of
from convattn.networks.transformation.report import remaining_convolutions
from convattn.networks.transformation.with_attention import with_attention

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


def test_a_linen_network_with_a_scan():
    model = Network()
    variables = model.init(jax.random.key(1), IMAGES)
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


@pytest.mark.parametrize("train", [False, True])
def test_an_nnx_network(train):
    rngs = {"rngs": nnx.Rngs(0), "param_dtype": np.float64}
    net = nnx.Sequential(
        nnx.Conv(3, 6, (3, 3), padding="CIRCULAR", **rngs),
        nnx.BatchNorm(6, **rngs),
        nnx.silu,
        nnx.Conv(6, 6, (5, 5), feature_group_count=6, strides=2, **rngs),
        nnx.Conv(6, 4, (1, 1), **rngs),
    )
    net.train() if train else net.eval()

    def function(images):
        return nnx.clone(net)(images)  # a model in training changes its statistics

    layers, apply, report = attention_of(function, IMAGES)
    assert [layer.heads for layer in layers.values()] == [10, 26, 2]
    assert (report.passed, report.left, report.without_rule) == (True, (), None)
    assert report.bound < 1e-9
    np.testing.assert_allclose(apply(layers, IMAGES), function(IMAGES), rtol=0, atol=report.bound)
