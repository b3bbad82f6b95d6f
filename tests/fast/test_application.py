"""`apply_attention`: images in, images out, equal to `conv` for a converted layer."""

import dataclasses
import math
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from comparison import assert_dtype, assert_equal, assert_within, gamma
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
    seeds,
)

from convattn.constructions.conversion import conv_to_attention
from convattn.encodings import BiasEncoding, QuadraticEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.fast.application import apply_attention, layer_features
from convattn.fast.dense import layer_weights
from convattn.operators.convolution import conv
from convattn.operators.shifts import TokenGrid

# The encodings whose limit form has weights of exactly zero and one.
LIMITS = ("bias", "quadratic", "enumerated")


def convert(kernel, bias, bucket: Bucket, encoding: str = "quadratic", **options) -> AttentionLayer:
    """The limit form of a bucket's convolution."""
    return conv_to_attention(
        kernel,
        bias,
        patch_size=bucket.patch_size,
        encoding=encoding,
        exact=False,
        **bucket.options,
        **options,
    )


@partial(jax.jit, static_argnames=("bucket", "encoding", "ring"))
def converted(images, kernel, bias, bucket, encoding="quadratic", ring=None):
    return apply_attention(convert(kernel, bias, bucket, encoding), images, ring=ring)


convolved = jax.jit(conv, static_argnames=("stride", "dilation", "groups", "padding"))


@given(case=conversions(), encoding=st.sampled_from(LIMITS))
def test_a_converted_layer_is_the_convolution(case, encoding):
    images, kernel, bias = case.cast()
    out = converted(images, kernel, bias, case.bucket, encoding)
    assert_dtype(out, case.dtype)
    assert_equal(out, convolved(images, kernel, bias, **case.bucket.options))


@pytest.mark.parametrize("bucket", CONVERSION_BUCKETS)
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


def test_integer_images_through_a_float_layer():
    case = make_case(CONVERSION_BUCKETS[0], 2, "float32")
    _, kernel, bias = case.cast()
    layer = convert(kernel, bias, case.bucket)
    out = apply_attention(layer, case.images.astype(np.uint8))
    assert_dtype(out, "float32")
    assert_equal(out, conv(case.images, case.kernel, case.bias))


SQUARE = Bucket(2, (6, 5), (3, 5), 2, 3, (1, 1), (1, 1), patch_size=(1, 1))


def test_the_bare_grid_is_right_inside_and_wrong_at_the_border():
    case = make_case(SQUARE, 3)
    expected = convolved(*case.cast())
    bare = converted(*case.cast(), bucket=SQUARE, ring=False)
    assert_equal(bare[:, 1:-1, 2:-2], expected[:, 1:-1, 2:-2])
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(bare[:, 0], expected[:, 0])
    # a quadratic head whose key is missing looks at the nearest one
    assert_equal(bare, conv(*case.cast(), padding="EDGE"))


def test_every_way_to_ask_for_a_ring():
    case = make_case(SQUARE, 4)
    expected = convolved(*case.cast())
    run = jax.jit(apply_attention, static_argnames="ring")
    layer = convert(*case.cast()[1:], SQUARE)
    images = case.cast()[0]
    assert layer.ring == ((1, 1), (2, 2))
    for ring in (None, True, ((1, 1), (2, 2)), 2, ((1, 3), (4, 2))):
        assert_equal(run(layer, images, ring=ring), expected)
    assert_equal(apply_attention(layer, images, ring=[(1, 1), (2, 2)]), expected)
    bare = run(layer, images, ring=False)
    for ring in (0, ((0, 0), (0, 0))):
        assert_equal(run(layer, images, ring=ring), bare)
    half = run(layer, images, ring=((1, 0), (2, 2)))
    assert_equal(half[:, :-1], expected[:, :-1])
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(half, expected)


def test_the_back_ends_agree():
    case = make_case(SQUARE, 5)
    layer = convert(*case.cast()[1:], SQUARE)
    images = case.cast()[0]
    assert_equal(apply_attention(layer, images, backend="dense"), apply_attention(layer, images))


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
        ((1, 5, 6, 2), {}, r"sides \(5, 6\), which patches of size \(2, 3\) do not divide.*crop"),
        ((1, 4, 6, 3), {}, r"but expected 2 channels \(its tokens have 12 features"),
        ((1, 4, 2), {}, r"shape=\(1, 4, 2\), but expected batch, 2 spatial axes"),
        ((4, 6, 2), {}, "but expected batch, 2 spatial axes"),
        ((1, 1, 4, 6, 2), {}, "but expected batch, 2 spatial axes"),
        ((1, 0, 6, 2), {}, "every axis but the batch should be ≥ 1"),
        ((1, 4, 6, 2), {"backend": "fast"}, "backend='fast', but should be one of auto, dense"),
        ((1, 4, 6, 2), {"backend": None}, "backend=None, but should be one of"),
        ((1, 4, 6, 2), {"ring": -1}, "ring=-1, but should be None .* 2 pairs"),
        ((1, 4, 6, 2), {"ring": 1.0}, "ring=1.0, but"),
        ((1, 4, 6, 2), {"ring": "1"}, "ring='1', but"),
        ((1, 4, 6, 2), {"ring": ()}, r"ring=\(\), but"),
        ((1, 4, 6, 2), {"ring": ((1, 1),)}, r"ring=\(\(1, 1\),\), but"),
        ((1, 4, 6, 2), {"ring": ((1, -1), (0, 0))}, "ring=.*, but"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_does_not_fit_is_refused(shape, options, message):
    with pytest.raises(ValueError, match=message):
        apply_attention(tiny_layer(), np.ones(shape), **options)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.ones((1, 4, 6, 2), bool), r"images\.dtype=bool"),
        (None, "images is NoneType"),
        ([[1], [1, 2]], "images is list"),
    ],
)
def test_what_is_no_image_is_refused(images, message):
    with pytest.raises(ValueError, match=message):
        apply_attention(tiny_layer(), images)


def test_float64_is_refused_while_64_bit_types_are_off():
    images = np.ones((1, 4, 6, 2))
    narrow = jax.tree.map(lambda leaf: leaf.astype("float32"), tiny_layer())
    with jax.enable_x64(False):
        assert_dtype(apply_attention(narrow, images.astype(np.float32)), "float32")
        with pytest.raises(ValueError, match=r"images\.dtype=float64, but 64-bit types are off"):
            apply_attention(narrow, images)


def test_an_encoding_for_other_axes_is_refused():
    layer = tiny_layer(patch_size=(6,), stride=(1,), ring=((0, 0),))
    with pytest.raises(ValueError, match="made for 2 spatial axes, but the grid has 1"):
        apply_attention(layer, np.ones((1, 12, 2)))


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
def test_the_result_has_the_dtype_of_images_and_maps_together(images, layer, expected):
    maps = jnp.arange(1, 7, dtype=layer).reshape(3, 2, 1)
    encoding = QuadraticEncoding(jnp.full(3, 1024.0), jnp.array([[-1.0], [0.0], [1.0]]))
    this = AttentionLayer(encoding, None, maps, None, None, (1,), (1,), (1,), ((1, 1),))
    out = apply_attention(this, jnp.ones((2, 4, 2), images))
    assert_dtype(out, expected)
    assert_equal(out[0, :, 0], [18, 21, 21, 10])


def test_a_layer_without_maps_keeps_the_dtype_of_floats():
    encoding = QuadraticEncoding(jnp.full(1, 1024.0), jnp.zeros((1, 1)))
    this = AttentionLayer(encoding, None, None, None, None, (1,), (1,), (1,), ((0, 0),))
    assert layer_features(this) is None
    for images, expected in (
        ("bfloat16", "bfloat16"),
        ("float64", "float64"),
        ("int32", "float32"),
    ):
        out = apply_attention(this, jnp.arange(12).reshape(2, 2, 3).astype(images))
        assert_dtype(out, expected)
        assert_equal(out, np.arange(12).reshape(2, 2, 3))


@pytest.mark.parametrize(("dtype", "bits"), [("bfloat16", 8), ("float16", 11)])
def test_half_types_are_summed_in_float32(dtype, bits):
    """The heads give 2^p, 1 and 1: in the half type each 1 would be lost, together they are not."""
    kernel = jnp.asarray([2**bits, 1, 1], dtype).reshape(3, 1, 1)
    layer = conv_to_attention(kernel, encoding="quadratic")
    out = apply_attention(layer, jnp.ones((1, 3, 1), dtype))
    assert_equal(out[0, :, 0], [2, 2**bits + 2, 2**bits])
    big, one = kernel[0, 0, 0], kernel[1, 0, 0]
    assert float(big + one + one) == 2**bits


def test_no_images_give_no_images():
    assert apply_attention(tiny_layer(), np.ones((0, 4, 6, 2))).shape == (0, 4, 6, 1)


def test_nested_lists_are_taken():
    layer = conv_to_attention([[[1.0]], [[0.0]], [[10.0]]], encoding="quadratic")
    assert_equal(apply_attention(layer, [[[1], [2], [4]]])[0, :, 0], [20, 41, 2])


def test_jit_and_vmap_agree_with_eager():
    case = make_case(CONVERSION_BUCKETS[4], 6)
    images, kernel, bias = case.cast()
    layer = convert(kernel, bias, case.bucket)
    eager = apply_attention(layer, images)
    assert_equal(jax.jit(apply_attention)(layer, images), eager)
    each = jax.jit(jax.vmap(lambda x: apply_attention(layer, x[None])[0]))
    assert_equal(each(images), eager)
    doubled = dataclasses.replace(layer, output=2 * layer.output)
    layers = jax.tree.map(lambda *leaves: jnp.stack(leaves), layer, doubled)
    both = jax.jit(jax.vmap(apply_attention, in_axes=(0, None)))(layers, images)
    assert_equal(both[0], eager)
    assert_equal(both[1], conv(images, 2 * kernel, bias))


def test_a_layer_is_a_pytree_that_applies_the_same_after_the_round_trip():
    case = make_case(CONVERSION_BUCKETS[5], 7)
    layer = convert(*case.cast()[1:], case.bucket)
    leaves, structure = jax.tree.flatten(layer)
    back = jax.tree.unflatten(structure, [np.asarray(leaf) for leaf in leaves])
    again = jax.tree.map(jnp.asarray, back)
    images = case.cast()[0]
    assert_equal(apply_attention(again, images), apply_attention(layer, images))


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
    assert_equal(jnp.vdot(by_layer.output, layer.output), jnp.vdot(cotangent, out - bias))
    assert_equal(by_layer.bias.reshape(-1, 3).sum(0), conv_by_bias)
    for slope in by_layer.encoding.alpha:  # saturated: no slope is left
        assert_equal(slope, np.zeros(slope.shape))
    assert jax.tree.structure(by_layer) == jax.tree.structure(layer)


def test_the_gradient_by_the_width_is_the_derivative_of_softmax():
    """out_q = Σ w x with w ∝ e^(-α d²) has the derivative -(Σ w d² x - Σ w d² · Σ w x)."""
    pixels = np.array([3.0, -1.0, 4.0, 1.0, -5.0])
    squares = (np.arange(5)[None] - np.arange(5)[:, None]) ** 2.0
    weights = np.exp(-0.25 * squares)
    weights /= weights.sum(-1, keepdims=True)
    mean, spread = weights @ pixels, (weights * squares).sum(-1)
    expected = -((weights * squares) @ pixels - spread * mean)

    def run(alpha):
        encoding = QuadraticEncoding(alpha[None], jnp.zeros((1, 1)))
        layer = AttentionLayer(encoding, None, None, None, None, (1,), (1,), (1,), ((0, 0),))
        return apply_attention(layer, pixels[None, :, None])[0, :, 0]

    out = jax.jacrev(run)(jnp.asarray(0.25))
    # per weight: two exponentials of 8 u, their sum of 5, a quotient; two weights in a product, two
    # sums of 5, products and a difference: 60 roundings are more than enough, for each side
    majorant = (weights * squares) @ abs(pixels) + spread * (weights @ abs(pixels))
    bound = 2 * gamma(60, "float64") * majorant
    assert_within(out, expected, bound)
    with pytest.raises(AssertionError, match="too far"):
        assert_within(-out, expected, bound)


# Two kinds of tokens, four and two of them among eight, and two that are neither.
KINDS = np.array([0, 1, 0, 2, 0, 1, 0, 2])


def kinds_as_images() -> np.ndarray:
    """One feature for each kind, and one that tells the tokens apart."""
    return np.concatenate([np.eye(3)[KINDS], 2.0 ** np.arange(8)[:, None]], axis=-1)[None]


def kind_content(heads: int) -> ContentScores:
    """Scores of 2^12 between tokens of one kind, zero otherwise: softmax is uniform among them."""
    pick = np.eye(4)[:, :3] * 64
    return ContentScores(*[jnp.asarray(np.stack([pick] * heads))] * 2, scaled=False)


def test_content_alone_attends_to_the_tokens_of_one_kind():
    images = kinds_as_images()
    flat = QuadraticEncoding(jnp.zeros(1), jnp.zeros((1, 1)))
    layer = AttentionLayer(flat, None, None, None, kind_content(1), (1,), (1,), (1,), ((0, 0),))
    expected = np.stack([images[0, kind == KINDS].mean(0) for kind in KINDS])
    assert_equal(apply_attention(layer, images)[0], expected)
    assert_equal(apply_attention(layer, images, ring=2)[0], expected)  # zeros are of no kind
    without = dataclasses.replace(layer, content=None)
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(apply_attention(without, images)[0], expected)


def test_content_and_positions_add_up():
    """A head that looks to the right by position, and prefers its own kind by content."""
    images = np.concatenate([kinds_as_images(), kinds_as_images()[:, ::-1]])
    encoding = BiasEncoding(jnp.array([[2.0**14]]), None, ((1,),))
    output = jnp.asarray(np.random.default_rng(0).integers(-4, 5, (1, 4, 3)), "float64")
    layer = AttentionLayer(
        encoding, None, output, jnp.ones(3), kind_content(1), (1,), (1,), (1,), ((0, 1),)
    )
    out = apply_attention(layer, images)
    ringed = np.pad(images, ((0, 0), (0, 1), (0, 0)))
    expected = np.zeros((2, 8, 3))
    for b, q in product(range(2), range(8)):
        scores = [
            2.0**14 * (k - q == 1) + 2.0**12 * (images[b, q, :3] @ ringed[b, k, :3])
            for k in range(9)
        ]
        best = np.array(scores) == max(scores)
        expected[b, q] = ringed[b, best].mean(0) @ np.asarray(output[0]) + 1
    assert_equal(out, expected)


def test_weights_at_an_image_of_zeros_are_those_without_content_bias():
    grid = TokenGrid((8,), ((0, 1),))
    encoding = BiasEncoding(jnp.array([[3.0]]), None, ((1,),))
    layer = AttentionLayer(encoding, None, None, None, kind_content(1), (1,), (1,), (1,), ((0, 1),))
    blank = layer_weights(layer, grid, None)
    assert blank.shape == (1, 1, 8, 9)
    assert_equal(blank, layer_weights(layer, grid, jnp.zeros((1, 9, 4))))
    assert_equal(blank[0], layer_weights(dataclasses.replace(layer, content=None), grid, None))


def test_gains_multiply_the_rows_of_each_head():
    """The scalar encoding's rows sum to Z_h(N), which knows the number of keys, ring included."""
    layer = conv_to_attention(np.ones((3, 1, 1)), encoding="scalar")
    for side in (4, 7):
        grid = TokenGrid((side,), layer.ring)
        rows = np.asarray(layer_weights(layer, grid, None))
        bases = np.array([2.0, 3.0, 4.0])
        for head in range(layer.heads):
            gain = side + 2 + sum(bases**head - 1)
            sums = np.array([math.fsum(row) for row in rows[head]])
            # N additions and a quotient for the row; log, product, exp and sums for the gain
            argument = 2 * head * math.log(4)  # two roundings of it, in the argument of exp
            bound = gamma(math.ceil(2 * argument) + side + 24, "float64") * gain
            assert_within(sums, np.full(side, gain), bound)


@pytest.mark.parametrize("content", [None, ContentScores(*[jnp.ones((3, 12, 2))] * 2)])
def test_the_precision_of_every_product_is_pinned(content):
    layer = tiny_layer(content=content)
    images = jnp.ones((1, 4, 6, 2))
    pinned = precisions(apply_attention, layer, images)
    assert len(pinned) >= 3
    assert {*pinned} == {HIGHEST}
    lower = partial(apply_attention, precision=lax.Precision.DEFAULT)
    assert {*precisions(lower, layer, images)} != {HIGHEST}


@pytest.mark.parametrize("optimiser", [optax.sgd(1e-3), optax.adam(1e-2)])
def test_a_layer_trains(optimiser):
    """Every parameter gets a gradient, and twenty steps bring the layer nearer to a convolution."""
    generator = np.random.default_rng(1)
    images = jnp.asarray(generator.normal(size=(4, 6, 5, 2)))
    target = conv(images, generator.normal(size=(3, 3, 2, 3)))
    layer = conv_to_attention(
        generator.normal(size=(3, 3, 2, 3)), np.zeros(3), encoding="quadratic", alpha=0.5
    )

    def loss(layer):
        return jnp.mean((apply_attention(layer, images) - target) ** 2)

    @jax.jit
    def step(layer, state):
        value, slopes = jax.value_and_grad(loss)(layer)
        updates, state = optimiser.update(slopes, state, layer)
        return optax.apply_updates(layer, updates), state, value, slopes

    trained, state, first, slopes = step(layer, optimiser.init(layer))
    for path, slope in jax.tree.leaves_with_path(slopes):
        assert np.isfinite(np.asarray(slope)).all(), path
        assert np.asarray(slope).any(), path
    losses = [float(first)]
    for _ in range(20):
        trained, state, value, _ = step(trained, state)
        losses.append(float(value))
    assert losses[1] < losses[0]
    assert losses[-1] < losses[1]
    assert jax.tree.structure(trained) == jax.tree.structure(layer)


@given(seed=seeds(), move=st.integers(-2, 2))
def test_moved_images_give_moved_results_away_from_the_border(seed, move):
    case = make_case(Bucket(1, (9, 8), (3, 3), 1, 2, (1, 1), (1, 1), patch_size=(1, 1)), seed)
    images, kernel, bias = case.cast()
    out = np.asarray(converted(images, kernel, bias, case.bucket))
    later = converted(jnp.roll(images, move, 1), kernel, bias, case.bucket)
    inner = (slice(None), slice(3, -3), slice(1, -1))
    assert_equal(later[inner], np.roll(out, move, 1)[inner])
