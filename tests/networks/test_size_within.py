"""Up to which size a layer of finite scores is a convolution, against its weights on that size."""

import jax.numpy as jnp
import numpy as np
import pytest

from convattn.constructions.conversion import conv_to_attention
from convattn.fast.dense import layer_weights
from convattn.networks.far_shifts import size_within
from convattn.networks.recovered_kernel import uniform_part, working_maps

KERNEL = jnp.array([[[2.0, 1.0]], [[-1.0, 3.0]], [[0.5, -2.0]]])
EDGE = jnp.array([[[1.0]], [[-2.0]], [[1.0]]])  # its uniform parts cancel


def kernel_on(layer, size):
    """What a query in the middle takes from its three nearest keys more than from others."""
    grid = layer.token_grid((size,))
    weights = np.asarray(layer_weights(layer, grid, None), np.float64)[:, size // 2]
    query = size // 2 + (grid.number_of_keys - size) // 2
    taps = weights[:, query - 1 : query + 2] - weights[:, :1]
    return np.einsum("ht,hio->tio", taps, np.asarray(working_maps(layer), np.float64))


def apart(layer, kernel, size):
    """The uniform part on that size, and how far its kernel is from that on 10 pixels."""
    uniform, _ = uniform_part(layer, kernel, (size,))
    moved = np.linalg.norm(kernel_on(layer, size) - kernel_on(layer, 10))
    return max(float(uniform), moved / np.linalg.norm(np.asarray(kernel, np.float64)))


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        (EDGE, {"sharpness": 11.0}),
        (1e25 * jnp.ones((3, 1, 1), jnp.float32), {"sharpness": 11.0}),
        (KERNEL, {"sharpness": 11.0, "encoding": "enumerated"}),
        (KERNEL, {"sharpness": 11.0, "encoding": "scalar"}),
        (KERNEL, {"sharpness": 11.0, "encoding": "polygon"}),
        (KERNEL, {"sharpness": 22.0, "border": "register"}),
    ],
)
@pytest.mark.slow
def test_layer_and_convolution_are_within_the_tolerance_up_to_that_size(kernel, options):
    layer = conv_to_attention(kernel, form="limit", **options)
    (size,) = size_within(layer, kernel, (10,), 1e-3)
    assert size < 1000  # of which the weights of all pairs fit into memory
    assert apart(layer, kernel, size) <= 1.05e-3
    # beside a register all heads are counted, where at most one side of them has no target
    assert apart(layer, kernel, (8 if layer.register else 3) * size) > 1e-3


def test_sizes_keep_their_proportions_and_hold_whole_patches():
    kernel = jnp.ones((3, 3, 1, 1))
    layer = conv_to_attention(kernel, form="limit", sharpness=20.0, patch_size=2)
    height, width = size_within(layer, kernel, (8, 16), 1e-4)
    assert height % 2 == width % 2 == 0
    assert 16 < 2 * height - 4 < width < 2 * height + 4


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        (KERNEL, {}),  # a uniform head cancels
        (EDGE, {"num_heads": "min"}),  # scores grow with the number of keys
        (KERNEL, {"form": "limit"}),  # one-hot in the dtype
        (KERNEL, {"form": "limit", "encoding": "quadratic", "sharpness": 17.0}),  # far scores fall
        (EDGE, {"form": "limit", "sharpness": 800.0}),
    ],
)
def test_what_holds_on_every_size(kernel, options):
    assert size_within(conv_to_attention(kernel, **options), kernel, (10,), 1e-6) is None
