"""C20 Theorem 1: one-hot heads (Lemma 2), the kernel's own maps (Lemma 1), and the limit."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within
from constructions.bare_grids import token_padded_conv
from constructions.conversion_cases import applied, converted, reference
from hypothesis import given
from hypothesis import strategies as st
from roundings import gamma, roundoff, softmax_factor
from strategies import CONVERSION_BUCKETS, make_case, seeds
from token_grids import GRIDS, places

from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.cordonnier_theorem1 import quadratic_construction
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.operators.attention import attention_weights

PIXELS = [b for b in CONVERSION_BUCKETS if set(b.patch_size) == {1}]
PATCHES = [b for b in CONVERSION_BUCKETS if set(b.patch_size) != {1} and set(b.stride) == {1}]


def quadratic_heads(geometry, alpha, dtype):
    return quadratic_construction(jnp.ones((geometry.heads, 1, 1), dtype), geometry, alpha)[0]


def nearest(query, offset, keys):
    return min(
        keys, key=lambda k: sum((a - q - d) ** 2 for a, q, d in zip(k, query, offset, strict=True))
    )


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
@pytest.mark.parametrize("grid", GRIDS[::2])
def test_attention_is_one_hot_at_the_target_or_else_at_the_nearest_key(grid, dtype):
    geometry = ConvolutionGeometry.of((3, 4)[: len(grid.queries)], dilation=2)
    encoding = quadratic_heads(geometry, None, dtype)
    assert encoding.heads == geometry.heads
    for array in jax.tree.leaves(encoding):
        assert_dtype(array, "float64" if dtype == "float64" else "float32")
    weights = np.asarray(attention_weights(encoding.positional_scores(grid)))
    queries, keys = places(grid)
    targets = beyond = 0
    for head, offset in enumerate(geometry.offsets):
        for row, query in enumerate(queries):
            target = tuple(q + d for q, d in zip(query, offset, strict=True))
            if target in keys:
                hit, targets = target, targets + 1
            else:
                hit, beyond = nearest(query, offset, keys), beyond + 1
            assert_equal(weights[head, row], [float(key == hit) for key in keys])
    assert targets
    assert beyond


@pytest.mark.parametrize("alpha", [0.5, 8.0, 46.0])
def test_at_finite_alpha_every_weight_is_positive_and_the_target_has_its_share(alpha):
    """1/(1 + Σ e^(-α|δ-Δ|²)), summed in float64 by `math.fsum`.

    Scores are exact, so only softmax rounds, and the reference by γ_N and the error of exp.
    """
    grid = GRIDS[3]
    geometry = ConvolutionGeometry.of((3, 3))
    encoding = quadratic_heads(geometry, alpha, "float64")
    weights = np.asarray(jax.nn.softmax(encoding.positional_scores(grid), axis=-1))
    assert (weights > 0).all() or alpha > 8  # 46·(2² + 5²) is beyond what float64 can hold
    queries, keys = places(grid)
    u = roundoff("float64")
    factor = softmax_factor(0.0, len(keys), u) * (1 + gamma(len(keys) + 16, u))
    for head, offset in enumerate(geometry.offsets):
        for row, query in enumerate(queries):
            target = tuple(q + d for q, d in zip(query, offset, strict=True))
            if target not in keys:
                continue
            rest = [
                math.exp(-alpha * sum((k - t) ** 2 for k, t in zip(key, target, strict=True)))
                for key in keys
                if key != target
            ]
            assert max(rest) <= math.exp(-alpha)  # the nearest rival is one step away
            expected = 1 / (1 + math.fsum(rest))
            assert_within(weights[head, row, keys.index(target)], expected, factor - 1)


def test_heads_look_at_key_minus_query():
    """With the opposite sign the first head would look after the query instead of before it."""
    grid = GRIDS[0]  # five queries, one key before and two after
    encoding = quadratic_heads(ConvolutionGeometry.of((3,)), None, "float32")
    first = np.asarray(attention_weights(encoding.positional_scores(grid)))[0]
    assert_equal(first.argmax(axis=-1), np.arange(5))


def plain(bucket):
    """The bucket's image and kernel without stride, dilation and groups."""
    case = make_case(bucket, 0)
    generator = np.random.default_rng(9)
    kernel = generator.integers(-8, 9, (*bucket.kernel_size, bucket.in_channels, 3))
    return case.images, kernel


@pytest.mark.slow
@given(st.sampled_from(PIXELS), seeds(), st.sampled_from(["float64", "bfloat16"]))
def test_the_bare_grid_gives_the_edge_replicated_convolution(bucket, seed, dtype):
    """The nearest key to q + Δ is its projection onto the rectangle: C20's "SAME" by default."""
    case = make_case(bucket, seed, dtype)
    images, kernel, bias = case.cast()
    layer = converted(kernel, bias, encoding="quadratic")
    expected = reference(images, kernel, bias, padding="EDGE")
    assert_equal(applied(layer, images, border="none"), expected)


@pytest.mark.parametrize("bucket", PATCHES)
def test_with_patches_the_nearest_patch_is_replicated(bucket):
    images, kernel = plain(bucket)
    layer = conv_to_attention(kernel, encoding="quadratic", patch_size=bucket.patch_size)
    expected = token_padded_conv(images, kernel, bucket.patch_size, layer.ring, "edge")
    assert_equal(applied(layer, images, border="none"), expected)


def test_with_patches_that_is_not_the_edge_replicated_convolution():
    images, kernel = plain(PATCHES[0])
    layer = conv_to_attention(kernel, encoding="quadratic", patch_size=PATCHES[0].patch_size)
    wrong = reference(images, kernel, padding="EDGE")
    with pytest.raises(AssertionError, match="out"):
        assert_equal(applied(layer, images, border="none"), wrong)


@pytest.mark.parametrize("alpha", [1.0, 8.0])
def test_at_finite_alpha_the_layer_is_as_near_as_lemma_2_says(alpha):
    """|layer - conv| ≤ 2·TV·max|X|·Σ|W|, TV ≤ 1 - θ^(-2), θ = Σ_n e^(-αn²).

    A row that differs from the one-hot one by TV in total variation moves Σ_k a_k X_k by at most
    2·TV·max|X| in each channel; every head adds that through its map. θ is summed to n = 40, where
    the terms vanish in float64, and rounding (2⁻⁴⁰ of the majorant, thousands of roundings) is
    added. At α = 1 the two differ visibly.
    """
    generator = np.random.default_rng(3)
    images = generator.integers(0, 9, (2, 5, 4, 2)).astype(float)
    kernel = generator.integers(-5, 6, (3, 3, 2, 3)).astype(float)
    layer = conv_to_attention(kernel, encoding="quadratic", sharpness=alpha)
    theta = 1 + 2 * sum(np.exp(-alpha * n * n) for n in range(1, 40))
    majorant = 8 * np.abs(kernel).sum(axis=(0, 1, 2))
    bound = (2 * (1 - theta**-2) + 2.0**-40) * majorant
    expected = np.asarray(reference(images, kernel))
    output = np.asarray(applied(layer, images))
    assert_within(output, expected, np.broadcast_to(bound, expected.shape))
    assert alpha > 4 or np.abs(output - expected).max() > 1e-2 * bound.max()


def test_one_head_for_each_tap_with_the_kernels_own_matrices():
    geometry = ConvolutionGeometry.of((3, 5))
    maps = jnp.arange(15.0 * 2 * 3).reshape(15, 2, 3)
    encoding, blocks = quadratic_construction(maps, geometry, 4.0)
    assert encoding.heads == 15
    assert_equal(encoding.head_centers, np.array(geometry.offsets))
    assert_equal(encoding.head_alpha, np.full((15, 2), 4.0))
    assert_equal(blocks, maps)
