"""`AttentionConv` against `nnx.Conv`: the same arguments, the same call, the same result."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest
from comparison import assert_equal, assert_within
from flax import nnx

from convattn.encodings.bias import BiasEncoding
from convattn.nnx import AttentionConv

# in, out, kernel size, strides, other arguments, sides of the image
ROWS = [
    (2, 3, (3, 3), 1, {}, (5, 6)),
    (2, 3, (3, 3), 2, {}, (8, 7)),
    (2, 4, (2, 3), (3, 1), {"padding": "VALID", "use_bias": False}, (9, 6)),
    (4, 4, (3, 3), 2, {"feature_group_count": 4}, (6, 8)),
    (4, 6, (4,), 2, {"feature_group_count": 2, "kernel_dilation": 2, "padding": "CIRCULAR"}, (10,)),
    (2, 3, (2,), 1, {"kernel_dilation": 3, "padding": "REFLECT"}, (7,)),
    (2, 3, 3, 2, {"padding": "CAUSAL"}, (8,)),
    (2, 3, (3, 2), 1, {"padding": [(0, 1), (1, 0)], "kernel_dilation": (2, 1)}, (7, 6)),
    (2, 3, (1, 1), None, {"padding": 0}, (4, 5)),
]


def integers(layer: nnx.Conv) -> nnx.Conv:
    """Its parameters as small integers, so that sums are exact."""
    layer.kernel[...] = jnp.round(8 * layer.kernel[...])
    if layer.bias is not None:
        layer.bias[...] = jnp.arange(1, 1 + layer.out_features, dtype=layer.bias.dtype)
    return layer


def pair(row, **options):
    """A convolution, its attention, and images."""
    inside, outside, size, strides, arguments, sides = row
    conv = integers(nnx.Conv(inside, outside, size, strides, rngs=nnx.Rngs(0), **arguments))
    images = np.random.default_rng(1).integers(0, 9, (2, *sides, inside))
    return conv, AttentionConv.from_conv(conv, **options), jnp.asarray(images, jnp.float32)


FAST_ROWS = ROWS[2], ROWS[4]  # causal ones are below


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    "row",
    [row if row in FAST_ROWS else pytest.param(row, marks=pytest.mark.slow) for row in ROWS],
    ids=lambda row: f"{row[2]} {row[3]} {row[4]}",
)
def test_one_hot_heads_are_equal_to_it(row):
    conv, layer, images = pair(row, form="limit")
    assert_equal(layer(images), conv(images))
    back = layer.to_conv()
    assert_equal(back.conv.kernel[...], conv.kernel[...])
    assert_equal(back.conv(images), conv(images))
    assert back.distance == 0


@pytest.mark.parametrize("row", ROWS[3:5], ids=lambda row: f"{row[2]} {row[3]}")
@pytest.mark.quick(1)
def test_at_finite_parameters_it_is_within_rounding(row):
    conv, layer, images = pair(row, uniform_weight=0.25)
    expected = conv(images)
    scale = float(jnp.abs(conv.kernel[...]).sum() * images.max())
    assert_within(layer(images), expected, np.full(expected.shape, 1e-4 * scale))
    assert float(jnp.abs(layer(images) - conv(jnp.flip(images, 1))).max()) > 1


@pytest.mark.slow
def test_drawn_it_begins_where_the_convolution_does():
    options = {"strides": 2, "rngs": nnx.Rngs(3)}
    layer = AttentionConv(2, 4, (3, 3), form="limit", **options)
    conv = nnx.Conv(2, 4, (3, 3), strides=2, rngs=nnx.Rngs(3))
    assert_equal(layer.to_conv().conv.kernel[...], conv.kernel[...])


@pytest.mark.slow
def test_any_number_of_batch_axes_and_vmap_and_jit():
    _, layer, images = pair(ROWS[3])
    expected = layer(images)
    assert_within(layer(images[0]), expected[0], np.full(expected.shape[1:], 1e-4))
    assert layer(images[None, None]).shape == (1, 1, *expected.shape)
    compiled = nnx.jit(lambda layer, images: layer(images))(layer, images)
    mapped = nnx.vmap(lambda layer, image: layer(image), in_axes=(None, 0))(layer, images)
    for actual in (compiled, mapped):
        assert_within(actual, expected, np.full(expected.shape, 1e-4))


@pytest.mark.slow
def test_a_depthwise_layer_holds_no_zeros():
    conv = nnx.Conv(96, 96, (5, 5), feature_group_count=96, rngs=nnx.Rngs(0))
    layer = AttentionConv.from_conv(conv)
    assert layer.output[...].shape == (26, 1, 96)
    narrow = AttentionConv.from_conv(conv, head_dim=1)
    assert narrow.value[...].shape[2] == 1


@pytest.mark.slow
def test_heads_are_split_to_a_width():
    conv, layer, images = pair((4, 6, (3, 3), 1, {"feature_group_count": 2}, (4, 5)), head_dim=1)
    expected = conv(images)
    assert layer.heads > 10
    assert_within(layer(images), expected, np.full(expected.shape, 1e-2))


@pytest.mark.slow
def test_it_trains_and_the_leak_stays_in_its_range():
    _, layer, images = pair(ROWS[3])
    target = jax.random.normal(jax.random.key(0), layer(images).shape, jnp.float32)
    optimizer = nnx.Optimizer(layer, optax.sgd(0.01), wrt=nnx.Param)
    before = jax.tree.map(jnp.copy, nnx.state(layer, nnx.Param))

    @nnx.jit
    def step(layer, optimizer):
        def loss(layer):
            logit = layer.uniform_weight_logit[...]
            return ((layer(images) / 100 - target) ** 2).mean() + 9 * logit

        value, gradient = nnx.value_and_grad(loss)(layer)
        optimizer.update(layer, gradient)
        return value

    losses = [float(step(layer, optimizer)) for _ in range(9)]
    assert losses[-1] < losses[0]
    after = nnx.state(layer, nnx.Param)
    moved = jax.tree.map(lambda a, b: bool((a != b).any()), before, after)
    assert all(jax.tree.leaves(moved)), moved
    for logit in (-200.0, 200.0):
        layer.uniform_weight_logit[...] = jnp.array(logit, jnp.float32)
        assert 0 < float(layer.uniform_weight) < 1
        assert bool(jnp.isfinite(layer(images)).all())


@pytest.mark.slow
def test_a_checkpoint_restores_it(tmp_path: Path):
    _, layer, images = pair(ROWS[1])
    graph, state = nnx.split(layer)
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "layer", state)
    with ocp.StandardCheckpointer() as checkpointer:
        restored = checkpointer.restore(tmp_path / "layer", jax.tree.map(jnp.zeros_like, state))
    assert_equal(nnx.merge(graph, restored)(images), layer(images))


@pytest.mark.slow
def test_an_empty_batch_and_a_large_dilated_layer():
    grouped = AttentionConv(4, 4, (3, 3), feature_group_count=4, rngs=nnx.Rngs(0))
    assert grouped(jnp.ones((0, 8, 8, 4), jnp.float32)).shape == (0, 8, 8, 4)
    wide = nnx.Conv(64, 64, (3, 3), kernel_dilation=6, rngs=nnx.Rngs(0))
    recovered = AttentionConv.from_conv(wide).to_conv()
    assert recovered.distance < 1e-5
    assert_within(
        recovered.conv.kernel[...], wide.kernel[...], np.full(wide.kernel[...].shape, 1e-6)
    )


@pytest.mark.slow
def test_a_trained_layer_says_how_far_it_is_from_a_convolution():
    layer = AttentionConv.from_kernel(jnp.arange(18.0).reshape(3, 3, 1, 2))
    untrained = layer.to_conv().distance
    layer.scores[...] = layer.scores[...].at[8, 7].set(1.0)
    assert untrained < 1e-12
    assert 1e-3 < layer.to_conv().distance < 1


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.slow
def test_a_uniform_head_that_no_longer_cancels_is_named_in_every_dtype(dtype):
    layer = AttentionConv(2, 4, (3,), param_dtype=dtype, dtype=jnp.float32, rngs=nnx.Rngs(0))
    layer.scores[...] = layer.scores[...] * 0.5
    assert layer.to_conv().uniform > 0.3


class Frozen(nnx.Param):
    """Parameters that an optimiser leaves out."""


@pytest.mark.slow
def test_the_kind_and_the_dtype_of_a_parameter_are_kept(implicit_promotion):
    conv = nnx.Conv(2, 4, (3,), rngs=nnx.Rngs(0))
    kernel, bias = conv.kernel[...], conv.bias[...]
    for kinds in [(Frozen, nnx.Param), (nnx.Param, Frozen)]:
        conv.kernel, conv.bias = kinds[0](kernel), kinds[1](bias)
        layer = AttentionConv.from_conv(conv, head_dim=1)
        assert (type(layer.output), type(layer.bias)) == kinds
        parts = layer.value, layer.scores, layer.uniform_weight_logit
        assert {type(part) for part in parts} == {kinds[0]}
        layer.bias = kinds[1](bias.astype(jnp.bfloat16))
        back = layer.to_conv().conv
        assert (type(back.kernel), type(back.bias)) == kinds
        assert (back.kernel[...].dtype, back.bias[...].dtype) == (jnp.float32, jnp.bfloat16)


@pytest.mark.parametrize(
    ("inputs", "kernel", "bias", "expected"),
    [
        ("float32", "bfloat16", "bfloat16", 257),
        ("bfloat16", "float32", "float32", 257),
        ("bfloat16", "bfloat16", "float32", 257),
        ("bfloat16", "bfloat16", "bfloat16", 256),
    ],
)
@pytest.mark.quick(2)
def test_without_a_dtype_it_computes_in_what_inputs_and_parameters_promote_to(
    inputs, kernel, bias, expected, implicit_promotion
):
    """256 + 1 is no number of bfloat16, whose nearest even one is 256."""
    layer = AttentionConv.from_kernel(jnp.ones((1, 1, 1), kernel), jnp.ones(1), form="limit")
    layer.bias = nnx.Param(jnp.ones(1, bias))
    result = layer(jnp.full((1, 4, 1), 256, inputs))
    assert result.dtype == jnp.result_type(inputs, kernel, bias)
    assert_equal(result, np.full((1, 4, 1), expected))


@pytest.mark.parametrize("groups", [1, 2])
def test_the_precision_is_taken_over_there_and_back(groups):
    conv = nnx.Conv(2, 4, (3,), precision="high", feature_group_count=groups, rngs=nnx.Rngs(0))
    layer = AttentionConv.from_conv(conv, backend="dense")
    assert layer.precision == "high"
    program = str(jax.make_jaxpr(layer)(jnp.ones((1, 4, 2), jnp.float32)))
    assert set(re.findall(r"Precision\.\w+", program)) == {"Precision.HIGH"}
    if groups == 1:
        assert layer.to_conv().conv.precision == "high"


class Custom(nnx.Conv):
    """It may compute anything."""


def with_(**options):
    return lambda: AttentionConv(2, 4, (3, 3), rngs=nnx.Rngs(0), **options)


def of(conv):
    return lambda: AttentionConv.from_conv(conv)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (with_(padding=None), "padding=None, but expected one of SAME, SAME_LOWER, VALID"),
        (with_(dtype=jnp.int32), "dtype=.*int32.*, but expected a float"),
        (with_(backend="cuda"), "backend='cuda', but expected one of auto"),
        (lambda: AttentionConv(2, 4, 3.0, rngs=nnx.Rngs(0)), "kernel_size"),
        (with_(padding="EDGE"), "padding='EDGE', but expected one of SAME, SAME_LOWER, VALID"),
        (with_(padding="CAUSAL"), "expected a sequence"),
        (with_(causal=True), "pass padding='CAUSAL'"),
        (with_(padding=2), "makes more outputs than"),
        (with_(strides=0), "strides=0"),
        (with_(feature_group_count=3), "multiples of feature_group_count=3"),
        (with_(uniform_weight=1.0), "uniform_weight=1.0"),
        (with_(input_dilation=2), "input_dilation=2, but expected 1"),
        (with_(mask=jnp.ones((3, 3, 2, 4))), "multiply the kernel by it"),
        (lambda: AttentionConv(2, 4, (3, 3, 3), rngs=nnx.Rngs(0)), "3 axes.*or two"),
        (of(Custom(2, 4, (3, 3), rngs=nnx.Rngs(0))), "conv=Custom, but expected an nnx.Conv"),
        (of(jnp.ones((3, 3, 2, 4))), "conv=ArrayImpl, but expected an nnx.Conv"),
        (
            of(nnx.Conv(2, 4, (3, 3), conv_general_dilated=lambda *_: None, rngs=nnx.Rngs(0))),
            "what it computes is not known",
        ),
        (
            of(nnx.Conv(2, 4, (3, 3), preferred_element_type=jnp.float32, rngs=nnx.Rngs(0))),
            "set dtype instead",
        ),
        (lambda: AttentionConv.from_kernel([1.0, 2.0]), r"kernel.shape=\(2,\)"),
        (
            lambda: AttentionConv.from_kernel(jnp.ones((3, 3, 2, 4)))(jnp.ones((1, 2, 5, 5))),
            "expected 2 spatial axes and then 2 channels; axis 1 has as many",
        ),
        (
            lambda: AttentionConv.from_kernel(jnp.ones((64, 3, 7, 7)))(jnp.ones((1, 8, 8, 3))),
            r"looks like \[out, in, K, K\]: kernel.transpose\(2, 3, 1, 0\)",
        ),
        (
            lambda: AttentionConv.from_kernel(jnp.ones((3, 2, 4)), border="register"),
            "border='register', but expected 'zeros'",
        ),
        (lambda: AttentionConv(2, 4, (3, 3), rngs=0), "rngs=0, but expected nnx.Rngs"),
        (
            lambda: AttentionConv.from_kernel(jnp.ones((3, 2, 4)))(jnp.ones(2)),
            "expected 1 spatial axes",
        ),
    ],
)
def test_wrong_use_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


FIXED = """
    padding strides kernel_dilation input_dilation feature_group_count kernel_size mask use_bias
    conv_general_dilated promote_dtype preferred_element_type param_dtype
"""


@pytest.mark.parametrize("name", FIXED.split())
def test_options_that_the_heads_are_made_for_cannot_be_set(name):
    layer = AttentionConv.from_kernel(jnp.ones((1, 1, 1)))
    with pytest.raises(AttributeError, match=f"{name} of an AttentionConv cannot be set.*anew"):
        setattr(layer, name, 2)


def test_options_that_a_call_reads_can_be_set():
    layer = AttentionConv.from_kernel(jnp.ones((1, 1, 1), jnp.float32), form="limit")
    layer.dtype = jnp.bfloat16
    layer.backend = "dense"
    layer.note = "kept"
    assert layer(jnp.ones((1, 4, 1), jnp.float32)).dtype == jnp.bfloat16
    conv = nnx.Conv(1, 1, (1,), dtype=jnp.bfloat16, rngs=nnx.Rngs(0))
    assert AttentionConv.from_conv(conv).dtype == jnp.bfloat16
    with pytest.raises(ValueError, match="backend='none', but expected one of auto"):
        layer.backend = "none"
    with pytest.raises(ValueError, match="but expected a float"):
        layer.dtype = jnp.int32


def test_its_parts_are_the_ledgers():
    layer = AttentionConv.from_kernel(jnp.ones((3, 1, 1))).group_layer()
    assert isinstance(layer.encoding, BiasEncoding)
    assert layer.encoding.is_exact_form


CAUSAL_ROWS = [
    (4, 6, (4,), 2, {"padding": "CAUSAL", "feature_group_count": 2, "kernel_dilation": 2}, (9,)),
    (2, 3, 3, 1, {"padding": "CAUSAL"}, (8,)),
]


@pytest.mark.parametrize("form", ["exact", "limit"])
@pytest.mark.parametrize("row", CAUSAL_ROWS, ids=["grouped", "plain"])
@pytest.mark.slow
def test_causal_convolutions_have_a_mask(row, form):
    conv, layer, images = pair(row, causal=True, form=form)
    inputs, strides = images - 4, row[3]
    expected, actual = conv(inputs), layer(inputs)
    assert_within(actual, expected, 0 if form == "limit" else 1e-4)
    spoiled, earlier = layer(inputs.at[:, 4:].set(jnp.nan)), 4 // strides
    assert_equal(spoiled[:, :earlier], actual[:, :earlier])
    assert bool(jnp.isnan(spoiled[:, earlier:]).all())
    with pytest.raises(AttributeError, match="causal of an AttentionConv"):
        layer.causal = False
    back = layer.to_conv()
    assert back.conv.padding == "CAUSAL"
    assert_within(back.conv.kernel[...], conv.kernel[...], 1e-4)
    assert back.uniform < 1e-6


@pytest.mark.slow
def test_a_leak_that_a_causal_layer_keeps_is_measured():
    kernel = jnp.arange(24, dtype=jnp.float32).reshape(3, 2, 4)
    layer = AttentionConv.from_kernel(kernel, padding="CAUSAL", causal=True)
    layer.output[...] = layer.output[...].at[-1].set(0)  # the leak ε/(1 - ε)·ΣW stays
    uniform = float(layer.to_conv().uniform)
    expected = np.linalg.norm(np.asarray(kernel).sum(0)) / np.linalg.norm(np.asarray(kernel))
    assert 0.5 * expected < uniform < 2 * expected
