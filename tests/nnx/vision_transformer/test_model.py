"""The vision transformers, against NumPy with every parameter in use."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within
from flax import nnx
from lab.models.oracle import gelu, linear, norm
from nnx.vision_transformer.tiny_transformer import SETTINGS, SIZE, images, tiny
from nnx.vision_transformer.transformer_oracle import convolved, logits_of

from convattn.nnx.layers.dropout import depth_rates, drop_path
from convattn.nnx.vision_transformer.attention_mixing import AttentionMixing
from convattn_lab.models.build import build_model

CLOSE = 2.0**-30  # as for the encoder: float64 in another order


@partial(nnx.jit, static_argnames="training")
def run(model, inputs, training=False, dropout_key=None):
    return model(inputs, training=training, dropout_key=dropout_key)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SETTINGS)
def test_the_logits_are_those_of_the_loops(kind):
    model, inputs = tiny(kind, "float64"), images(dtype="float64")
    logits = run(model, inputs)
    assert_dtype(logits, "float64")
    expected = np.stack([logits_of(model, image) for image in np.asarray(inputs)])
    assert_within(logits, expected, CLOSE)
    other = {"convolution": "mean border", "mean border": "convolution"}.get(kind, kind)
    changes = {"norm_epsilon": 1e-3} if other == kind else {"kernel_size": 3}
    planted = replace(SETTINGS[other], **changes)  # another border, or epsilon, for the loops
    model.settings = planted
    wrong = np.stack([logits_of(model, image) for image in np.asarray(inputs)])
    with pytest.raises(AssertionError, match="too far"):
        assert_within(logits, wrong, CLOSE)


def test_the_table_holds_key_minus_query():
    """Planted: the table read backwards, which is that of query minus key."""
    model, inputs = tiny("ring", "float64"), images(dtype="float64")
    logits = run(model, inputs)
    for layer in model.layers:
        layer.mixing.position_bias[...] = layer.mixing.position_bias[...][:, ::-1]
    wrong = np.stack([logits_of(model, image) for image in np.asarray(inputs)])
    with pytest.raises(AssertionError, match="too far"):
        assert_within(logits, wrong, CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["convolution", "ring"])
def test_every_parameter_matters(kind):
    """Each has a gradient that is not zero somewhere, but that a bias of keys shifts all scores."""
    model = tiny(kind, "float64", depth=1)

    def loss(model, inputs):
        return (model(inputs) ** 2).sum()

    gradient = nnx.jit(nnx.grad(loss))(model, images(dtype="float64"))
    for path, part in nnx.to_flat_state(nnx.state(gradient)):
        largest = float(jnp.abs(part[...]).max())
        if path[-1] == "key_bias":
            # q·c is the same for all keys, so that only rounding is left of its gradient
            assert largest < CLOSE
        else:
            assert largest > 1e-6, path


# ---------------------------------------------------------------------- half precision, randomness
@pytest.mark.parametrize("kind", ["convolution", "ring"])
@pytest.mark.quick(1)
def test_half_precision_stays_near_the_loops(kind):
    """bfloat16 has 2⁻⁹: a layer of some tens of roundings, of logits of size one."""
    inputs, model = images(), tiny(kind, "bfloat16", depth=1)
    logits = run(model, inputs)
    expected = np.stack([logits_of(model, image) for image in np.asarray(inputs, np.float64)])
    assert_dtype(logits, "float32")
    size = np.abs(expected).max()
    assert 2.0**-16 * size < np.abs(np.asarray(logits) - expected).max() < 100 * 2.0**-9 * size


@pytest.mark.parametrize("kind", ["convolution", "ring"])
def test_gradients_of_half_precision_are_float32(kind):
    def gradient(model, inputs):
        return nnx.state(nnx.grad(lambda model: (model(inputs) ** 2).sum())(model))

    gradients = nnx.eval_shape(gradient, tiny(kind, "bfloat16", depth=1), images())
    assert {leaf.dtype for leaf in jax.tree.leaves(gradients)} == {jnp.dtype(jnp.float32)}


def draws(model, **how):
    """How many random draws a network makes."""
    return str(jax.make_jaxpr(partial(model, **how))(images())).count("random_bits")


@pytest.mark.slow
def test_chance_comes_from_the_key_alone_and_in_training_alone():
    rates = {"dropout": 0.5, "stochastic_depth": 0.0, "attention_dropout": 0.5}
    model, inputs = tiny("convolution", depth=1, **rates), images()
    one, two = jax.random.split(jax.random.key(0))
    plain = run(model, inputs)
    first = run(model, inputs, training=True, dropout_key=one)
    assert_equal(run(model, inputs, training=True, dropout_key=one), first)
    for other in (plain, run(model, inputs, training=True, dropout_key=two)):
        assert (np.asarray(first) != np.asarray(other)).any()
    assert draws(model, dropout_key=one) == draws(model, training=True) == 0
    # Embedded tokens, the result of attention, inside and after the feed-forward part
    options = {"training": True, "dropout_key": one}
    assert draws(tiny("ring", depth=1, **{**rates, "attention_dropout": 0.0}), **options) == 4
    assert draws(tiny("ring", depth=1, **{**rates, "dropout": 0.0}), **options) == 1
    depth = {**dict.fromkeys(rates, 0.0), "stochastic_depth": 0.5}
    assert draws(tiny("ring", **depth), **options) == 2  # both sublayers of the second layer


def test_an_image_skips_whole_sublayers():
    """The second layer alone, of rate 1/2: each adds twice as much to an image, or nothing.

    Sublayers are those of the loops: what is left of an image that skips both is the image.
    """
    model = tiny("convolution", "float64", stochastic_depth=0.5)
    first, second = model.layers
    rng, settings = np.random.default_rng(5), model.settings
    tokens = rng.normal(size=(16, 2, 3, 12))
    apply = nnx.jit(partial(type(second).__call__, training=True))
    skipped = set()
    for number in range(2):
        results = apply(second, jnp.asarray(tokens), dropout_key=jax.random.key(number))
        for image, result in zip(tokens, np.asarray(results), strict=True):
            inside = norm(second.mixing_norm, image, settings.norm_epsilon)
            mixed = convolved(second.mixing, inside, settings.patch_size, settings.border)
            far = {}
            for scale in (0, 2):
                middle = image + scale * mixed
                inside = norm(second.inner_norm, middle, settings.norm_epsilon)
                fed = linear(second.outer, gelu(linear(second.inner, inside)))
                for other in (0, 2):
                    far[scale, other] = np.abs(middle + other * fed - result).max()
            near = [case for case, distance in far.items() if distance < CLOSE]
            assert len(near) == 1  # planted: the three other cases are far
            skipped.add(near[0])
    assert skipped == {(0, 0), (0, 2), (2, 0), (2, 2)}
    assert first.skipped == 0
    assert second.skipped == 0.5


def test_skipped_images_are_made_up_for():
    """Over all draws the mean is that of nothing skipped: the rate 1/4 is met within 5 deviations,
    √(3/16/n), and what is kept is divided by exactly 3/4."""
    scales = np.asarray(
        drop_path(jnp.ones((20000, 1, 1), jnp.float32), 0.25, jax.random.key(3))
    ).ravel()
    assert set(scales.tolist()) == {0.0, float(np.float32(4 / 3))}
    share = (scales > 0).mean()
    assert abs(share - 0.75) < 5 * (3 / 16 / 20000) ** 0.5
    assert depth_rates(0.1, 2) == (0.0, 0.1)


# ---------------------------------------------------------------------- first numbers, refusals
@pytest.mark.slow
def test_networks_begin_as_deits_do():
    settings = replace(SETTINGS["class"], width=64, inner=64, heads=4, head_width=16)
    rngs = nnx.Rngs(0)
    one, two = (AttentionMixing(settings, (3,), rngs=rngs) for _ in range(2))
    for part in (one.query, one.key, one.value, one.output):
        # 4096 numbers: the deviation is met within five of its own, 1/√(2n)
        assert abs(float(part[...].std()) / 0.02 - 1) < 5 / (2 * part.size) ** 0.5
    for bias in (one.query_bias, one.key_bias, one.value_bias, one.bias):
        assert_equal(bias[...], np.zeros(bias.shape))
    different = {np.asarray(part[...]).tobytes() for part in (one.query, one.key, two.query)}
    assert len(different) == 3
    relative = AttentionMixing(SETTINGS["ring"], (2, 3), rngs=rngs)
    assert_equal(relative.position_bias[...], np.zeros((3, 5 * 7)))


@pytest.mark.parametrize(
    ("changes", "size", "message"),
    [
        ({}, (4, 7), "two sides that 2 divides"),
        ({}, (0, 4), "image_size"),
        ({"width": 24}, SIZE, "patches of 2 × 2 pixels and 3 channels have 12 features"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(changes, size, message):
    settings = replace(SETTINGS["ring"], **changes)
    with pytest.raises(ValueError, match=message):
        build_model(settings, classes=2, image_size=size, rngs=nnx.Rngs(0))


def test_images_of_another_size_are_refused():
    model = tiny("ring")
    for inputs, message in (
        (jnp.ones((1, 6, 4, 3)), "4 × 6 pixels"),
        (jnp.ones((1, 4, 6, 1)), "channels"),
        (jnp.ones((1, 4, 6, 3), int), "floats"),
    ):
        with pytest.raises(ValueError, match=message):
            model(inputs)
