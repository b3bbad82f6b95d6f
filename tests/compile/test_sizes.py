"""What a vision transformer holds."""

import jax
import numpy as np
import pytest
from compiled_networks import Parameters, convolve

from convattn.compile import capacity, to_vision_transformer


def plain(channels, layers, kernel_size):
    draw = Parameters()
    kernels = [draw.kernel(kernel_size, kernel_size, 1, channels)]
    kernels += [
        draw.kernel(kernel_size, kernel_size, channels, channels) for _ in range(layers - 1)
    ]

    def network(x):
        for kernel in kernels:
            x = jax.nn.relu(convolve(x, kernel))
        return x.mean((1, 2))

    return network


def test_what_fits_is_compiled_at_that_size():
    width, heads, depth = 90, 9, 4
    room = capacity(width, heads, depth)
    network = plain(room.channels, room.layers, room.kernel_size)
    example = np.random.default_rng(0).random((1, 6, 6, 1))
    made = to_vision_transformer(network, example, num_heads=heads, head_dim=width // heads)
    assert (made.arguments["depth"], made.arguments["embed_dim"]) == (depth, width)


@pytest.mark.parametrize("wrong", [(90, 8, 4), (0, 9, 4), (18, 9, 4), (90, 9, 4.5), (20, 1, 4, 8)])
def test_wrong_sizes_are_refused(wrong):
    with pytest.raises(
        ValueError,
        match=r"expected an integer ≥ 1|the heads divide into at least 5 features|hold no channel",
    ):
        capacity(*wrong)
