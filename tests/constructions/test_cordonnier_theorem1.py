import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from constructions.bare_grids import token_padded_conv
from constructions.conversion_cases import applied, converted, reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import CONVERSION_BUCKETS, make_case, seeds

from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.cordonnier_theorem1 import quadratic_construction
from convattn.constructions.geometry import ConvolutionGeometry

PIXELS = [b for b in CONVERSION_BUCKETS if set(b.patch_size) == {1}]
PATCHES = [b for b in CONVERSION_BUCKETS if set(b.patch_size) != {1} and set(b.stride) == {1}]


def plain(bucket):
    """The bucket's image and kernel without stride, dilation and groups."""
    case = make_case(bucket, 0)
    generator = np.random.default_rng(9)
    kernel = generator.integers(-8, 9, (*bucket.kernel_size, bucket.in_channels, 3))
    return case.images, kernel


@given(st.sampled_from(PIXELS), seeds(), st.sampled_from(["float32", "float64", "bfloat16"]))
def test_the_bare_grid_gives_the_edge_replicated_convolution(bucket, seed, dtype):
    """The nearest key to q + Δ is its projection onto the rectangle: C20's "SAME" by default."""
    case = make_case(bucket, seed, dtype)
    images, kernel, bias = case.cast()
    layer = converted(kernel, bias, encoding="quadratic")
    expected = reference(images, kernel, bias, padding="EDGE")
    assert_equal(applied(layer, images, ring=False), expected)


@pytest.mark.parametrize("bucket", [*PATCHES, *PIXELS])
def test_with_patches_the_nearest_patch_is_replicated(bucket):
    images, kernel = plain(bucket)
    layer = conv_to_attention(kernel, encoding="quadratic", patch_size=bucket.patch_size)
    expected = token_padded_conv(images, kernel, bucket.patch_size, layer.ring, "edge")
    assert_equal(applied(layer, images, ring=False), expected)


def test_with_patches_that_is_not_the_edge_replicated_convolution():
    images, kernel = plain(PATCHES[0])
    layer = conv_to_attention(kernel, encoding="quadratic", patch_size=PATCHES[0].patch_size)
    wrong = reference(images, kernel, padding="EDGE")
    with pytest.raises(AssertionError, match="out"):
        assert_equal(applied(layer, images, ring=False), wrong)


@pytest.mark.parametrize("bucket", PIXELS)
def test_the_bare_grid_is_not_zero_padded(bucket):
    images, kernel = plain(bucket)
    layer = conv_to_attention(kernel, encoding="quadratic")
    with pytest.raises(AssertionError, match="out"):
        assert_equal(applied(layer, images, ring=False), reference(images, kernel))


@pytest.mark.parametrize("alpha", [1.0, 2.0, 4.0, 8.0, 16.0])
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
    layer = conv_to_attention(kernel, encoding="quadratic", alpha=alpha)
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
