"""The residual network of self-attentive convolutions, against the one of convolutions."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from flax import nnx
from lab.models.gradients import unreached

from convattn_lab.models.build import build_model
from convattn_lab.models.self_attentive_resnet import SelfAttentiveResNet, with_self_attention
from convattn_lab.models.settings import SelfAttentiveResNetSettings
from convattn_lab.models.sizes import parameter_count
from convattn_ledger.bounds.self_attentive_rounding import LARGEST_EXACT, two_head_error_bound
from convattn_ledger.evidence.exact_convolution import exact_convolution

TINY = SelfAttentiveResNetSettings(channels=(2, 4), blocks=(1, 1), key_features=3)
KINDS = {
    "sac": TINY,
    "msac": replace(TINY, operator="msac"),
    "both": replace(TINY, ordinary=True),
    "fine": replace(TINY, fine_keys=True),
}


def network_of(settings: SelfAttentiveResNetSettings) -> SelfAttentiveResNet:
    return build_model(settings, classes=3, image_size=(16, 16), rngs=nnx.Rngs(0))


@nnx.jit
def run(model, images):
    return model(images)


def pictures(count=2):
    return jnp.asarray(np.random.default_rng(1).normal(size=(count, 16, 16, 3)), jnp.float32)


@pytest.mark.slow
def test_the_gradient_reaches_every_parameter():
    """Of a stage with both scales and ordinary convolutions, and so of every kind; planted: where
    the queries are zero, the keys change nothing."""
    small = replace(TINY, operator="msac", ordinary=True, channels=(2,), blocks=(1,), scales=(1, 2))
    assert unreached(network_of(small), pictures()) == []
    model = network_of(replace(TINY, channels=(2,), blocks=(1,), kernel_size=1))
    query = model.blocks[0].first.operator.query
    query[...] = jnp.zeros_like(query[...])
    assert unreached(model, pictures()) == ["blocks.0.first.operator.key.value"]


def count(settings: SelfAttentiveResNetSettings, classes: int = 3) -> int:
    """The parameters on images of 16 × 16: stem to 8, stages at 4 and 2, norms of two numbers."""
    (one, two), heads, queries = settings.channels, settings.heads, settings.key_features
    total = 27 * one + 2 * one
    for inputs, outputs, side in ((one, one, 4), (one, two, 2)):
        fine = 2 * side if settings.fine_keys else side
        for channels, cells in ((inputs, fine), (outputs, side)):
            if settings.operator == "convolution":
                total += 9 * channels * outputs
            else:
                sizes = settings.scales if settings.operator == "msac" else (3,)
                for size in sizes:
                    total += size**2 * channels * heads * (outputs + 2 * queries)
                    total += heads * outputs**2 + heads * cells**2
                    if settings.ordinary:
                        total += size**2 * channels * outputs + 2 * outputs**2
                if settings.operator == "msac":
                    total += len(sizes) * outputs**2
            total += 2 * outputs
        total += inputs * outputs + 2 * outputs  # the shortcut of a stride
    return total + two * classes + classes


@pytest.mark.parametrize("kind", [*KINDS, "convolution"])
@pytest.mark.quick(2)
def test_the_parameters_are_those_of_the_paper(kind):
    settings = KINDS.get(kind, replace(TINY, operator="convolution"))
    model = nnx.eval_shape(lambda: network_of(settings))
    assert parameter_count(model) == count(settings)
    assert parameter_count(model) != count(replace(settings, channels=(2, 5)))


def integer_network(seed: int = 0) -> SelfAttentiveResNet:
    """Convolutions of -1, 0 and 1, norms that add integers and divide by one."""
    rng = np.random.default_rng(seed)
    model = network_of(replace(TINY, operator="convolution"))
    graph, state = nnx.split(model)

    def draw(path, leaf):
        name = jax.tree_util.keystr(path)
        if "var" in name:
            return jnp.full(leaf.shape, np.float32(1) - np.float32(1e-5))
        if "mean" in name:
            return jnp.zeros(leaf.shape)
        if "scale" in name:
            return jnp.ones(leaf.shape)
        return jnp.asarray(rng.integers(-1, 2, leaf.shape), jnp.float32)

    return nnx.merge(graph, jax.tree_util.tree_map_with_path(draw, state))


def exact_logits(model: SelfAttentiveResNet, images: np.ndarray) -> tuple[np.ndarray, dict]:
    """4·logits in 64-bit integers, and the exact inputs of each operator.

    The last grid has 4 pixels, over which the mean is taken.
    """
    operator_inputs = {}

    def numbers(parameter):
        return np.asarray(parameter[...]).astype(np.int64)

    def convolved(layer, values, stride):
        kernel = numbers(layer.convolution.kernel)
        total = exact_convolution(values, kernel, stride=stride) + numbers(layer.norm.bias)
        magnitude = np.abs(values).max() * np.abs(kernel).reshape(-1, kernel.shape[-1]).sum(0).max()
        assert magnitude + 1 < LARGEST_EXACT  # so that float32 holds every partial sum
        return total

    values = np.maximum(convolved(model.stem, images, 2), 0)
    for number, block in enumerate(model.blocks):
        operator_inputs[number, "first"] = values, block.first, 2
        hidden = np.maximum(convolved(block.first, values, 2), 0)
        operator_inputs[number, "second"] = hidden, block.second, 1
        result = convolved(block.second, hidden, 1) + convolved(block.shortcut, values, 2)
        values = np.maximum(result, 0)
    classifier = numbers(model.classifier.kernel), numbers(model.classifier.bias)
    return values.sum((1, 2)) @ classifier[0] + 4 * classifier[1], operator_inputs


@pytest.fixture(scope="module")
def integers():
    model = integer_network()
    images = jnp.asarray(np.random.default_rng(2).integers(-3, 4, (2, 16, 16, 3)), jnp.float32)
    expected, operator_inputs = exact_logits(model, np.asarray(images).astype(np.int64))
    return model, images, expected, operator_inputs


@pytest.mark.slow
def test_the_network_of_convolutions_is_the_exact_one(integers):
    model, images, expected, _ = integers
    assert np.abs(expected).max() < LARGEST_EXACT
    assert_equal(4 * run(model, images), expected)


@pytest.mark.slow
def test_at_a_large_bias_the_network_of_sac_is_that_of_convolutions(integers):
    """Off-target weights underflow, so that nothing is rounded: the logits are the same numbers."""
    model, images, expected, _ = integers
    attentive = with_self_attention(model, form="limit")
    assert attentive.blocks[0].first.operator.parameters.heads == 1
    assert_equal(4 * run(attentive, images), expected)
    assert not hasattr(model.blocks[0].first, "operator")  # what was given stays
    value = attentive.blocks[0].first.operator.value
    value[...] = jnp.roll(value[...], 1, axis=1)
    for wrong in (attentive, with_self_attention(model, form="limit", sharpness=5.0)):  # planted
        with pytest.raises(AssertionError, match="entries differ"):
            assert_equal(4 * run(wrong, images), expected)


@pytest.mark.slow
def test_two_heads_at_a_finite_bias_are_each_convolution(integers):
    """Operator by operator, on the exact inputs of the network, within the derived bound."""
    model, _, _, operator_inputs = integers
    attentive = with_self_attention(model)
    for (number, name), (inputs, layer, stride) in operator_inputs.items():
        kernel = np.asarray(layer.convolution.kernel[...]).astype(np.int64)
        operator = getattr(attentive.blocks[number], name).operator
        expected = exact_convolution(inputs, kernel, stride=stride)
        sums = np.abs(kernel).reshape(-1, kernel.shape[-1]).sum(0).max()
        magnitude = int(np.abs(inputs).max() * sums)
        bound = two_head_error_bound(expected, expected, "float32", magnitude=magnitude)
        pixels = jnp.asarray(inputs, jnp.float32)
        assert_within(run(operator, pixels), expected, bound)
        operator.value[...] = jnp.roll(operator.value[...], 1, axis=2)  # planted: another tap
        with pytest.raises(AssertionError, match="too far"):
            assert_within(run(operator, pixels), expected, bound)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sac", "msac"])
def test_the_bias_begins_as_it_is_asked_to(kind):
    operator = network_of(replace(KINDS[kind], center_bias=2.5)).blocks[0].first.operator
    for scale in [operator] if kind == "sac" else operator.scales:
        table = np.asarray(scale.position[...])
        assert table.shape == (2, 4, 4)
        assert (table[:, 0, 0] == 2.5).all()
        assert np.count_nonzero(table) == 2


@pytest.mark.slow
def test_only_convolutions_are_turned_into_sac():
    turned = with_self_attention(network_of(replace(TINY, operator="convolution")))
    assert turned.settings == replace(TINY, operator="sac", heads=2)
    with pytest.raises(ValueError, match="operator='sac', but expected a network of convolutions"):
        with_self_attention(turned)


@pytest.mark.slow
def test_logits_are_wide_whatever_it_computes_in():
    options = {"classes": 3, "image_size": (16, 16), "rngs": nnx.Rngs(0), "dtype": "bfloat16"}
    assert nnx.eval_shape(run, build_model(TINY, **options), pictures()).dtype == jnp.float32
