"""Whole networks as vision transformers: logits, bounds, and what is refused."""

import json
from dataclasses import replace

import compiled_networks as networks
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from convattn.compile import NotCompiled, compilation, size, to_vision_transformer, transformer
from convattn.compile.parameters import Builder, Constants
from convattn.networks.weights.files import read_weights

KINDS = {
    "residual": (networks.residual(), (8, 8), 1, {}),
    "residual in patches": (networks.residual(), (8, 8), 2, {}),
    "pooled": (networks.pooled, (8, 8), 1, {}),
    "pooled in patches": (networks.pooled, (8, 8), 4, {}),
    "depthwise": (networks.depthwise, (8, 12), 1, {}),
    "asymmetric": (networks.asymmetric, (7, 9), 1, {}),
    "wide, 25 heads": (networks.wide, (6, 6), 1, {"num_heads": 25}),
    "wide, 9 heads": (networks.wide, (6, 6), 1, {"num_heads": 9}),
    "narrow heads": (networks.wide, (6, 6), 2, {"head_dim": 8}),
    "bordered": (networks.bordered, (6, 7), 1, {}),
    "strided": (networks.strided, (8, 8), 1, {}),
}
KERNEL = networks.Parameters().kernel(3, 3, 3, 4)
SMALL = "bordered"  # the others are slow; a residual one is in test_training.py


def images(sides, dtype=np.float64, seed=0):
    return jnp.asarray(np.random.default_rng(seed).random((2, *sides, 3)), dtype)


@pytest.fixture(scope="module")
def wide():
    return to_vision_transformer(networks.wide, images((6, 6)), num_heads=9)


@pytest.mark.parametrize(
    "name", [pytest.param(k, marks=() if k == SMALL else pytest.mark.slow) for k in KINDS]
)
def test_logits_are_those_of_the_network_within_the_derived_bound(name):
    function, sides, patch, options = KINDS[name]
    for dtype, limit in (("float64", 1e-12), ("float32", 5e-6)):
        compiled = to_vision_transformer(
            function, images(sides), patch_size=patch, dtype=dtype, **options
        )
        report = compiled.report
        assert report.within
        assert report.difference <= limit * report.largest
        assert report.bound.construction.max() <= limit * report.largest
        assert (report.same_class, report.images) == (2, 2)
        assert {array.dtype for array in compiled.arrays.values()} == {np.dtype(dtype)}


@pytest.mark.slow
def test_heads_and_their_width_are_those_that_are_asked_for():
    compiled = to_vision_transformer(networks.wide, images((6, 6)), num_heads=9, head_dim=10)
    assert (compiled.plan.num_heads, compiled.plan.head_dim) == (9, 10)
    assert compiled.arguments["embed_dim"] == 90
    assert compiled.arguments["depth"] == 4  # 25 offsets are three blocks, the mean one
    assert compiled.report.within


@pytest.mark.slow
def test_images_of_another_seed_and_channels_first():
    first = jnp.moveaxis(images((8, 10)), -1, 1)
    compiled = to_vision_transformer(networks.channels_first, first, dtype="float64")
    assert compiled.channels_first
    other = jnp.moveaxis(images((8, 10), seed=1), -1, 1)
    assert jnp.allclose(compiled(other), networks.channels_first(other), rtol=0, atol=1e-12)


def wrong(change):
    """The report where the parameters are made otherwise."""
    right = Builder.arrays

    def arrays(self):
        changed = right(self)
        change(self, changed)
        return changed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilation.Builder, "arrays", arrays)
        return to_vision_transformer(
            networks.residual(), images((8, 8)), patch_size=2, dtype="float64"
        ).report


def turned_head(builder, arrays):
    """The first head looks the other way."""
    dim = builder.plan.head_dim
    arrays["blocks.0.attn.qkv.weight"][:dim] *= -1


def broken_pair(builder, arrays):
    """A channel whose negative is not written."""
    channel = builder.plan.channels[builder.plan.network.nodes[0].value][0]
    arrays["blocks.0.attn.proj.weight"][builder.half + channel] = 0


def wrong_norm(builder, arrays):
    """The weight of a norm is off by a thousandth."""
    arrays["blocks.1.norm1.weight"] *= 1.001


def leaking_class_token(builder, arrays):
    """The class token has a number where the image's are."""
    arrays["pos_embed"][0, 0, builder.plan.channels[builder.plan.network.image][0]] = 1.0


def one_block_less(builder, arrays):
    """The last function is not applied."""
    arrays["blocks.1.mlp.fc2.weight"][:] = 0


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    "change",
    [turned_head, broken_pair, wrong_norm, leaking_class_token, one_block_less],
)
def test_an_error_in_the_parameters_is_outside_the_bound(change):
    assert wrong(lambda *_: None).within
    assert not wrong(change).within


@pytest.mark.slow
def test_64_bit_types_are_not_needed():
    with jax.enable_x64(False):
        compiled = to_vision_transformer(networks.wide, images((6, 6), np.float32), num_heads=9)
        with pytest.raises(ValueError, match="64-bit types are off in JAX"):
            to_vision_transformer(networks.wide, images((6, 6), np.float32), dtype="float64")
    assert compiled.report.within
    assert compiled.report.difference < 5e-6 * compiled.report.largest


def test_sizes_are_known_without_arrays():
    shape = jax.ShapeDtypeStruct((1, 8, 8, 3), np.float32)
    compiled = to_vision_transformer(networks.wide, shape)
    assert compiled.report is None
    expected = sum(array.size for array in compiled.arrays.values())
    assert size(networks.wide, shape).parameters == expected
    assert str(size(networks.wide, shape)).endswith(f"65 tokens, {expected:,} parameters")


def test_a_file_holds_the_arrays_and_what_builds_the_model(wide, tmp_path):
    wide.save(tmp_path / "vit.safetensors")
    file = read_weights(tmp_path / "vit.safetensors")
    assert set(file.arrays) == set(wide.arrays)
    assert json.loads(file.metadata["arguments"]) == wide.arguments


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype"),
    [("narrow heads", "float32"), ("residual", "float64")],
)
def test_the_same_in_nnx(name, dtype):
    function, sides, patch, options = KINDS[name]
    options = {"patch_size": patch, "dtype": dtype, **options}
    compiled = to_vision_transformer(function, images(sides, dtype), **options)
    logits = nnx.jit(compiled.to_nnx())(images(sides, dtype))
    assert logits.dtype == dtype
    apart = np.abs(np.asarray(logits, np.float64) - function(images(sides)))
    assert (apart <= 2 * compiled.report.bound.total).all()


def test_patches_that_are_no_squares_are_refused_by_nnx():
    compiled = to_vision_transformer(
        networks.wide, jax.ShapeDtypeStruct((1, 6, 6, 3), np.float32), patch_size=(1, 2)
    )
    with pytest.raises(ValueError, match="patches of 1 × 2 pixels"):
        compiled.to_nnx()


@pytest.mark.slow
def test_each_value_stands_in_the_stream():
    compiled = to_vision_transformer(networks.pooled, images((8, 8)), patch_size=2, dtype="float64")
    features = compiled.features(images((8, 8)))
    assert [each.blocks for each in features] == list(range(10))  # a block each
    assert features[0].name == "the image"
    for each in features:
        assert np.abs(each.of_network - each.of_transformer).max() < 1e-14
        assert each.of_network.any()


@pytest.mark.slow
def test_images_are_compared_a_few_at_a_time(monkeypatch):
    whole = to_vision_transformer(networks.wide, images((6, 6)), dtype="float64").report
    monkeypatch.setattr(transformer, "_AT_ONCE", 1)
    parts = to_vision_transformer(networks.wide, images((6, 6)), dtype="float64").report
    assert (whole.images, whole.same_class) == (parts.images, parts.same_class)
    assert np.allclose(whole.bound.total, parts.bound.total, rtol=1e-9)


WRONG = {
    "constants": (
        {"epsilon": 1e-6, "constants": Constants(8.0, 8.0, 8.0, 1e-6)},
        "which hold their own",
    ),
    "format": ({"format": "jax"}, "expected one of timm, transformers"),
    "dtype": ({"dtype": "float16"}, "expected float32 or float64"),
    "patch": ({"patch_size": 4}, "does not divide images of 6 × 6"),
    "no heads": ({"num_heads": 0}, "num_heads=0, but expected an integer ≥ 1"),
    "half a head": ({"num_heads": 1.5}, r"num_heads=1\.5, but expected an integer ≥ 1"),
    "narrow heads": ({"head_dim": 4}, "head_dim=4, but expected an integer ≥ 5"),
    "epsilon of timm": ({"epsilon": 1e-3}, "inside norm_layer, which no file says"),
    "negative epsilon": ({"epsilon": -1.0}, "expected a number ≥ 0"),
    "heads": ({"num_heads": 1, "head_dim": 8}, "expected a product of at least"),
    "parameters": ({"max_parameters": 1000}, "GiB in float32, but expected at most 1,000"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_options_are_refused(name):
    options, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        to_vision_transformer(networks.wide, images((6, 6)), **options)


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ((), r"has the shape \(\), but expected images"),
        ((jnp.ones((6, 6, 3)),), r"has the shape \(6, 6, 3\)"),
        ((jnp.ones((1, 6, 6, 3), jnp.float16),), "images of float16"),
        ((jnp.ones((1, 6, 6, 3), jnp.uint8),), "images of uint8"),
        ((jnp.ones((0, 6, 6, 3)),), "but expected images"),
    ],
)
def test_wrong_examples_are_refused(example, message):
    with pytest.raises(ValueError, match=message):
        to_vision_transformer(networks.wide, *example)


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (1e20, "squares LayerNorm can add in float32"),
        (np.nan, "images hold numbers that are not finite"),
        (np.inf, "images hold numbers that are not finite"),
    ],
)
def test_values_whose_squares_overflow_are_refused(factor, message):
    with pytest.raises(ValueError, match=message):
        to_vision_transformer(networks.wide, images((6, 6), np.float32) * factor)


@pytest.mark.parametrize(("dtype", "limit"), [("float64", 1e-12), ("float32", 5e-6)])
@pytest.mark.quick(1)
def test_images_of_any_size_are_as_exact(dtype, limit):
    for scale in (1e-10, 1e5):

        def scaled(x, scale=scale):
            return jax.nn.relu(networks.convolve(x, KERNEL)).mean((1, 2)) / scale

        compiled = to_vision_transformer(scaled, scale * images((6, 6), dtype), dtype=dtype)
        assert compiled.report.passed
        assert compiled.report.difference <= limit * compiled.report.largest


def test_ties_are_the_same_class(wide):
    compiled = to_vision_transformer(
        lambda x: jax.nn.relu(networks.convolve(x, 0 * KERNEL)).mean((1, 2)), images((6, 6))
    )
    assert compiled.report.passed
    assert compiled.report.ratio == np.inf
    assert wide.compared(lambda x: -networks.wide(x), images((6, 6))).same_class == 0


@pytest.mark.slow
def test_positions_that_float32_does_not_tell_apart():
    """Scores round; where that is counted, wide rows of the edge's kind are refused."""

    def function(x):
        wide = jnp.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)), mode="edge")
        return jax.nn.relu(networks.convolve(wide, KERNEL[:1], padding=((0, 0), (0, 0)))).mean(
            (1, 2)
        )

    row = jnp.ones((1, 1, 60, 3), np.float32)
    with pytest.raises(NotCompiled, match="positions float32 does not tell apart"):
        to_vision_transformer(function, jax.ShapeDtypeStruct((1, 1, 2047, 3), np.float32))
    assert to_vision_transformer(function, row, dtype="float64").report.passed


@pytest.mark.slow
def test_images_of_float32_are_widened():
    compiled = to_vision_transformer(networks.wide, images((6, 6), np.float32), dtype="float64")
    assert compiled.report.passed
    assert compiled.report.difference < 1e-12 * compiled.report.largest


@pytest.mark.parametrize("size", [(3, 3, 3), (4, 8, 8)])
@pytest.mark.quick(1)
def test_the_layout_is_tried_where_the_shape_does_not_say_it(size):
    kernel = np.random.default_rng(0).normal(size=(2, size[0], 3, 3))

    def first(x):
        return jax.nn.relu(jax.lax.conv(x, jnp.asarray(kernel), (1, 1), "SAME")).mean((2, 3))

    example = jnp.asarray(np.random.default_rng(1).random((1, *size)))
    compiled = to_vision_transformer(first, example, dtype="float64")
    assert compiled.channels_first
    assert compiled.report.passed


def test_too_many_tokens_are_refused_before_the_function_is_read():
    shape = jax.ShapeDtypeStruct((1, 224, 224, 3), np.float32)
    with pytest.raises(NotCompiled, match="50,177 tokens, but expected at most 4,096"):
        to_vision_transformer(networks.wide, shape)


def test_other_images_than_it_is_made_for_are_refused(wide):
    for call in (wide, wide.features, lambda each: wide.compared(networks.wide, each)):
        with pytest.raises(ValueError, match="made for images of 6 × 6 pixels and 3 channels"):
            call(images((8, 8)))
    with pytest.raises(ValueError, match="0 images of"):
        wide.features(images((6, 6))[:0])
    with pytest.raises(ValueError, match=r"expected logits \[images, classes\] \(2, 3\)"):
        wide.compared(lambda x: x, images((6, 6)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("outer", "reason"),
    [
        (lambda x: (x + 1e6) - 1e6, "the function as it runs is further away"),
        (lambda x: 1e-25 * x, "the bound is no less than the largest logit and says nothing"),
    ],
)
def test_a_report_of_a_function_that_rounds_more_says_why_it_does_not_pass(outer, reason):
    def network(x):
        return outer(networks.convolve(x, KERNEL)).mean((1, 2))

    report = to_vision_transformer(network, images((6, 6), np.float32), patch_size=2).report
    assert (report.within, report.passed) == (True, False)
    assert reason in str(report)


def test_a_report_that_passes_gives_no_reason(wide):
    assert wide.report.passed
    assert len(str(wide.report).splitlines()) == 3


def test_logits_that_are_no_numbers_do_not_pass(wide):
    for training in (False, True):
        report = replace(wide.report, difference=float("nan"), for_training=training)
        assert not report.passed
        assert "the logits are not finite numbers" in str(report)
    far = replace(wide.report, difference=2 * wide.report.largest, for_training=True)
    assert not far.passed
    assert "by at least as much as the largest" in str(far)
