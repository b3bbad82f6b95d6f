import math
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from constructions.conversion_cases import (
    applied,
    converted,
    geometry_of,
    linear_map_of,
    recovered,
)
from constructions.exact_form_bounds import exact_form_bound
from constructions.lagrange import amplification
from constructions.slow_definitions import slow_conv
from constructions.test_li_output_map import dense_kernel
from roundings import gamma, roundoff
from strategies import Bucket, make_case

from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.recovery import attention_to_conv
from convattn.encodings import GaussianEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.fast.application import apply_attention

# Images so large that every tap joins some pair of pixels.
BUCKETS = (
    Bucket(1, (7,), (3,), 2, 3, (1,), (1,), patch_size=(1,)),
    Bucket(1, (12,), (5,), 2, 1, (2,), (1,), patch_size=(4,)),
    Bucket(1, (12,), (4,), 2, 4, (2,), (2,), groups=2, patch_size=(3,)),
    Bucket(1, (5, 4), (3, 1), 2, 3, (1, 1), (1, 1), patch_size=(1, 1)),
    Bucket(1, (6, 8), (3, 5), 1, 2, (1, 1), (1, 1), patch_size=(3, 2)),
    Bucket(1, (4, 6), (2, 3), 2, 4, (2, 1), (1, 2), groups=2, patch_size=(2, 1)),
    Bucket(1, (4, 6), (3, 2), 2, 3, (3, 2), (1, 1), patch_size=(2, 2)),
)
ONE_HOT = ("bias", "quadratic", "enumerated", "polygon", "rotary")
SMALL = 2.0**-40  # every entry goes through fewer than 2¹² roundings of 2⁻⁵³


def convert(case, **options):
    """With zeros as far as the kernel reaches: `linear_map` reads other rings so, too."""
    bucket = case.bucket
    sizes = zip(bucket.kernel_size, bucket.dilation, strict=True)
    centred = tuple((d * ((k - 1) // 2), d * (k // 2)) for k, d in sizes)
    arguments = {"patch_size": bucket.patch_size, "padding": centred, **bucket.options, **options}
    return converted(case.kernel.astype(float), case.bias.astype(float), **arguments)


def recover(layer, bucket):
    return recovered(layer, kernel_size=bucket.kernel_size, image_size=bucket.space)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("encoding", "head_dim"), [*((e, None) for e in ONE_HOT), ("quadratic", 2)]
)
@pytest.mark.parametrize("bucket", BUCKETS)
def test_limit_forms_give_back_the_kernel_exactly(bucket, encoding, head_dim):
    case = make_case(bucket, 6, "float64")
    layer = convert(case, encoding=encoding, form="limit", head_dim=head_dim)
    kernel, bias, residual = recover(layer, bucket)
    assert_equal(kernel, dense_kernel(case))
    assert_equal(bias, case.bias)
    assert_equal(residual.relative_frobenius, 0)
    assert_equal(residual.sup_norm, 0)
    assert_equal(residual.bias_gap, 0)
    assert residual.linearised is False


@pytest.mark.parametrize("encoding", ["bias", "scalar"])
@pytest.mark.parametrize("bucket", BUCKETS[:2])
@pytest.mark.quick(2)
def test_exact_forms_give_it_back_up_to_rounding(bucket, encoding):
    """L is the layer applied to unit images, so the bound for pixels of one holds for its entries.

    The mean over at most all pixels adds γ_n; a row of |L - C| has at most all pixels of one
    channel each.
    """
    case = make_case(bucket, 6, "float64")
    layer = convert(case, encoding=encoding)
    geometry = geometry_of(bucket)
    unit = replace(case, images=np.ones_like(case.images))
    kappa = float(amplification(range(2, geometry.heads + 2), True))
    entry = exact_form_bound(
        unit, geometry, layer.heads, encoding=encoding, amplification=kappa, bias=False
    )
    pixels = math.prod(bucket.space)
    entry = entry + gamma(pixels + 1, roundoff("float64")) * np.abs(case.kernel).sum()
    kernel, bias, residual = recover(layer, bucket)
    dense = dense_kernel(case)
    assert_within(kernel, dense, np.broadcast_to(entry, dense.shape))
    assert_within(bias, case.bias, 2 * roundoff("float64") * np.abs(case.bias).max() * pixels)
    assert 0 < float(residual.sup_norm) <= 2 * entry.max() * pixels * bucket.in_channels
    assert 0 < float(residual.relative_frobenius) < 1e-6


def test_even_kernels_with_dilation_are_given_back():
    kernel = jnp.arange(16.0).reshape(4, 2, 2) - 7
    layer = converted(kernel, dilation=2, form="limit")
    assert layer.padding is not None
    recovery = recovered(layer, kernel_size=4, image_size=9)
    assert_equal(recovery.kernel, kernel)
    assert_equal(recovery.residual.relative_frobenius, 0)


def basis(space, channels):
    """One image for each pixel and channel, a one there and zeros elsewhere."""
    count = math.prod(space) * channels
    return np.eye(count).reshape(count, *space, channels)


def dense_map(layer, space, channels):
    """L by applying the layer to every unit image: `[*inputs, in, *outputs, out]`."""
    unbiased = replace(layer, bias=None)
    images = np.asarray(applied(unbiased, jnp.asarray(basis(space, channels))))
    return images.reshape(*space, channels, *images.shape[1:])


def dense_convolution(kernel, bucket):
    images = slow_conv(
        basis(bucket.space, bucket.in_channels),
        kernel,
        stride=bucket.stride,
        dilation=bucket.dilation,
    )
    return images.reshape(*bucket.space, bucket.in_channels, *images.shape[1:])


@cache
def perturbed(bucket):
    """A converted layer whose arrays have all been moved: no convolution any more."""
    layer = convert(make_case(bucket, 0, "float64"), encoding="quadratic", sharpness=1.0)
    generator = np.random.default_rng(0)
    return jax.tree.map(lambda leaf: leaf + generator.normal(scale=0.3, size=leaf.shape), layer)


@cache
def perturbed_map(bucket):
    return dense_map(perturbed(bucket), bucket.space, bucket.in_channels)


@pytest.mark.quick(1)
@pytest.mark.parametrize("bucket", [BUCKETS[0], BUCKETS[2], BUCKETS[6]])
def test_the_map_and_the_residual_of_a_perturbed_layer_are_those_of_the_dense_maps(bucket):
    """Several channels and groups; `test_linear_map` has one channel on rings of every kind."""
    layer, dense = perturbed(bucket), perturbed_map(bucket)
    axes = len(bucket.space)
    moved = np.moveaxis(dense, axes, -2)  # [*inputs, *outputs, in, out]
    assert_within(linear_map_of(layer, image_size=bucket.space), moved, SMALL * np.abs(moved).sum())
    assert np.abs(moved).min() < np.abs(moved).max() / 2  # not all alike
    kernel, _, residual = recover(layer, bucket)
    gap = dense - dense_convolution(np.asarray(kernel), bucket)
    relative = np.linalg.norm(gap) / np.linalg.norm(dense)
    assert relative > 0.05
    assert_within(residual.relative_frobenius, relative, SMALL * gap.size)
    rows = np.abs(gap).sum(axis=tuple(range(axes + 1))).max()
    assert_within(residual.sup_norm, rows, SMALL * rows * 2**8)


@pytest.mark.parametrize("bucket", BUCKETS[::2])
@pytest.mark.quick(2)
def test_the_kernel_is_the_least_squares_one(bucket):
    """|L - C_(W+E)|² = |L - C_W|² + |C_E|²: no perturbation comes nearer, and by how much."""
    layer = perturbed(bucket)
    kernel, _, _ = recover(layer, bucket)
    dense = perturbed_map(bucket)
    best = np.linalg.norm(dense - dense_convolution(np.asarray(kernel), bucket)) ** 2
    generator = np.random.default_rng(1)
    for scale in (1e-3, 1.0):
        change = generator.normal(scale=scale, size=kernel.shape)
        distance = (
            np.linalg.norm(dense - dense_convolution(np.asarray(kernel) + change, bucket)) ** 2
        )
        added = np.linalg.norm(dense_convolution(change, bucket)) ** 2
        assert distance > best
        size = np.linalg.norm(dense) ** 2 + added
        assert_within(distance, best + added, SMALL * size)


def content_layer(key_bias=True):
    generator = np.random.default_rng(4)

    def normal(*shape):
        return jnp.asarray(generator.normal(size=shape))

    return AttentionLayer(
        encoding=GaussianEncoding(normal(3, 2), normal(3, 2, 2)),
        value=normal(3, 4, 5),
        output=normal(3, 5, 8),
        bias=normal(8),
        content=ContentScores(
            normal(3, 4, 2), normal(3, 4, 2), normal(3, 2), normal(3, 2) if key_bias else None
        ),
        patch_size=(2, 1),
        stride=(1, 1),
        dilation=(1, 1),
        ring=((1, 0), (1, 2)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("key_bias", [True, False])
def test_a_layer_with_content_is_linearised_at_zero(key_bias):
    layer = content_layer(key_bias)
    space = (4, 3)
    zero = jnp.zeros((1, *space, 2))
    derivative = jax.jit(jax.linearize(lambda images: apply_attention(layer, images), zero)[1])
    columns = [np.asarray(derivative(jnp.asarray(unit[None])))[0] for unit in basis(space, 2)]
    expected = np.moveaxis(np.stack(columns).reshape(*space, 2, *columns[0].shape), 2, -2)
    linear = linear_map_of(layer, image_size=space)
    assert_within(linear, expected, SMALL * np.abs(expected).sum())
    residual = recovered(layer, kernel_size=3, image_size=space).residual
    assert residual.linearised is True
    assert float(residual.relative_frobenius) > 0

    def nonlinear(scale):
        images = jnp.asarray(np.random.default_rng(0).normal(size=zero.shape))
        once = apply_attention(layer, scale * images) - apply_attention(layer, zero)
        return float(jnp.abs(once - scale * derivative(images)).max())

    assert nonlinear(1.0) > 1e-2  # the derivative is not the layer


@pytest.mark.slow
def test_kernels_that_are_too_small_leave_a_residual_and_larger_ones_end_in_zeros():
    case = make_case(BUCKETS[0], 1, "float64")
    layer = convert(case, form="limit")
    small, _, residual = recovered(layer, kernel_size=1, image_size=(7,))
    assert_equal(small, case.kernel[1:2])
    assert float(residual.relative_frobenius) > 0.1
    large, _, residual = recovered(layer, kernel_size=5, image_size=(7,))
    assert_equal(large, np.pad(case.kernel, [(1, 1), (0, 0), (0, 0)]))
    assert_equal(residual.relative_frobenius, 0)


LAYER = converted(np.ones((3, 5, 2, 1), np.float32), patch_size=(2, 3), form="limit")


@pytest.mark.parametrize(
    ("kernel_size", "image_size", "message"),
    [
        (3, (5, 6), r"image_size=\(5, 6\), but patches of size \(2, 3\) should divide it"),
        (3, (4, 8), r"image_size=\(4, 8\), but patches"),
        (3, (4,), r"image_size=\(4,\), but expected an integer ≥ 1, or 2 of them"),
        (3, (4, 6, 2), r"image_size=\(4, 6, 2\), but expected"),
        (3, (0, 6), r"image_size=0, but expected"),
        (3, (300, 300), r"image_size=\(300, 300\) makes .* numbers, but expected at most"),
        ((3,), (4, 6), r"kernel_size=\(3,\), but expected"),
        (0, (4, 6), "kernel_size=0, but expected"),
        ((5, 1), (2, 6), r"no pair of pixels that tap \(0, 0\) of a kernel of size \(5, 1\) joins"),
        ((1, 7), (4, 3), r"no pair of pixels that tap \(0, 0\).*take a larger image or a smaller"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(kernel_size, image_size, message):
    with pytest.raises(ValueError, match=message):
        recovered(LAYER, kernel_size=kernel_size, image_size=image_size)


def test_a_bias_is_recovered_as_the_mean_over_a_patch_and_its_gap():
    layer = converted(np.ones((3, 1, 2), np.float32), patch_size=2, form="limit")
    assert recovered(layer, kernel_size=3, image_size=(6,)).bias is None
    layer = replace(layer, bias=jnp.array([1.0, -2.0, 4.0, -3.0]))
    recovery = recovered(layer, kernel_size=3, image_size=(6,))
    assert recovery.bias.tolist() == [2.5, -2.5]
    assert recovery.residual.bias_gap == 1.5


def test_a_layer_of_zeros_is_at_no_distance_and_divides_by_none():
    layer = converted(np.zeros((3, 1, 1), np.float32), form="limit")
    with jax.debug_nans(True):
        recovery = recovered(layer, kernel_size=3, image_size=(5,))
    assert not jnp.any(recovery.kernel)
    assert recovery.residual.relative_frobenius == 0


@pytest.mark.slow
def test_recovery_can_be_compiled_and_differentiated():
    """The recovered kernel is the one that went in: its derivative is the identity."""
    kernel = jnp.asarray(np.random.default_rng(0).integers(-5, 6, (3, 1, 2)).astype(float))

    @jax.jit
    def around(weights):
        layer = conv_to_attention(weights, patch_size=2, form="limit")
        return attention_to_conv(layer, 3, image_size=(8,)).kernel

    assert_equal(around(kernel), kernel)
    jacobian = jax.jit(jax.jacfwd(around))(kernel).reshape(6, 6)
    assert_within(jacobian, np.eye(6), gamma(16, roundoff("float64")))

    def residual(weights):
        layer = conv_to_attention(weights, patch_size=2, form="limit", sharpness=1.0)
        return attention_to_conv(layer, 3, image_size=(8,)).residual.relative_frobenius

    gradient = jax.jit(jax.grad(residual))(kernel)
    assert np.isfinite(gradient).all()
    assert np.abs(gradient).max() > 0
