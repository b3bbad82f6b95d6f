"""Up to which size a layer of finite scores is a convolution, against its weights on that size."""

import jax.numpy as jnp
import numpy as np
import pytest

from convattn.constructions.conversion import conv_to_attention
from convattn.networks.recovered_kernel import size_within

KERNEL = jnp.array([[[2.0, 1.0]], [[-1.0, 3.0]], [[0.5, -2.0]]])
EDGE = jnp.array([[[1.0]], [[-2.0]], [[1.0]]])  # its uniform parts cancel


def apart(kernel, size):
    """The larger of N·u|Σ_h W_h|/|K| and of what the target's weight lost since 10 pixels."""
    kernel, few, keys = np.asarray(kernel), 12, size + 2
    other, before = (1 / (np.exp(17.0) + number - 1) for number in (keys, few))
    uniform = keys * other * np.linalg.norm(kernel.sum(axis=0)) / np.linalg.norm(kernel)
    return max(uniform, (before - other) * np.exp(17.0))


@pytest.mark.parametrize("kernel", [KERNEL, EDGE, jnp.ones((3, 1, 1))])
@pytest.mark.parametrize("tolerance", [1e-5, 1e-3])
def test_layer_and_convolution_are_within_the_tolerance_up_to_that_size(kernel, tolerance):
    layer = conv_to_attention(kernel, form="limit", sharpness=17.0)
    (size,) = size_within(layer, kernel, (10,), tolerance)
    assert apart(kernel, size) <= tolerance < apart(kernel, 1.3 * size)


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
        (KERNEL, {"form": "limit"}),  # one-hot in the dtype
        (KERNEL, {"form": "limit", "encoding": "quadratic", "sharpness": 17.0}),  # far scores fall
        (EDGE, {"form": "limit", "sharpness": 800.0}),
    ],
)
def test_what_holds_on_every_size(kernel, options):
    assert size_within(conv_to_attention(kernel, **options), kernel, (10,), 1e-6) is None
