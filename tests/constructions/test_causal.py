"""S.causal: under a causal mask the layer is the convolution, and what comes later is not seen."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within, gamma
from constructions.conversion_cases import applied, converted, maps_of, recovered, reference

import convattn as ca
from convattn.bounds.limit_rounding import limit_rounding_bound
from convattn.bounds.majorant import majorant_of
from convattn.bounds.rounding import layer_error_bound
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.encodings.scalar import ScalarEncoding
from convattn.fast import choose_windows
from convattn.fast.application import apply_attention
from convattn.networks.weights.consistency import check_layer
from convattn.networks.weights.fixed_size import at_image_size
from convattn_ledger.bounds.back_ends.bounds import value_bound

CAUSAL = {"padding": "CAUSAL", "causal": True}
SERVING = ("dense", "chunked", "shift")
# kernel size, dilation, stride, tokens
SIZES = [(1, 1, 1, 5), (2, 1, 1, 6), (3, 1, 1, 1), (4, 2, 1, 9), (3, 2, 2, 9), (5, 3, 3, 4)]
LIMITS = ("bias", "quadratic", "enumerated", "polygon", "rotary")


def integers(name, *shape, dtype="float32"):
    draws = np.random.default_rng([*name.encode()]).integers(-9, 10, shape)
    return jnp.asarray(draws, dtype)


def case(size, dtype="float32"):
    """Images, kernel, bias and the options of a convolution."""
    taps, dilation, stride, tokens = size
    parts = [("images", 2, tokens, 2), ("kernel", taps, 2, 3), ("bias", 3)]
    options = {"dilation": dilation, "stride": stride}
    return *(integers(*part, dtype=dtype) for part in parts), options


def run(images, kernel, bias, backends=SERVING, **options):
    """The layer, and what each back end makes of the images, as one program."""

    @jax.jit
    def program(images, kernel, bias):
        layer = ca.conv_to_attention(kernel, bias, **CAUSAL, **options)
        return layer, {b: apply_attention(layer, images, backend=b) for b in backends}

    return program(images, kernel, bias)


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("size", "dtype", "exact"),
    [
        (SIZES[0], "float64", {}),
        (SIZES[1], "bfloat16", {}),
        (SIZES[2], "float32", {}),
        (SIZES[3], "float16", {}),
        (SIZES[4], "float32", {"head_dim": 1}),
        (SIZES[5], "float64", {"uniform_weight": 0.25}),
    ],
    ids=str,
)
def test_exact_heads_are_the_convolution_within_the_bound(size, dtype, exact):
    images, kernel, bias, options = case(size, dtype)
    layer, outputs = run(images, kernel, bias, **exact, **options)
    assert layer.heads >= size[0] + 1
    in_float64 = [jnp.asarray(part, jnp.float64) for part in (images, kernel, bias)]
    expected = reference(*in_float64, padding="CAUSAL", **options)
    bound = layer_error_bound(layer, images, majorant_of(layer, kernel, bias, images))
    taps, dilation, _, tokens = size
    short = taps + 4 > tokens + dilation * (taps - 1)  # too few keys for the bound to cover shift
    for backend in SERVING[:2] if short else SERVING:
        assert_dtype(outputs[backend], dtype)
        assert_within(outputs[backend], expected, bound, backend)


@pytest.mark.quick(1)
@pytest.mark.parametrize("encoding", LIMITS)
def test_one_hot_heads_are_the_convolution_to_the_last_bit(encoding):
    images, kernel, bias, options = case(SIZES[3 + LIMITS.index(encoding) % 2])
    expected = reference(images, kernel, bias, padding="CAUSAL", **options)
    options |= {"encoding": encoding, "form": "limit"}
    layer, outputs = run(images, kernel, bias, ("dense", "chunked", "auto"), **options)
    for backend, output in outputs.items():
        assert_equal(output, expected, backend)
    assert (limit_rounding_bound(layer, images, kernel, bias) < 1).all()


@pytest.mark.slow
def test_the_fewest_heads_know_the_visible_keys():
    kernel = jnp.array([1.0, -2.0, 4.0])[:, None, None] * integers("kernel", 1, 2, 3)
    images = integers("images", 2, 7, 2)
    layer = ca.conv_to_attention(kernel, num_heads="min", **CAUSAL)
    assert layer.heads < 4
    expected = reference(images, kernel, padding="CAUSAL")
    limit = 2.0**-16 * float(jnp.abs(kernel).sum()) * 9
    for backend in SERVING:
        assert_within(applied(layer, images, backend=backend), expected, limit, backend)


def test_each_query_has_the_weights_of_the_keys_that_it_sees():
    """Of n keys the target has (1 + n(1/ε - 1))/(n/ε), every other one ε/n, and later ones none."""
    layer = converted(integers("kernel", 3, 1, 1), uniform_weight=0.25, **CAUSAL)
    maps = maps_of(layer, (6,))
    assert maps.ring == ((2, 0),)
    weights = np.asarray(maps.weights)
    for head, query, key in np.ndindex(4, 6, 8):
        visible = query + 3
        at = head < 3 and key == query + head
        total = 4 * visible if head < 3 else visible
        exact = (1 + 3 * visible if at else 1) / total if key < visible else 0
        assert_within(weights[head, query, key], exact, gamma(300, "float32") * exact)


def trained(seed):
    """A causal layer whose table is any, and 2 of whose 5 heads look alike."""
    draw = np.random.default_rng(seed).normal
    encoding = BiasEncoding(jnp.asarray(draw(size=(5, 3))), jnp.asarray(0.3), ((-4,), (-2,), (0,)))
    sizes = {"patch_size": (1,), "stride": (1,), "dilation": (2,), "ring": ((2, 2),)}
    layer = converted(jnp.ones((3, 2, 3), float), dilation=2, **CAUSAL)
    encoding = replace(encoding, offsets=layer.encoding.offsets)
    output = jnp.asarray(draw(size=(5, 2, 3)))
    return AttentionLayer(encoding, None, output, **sizes, padding=layer.padding, causal=True)


@pytest.mark.slow
def test_any_table_is_attention_to_the_visible_keys_in_every_back_end():
    layer, images = trained(0), np.random.default_rng(1).normal(size=(2, 9, 2))
    keys = np.pad(images, [(0, 0), (4, 0), (0, 0)])
    table, output = np.asarray(layer.encoding.values), np.asarray(layer.output)
    expected, magnitude = (np.zeros((2, 9, 3)) for _ in range(2))
    for query in range(9):
        visible = query + 5
        scores = np.zeros((5, visible))
        scores[:, [query, query + 2, query + 4]] = table * np.log1p(visible * 0.7 / 0.3)
        weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        for outputs, tokens, maps in (
            (expected, keys, output),
            (magnitude, np.abs(keys), np.abs(output)),
        ):
            outputs[:, query] = np.einsum("hk,bki,hio->bo", weights, tokens[:, :visible], maps)
    for backend in SERVING:
        outputs = applied(layer, images, backend=backend)
        assert_within(outputs, expected, gamma(600, "float64") * magnitude, backend)


@pytest.mark.slow
def test_gradients_of_the_back_ends_agree():
    layer, images = trained(2), jnp.asarray(np.random.default_rng(3).normal(size=(2, 7, 2)))

    def gradients(backend):
        def loss(layer, images):
            return (apply_attention(layer, images, backend=backend) ** 2).sum()

        return jax.tree.leaves(jax.jit(jax.grad(loss, argnums=(0, 1)))(layer, images))

    dense = gradients("dense")
    for backend in ("chunked", "shift"):
        for gradient, expected in zip(gradients(backend), dense, strict=True):
            assert_within(
                gradient, expected, 2.0**-36 * float(1 + jnp.abs(expected).max()), backend
            )


@pytest.mark.slow
def test_gradients_by_the_images_are_those_of_the_convolution():
    images, kernel, bias, options = case(SIZES[4])
    cotangent = integers("cotangent", 2, 5, 3)
    layer, _ = run(images, kernel, bias, (), form="limit", **options)

    def gradient_of(function):
        return jax.jit(lambda x: jax.vjp(function, x)[1](cotangent)[0])(images)

    expected = gradient_of(lambda x: ca.conv(x, kernel, bias, padding="CAUSAL", **options))
    for backend in SERVING:
        actual = gradient_of(lambda x, b=backend: apply_attention(layer, x, backend=b))
        assert_equal(actual, expected, backend)


@pytest.mark.parametrize(("form", "size"), [("exact", SIZES[4]), ("limit", SIZES[3])], ids=str)
@pytest.mark.quick(1)
def test_what_is_not_finite_reaches_no_earlier_output(form, size):
    images, kernel, bias, options = case(size)
    layer, _ = run(images, kernel, bias, (), form=form, **options)
    spoiled = images.at[:, 4].set(jnp.nan).at[0, -1, 1].set(-jnp.inf)
    earlier = -(-4 // size[2])
    for backend in SERVING:

        def loss(array, backend=backend):
            outputs = apply_attention(layer, array, backend=backend)
            return outputs[:, :earlier].sum(), outputs

        slopes = jax.jit(jax.grad(loss, has_aux=True))
        (slope, outputs), (usual, clean) = slopes(spoiled), slopes(images)
        assert_equal(outputs[:, :earlier], clean[:, :earlier], backend)
        assert bool(jnp.isnan(outputs[:, earlier:]).all())
        assert_equal(slope[:, :4], usual[:, :4], backend)


def test_without_the_mask_it_does_reach_them():
    images, kernel, _, options = case(SIZES[3])
    layer = converted(kernel, padding="CAUSAL", **options)
    outputs = applied(layer, images.at[:, 4].set(jnp.nan), backend="dense")
    assert bool(jnp.isnan(outputs).all())


def test_the_kernel_comes_back():
    images, kernel, bias, options = case(SIZES[3])
    layer, _ = run(images, kernel, bias, (), form="limit", **options)
    recovery = recovered(layer, kernel_size=4, image_size=9)
    assert_equal(recovery.kernel, kernel)
    assert recovery.residual.padding == ((6, 0),)


def test_files_keep_the_mask(tmp_path):
    for layer in (trained(0), replace(trained(0), causal=False)):
        ca.save_layer(layer, tmp_path / "layer.npz")
        loaded = ca.load_layer(tmp_path / "layer.npz")
        assert jax.tree.structure(loaded) == jax.tree.structure(layer)
        assert ("causal" in repr(loaded)) == layer.causal


KERNELS = {1: jnp.ones((3, 1, 1)), 2: jnp.ones((3, 3, 1, 1))}
REFUSED = [
    (1, {"padding": "SAME"}, r"padding=\(\(1, 1\),\).*pass padding='CAUSAL'"),
    (1, {"padding": "VALID"}, r"padding=\(\(0, 0\),\)"),
    (2, {"padding": "SAME"}, r"on a sequence"),
    (2, {"padding": 0}, r"on a sequence"),
    (1, {"padding": "CAUSAL", "patch_size": 2}, r"patch_size=\(2,\).*patch_size=1"),
    (1, {"padding": "CAUSAL", "encoding": "scalar"}, r"ScalarEncoding.*encoding='bias'"),
]


@pytest.mark.parametrize(("axes", "options", "message"), REFUSED)
def test_conversions_that_it_cannot_are_refused(axes, options, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        ca.conv_to_attention(KERNELS[axes], **{"causal": True, **options})


def test_back_ends_bounds_and_layouts_that_it_cannot_are_refused():
    layer = converted(jnp.ones((1, 1, 1)), encoding="quadratic", **CAUSAL)
    images, grid = jnp.ones((1, 5, 1)), layer.token_grid((5,))
    windows = (((0, 0),),)
    for call, message in (
        (lambda: apply_attention(layer, images, backend="windowed", windows=windows), "mask"),
        (lambda: apply_attention(layer, images, backend="separable"), "1 axis"),
        (lambda: apply_attention(layer, images, backend="dot_product"), "content"),
        (lambda: choose_windows(layer.encoding, grid), "causal mask"),
        (lambda: at_image_size(layer, (5,)), "causal mask"),
        (lambda: value_bound(layer, images), "causal mask"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    ahead = replace(trained(0), ring=((2, 1),), padding=None)
    with pytest.raises(ValueError, match="do not see every offset"):
        apply_attention(ahead, jnp.ones((1, 5, 2)), backend="shift")


def test_layers_by_hand_that_it_cannot_are_refused():
    images = replace(converted(KERNELS[2]), causal=True)
    gains = ScalarEncoding(jnp.arange(2.0), jnp.log(jnp.array([2.0])), None, ((0,),))
    scalar = replace(trained(0), encoding=gains)
    for layer, message in ((images, "images have no order"), (scalar, "one number of keys")):
        for call in (check_layer, lambda layer: layer.token_grid((4,) * len(layer.stride))):
            with pytest.raises(ValueError, match=message):
                call(layer)
