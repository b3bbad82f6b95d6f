"""S.pad: on a filled ring the layer is the convolution with that padding, at every size."""

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from constructions.conversion_cases import applied, converted, maps_of, reference
from hypothesis import given
from strategies import CONVERSION_BUCKETS, make_case, seeds

from convattn.bounds.majorant import majorant_of
from convattn.bounds.rounding import layer_error_bound
from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.recovery import attention_to_conv
from convattn.fast.application import apply_attention
from convattn.fast.selection import BACK_ENDS
from convattn.operators.convolution import conv
from convattn.operators.padding import read_padding
from convattn_ledger.bounds.saturation_error import saturation_error_bound

PADDINGS = ("SAME", "SAME_LOWER", "VALID", "CIRCULAR", "REFLECT", "EDGE", "MEAN", "CAUSAL", 0)
ROWS = [
    (bucket, padding)
    for index, bucket in enumerate(CONVERSION_BUCKETS)
    for number, padding in enumerate(PADDINGS)
    if (padding != "CAUSAL" or bucket.axes == 1) and (index + number) % 2 == 0
]
QUICK = [
    pytest.param(*row, i // 4 % 2, marks=[] if i % 4 == 0 else pytest.mark.slow)
    for i, row in enumerate(ROWS)
]


def larger(bucket, rows):
    """Images that neither patches nor strides divide."""
    return replace(bucket, space=tuple(side + rows for side in bucket.space))


@cache
def both(bucket, padding):
    """What the layer and the convolution make of images, as one program."""

    @jax.jit
    def run(images, kernel, bias):
        options = {**bucket.options, "padding": padding}
        layer = conv_to_attention(
            kernel, bias, patch_size=bucket.patch_size, form="limit", **options
        )
        if layer.padding is None:  # zeros as far as the kernel reaches are tokens, whole patches
            sides = zip(images.shape[1:], bucket.patch_size, strict=False)
            images = images[(slice(None), *(slice(n - n % p) for n, p in sides))]
        return apply_attention(layer, images), conv(images, kernel, bias, **options)

    return run


@pytest.mark.quick(2)
@pytest.mark.parametrize(("bucket", "padding", "rows"), QUICK, ids=str)
@given(seed=seeds())
def test_one_layer_is_the_convolution_at_every_size(bucket, padding, rows, seed):
    images, kernel, bias = make_case(larger(bucket, 4 + rows), seed).cast()
    outputs, expected = both(bucket, padding)(images, kernel, bias)
    if padding == "MEAN":  # means of integers are no integers
        scale = float(jnp.abs(kernel).sum() * jnp.abs(images).max())
        assert_within(outputs, expected, 1e-5 * scale)
    else:
        assert_equal(outputs, expected)


@pytest.mark.parametrize(("padding", "patch"), [("SAME", 1), ("SAME", 2), ("REFLECT", 3)])
@pytest.mark.quick(1)
def test_even_kernels_with_dilation(padding, patch):
    """torch's padding="same": ⌊d(K-1)/2⌋ before; loops are in the tests of the operators."""
    kernel = jnp.arange(24.0).reshape(2, 4, 1, 3) - 10
    images = jnp.arange(84.0).reshape(1, 12, 7, 1) % 5
    options = {"dilation": (3, 2), "stride": (2, 1), "padding": padding}
    layer = converted(kernel, patch_size=patch, form="limit", **options)
    assert_equal(applied(layer, images), reference(images, kernel, **options))


@pytest.mark.parametrize("padding", ["EDGE", "MEAN", ((0, 2), (1, 0))], ids=str)
@pytest.mark.quick(1)
def test_at_finite_parameters_it_is_within_the_derived_bound(padding):
    bucket = CONVERSION_BUCKETS[4]
    case = make_case(larger(bucket, 3), 3)
    images, kernel, bias = case.cast()
    options = {"patch_size": bucket.patch_size, "padding": padding, "stride": 2}
    layer = converted(kernel, bias, **options)
    majorant = majorant_of(layer, kernel, bias, images)
    bound = layer_error_bound(layer, images, majorant)
    in_float64 = (jnp.asarray(part, jnp.float64) for part in (images, kernel, bias))
    expected = np.asarray(reference(*in_float64, padding=padding, stride=2))
    outputs = applied(layer, images)
    assert_within(outputs, expected, bound)
    assert float(bound.max()) < 1e-2 * float(np.abs(expected).max())
    assert (np.abs(outputs - np.roll(expected, 1, axis=2)) > bound).any()


@pytest.mark.quick(2)
@pytest.mark.parametrize("backend", [name for name in BACK_ENDS if name != "windowed"])
@pytest.mark.parametrize("encoding", ["bias", "quadratic", "scalar"])
def test_every_back_end_that_serves_gives_it(encoding, backend):
    generator = np.random.default_rng(4)
    images = jnp.asarray(generator.integers(0, 9, (2, 7, 8, 2)), jnp.float64)
    kernel = jnp.asarray(generator.integers(-3, 4, (3, 2, 2, 3)), jnp.float64)
    layer = converted(kernel, encoding=encoding, stride=(2, 1), padding="SAME")
    try:
        outputs = applied(layer, images, backend=backend)
    except ValueError as error:
        assert "cannot serve" in str(error)  # noqa: PT017
        return
    expected = reference(images, kernel, stride=(2, 1), padding="SAME")
    assert_within(outputs, expected, 1e-8)


def test_same_and_its_numbers_keep_the_ring_of_zeros():
    def layer(**options):
        return jax.eval_shape(partial(conv_to_attention, **options), jnp.ones((3, 1, 1)))

    zeros = ({}, {"padding": 1}, {"padding": "SAME_LOWER"}, {"padding": "SAME_TORCH", "stride": 2})
    assert all(layer(**options).padding is None for options in zeros)
    assert layer(stride=2).padding is not None
    assert layer(padding=0).padding == read_padding("VALID", (3,), (1,), (1,))
    assert {layer(padding=p).heads for p in ("SAME", "VALID", "CIRCULAR")} == {4}


def test_the_maps_are_those_of_the_tokens_that_are_asked():
    layer = converted(jnp.ones((3, 1, 1)), form="limit", padding="CIRCULAR")
    weights, ring = maps_of(layer, (4,))
    assert (weights.shape, ring) == ((3, 4, 6), ((1, 1),))
    assert_equal(weights, np.stack([np.eye(6)[offset : offset + 4] for offset in range(3)]))


@pytest.mark.parametrize(
    ("size", "options"),
    [
        (3, {"padding": "VALID"}),
        (3, {"padding": "SAME", "stride": 2}),
        (2, {"padding": "SAME_LOWER"}),
        (2, {"padding": "SAME", "dilation": 2}),
        (4, {"padding": "SAME_TORCH", "dilation": 2}),
        (3, {"padding": ((2, 0),)}),
        (3, {"padding": "VALID", "stride": 3}),
    ],
)
@pytest.mark.quick(3)
def test_what_the_heads_look_at_are_the_pixels_that_an_output_reads(size, options):
    """Pixel p is key before + p; output i is query stride·i, and reads where its slope is not 0."""
    kernel = jnp.ones((size, 1, 1))
    layer = converted(kernel, form="limit", **options)
    weights, ((before, after),) = maps_of(layer, (10,))
    inside = np.asarray(weights).sum(0)[:, before : weights.shape[2] - after]
    slope = np.asarray(reference(np.eye(10)[..., None], kernel, **options))[..., 0].T
    read = inside[:: options.get("stride", 1)]
    assert_equal(read, slope[:, : read.shape[1]])
    assert not slope[:, read.shape[1] :].any()  # pixels that no output reads may be cut off


@pytest.mark.slow
def test_the_kernel_comes_back():
    kernel = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3, 2, 2)))
    layer = conv_to_attention(kernel, padding="EDGE", form="limit", stride=2)
    recovered, _, residual = attention_to_conv(layer, 3, image_size=6)
    assert_within(recovered, kernel, np.full(kernel.shape, 1e-12))
    assert float(residual.relative_frobenius) < 1e-12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda k, x: conv_to_attention(k, padding=2), "makes more outputs than"),
        (lambda k, x: conv_to_attention(k, padding="same"), "write 'SAME'"),
        (
            lambda k, x: apply_attention(converted(k, padding="EDGE"), x, border="none"),
            "fills its ring .edge.*leave border out",
        ),
        (
            lambda k, x: apply_attention(converted(k, padding="VALID"), x[:, :2]),
            "leave no position",
        ),
        (
            lambda k, x: saturation_error_bound(
                converted(k, padding="EDGE", form="limit", sharpness=9.0), x
            ),
            "derived for a ring of zero tokens",
        ),
    ],
)
def test_what_does_not_go_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(jnp.ones((3, 3, 1, 1)), jnp.ones((1, 5, 5, 1)))
