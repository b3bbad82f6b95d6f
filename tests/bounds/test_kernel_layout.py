"""A kernel in PyTorch's layout is named where its shape cannot be refused."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import convattn as ca

CALLS = {
    "conv_to_attention": ca.conv_to_attention,
    "two_layers": ca.two_layers,
    "heads_of": ca.heads_of,
    "approximate_convolution": lambda kernel: ca.approximate_convolution(kernel, 2),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_warning_names_both_readings(name):
    kernel = np.eye(8 * 3, 9, dtype=np.float32).reshape(8, 3, 3, 3)
    with pytest.warns(UserWarning, match="transpose") as caught:
        CALLS[name](kernel)
    (message,) = [str(item.message) for item in caught]
    assert "8 × 3 taps of 3 channels in and 3 out" in message
    assert "3 × 3 taps of 3 channels in and 8 out" in message
    assert "kernel.transpose(2, 3, 1, 0)" in message


@pytest.mark.parametrize(
    "shape",
    [
        (3, 3, 3, 3),
        (3, 3, 3, 8),
        (3, 1, 1, 1),
        (5, 4, 1, 1),
        (1, 3, 32, 32),
        (7, 7, 4, 4),
        (3, 2, 2),
    ],
)
def test_a_kernel_in_our_layout_gives_none(shape):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ca.conv_to_attention(jnp.ones(shape))


def test_within_the_library_layouts_are_known():
    """The two layers of a 3 × 3 kernel hold kernels [1, 3, 3, 3]."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ca.two_layers(jnp.ones((3, 3, 1, 3)))
