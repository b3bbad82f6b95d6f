"""The strategies reach what matters, and what they draw is exact."""

import jax.numpy as jnp
import numpy as np
import pytest
import strategies
from hypothesis import find, given
from strategies import (
    CONVERSION_BUCKETS,
    CONVOLUTION_BUCKETS,
    DTYPES,
    FLOATS,
    TOKEN_BUCKETS,
    Bucket,
    conversions,
    convolutions,
    fits,
    free_convolutions,
    largest_exact_integer,
    largest_sum,
    make_case,
    with_patches_that_divide,
)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_integer_up_to_the_largest_is_held_and_the_next_is_not(dtype):
    top = largest_exact_integer(dtype)
    if top < 2**20:
        assert np.asarray(jnp.arange(top + 1).astype(dtype)).astype(int).tolist() == [
            *range(top + 1)
        ]
    assert int(jnp.asarray(top, dtype)) == top
    if dtype in FLOATS:
        assert int(jnp.asarray(np.int64(top + 1)).astype(dtype)) != top + 1
    else:
        assert top + 1 > jnp.iinfo(dtype).max


def every_partial_sum(case: strategies.Case) -> int:
    """The largest partial sum over windows, taps in reverse and in order, by brute force."""
    taps = int(np.prod(case.kernel.shape[:-1]))
    windows = np.broadcast_to(case.images.max(), (taps,))
    products = windows[:, None] * case.kernel.reshape(taps, -1)
    sums = [
        np.cumsum(np.abs(products[order]), axis=0) for order in (slice(None), slice(None, None, -1))
    ]
    return int(max(np.abs(partial).max() for partial in sums) + np.abs(case.bias).max())


@given(convolutions())
def test_no_partial_sum_of_a_drawn_case_is_rounded(case):
    assert every_partial_sum(case) <= largest_sum(case.images, case.kernel, case.bias)
    assert largest_sum(case.images, case.kernel, case.bias) <= largest_exact_integer(case.dtype)
    for original, cast in zip((case.images, case.kernel, case.bias), case.cast(), strict=True):
        assert np.asarray(cast).astype(np.int64).tolist() == original.tolist()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_condition_can_fail(dtype):
    pixel, weight = strategies.RANGES[dtype]
    images, kernel = np.full((1, 300, 9), pixel), np.full((300, 9, 1), weight)
    assert not fits(dtype, images, kernel, None)
    assert fits("float32", images, kernel, None)
    large = Bucket(1, (99,), (99,), 40, 1, (1,), (1,))
    with pytest.raises(ValueError, match="take a smaller bucket"):
        make_case(large, 0, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bucket", [*CONVOLUTION_BUCKETS, *CONVERSION_BUCKETS])
def test_every_bucket_is_exact_for_the_worst_draw(bucket, dtype):
    pixel, weight = strategies.RANGES[dtype]
    images, kernel = np.full(bucket.image_shape, pixel), np.full(bucket.kernel_shape, weight)
    assert fits(dtype, images, kernel, np.full(bucket.out_channels, weight))


@pytest.mark.parametrize("bucket", CONVOLUTION_BUCKETS)
def test_axes_that_a_transposition_could_confuse_differ(bucket):
    per_group = bucket.in_channels // bucket.groups
    assert len({*bucket.image_shape}) == bucket.axes + 2
    assert per_group != bucket.out_channels
    assert len({*bucket.space}) == len({*bucket.kernel_size}) == bucket.axes


@pytest.mark.parametrize("bucket", TOKEN_BUCKETS)
def test_the_sizes_of_an_attention_layer_differ(bucket):
    assert len(set(vars(bucket).values())) == len(vars(bucket))


@pytest.mark.parametrize("bucket", CONVERSION_BUCKETS)
def test_patches_divide_the_images(bucket):
    assert not any(n % p for n, p in zip(bucket.space, bucket.patch_size, strict=True))


def test_the_buckets_cover_what_they_should():
    def cover(buckets, condition):
        return any(condition(bucket) for bucket in buckets)

    for buckets in (CONVOLUTION_BUCKETS, CONVERSION_BUCKETS):
        assert {bucket.axes for bucket in buckets} == {1, 2}
        assert cover(buckets, lambda b: any(k % 2 == 0 for k in b.kernel_size))
        assert cover(buckets, lambda b: max(b.stride) > 1)
        assert cover(buckets, lambda b: max(b.dilation) > 1)
        assert cover(buckets, lambda b: b.groups > 1)
    assert cover(CONVOLUTION_BUCKETS, lambda b: b.kernel_size > b.space)
    divides = [
        all(p % s == 0 for p, s in zip(b.patch_size, b.stride, strict=True))
        for b in CONVERSION_BUCKETS
        if max(b.stride) > 1 and max(b.patch_size) > 1
    ]
    assert {*divides} == {True, False}


def flipped(case: strategies.Case) -> np.ndarray:
    return np.flip(case.kernel, axis=tuple(range(case.bucket.axes)))


@given(convolutions())
def test_a_flipped_kernel_is_another_kernel(case):
    """With a seed of its own almost every kernel is: none of the drawn ones is symmetric."""
    assert (flipped(case) != case.kernel).any()
    assert case.kernel.any()
    assert case.images.any()
    assert case.images.std() > 0


@pytest.mark.parametrize(
    "condition",
    [
        lambda case: case.dtype == "bfloat16",
        lambda case: case.dtype == "int32",
        lambda case: case.bucket.axes == 1,
        lambda case: case.bucket.groups > 1 and case.dtype == "float16",
        lambda case: (case.kernel < 0).any() and (case.kernel > 0).any(),
        lambda case: (case.images > 250).any(),
    ],
)
def test_convolutions_reach(condition):
    assert condition(find(convolutions(), condition))


@pytest.mark.parametrize(
    "condition",
    [
        lambda case: case.bucket.axes == 2 and max(case.bucket.kernel_size) == 5,
        lambda case: any(k % 2 == 0 for k in case.bucket.kernel_size),
        lambda case: case.bucket.groups == 3 and max(case.bucket.dilation) == 3,
        lambda case: case.bucket.space == (1,),
        lambda case: max(case.bucket.patch_size) == 3 and max(case.bucket.stride) == 2,
    ],
)
def test_free_convolutions_reach(condition):
    assert condition(find(free_convolutions(), condition))


@given(free_convolutions(axes=2, odd=True))
def test_free_convolutions_heed_their_arguments(case):
    assert case.bucket.axes == 2
    assert all(k % 2 for k in case.bucket.kernel_size)
    assert fits("float32", case.images, case.kernel, case.bias)


@given(free_convolutions())
def test_patches_can_be_made_to_divide(case):
    fitted = with_patches_that_divide(case)
    sides = zip(fitted.bucket.space, fitted.bucket.patch_size, strict=True)
    assert not any(n % p for n, p in sides)
    inside = tuple(slice(0, n) for n in case.images.shape)
    assert (fitted.images[inside] == case.images).all()


@given(conversions())
def test_conversions_are_in_floats_and_have_patches(case):
    assert case.dtype in FLOATS
    assert len(case.bucket.patch_size) == case.bucket.axes


def test_a_seed_draws_the_same_case_again():
    first, second = (make_case(CONVOLUTION_BUCKETS[0], 7) for _ in range(2))
    assert (first.images == second.images).all()
    assert (first.kernel == second.kernel).all()
    assert (first.images != make_case(CONVOLUTION_BUCKETS[0], 8).images).any()
