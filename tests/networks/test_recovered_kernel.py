"""Up to which size a layer of finite scores is a convolution, against its weights on that size."""

import jax.numpy as jnp
import numpy as np
import pytest

from convattn.constructions.conversion import conv_to_attention
from convattn.networks.recovered_kernel import size_within

KERNEL = jnp.array([[[2.0, 1.0]], [[-1.0, 3.0]], [[0.5, -2.0]]])
EDGE = jnp.array([[[1.0]], [[-1.0]]])  # its uniform parts cancel


def uniform(sharpness, size):
    """N·Σ_h u_h |Σ_h W_h|/|K|: three heads, N keys, the target e^M times as heavy as the others."""
    keys = size + 2
    kernel = np.asarray(KERNEL)
    weight = 1 / (np.exp(sharpness) + keys - 1)
    return keys * weight * np.linalg.norm(kernel.sum(axis=0)) / np.linalg.norm(kernel)


@pytest.mark.parametrize("tolerance", [1e-5, 1e-3])
def test_the_uniform_part_is_within_the_tolerance_up_to_that_size(tolerance):
    layer = conv_to_attention(KERNEL, form="limit", sharpness=17.0)
    (size,) = size_within(layer, KERNEL, (10,), tolerance)
    assert uniform(17, size) <= tolerance < uniform(17, 1.3 * size)


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
        (EDGE, {"form": "limit", "sharpness": 17.0}),
    ],
)
def test_what_holds_on_every_size(kernel, options):
    assert size_within(conv_to_attention(kernel, **options), kernel, (10,), 1e-6) is None
