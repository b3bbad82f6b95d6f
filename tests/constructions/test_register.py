"""Registers: what their weights are, that layers with one are the convolution, and refusals."""

from dataclasses import replace
from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within, gamma
from constructions.conversion_cases import applied, converted, maps_of, recovered

import convattn as ca
from convattn.bounds.majorant import majorant_of
from convattn.bounds.rounding import layer_error_bound
from convattn.constructions.register import limit_register
from convattn.encodings import (
    BiasEncoding,
    EnumeratedEncoding,
    QuadraticEncoding,
    QuadraticGridEncoding,
)
from convattn.encodings.layer import AttentionLayer, ContentScores, Register
from convattn.fast.dense import softmax_weights
from convattn.networks.weights.fixed_size import at_image_size
from convattn.operators.shifts import TokenGrid
from convattn_ledger.bounds.back_ends.bounds import value_bound
from convattn_ledger.bounds.mixture_error import mixture_error_bound
from convattn_ledger.bounds.saturation_error import saturation_error_bound, saturation_error_factor
from convattn_ledger.evidence import exact_convolution

KERNEL = np.random.default_rng(0).integers(-3, 4, (3, 5, 2, 3))
BIAS = np.arange(3)
IMAGES = np.random.default_rng(1).integers(0, 9, (2, 4, 6, 2))
LAYER = converted(KERNEL.astype("float32"), border="register")


def limit_layer(encoding, dtype="float32", **options):
    kernel = jnp.asarray(KERNEL, dtype)
    options |= {"form": "limit", "border": "register"}
    return converted(kernel, encoding=encoding, **options)


def test_the_limit_scores_are_half_way():
    bias = BiasEncoding(jnp.array([[0.0, 6.0], [3.0, 0.0]]), None, ((0,), (1,)))
    assert limit_register(bias).scores.tolist() == [3.0, 1.5]
    quadratic = QuadraticEncoding(jnp.array([2.0, 5.0]), jnp.zeros((2, 1)))
    assert limit_register(quadratic).scores.tolist() == [-1.0, -2.5]
    alpha = jnp.array([2.0, 8.0]), jnp.array([4.0])
    grid = QuadraticGridEncoding(alpha, (jnp.zeros(2), jnp.zeros(1)), ((1, 0), (0, 0)))
    assert limit_register(grid).scores.tolist() == [-2.0, -1.0]


@pytest.mark.parametrize(("encoding", "per_token"), [
    (BiasEncoding(jnp.array([[3.0], [8.0]]), None, ((1, -2),)), True),
    (QuadraticEncoding(jnp.array([0.5, 2.0]), jnp.array([[0.0, 1.0], [-2.0, 0.0]])), False),
])  # fmt: skip
@pytest.mark.quick(1)
def test_the_weights_are_those_of_one_more_key(encoding, per_token):
    """Against NumPy: exp and log 8 roundings each, a sum of 13, a quotient, in both."""
    grid, register = TokenGrid((3, 4), ((0, 0), (0, 0))), Register(jnp.array([0.5, 2]), per_token)
    layer = AttentionLayer(encoding, None, None, register=register)
    weights = np.asarray(softmax_weights(layer, grid, None))
    powers = np.exp(np.asarray(encoding.positional_scores(grid)))
    rest = np.exp(np.array([0.5, 2]))[:, None] * (12 if per_token else 1)
    total = powers.sum(axis=-1) + rest
    assert_within(weights, powers / total[..., None], gamma(90, "float64"))
    assert_within(1 - weights.sum(axis=-1), rest / total, gamma(90, "float64"))


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1, 5)])
def test_the_shares_of_the_exact_form(epsilon):
    """ε/(N(1 + σ)) beside the target, and nothing that depends on N in the maps."""
    layer = converted(KERNEL.astype(float), border="register", uniform_weight=float(epsilon))
    assert (layer.heads, layer.ring, layer.padding) == (30, ((0, 0), (0, 0)), None)
    weights = np.asarray(maps_of(layer, (5, 7)).weights)
    for head, sigma in ((7, 1), (22, 3)):  # the centre's
        row = weights[head, 2, 3]
        other = float(epsilon / (35 * (1 + sigma)))
        assert_within(row[0, 0], other, gamma(200, "float64") * other)
        expected = float(1 - epsilon) + other
        assert_within(row[2, 3], expected, gamma(200, "float64") * expected)
    for head, sigma in ((0, 1), (15, 3)):  # no target in the corner
        row = weights[head, 0, 0]
        assert_within(row, np.full((5, 7), 1 / (35 * (1 + sigma))), gamma(200, "float64"))


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        ("float64", {"patch_size": (2, 3), "uniform_weight": 0.3}),
        ("float64", {"stride": (2, 1), "padding": "SAME_TORCH"}),
        ("bfloat16", {"patch_size": 2}),
        ("float16", {}),
        ("float32", {"patch_size": 2, "head_dim": 3}),
    ],
)
def test_the_exact_form_is_the_zero_padded_convolution(dtype, options):
    """Within the derived bound, down to one token; grids smaller than the kernel are among them."""
    kernel, bias = jnp.asarray(KERNEL, dtype), jnp.asarray(BIAS, dtype)
    least = options.get("patch_size", 1)
    rows, columns = least if isinstance(least, tuple) else (least, least)
    sizes = [IMAGES, IMAGES[:, :rows, :columns]]
    backends = ("dense", "chunked")

    @jax.jit
    def run(kernel, bias, sizes):
        layer = ca.conv_to_attention(kernel, bias, border="register", **options)
        return layer, [[ca.apply_attention(layer, x, backend=b) for b in backends] for x in sizes]

    typed = [jnp.asarray(images, dtype) for images in sizes]
    layer, results = run(kernel, bias, typed)
    for images, one, outputs in zip(sizes, typed, results, strict=True):
        expected = exact_convolution(images, KERNEL)[:, :: layer.stride[0]] + BIAS
        bound = layer_error_bound(layer, one, majorant_of(layer, KERNEL, BIAS, images))
        for result in outputs:
            assert_dtype(result, dtype)
            assert_within(result, expected, bound)


def test_the_bound_sees_a_wrong_register():
    """Far below what a share that is off by a thousandth does, and so not vacuous."""
    images = IMAGES.astype("float32")
    bound = layer_error_bound(LAYER, images, majorant_of(LAYER, KERNEL, None, images))
    moved = replace(LAYER.register, scores=LAYER.register.scores.at[:15].add(1e-3))
    result = applied(replace(LAYER, register=moved), images)
    assert (np.abs(np.asarray(result) - exact_convolution(IMAGES, KERNEL)) > bound).any()


@pytest.mark.parametrize(
    ("encoding", "dtype", "options"),
    [
        ("quadratic", "float32", {}),
        ("bias", "float32", {"stride": (2, 1), "padding": "SAME_TORCH"}),
        ("bias", "float64", {"patch_size": (4, 3)}),
        ("quadratic", "bfloat16", {"patch_size": 2, "head_dim": 3}),
    ],
)
@pytest.mark.quick(2)
def test_the_limit_form_is_the_zero_padded_convolution(encoding, dtype, options):
    layer = limit_layer(encoding, dtype, **options)
    result = applied(layer, jnp.asarray(IMAGES, dtype))
    assert_dtype(result, dtype)
    expected = exact_convolution(IMAGES, KERNEL)[:, :: layer.subsampling[0]]
    assert_equal(result, jnp.asarray(expected, "float64").astype(dtype))
    without = replace(layer, register=None)
    assert options or (np.asarray(applied(without, IMAGES), float) != expected).any()


def test_a_value_bias_must_not_reach_the_register():
    """A token that is zero but whose value is not leaves its value at the border."""
    shifted = applied(limit_layer("bias"), jnp.asarray(IMAGES + 7.0, "float32"))
    assert_equal(shifted, exact_convolution(IMAGES + 7, KERNEL))


@pytest.mark.slow
def test_gradients_and_vmap():
    """Those of the two back ends agree with each other, and vmap with the batch, in float64."""
    layer, images = converted(KERNEL.astype(float), border="register"), IMAGES * 1.0

    @partial(jax.jit, static_argnames="backend")
    def gradient(layer, backend):
        def loss(layer):
            return (ca.apply_attention(layer, images, backend=backend) ** 2).sum()

        return jax.grad(loss, allow_int=True)(layer)

    dense, chunked = (gradient(layer, backend=name) for name in ("dense", "chunked"))
    for left, right in zip(jax.tree.leaves(dense), jax.tree.leaves(chunked), strict=True):
        assert_within(left, right, 1e-9 * float(np.abs(left).max() + 1))
    assert np.abs(np.asarray(dense.register.scores)).max() > 0
    each = jax.jit(jax.vmap(lambda image: ca.apply_attention(layer, image[None])[0]))(images)
    assert_within(each, applied(layer, images), 1e-9)


@pytest.mark.slow
def test_content_scores_meet_the_register_in_both_back_ends():
    rng = np.random.default_rng(2)
    content = ContentScores(*(jnp.asarray(rng.normal(size=(30, 2, 4)) / 50) for _ in range(2)))
    layer = replace(LAYER, content=content)
    results = [applied(layer, IMAGES * 1.0, backend=b) for b in ("dense", "chunked")]
    assert_within(results[0], results[1], 1e-9)
    weights = np.asarray(ca.attention_maps(layer, IMAGES * 1.0).weights)
    assert (weights.sum(axis=(-2, -1)) < 1).all()


def test_the_kernel_comes_back():
    layer = converted(KERNEL.astype(float), border="register")
    kernel, _, residual = recovered(layer, kernel_size=(3, 5), image_size=(7, 9))
    assert_within(kernel, KERNEL, 1e-12)
    assert float(residual.relative_frobenius) < 1e-13
    assert residual.padding == ((1, 1), (2, 2))


def test_a_file_holds_it(tmp_path):
    for name, layer in (("exact.npz", LAYER), ("limit.safetensors", limit_layer("quadratic"))):
        ca.save_layer(layer, tmp_path / name)
        restored = ca.load_layer(tmp_path / name)
        assert jax.tree.structure(restored) == jax.tree.structure(layer)
        assert_equal(restored.register.scores, layer.register.scores)
        assert "a register" in repr(restored)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"border": "ring"}, "border='ring', but expected 'zeros' .* or 'register'"),
        ({"padding": "VALID"}, "padding='VALID'.* zeros as far as the kernel reaches"),
        ({"padding": "CIRCULAR"}, "padding='CIRCULAR'"),
        ({"padding": 1}, "padding=1"),
        ({"stride": 2}, "take padding='SAME_TORCH'"),
        ({"encoding": "scalar"}, "encoding='scalar' in the exact form"),
        ({"encoding": "enumerated"}, "encoding='enumerated' in the limit form"),
        ({"num_heads": "min"}, "border='register' with num_heads='min'"),
        ({"num_heads": "min", "head_dim": 2}, "border='register' with num_heads='min'"),
        ({"sharpness": 3.0}, "sharpness=3.0 belongs to the limit form"),
    ],
)
def test_conversions_that_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ca.conv_to_attention(KERNEL.astype(float), **{"border": "register", **options})


@pytest.mark.parametrize("backend", ["shift", "separable", "windowed", "dot_product"])
def test_the_other_back_ends_refuse(backend):
    with pytest.raises(ValueError, match=r"has a register, .* use dense or chunked"):
        ca.apply_attention(LAYER, IMAGES * 1.0, backend=backend)


@pytest.mark.parametrize(
    "bound",
    [
        lambda: mixture_error_bound(LAYER, IMAGES * 1.0, np.zeros((2, 4, 6, 3))),
        lambda: value_bound(LAYER, IMAGES * 1.0),
        lambda: saturation_error_bound(limit_layer("bias"), IMAGES),
        lambda: saturation_error_factor(limit_layer("bias"), 24),
        lambda: at_image_size(LAYER, (4, 6)),
    ],
)
def test_bounds_and_modules_of_tokens_alone_refuse(bound):
    with pytest.raises(ValueError, match=r"has a register, .*; convert with border='zeros'"):
        bound()


def test_a_register_of_other_heads_is_refused(tmp_path):
    short = replace(LAYER, register=Register(jnp.zeros(4), True))
    with pytest.raises(ValueError, match="the heads of register and of encoding differ: 4 and 30"):
        ca.save_layer(short, tmp_path / "layer.npz")


@pytest.mark.parametrize("encoding", [
    BiasEncoding(jnp.ones((1, 1)), jnp.array(0.5), ((0,),)),
    EnumeratedEncoding(jnp.ones(1), jnp.ones(1), ((0,),), (0,), 1),
])  # fmt: skip
def test_encodings_whose_register_is_not_known(encoding):
    with pytest.raises(ValueError, match=type(encoding).__name__):
        limit_register(encoding)
