"""A kernel in PyTorch's layout is named where its shape cannot be refused."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import convattn as ca
from convattn import sac
from convattn.bounds.kernel_layout import flattened_kernel
from convattn.nnx import AttentionConv
from convattn.operators.kernel_layout import looks_like_pytorch
from convattn_ledger import structures

IMAGES = np.ones((1, 4, 4, 3), np.float32)
CALLS = {
    "conv": lambda kernel: ca.conv(IMAGES, kernel, padding=((4, 4), 1)),
    "conv by name": lambda kernel: ca.conv(IMAGES, kernel=kernel, padding=((4, 4), 1)),
    "from_kernel": AttentionConv.from_kernel,
    "flattened_kernel": flattened_kernel,
    "sac_from_convolution": sac.sac_from_convolution,
    "kernel_to_structure": lambda kernel: structures.kernel_to_structure(kernel, (9, 9)),
    "conv_to_attention": ca.conv_to_attention,
    "conv_to_two_layers": ca.conv_to_two_layers,
    "count_heads_of_kernel": ca.count_heads_of_kernel,
    "approximate_conv": lambda kernel: ca.approximate_conv(kernel, 2),
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


def test_a_kernel_of_a_sequence_is_named():
    with pytest.warns(UserWarning, match=r"\(64, 2, 3\) is read as \[K, in, out\]: 64 taps"):
        ca.conv(np.ones((1, 64, 2), np.float32), np.ones((64, 2, 3), np.float32))


@pytest.mark.parametrize(
    "shape",
    [
        *((64, 3, 7, 7), (8, 3, 3, 3), (64, 64, 3, 3), (8, 8, 3, 3), (64, 1, 3, 3), (4, 4, 3, 3)),
        *(
            (64, 3, 1, 1),
            (8, 8, 1, 1),
            (256, 64, 1, 1),
            (64, 64, 1, 1),
            (64, 32, 1, 7),
            (64, 32, 3, 5),
        ),
        *((64, 32, 3), (64, 32, 1), (512, 512, 3), (512, 1, 10), (16, 3, 5)),
        *((40, 40, 22, 1), (25, 25, 22, 1), (64, 64, 10, 4), (128, 128, 1, 2)),  # EEG, sounds
        *((32, 1, 41, 11), (8, 1, 1, 64), (16, 1, 64, 1), (100, 1, 3, 300), (100, 1, 4, 128)),
        *((32, 1, 80), (80, 1, 251), (25, 25, 7)),
        *((27, 27, 3, 3), (33, 33, 3, 3), (21, 21, 7, 7)),
        *((96, 1, 1, 11), (96, 1, 11, 1), (12, 1, 1, 11), (960, 1, 5, 1), (256, 1, 1, 31)),
        *((64, 1, 1, 7), (64, 1, 1, 21), (10, 1, 1, 1), (1280, 1, 1, 1)),
        *((1, 1, 3), (1, 1, 5), (1, 1, 7), (27, 512, 1), (16, 32, 4)),
    ],
)
def test_shapes_of_pytorch(shape):
    assert looks_like_pytorch(shape)


@pytest.mark.parametrize(
    "shape",
    [
        *((3, 3, channels, channels) for channels in (*range(1, 18), 64, 512)),
        *((size, size, 1, 1) for size in (1, 2, 3, 5, 7, 9, 21)),
        *((1, 1, channels, 64) for channels in (1, 3, 16, 64)),
        *((size, size, 1, 96) for size in (3, 5, 7, 31)),
        *((7, 7, 3, 64), (11, 11, 3, 64), (16, 16, 3, 768), (14, 14, 3, 1024), (4, 4, 64, 3)),
        *((3, 3, 3, 8), (3, 1, 1, 1), (5, 4, 1, 1), (1, 3, 32, 32), (7, 7, 4, 4), (1, 7, 8, 8)),
        *((31, 31, 1, 96), (51, 51, 1, 3), (25, 25, 1, 1), (7, 1, 64, 64), (64, 1, 1, 40)),
        *((5, 1, 1, 16), (7, 1, 96, 1), (11, 1, 1, 96), (5, 1, 1, 1), (25, 1, 1, 1), (4, 1, 1, 1)),
        *((10, 1, 16, 25), (64, 1, 1, 8), (3, 1, 96, 1), (1, 11, 1, 96), (1, 1, 1, 3)),
        *((1, 1, 64), (1, 1, 1), (7, 32, 1), (31, 32, 1), (16, 512, 1), (8, 48, 2), (16, 32, 64)),
        *((3, 2, 2), (64, 1, 1), (7, 1, 64), (80, 1, 128), (5, 3, 3), (10, 1, 512)),
    ],
)
def test_shapes_in_our_layout(shape):
    assert not looks_like_pytorch(shape)


def test_a_kernel_of_flax_is_in_its_layout():
    """`from_conv` knows it, however its shape looks."""
    conv = nnx.Conv(3, 3, (8, 3), rngs=nnx.Rngs(0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AttentionConv.from_conv(conv)


def test_within_the_library_layouts_are_known():
    """The two layers of a 3 × 3 kernel hold kernels [1, 3, 3, 3]."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ca.conv_to_two_layers(jnp.ones((3, 3, 1, 3)))
