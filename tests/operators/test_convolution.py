"""`conv` against its definition, against XLA's convolution, and against its own algebra.

Integers are so small that every sum is exact (see `strategies`), so all comparisons are ==.
"""

from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from convolution_in_numpy import by_taps, filled
from hypothesis import given, settings
from jax import lax
from matrix_products import HIGHEST, precisions
from strategies import (
    CONVOLUTION_BUCKETS,
    DTYPES,
    FLOATS,
    Bucket,
    Case,
    fits,
    free_convolutions,
    make_case,
    seeds,
)

from convattn.operators.convolution import conv

STATIC = ("stride", "dilation", "groups", "padding")
jitted = jax.jit(conv, static_argnames=STATIC)


def reach(bucket: Bucket) -> list[tuple[int, int]]:
    """The pixels before and after that a size-preserving convolution reads, on each axis."""
    pairs = zip(bucket.kernel_size, bucket.dilation, strict=True)
    return [(d * (k - 1) // 2, d * (k - 1) - d * (k - 1) // 2) for k, d in pairs]


def by_definition(case: Case, *, flip: bool = False, convention: int = 1) -> np.ndarray:
    """C20 eq. 5 with zeros outside, one output pixel, one tap, one channel at a time."""
    bucket = case.bucket
    kernel = np.flip(case.kernel, tuple(range(bucket.axes))) if flip else case.kernel
    per_group_in, per_group_out = kernel.shape[-2], bucket.out_channels // bucket.groups
    rows = [range(0, n, s) for n, s in zip(bucket.space, bucket.stride, strict=True)]
    out = np.zeros((bucket.batch, *(len(r) for r in rows), bucket.out_channels), np.int64)
    for index in product(*(range(len(r)) for r in rows)):
        query = [r[i] for r, i in zip(rows, index, strict=True)]
        for tap in product(*(range(k) for k in bucket.kernel_size)):
            key = tuple(
                q + convention * (d * t - d * (k - 1) // 2)
                for q, d, t, k in zip(query, bucket.dilation, tap, bucket.kernel_size, strict=True)
            )
            if all(0 <= n < side for n, side in zip(key, bucket.space, strict=True)):
                for o in range(bucket.out_channels):
                    first = (o // per_group_out) * per_group_in
                    for i in range(per_group_in):
                        pixel = case.images[(slice(None), *key, first + i)]
                        out[(slice(None), *index, o)] += pixel * kernel[(*tap, i, o)]
    return out + case.bias


def by_xla(images: Any, kernel: Any, bias: Any, bucket: Bucket, padding: Any) -> Any:
    """The same by `lax.conv_general_dilated`, with explicit padding."""
    letters = "HW"[: bucket.axes]
    out = lax.conv_general_dilated(
        images,
        kernel,
        bucket.stride,
        padding,
        rhs_dilation=bucket.dilation,
        feature_group_count=bucket.groups,
        dimension_numbers=(f"N{letters}C", f"{letters}IO", f"N{letters}C"),
        precision=lax.Precision.HIGHEST,
    )
    with jax.numpy_rank_promotion("allow"):
        return out + bias


@pytest.mark.slow
@settings(max_examples=60)
@given(free_convolutions())
def test_the_references_agree_on_any_shape(case):
    """The definition, and XLA in float64, are two routes that share nothing with `conv`."""
    with jax.disable_jit():
        out = by_xla(*case.cast(), bucket=case.bucket, padding=tuple(reach(case.bucket)))
    assert_equal(out, by_definition(case))
    assert_equal(in_numpy(case, reach(case.bucket)), by_definition(case))


def in_numpy(case: Case, widths: Any, fill: str = "ZEROS") -> np.ndarray:
    """The same with this padding, one tap at a time."""
    bucket = case.bucket
    padded = filled(case.images, widths, fill)
    options = bucket.stride, bucket.dilation, bucket.groups
    return by_taps(padded, case.kernel, *options) + case.bias


def ours(case: Case, padding: Any = "SAME") -> Any:
    return jitted(*case.cast(), **case.bucket.options, padding=padding)


# Every bucket and every dtype: each is one program that is compiled.
IN_DTYPES = [*zip(CONVOLUTION_BUCKETS, (*DTYPES, *FLOATS), strict=False)]
SMALLER = [CONVOLUTION_BUCKETS[index] for index in (2, 5, 6)]  # than the image the kernel is


@pytest.mark.parametrize(("bucket", "dtype"), IN_DTYPES)
@given(seed=seeds())
@pytest.mark.quick(3)
def test_torchs_same_is_the_definition(bucket, dtype, seed):
    case = make_case(bucket, seed, dtype)
    assert_equal(ours(case, "SAME_TORCH"), by_definition(case))


@pytest.mark.parametrize(("bucket", "dtype"), IN_DTYPES)
def test_a_planted_mistake_is_noticed(bucket, dtype):
    """A flipped kernel, the opposite shift, and rotated channels each change the result."""
    case = make_case(bucket, 1, dtype)
    out = ours(case, "SAME_TORCH")
    rotated = replace(case, kernel=np.roll(case.kernel, 1, axis=-1))
    shifted = by_definition(case, convention=-1)
    for wrong in (by_definition(case, flip=True), shifted, by_definition(rotated)):
        with pytest.raises(AssertionError, match="entries differ"):
            assert_equal(out, wrong)


@pytest.mark.parametrize("bucket", CONVOLUTION_BUCKETS)
@given(seed=seeds())
@pytest.mark.quick(3)
def test_same_is_xlas(bucket, seed):
    case = make_case(bucket, seed, "float32")
    reaches = [d * (k - 1) + 1 for k, d in zip(bucket.kernel_size, bucket.dilation, strict=True)]
    widths = lax.padtype_to_pads(bucket.space, reaches, bucket.stride, "SAME")
    assert_equal(ours(case), in_numpy(case, widths))


@pytest.mark.parametrize("padding", [0, "VALID", 1, 4])
@pytest.mark.parametrize("bucket", SMALLER)
@given(seed=seeds())
@pytest.mark.quick(4)
def test_an_integer_is_so_many_zeros_on_every_side(padding, bucket, seed):
    case = make_case(bucket, seed, "float32")
    zeros = 0 if padding == "VALID" else padding
    assert_equal(ours(case, padding), in_numpy(case, ((zeros, zeros),) * bucket.axes))


@pytest.mark.parametrize("bucket", [CONVOLUTION_BUCKETS[3], *SMALLER])
@given(seed=seeds())
def test_edge_repeats_the_nearest_pixel(bucket, seed):
    case = make_case(bucket, seed, "float32")
    assert_equal(ours(case, "EDGE"), in_numpy(case, reach(bucket), "EDGE"))


def with_integer_means(images: np.ndarray) -> np.ndarray:
    """The images with their first pixel raised until every channel's mean is an integer."""
    flat = images.reshape(images.shape[0], -1, images.shape[-1]).copy()
    flat[:, 0] += -flat.sum(axis=1) % flat.shape[1]
    return flat.reshape(images.shape)


@pytest.mark.parametrize(
    "bucket",
    [  # the pixels are 2^k in number, so that dividing by it is exact whichever way it is done
        Bucket(2, (8,), (5,), 3, 4, (1,), (2,)),
        Bucket(3, (2, 4), (4, 3), 2, 6, (1, 2), (2, 1), groups=2),
    ],
)
@given(seed=seeds())
def test_mean_lays_the_mean_of_each_image_and_channel_outside(bucket, seed):
    case = make_case(bucket, seed, "float32")
    case = replace(case, images=with_integer_means(case.images))
    padded = filled(case.images, reach(bucket), "MEAN")
    assert fits("float32", padded.astype(int), case.kernel, case.bias)
    assert_equal(ours(case, "MEAN"), in_numpy(case, reach(bucket), "MEAN"))


def test_mean_turns_integers_into_floats():
    out = conv(np.array([[[1], [2]]], np.int32), np.ones((3, 1, 1), np.int32), padding="MEAN")
    assert_dtype(out, "float32")
    assert_equal(out[0, :, 0], [4.5, 4.5])


def test_jit_vmap_and_eager_agree():
    case = make_case(CONVOLUTION_BUCKETS[5], 4)
    images, kernel, bias = case.cast()
    options = case.bucket.options
    eager = conv(images, kernel, bias, **options)
    assert_equal(jitted(images, kernel, bias, **options), eager)
    one_by_one = jax.vmap(lambda image: conv(image[None], kernel, bias, **options)[0])(images)
    assert_equal(one_by_one, eager)
    kernels = jnp.stack([kernel, 2 * kernel])
    both = jax.vmap(lambda k: conv(images, k, **options))(kernels)
    assert_equal(both[1], 2 * both[0])


@pytest.mark.slow
@pytest.mark.parametrize("padding", ["SAME", "VALID", "EDGE", 1])
@pytest.mark.parametrize("bucket", [CONVOLUTION_BUCKETS[2], CONVOLUTION_BUCKETS[5]])
def test_gradients_are_the_transposed_maps(bucket, padding):
    """conv is linear in X and in W: ⟨V, conv(X, W)⟩ = ⟨∇_X, X⟩ = ⟨∇_W, W⟩, all in integers."""
    case = make_case(bucket, 6, "float64")
    images, kernel, bias = case.cast()
    run = partial(jitted, **bucket.options, padding=padding)
    out = run(images, kernel)
    generator = np.random.default_rng(0)
    cotangent = jnp.asarray(generator.integers(-3, 4, out.shape), "float64")

    def paired(x, w, b):
        return jnp.sum(cotangent * run(x, w, b))

    by_images, by_kernel, by_bias = jax.jit(jax.grad(paired, (0, 1, 2)))(images, kernel, bias)
    assert_equal(jnp.vdot(by_images, images), jnp.vdot(cotangent, out))
    assert_equal(jnp.vdot(by_kernel, kernel), jnp.vdot(cotangent, out))
    assert_equal(by_bias, cotangent.sum(tuple(range(out.ndim - 1))))
    # a finite difference of an affine map is its derivative
    tap = (*(0 for _ in bucket.kernel_size), 0, 1)
    raised = paired(images, kernel.at[tap].add(1), bias) - paired(images, kernel, bias)
    assert_equal(by_kernel[tap], raised)
    pixel = (0, *(n // 2 for n in bucket.space), 0)
    raised = paired(images.at[pixel].add(1), kernel, bias) - paired(images, kernel, bias)
    assert_equal(by_images[pixel], raised)


@pytest.mark.parametrize(
    ("images", "kernel", "bias", "expected"),
    [
        ("float32", "float32", None, "float32"),
        ("bfloat16", "float32", None, "float32"),
        ("float16", "bfloat16", None, "float32"),
        ("uint8", "bfloat16", None, "bfloat16"),
        ("int32", "float16", None, "float16"),
        ("int32", "int32", "float32", "float32"),
        ("bfloat16", "bfloat16", "float64", "float64"),
        ("uint8", "int32", None, "int32"),
        ("int32", "int64", None, "int64"),
    ],
)
@pytest.mark.quick(3)
def test_the_result_has_the_dtype_of_the_operands_together(
    images, kernel, bias, expected, implicit_promotion
):
    operands = [jnp.ones((1, 5, 2), images), jnp.ones((3, 2, 4), kernel)]
    out = conv(*operands, None if bias is None else jnp.ones(4, bias))
    assert_dtype(out, expected)
    assert_equal(out[0, 1:-1], np.full((3, 4), 6 + (bias is not None)))


@pytest.mark.parametrize(("dtype", "ones"), [("bfloat16", 2**9 + 1), ("float16", 2**12 + 1)])
def test_half_types_are_summed_in_float32(dtype, ones):
    """A sum of ones in the half type itself stops at 2^p; in float32 it goes on."""
    out = conv(jnp.ones((1, 1, ones), dtype), jnp.ones((1, ones, 1), dtype))
    assert_equal(out, jnp.asarray(ones, dtype).reshape(1, 1, 1))
    assert_equal(out, np.full((1, 1, 1), ones - 1))
    stuck = lax.fori_loop(0, ones, lambda _, total: total + 1, jnp.zeros((), dtype))
    with pytest.raises(AssertionError, match="but expected"):
        assert_equal(out, stuck.reshape(1, 1, 1))


def test_the_precision_of_every_product_is_pinned():
    images, kernel = jnp.ones((1, 5, 6, 2)), jnp.ones((3, 2, 2, 4))
    pinned = precisions(conv, images, kernel)
    assert len(pinned) == 6  # one for each tap
    assert {*pinned} == {HIGHEST}
    assert {*precisions(jnp.matmul, images, kernel[0, 0])} != {HIGHEST}


def test_same_takes_an_image_smaller_than_the_kernel():
    out = conv([[[1], [2]]], [[[k]] for k in range(1, 8)])
    assert_equal(out[0, :, 0], [4 * 1 + 5 * 2, 3 * 1 + 4 * 2])


IMAGES, KERNEL = (1, 5, 6, 2), (3, 4, 2, 3)


@pytest.mark.parametrize(
    ("images", "kernel", "options", "message"),
    [
        (IMAGES, (3, 2), {}, r"kernel\.shape=\(3, 2\) has 2 axes, but expected 3 .* or 4"),
        (IMAGES[1:], KERNEL, {}, r"images\.shape=\(5, 6, 2\) has 3 axes.*images\[None\]"),
        (IMAGES, KERNEL[1:], {}, r"has 4 axes, but a kernel of shape .* takes 3"),
        ((1, 5, 6, 3), KERNEL, {}, "has 3 channels, but .*groups=1 takes 2"),
        (IMAGES, KERNEL, {"groups": 3}, "has 2 channels, but .*groups=3 takes 6"),
        ((1, 5, 6, 4), KERNEL, {"groups": 2}, "has 3 output channels, but groups=2 should divide"),
        (IMAGES, KERNEL, {"groups": 0}, "groups=0, but expected an integer ≥ 1"),
        ((1, 0, 6, 2), KERNEL, {}, "expected every axis but the batch to be ≥ 1"),
        ((1, 5, 6, 0), (3, 4, 0, 3), {}, r"kernel\.shape=.* expected every axis to be ≥ 1"),
        (IMAGES, (0, 4, 2, 3), {}, r"kernel\.shape=.* expected every axis to be ≥ 1"),
        ((1, 2, 6, 2), KERNEL, {"padding": "VALID"}, "leave no position.*use padding='SAME'"),
        (IMAGES, KERNEL, {"padding": "VALID", "dilation": 3}, "leave no position"),
        ((1, 1, 1, 2), (4, 4, 2, 3), {"padding": 1}, "leave no position"),
        (IMAGES, KERNEL, {"padding": "same"}, "padding='same', but expected one of SAME, SAME"),
        (IMAGES, KERNEL, {"padding": -1}, "padding=-1, but expected .* an integer ≥ 0"),
        (IMAGES, KERNEL, {"padding": True}, "padding=True"),
        (IMAGES, KERNEL, {"padding": None}, "padding=None"),
        (IMAGES, KERNEL, {"padding": 1.0}, "padding=1.0"),
        (IMAGES, KERNEL, {"padding": np.array([1, 2])}, r"padding=array\(\[1, 2\]\), but"),
        (IMAGES, KERNEL, {"padding": np.array(["SAME"] * 2)}, "padding=array.*, but expected one"),
        (IMAGES, KERNEL, {"stride": (1,)}, r"stride=\(1,\), but"),
        (IMAGES, KERNEL, {"dilation": -1}, "dilation=-1, but expected an integer ≥ 1"),
        (IMAGES, KERNEL, {"bias": np.ones(2)}, r"bias\.shape=\(2,\), but expected \(3,\)"),
        (IMAGES, KERNEL, {"bias": 1.0}, r"bias\.shape=\(\), but expected \(3,\)"),
        (IMAGES, KERNEL, {"bias": [1, 2, np.nan]}, r"bias has 1 non-finite .*\(2,\)"),
        (IMAGES, KERNEL, {"bias": [True] * 3}, r"bias\.dtype=bool"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_does_not_fit_is_refused(images, kernel, options, message):
    with pytest.raises(ValueError, match=message):
        conv(np.ones(images), np.ones(kernel), **options)


@pytest.mark.parametrize(
    ("images", "kernel", "message"),
    [
        (np.ones((1, 5, 1), bool), np.ones((3, 1, 1)), r"images\.dtype=bool"),
        (np.ones((1, 5, 1)), np.ones((3, 1, 1), bool), r"kernel\.dtype=bool"),
        (np.ones((1, 5, 1)), None, "kernel is NoneType"),
        (np.ones((1, 5, 1)), [[[np.inf]], [[1.0]]], r"kernel has 1 non-finite .*\(0, 0, 0\)"),
    ],
)
def test_what_is_no_array_of_finite_numbers_is_refused(images, kernel, message):
    with pytest.raises(ValueError, match=message):
        conv(images, kernel)


@pytest.mark.parametrize("operand", ["images", "kernel", "bias"])
def test_float64_is_refused_while_64_bit_types_are_off(operand):
    operands: dict[str, Any] = {
        "images": np.ones((1, 5, 2), np.float32),
        "kernel": np.ones((3, 2, 4), np.float32),
        "bias": np.ones(4, np.float32),
    }
    with jax.enable_x64(False):
        assert_dtype(conv(**operands), "float32")
        operands[operand] = operands[operand].astype(np.float64)
        with pytest.raises(
            ValueError, match=rf"{operand}\.dtype=float64, but 64-bit types are off"
        ):
            conv(**operands)
