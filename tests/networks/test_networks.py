"""Networks as data: what they compute, and how they are converted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma
from networks.small import small_images, small_model, small_network

import convattn as ca
from convattn.lab.models.resnet_network import resnet_to_network
from convattn.networks import (
    Attention,
    Convolution,
    apply_network,
    mixing_steps,
    to_attention,
)
from convattn.networks.steps import convolve

rng = np.random.default_rng(0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "stride", "sides"), [(3, 2, (5, 6)), (1, 2, (4, 3)), (2, 1, (4, 4))]
)
def test_a_convolution_is_that_of_the_library(size, stride, sides) -> None:
    kernel = rng.integers(-4, 5, (size, size, 2, 3)).astype(np.float32)
    images = rng.integers(-9, 10, (2, *sides, 2)).astype(np.float32)
    bias = np.array([1, -2, 3], np.float32)
    assert_equal(
        convolve(kernel, bias, images, stride), ca.conv(images, kernel, bias, stride=stride)
    )


def test_every_convolution_becomes_attention() -> None:
    """Ten heads for 3 × 3, two for 1 × 1, with the same names, strides and order."""
    converted = small_network()
    before, after = mixing_steps(converted.folded), mixing_steps(converted.attention)
    assert all(isinstance(step, Attention) for step in after)
    assert [step.name for step in after] == [step.name for step in before]
    assert [step.layer.heads for step in after] == [10, 10, 10, 10, 10, 2]
    assert [step.layer.stride[0] for step in after] == [step.stride for step in before]
    assert [step.stride for step in before] == [1, 1, 1, 2, 1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("side", [(8, 8), (5, 6)])
def test_one_network_serves_every_image_size(side) -> None:
    """In float64: under jit, with dense attention, against the folded convolutions."""
    images = jnp.asarray(small_images(1, side), float)
    network = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), resnet_to_network(small_model()))
    found = jax.jit(apply_network, static_argnames="backend")(
        to_attention(network), images / 128 - 1, backend="dense"
    )
    expected = apply_network(network, images / 128 - 1)
    # 10⁴ roundings along the longest path, of numbers that grow at most 10⁵ times: far above what
    # float64 does, far below what one wrong weight would
    assert_within(found, expected, 1e5 * gamma(10_000, np.float64))


def test_an_overflow_names_its_layer() -> None:
    network = (Convolution(jnp.full((3, 3, 1, 1), 3e38, jnp.float32), jnp.zeros(1), 1, "stem"),)
    with pytest.raises(ValueError, match=r"stem: .*non-finite"):
        to_attention(network)
