"""`apply_attention`: images in, images out, equal to `conv` for a converted layer."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from hypothesis import given
from hypothesis import strategies as st
from jax import lax
from matrix_products import HIGHEST, precisions
from strategies import (
    CONVERSION_BUCKETS,
    FLOATS,
    Bucket,
    conversions,
    make_case,
)

from convattn.constructions.conversion import conv_to_attention
from convattn.encodings import QuadraticEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.fast.application import apply_attention
from convattn.operators.convolution import conv

# The encodings whose limit form has weights of exactly zero and one.
LIMITS = ("bias", "quadratic", "enumerated", "polygon", "rotary")


def convert(kernel, bias, bucket: Bucket, encoding: str = "quadratic", **options) -> AttentionLayer:
    """The limit form of a bucket's convolution."""
    return conv_to_attention(
        kernel,
        bias,
        patch_size=bucket.patch_size,
        encoding=encoding,
        form="limit",
        **bucket.options,
        **options,
    )


@partial(jax.jit, static_argnames=("bucket", "encoding", "border"))
def converted(images, kernel, bias, bucket, encoding="quadratic", border="zeros"):
    return apply_attention(convert(kernel, bias, bucket, encoding), images, border=border)


convolved = jax.jit(conv, static_argnames=("stride", "dilation", "groups", "padding"))


@pytest.mark.slow
@given(case=conversions(), encoding=st.sampled_from(LIMITS))
def test_a_converted_layer_is_the_convolution(case, encoding):
    images, kernel, bias = case.cast()
    out = converted(images, kernel, bias, case.bucket, encoding)
    assert_dtype(out, case.dtype)
    assert_equal(out, convolved(images, kernel, bias, **case.bucket.options))


@pytest.mark.parametrize("bucket", CONVERSION_BUCKETS[:2])
@pytest.mark.quick(1)
def test_another_kernel_is_noticed(bucket):
    case = make_case(bucket, 1)
    images, kernel, bias = case.cast()
    out = converted(images, kernel, bias, bucket)
    correct = convolved(images, kernel, bias, **bucket.options)
    assert_equal(out, correct)
    flipped = jnp.flip(kernel, tuple(range(bucket.axes)))
    for wrong in (
        convolved(images, flipped, bias, **bucket.options),
        convolved(images, kernel.at[(0,) * kernel.ndim].add(1), bias, **bucket.options),
        convolved(images, kernel, bias + 1, **bucket.options),
    ):
        with pytest.raises(AssertionError, match="entries differ"):
            assert_equal(out, wrong)


SQUARE = Bucket(2, (6, 5), (3, 5), 2, 3, (1, 1), (1, 1), patch_size=(1, 1))


def test_the_bare_grid_is_right_inside_and_wrong_at_the_border():
    case = make_case(SQUARE, 3)
    expected = convolved(*case.cast())
    bare = converted(*case.cast(), bucket=SQUARE, border="none")
    assert_equal(bare[:, 1:-1, 2:-2], expected[:, 1:-1, 2:-2])
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(bare[:, 0], expected[:, 0])
    # a quadratic head whose key is missing looks at the nearest one
    assert_equal(bare, conv(*case.cast(), padding="EDGE"))


@pytest.mark.slow
def test_rings_of_every_width():
    case = make_case(SQUARE, 4)
    expected = convolved(*case.cast())
    run = jax.jit(apply_attention, static_argnames="border")
    layer = convert(*case.cast()[1:], SQUARE)
    images = case.cast()[0]
    assert layer.ring == ((1, 1), (2, 2))
    assert_equal(run(layer, images), run(layer, images, border="zeros"))

    def of_ring(*ring):
        return run(dataclasses.replace(layer, ring=ring), images)

    for ring in (((1, 1), (2, 2)), ((2, 2), (2, 2)), ((1, 3), (4, 2))):
        assert_equal(of_ring(*ring), expected)
    assert_equal(run(layer, images, border="none"), of_ring((0, 0), (0, 0)))
    half = of_ring((1, 0), (2, 2))
    assert_equal(half[:, :-1], expected[:, :-1])
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(half, expected)


def tiny_layer(**changes) -> AttentionLayer:
    """Patches of 2 × 3 pixels and two channels (12 features), three heads, output patches alike."""
    generator = np.random.default_rng(0)
    parts = {
        "encoding": QuadraticEncoding(jnp.ones(3), jnp.asarray(generator.normal(size=(3, 2)))),
        "value": jnp.asarray(generator.normal(size=(3, 12, 4))),
        "output": jnp.asarray(generator.normal(size=(3, 4, 6))),
        "bias": jnp.asarray(generator.normal(size=6)),
        "patch_size": (2, 3),
    }
    return AttentionLayer(**{**parts, **changes})


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((1, 5, 6, 2), {}, r"\(5, 6\) pixels, but expected sides that patch_size=\(2, 3\) divides"),
        ((1, 4, 6, 3), {}, r"but expected 2 channels \(its tokens have 12 features"),
        ((1, 4, 2), {}, r"shape=\(1, 4, 2\), but expected batch, 2 spatial axes"),
        ((1, 0, 6, 2), {}, "expected every axis but the batch to be ≥ 1"),
        ((1, 4, 6, 2), {"backend": "fast"}, "backend='fast', but expected one of auto, dense, sep"),
        ((1, 4, 6, 2), {"backend": None}, "backend=None, but expected one of"),
        ((1, 4, 6, 2), {"border": False}, "border=False, but expected 'zeros' .* or 'none'"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_does_not_fit_is_refused(shape, options, message):
    with pytest.raises(ValueError, match=message):
        apply_attention(tiny_layer(), np.ones(shape), **options)


def test_what_is_no_image_is_refused():
    with pytest.raises(ValueError, match=r"images\.dtype=bool"):
        apply_attention(tiny_layer(), np.ones((1, 4, 6, 2), bool))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("images", "layer", "expected"),
    [
        *((a, a, a) for a in FLOATS),
        ("float32", "bfloat16", "float32"),
        ("bfloat16", "float32", "float32"),
        ("bfloat16", "float16", "float32"),
        ("float64", "bfloat16", "float64"),
        ("float16", "float64", "float64"),
        ("uint8", "bfloat16", "bfloat16"),
        ("int32", "float16", "float16"),
        ("int64", "float32", "float32"),
    ],
)
def test_the_result_has_the_dtype_of_images_and_maps_together(
    images, layer, expected, implicit_promotion
):
    maps = jnp.arange(1, 7, dtype=layer).reshape(3, 2, 1)
    encoding = QuadraticEncoding(jnp.full(3, 1024.0), jnp.array([[-1.0], [0.0], [1.0]]))
    this = AttentionLayer(encoding, None, maps, None, None, (1,), (1,), (1,), ((1, 1),))
    out = apply_attention(this, jnp.ones((2, 4, 2), images))
    assert_dtype(out, expected)
    assert_equal(out[0, :, 0], [18, 21, 21, 10])


@pytest.mark.parametrize("pixel", [np.inf, np.nan])
@pytest.mark.parametrize(
    ("backend", "encoding", "exact"),
    [
        ("dense", "bias", True), ("dense", "bias", False), ("separable", "quadratic", False),
        ("shift", "bias", True), ("chunked", "bias", True), ("windowed", "bias", False),
    ],
)  # fmt: skip
def test_a_pixel_that_is_not_finite_is_never_hidden(backend, encoding, exact, pixel):
    """No output is finite where the convolution's is not; only left-out weights keep others so."""
    kernel, images = np.ones((3, 3, 1, 2), "float32"), np.ones((1, 7, 7, 1), "float32")
    images[0, 1, 1] = pixel
    lost = ~np.isfinite(conv(images, kernel))
    assert lost.sum() == 3 * 3 * 2
    layer = conv_to_attention(kernel, encoding=encoding, form="exact" if exact else "limit")
    out = np.asarray(apply_attention(layer, images, backend=backend))
    assert_equal(~np.isfinite(out), lost if backend == "windowed" else np.ones_like(lost))


@pytest.mark.slow
def test_gradients_of_a_one_hot_layer_are_those_of_the_convolution():
    """The weights are zero and one, so everything is a sum of integers; ⟨∇_O, O⟩ = ⟨V, Y - b⟩."""
    case = make_case(CONVERSION_BUCKETS[6], 8, "float64")
    images, kernel, bias = case.cast()
    layer = convert(kernel, bias, case.bucket)
    out = jax.jit(apply_attention)(layer, images)
    cotangent = jnp.asarray(np.random.default_rng(9).integers(-3, 4, out.shape), "float64")

    def by_attention(layer, images):
        return jnp.vdot(cotangent, apply_attention(layer, images))

    def by_conv(images, bias):
        return jnp.vdot(cotangent, conv(images, kernel, bias, **case.bucket.options))

    by_layer, by_images = jax.jit(jax.grad(by_attention, (0, 1)))(layer, images)
    conv_by_images, conv_by_bias = jax.jit(jax.grad(by_conv, (0, 1)))(images, bias)
    assert_equal(by_images, conv_by_images)
    without_bias = np.asarray(out) - np.asarray(bias)
    assert_equal(jnp.vdot(by_layer.output, layer.output), np.vdot(cotangent, without_bias))
    assert_equal(by_layer.bias.reshape(-1, 3).sum(0), conv_by_bias)
    for slope in by_layer.encoding.alpha:  # saturated: no slope is left
        assert_equal(slope, np.zeros(slope.shape))
    assert jax.tree.structure(by_layer) == jax.tree.structure(layer)


# Two kinds of tokens, four and two of them among eight, and two that are neither.
KINDS = np.array([0, 1, 0, 2, 0, 1, 0, 2])


def kinds_as_images() -> np.ndarray:
    """One feature for each kind, and one that tells the tokens apart."""
    return np.concatenate([np.eye(3)[KINDS], 2.0 ** np.arange(8)[:, None]], axis=-1)[None]


def kind_content(heads: int) -> ContentScores:
    """Scores of 2^12 between tokens of one kind, zero otherwise: softmax is uniform among them."""
    pick = np.eye(4)[:, :3] * 64
    return ContentScores(*[jnp.asarray(np.stack([pick] * heads))] * 2, scaled=False)


@pytest.mark.slow
def test_content_alone_attends_to_the_tokens_of_one_kind():
    images = kinds_as_images()
    flat = QuadraticEncoding(jnp.zeros(1), jnp.zeros((1, 1)))
    layer = AttentionLayer(flat, None, None, None, kind_content(1), (1,), (1,), (1,), ((0, 0),))
    expected = np.stack([images[0, kind == KINDS].mean(0) for kind in KINDS])
    assert_equal(apply_attention(layer, images)[0], expected)
    assert_equal(
        apply_attention(dataclasses.replace(layer, ring=((2, 2),)), images)[0], expected
    )  # zeros are of no kind
    without = dataclasses.replace(layer, content=None)
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(apply_attention(without, images)[0], expected)


@pytest.mark.parametrize("content", [None, ContentScores(*[jnp.ones((3, 12, 2))] * 2)])
def test_the_precision_of_every_product_is_pinned(content):
    layer = tiny_layer(content=content)
    images = jnp.ones((1, 4, 6, 2))
    pinned = precisions(apply_attention, layer, images)
    assert len(pinned) >= 3
    assert {*pinned} == {HIGHEST}
    lower = partial(apply_attention, precision=lax.Precision.DEFAULT)
    assert {*precisions(lower, layer, images)} != {HIGHEST}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"stride": np.array([1, 1])}, "integers in tuples"),
        ({"ring": [[1, 1], [1, 1]]}, "integers in tuples"),
        ({"padding": "VALID"}, "a Padding or None"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_fields_of_other_types_are_refused_and_do_no_harm(change, expected):
    layer, images = conv_to_attention(np.ones((3, 3, 1, 1))), np.ones((1, 4, 7, 1))
    with pytest.raises(ValueError, match=f"expected {expected}"):
        apply_attention(dataclasses.replace(layer, **change), images)
    assert apply_attention(layer, images).shape == (1, 4, 7, 1)


@pytest.mark.slow
def test_one_program_serves_other_parameters():
    images = np.random.default_rng(0).normal(size=(1, 9, 1))
    for kernel in (np.ones((3, 1, 1)), np.arange(3.0).reshape(3, 1, 1)):
        outputs = apply_attention(conv_to_attention(kernel), images)
        assert np.abs(outputs - conv(images, kernel)).max() < 1e-12
    outputs = []
    for center in (0.0, 4.0, 0.0):  # the same shapes, other windows
        encoding = QuadraticEncoding(jnp.ones(1), jnp.full((1, 1), center))
        layer = dataclasses.replace(
            conv_to_attention(np.ones((1, 1, 1)), encoding="quadratic"), encoding=encoding
        )
        dense, windowed = (apply_attention(layer, images, backend=b) for b in ("dense", "windowed"))
        assert np.abs(dense - windowed).max() < 1e-6
        outputs.append(dense)
    assert_equal(outputs[0], outputs[2])
    assert np.abs(outputs[0] - outputs[1]).max() > 0.1


def test_64_bit_types_may_be_turned_on_and_off_between_calls():
    kernel = np.arange(3.0, dtype=np.float32).reshape(3, 1, 1)
    images = np.arange(9, dtype=np.float32).reshape(1, 9, 1)
    layer, expected = conv_to_attention(kernel), np.asarray(conv(images, kernel))
    for wide in (True, False, True):
        with jax.enable_x64(wide):
            outputs = apply_attention(layer, images)
            assert outputs.dtype == np.float32
            assert np.abs(np.asarray(outputs) - expected).max() < 1e-4
