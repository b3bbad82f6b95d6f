"""Constants for training: what each error may be, the size of gradients, and what is refused."""

from dataclasses import replace
from functools import partial

import compiled_networks as networks
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from convattn.compile import stock, to_vision_transformer
from convattn.compile.evaluation import affine_values, node_values
from convattn.compile.parameters import TRAINING_ERROR, Constants
from convattn.compile.scalar import GELU_DEVIATION
from convattn.compile.stored_values import StoredValues


def images(sides=(8, 8), seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(4, *sides, 3)), jnp.float32)


@pytest.fixture(scope="module")
def compiled():
    """A CNN of two layers and patches, with both kinds of constants."""
    function = networks.residual()
    options = {"patch_size": 2}
    return [
        to_vision_transformer(function, images(), for_training=training, **options)
        for training in (False, True)
    ]


def left_of_sharpness(transformer, constants):
    """The share of S that LayerNorm leaves before every attention, on the images."""
    held = StoredValues(transformer.plan, constants, transformer.streams(images()))
    largest = max(held.deviation(stream).max() for stream in held.before)
    return 1 - largest * transformer.plan.largest_ratio


@pytest.mark.slow
def test_each_error_is_what_the_rule_says(compiled):
    exact, training = compiled
    constants, network = training.constants, training.plan.network
    assert left_of_sharpness(training, constants) >= 0.75
    smaller = replace(constants, norm=constants.norm / 4)  # the rule's Λ is no waste
    assert left_of_sharpness(training, smaller) < 0.75
    tokens = training.report.size.tokens
    assert tokens * np.exp(-constants.sharpness) == pytest.approx(TRAINING_ERROR)
    values = node_values(network, np.asarray(images()))
    sizes = [
        np.sqrt((affine_values(node.affine, values) ** 2).mean())
        for node in network.nodes
        if node.units.bends
    ]
    assert GELU_DEVIATION / constants.slope == pytest.approx(TRAINING_ERROR * min(sizes))
    assert constants.norm < 1e-3 * exact.constants.norm
    assert constants.epsilon == exact.constants.epsilon


@pytest.mark.slow
def test_logits_are_within_the_derived_bound_and_near(compiled):
    exact, training = (transformer.report for transformer in compiled)
    assert exact.within
    assert exact.difference <= 5e-6 * exact.largest
    assert training.within
    assert training.passed
    assert 1e-5 < training.difference / training.largest < 0.1
    assert training.bound.construction.max() > 1e3 * exact.bound.construction.max()
    assert not replace(training, within=False).passed
    assert not replace(training, for_training=False).passed  # else it would be asked to be exact


@partial(jax.jit, static_argnums=(1, 2))
def gradient_of(arrays, num_heads, epsilon):
    def loss(arrays):
        logits = stock.run(arrays, images(), num_heads, epsilon).logits
        return -jax.nn.log_softmax(logits)[jnp.arange(4), jnp.arange(4)].mean()

    return jax.grad(loss)(arrays)


def gradient(transformer):
    return gradient_of(transformer.timm, transformer.plan.num_heads, transformer.constants.epsilon)


def norm(arrays):
    return float(np.linalg.norm([np.linalg.norm(np.float64(each)) for each in arrays]))


@pytest.mark.slow
def test_gradients_are_of_a_usual_size(compiled):
    exact, training = (norm(gradient(transformer).values()) for transformer in compiled)
    assert exact > 1e8
    assert training < 1e-5 * exact  # Λ is 10⁶ times smaller, and s 2⁵⁵


@pytest.mark.slow
def test_no_gradient_grows_with_lambda(compiled):
    """As nothing reads λ, LayerNorm's weight there may be zero; where it is not, some do."""
    training = compiled[1]
    assert all(
        (training.timm[f"blocks.{n}.norm1.weight"] == 0).sum() == 2
        for n in range(len(training.plan.blocks))
    )
    usual = to_vision_transformer(
        networks.residual(), images(), patch_size=2, constants=training.constants
    )
    assert np.allclose(usual(images()), training(images()), rtol=0, atol=1e-4)
    read = [0, training.plan.width // 2]  # λ and -λ
    name = "blocks.0.attn.qkv.weight"
    without = gradient(training)[name]
    assert norm([without[:, read]]) == 0
    assert norm([gradient(usual)[name][:, read]]) > norm([without])


@pytest.mark.parametrize(
    ("example", "options", "message"),
    [
        (images(), {"constants": Constants(8.0, 8.0, 8.0, 1e-6)}, "beside constants"),
        (jax.ShapeDtypeStruct((1, 8, 8, 3), jnp.float32), {}, "with a shape, but expected images"),
        (images() * np.inf, {}, "not finite"),
    ],
)
def test_what_makes_no_sense_is_refused(example, options, message):
    with pytest.raises(ValueError, match=message):
        to_vision_transformer(networks.residual(), example, for_training=True, **options)


def test_a_network_without_bends_has_constants_too():
    transformer = to_vision_transformer(lambda x: x.mean((1, 2)), images(), for_training=True)
    assert transformer.constants.slope == pytest.approx(GELU_DEVIATION / TRAINING_ERROR)
    assert transformer.report.passed


@pytest.mark.slow
def test_a_comparison_on_other_images_knows_what_the_constants_are_for(compiled):
    for transformer, training in zip(compiled, (False, True), strict=True):
        report = transformer.compared(networks.residual(), images(seed=1))
        assert report.for_training is training
