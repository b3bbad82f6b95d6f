"""L21 Theorem 1: one-hot heads by a bias (Lemma 2), the maps of W^O, and both in the limit."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from constructions.bare_grids import token_padded_conv
from constructions.conversion_cases import applied, reference
from roundings import gamma, roundoff
from strategies import CONVERSION_BUCKETS, make_case
from token_grids import GRIDS, interior, places

from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_theorem1 import bias_construction
from convattn.operators.attention import attention_weights

UNSTRIDED = [b for b in CONVERSION_BUCKETS if set(b.stride) == set(b.dilation) == {1}]


def one_hot_bias_heads(geometry, logit, dtype):
    return bias_construction(jnp.ones((geometry.heads, 1, 1), dtype), geometry, logit)[0]


def geometry_of(grid):
    return ConvolutionGeometry.of((3, 4)[: len(grid.queries)])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
@pytest.mark.parametrize("grid", GRIDS[::2])
def test_the_default_is_one_hot_where_the_key_exists_and_uniform_elsewhere(grid, dtype):
    geometry = geometry_of(grid)
    encoding = one_hot_bias_heads(geometry, None, dtype)
    weights = np.asarray(attention_weights(encoding.positional_scores(grid)))
    queries, keys = places(grid)
    counts = [0, 0]
    for head, offset in enumerate(geometry.offsets):
        for row in range(len(queries)):
            target = tuple(q + d for q, d in zip(queries[row], offset, strict=True))
            exists = row in interior(grid, (offset,))
            expected = [float(key == target) for key in keys]
            if not exists:  # 1/N is one division, rounded the same in NumPy
                one = np.ones((), weights.dtype)
                expected = [float(one / np.asarray(len(keys), weights.dtype))] * len(keys)
            assert_equal(weights[head, row], expected)
            counts[exists] += 1
    assert counts[1]
    assert counts[0] or not any(len(axis) == 1 for axis in grid.ring)


def test_in_float64_forty_is_not_machine_precision():
    """L21's M = 40 leaves the largest weight below one from N = 28 keys on, and not before.

    `math.fsum` rounds the sum once. Softmax may lose what it adds one by one: how it sums decides.
    """
    for keys, is_uniform in [(27, True), (28, False)]:
        total = math.fsum([1.0] + [math.exp(-40)] * (keys - 1))
        assert (1 / total == 1) is is_uniform


@pytest.mark.slow
@pytest.mark.parametrize("bucket", UNSTRIDED[:2])
def test_the_bare_grid_puts_the_mean_of_all_tokens_around_the_image(bucket):
    """Weights are 0, 1 and 1/N, off by u. Products: N + H·F terms; the reference has N + H·F too.

    G = max|X|·Σ|W|: every row sums to one.
    """
    case = make_case(bucket, 1, "float64")
    images = case.images.astype(float)
    generator = np.random.default_rng(2)
    kernel = generator.integers(-8, 9, (*bucket.kernel_size, bucket.in_channels, 2)).astype(float)
    layer = conv_to_attention(kernel, form="limit", patch_size=bucket.patch_size)
    expected = token_padded_conv(images, kernel, bucket.patch_size, layer.ring, "mean")
    u = roundoff("float64")
    tokens = int(np.prod(bucket.space) / np.prod(bucket.patch_size))
    terms = tokens + layer.heads * layer.output.shape[1]
    majorant = images.max() * np.abs(kernel).sum(axis=tuple(range(kernel.ndim - 1)))
    bound = (2 * gamma(terms, u) + 2 * u) * majorant
    output = applied(layer, images, border="none")
    assert_within(output, expected, np.broadcast_to(bound, expected.shape))
    if set(bucket.patch_size) == {1}:
        mean_padded = reference(images, kernel, padding="MEAN")
        assert_within(output, mean_padded, np.broadcast_to(bound, expected.shape))
    zeros = np.asarray(reference(images, kernel))
    with pytest.raises(AssertionError, match="too far"):
        assert_within(output, zeros, np.broadcast_to(bound, expected.shape))


@pytest.mark.parametrize("logit", [2.0, 12.0])
def test_at_finite_m_the_layer_is_as_near_as_lemma_2_says(logit):
    """|layer - conv| ≤ 2·TV·max|X|·Σ|W| with TV = (N - 1)/(e^M + N - 1), and not equal to it.

    Rounding adds less than 2⁻⁴⁰ of the majorant: a summand goes through fewer than 2¹² roundings.
    """
    generator = np.random.default_rng(3)
    images = generator.integers(0, 9, (2, 6, 4, 1)).astype(float)
    kernel = generator.integers(-5, 6, (3, 3, 1, 2)).astype(float)
    layer = conv_to_attention(kernel, form="limit", sharpness=logit, patch_size=2)
    keys = 5 * 4
    variation = (keys - 1) / (np.exp(logit) + keys - 1)
    majorant = 8 * np.abs(kernel).sum(axis=(0, 1, 2))
    bound = (2 * variation + 2.0**-40) * majorant
    expected = np.asarray(reference(images, kernel))
    output = np.asarray(applied(layer, images))
    assert_within(output, expected, np.broadcast_to(bound, expected.shape))
    assert np.abs(output - expected).max() > 2.0**-40 * majorant.max()


@pytest.mark.parametrize(
    ("size", "patch", "heads"),
    [(3, 1, 9), (5, 1, 25), (3, 16, 9), (5, 2, 9), (7, 2, 25), (11, 4, 25), (33, 16, 9), (1, 4, 1)],
)
def test_heads_are_as_many_as_theorem_1_says(size, patch, heads):
    geometry = ConvolutionGeometry.of((size, size), patch)
    maps = jnp.zeros((geometry.heads, 1, 1))
    encoding, blocks = bias_construction(maps, geometry)
    assert encoding.heads == heads == len(blocks)
    assert encoding.uniform_weight is None
