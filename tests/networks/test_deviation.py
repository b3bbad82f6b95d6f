"""The derived bound on logits: it holds, says something, and no planted error passes it."""

from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from flax import nnx
from networks.small import CHANNELS, small_images, small_model, small_network

from convattn.lab.analysis.resnet_comparison import (
    compare_in_float64,
    compare_logits,
    convert_resnet,
    logits_of,
    same_classes,
)
from convattn.networks import (
    AttentionRun,
    Deviation,
    FoldedRun,
    Linear,
    Mean,
    deviation,
    mixing_steps,
)
from convattn.networks.deviation import margins
from convattn.networks.runs import covered_backend, leak_of
from convattn.networks.step_errors import linear_error, mean_error

IMAGES = small_images()
TYPED = jnp.asarray(IMAGES, jnp.float32)


def with_layer(name, change):
    """The conversion with one attention layer changed."""
    converted = small_network()
    layers = dict(converted.attention_run.layers)
    layers[name] = change(layers[name])
    return replace(converted, attention_run=AttentionRun(layers))


@pytest.mark.slow
def test_model_and_attention_are_within_the_bound() -> None:
    found = compare_logits(small_network(), IMAGES)
    assert found.passed
    assert len(found.layers) == 6
    assert found.bound.shape == found.logits.shape == (2, 3)
    assert found.bound.max() < np.ptp(found.logits, axis=1).min() / 8
    assert found.difference.max() > 0  # they are not one and the same


@pytest.mark.slow
def test_in_float64_the_bound_decides() -> None:
    """A 2⁻²⁹th of the bound in float32: every class is certain, and a millionth of a head shows."""
    found = compare_in_float64(small_model(), CHANNELS, CHANNELS / 2, IMAGES, leak=0.25)
    assert found.passed
    assert found.certain.all()
    assert found.logits.dtype == np.float64
    single = compare_logits(small_network(), IMAGES)
    assert (found.bound / single.bound).min() > 2**-31
    assert (found.bound / single.bound).max() < 2**-27
    converted = convert_resnet(small_model(), CHANNELS, CHANNELS / 2, leak=0.25, dtype=np.float64)
    layers = dict(converted.attention_run.layers)
    stem = layers["stem"]
    layers["stem"] = replace(stem, output=stem.output.at[4].multiply(1 + 1e-6))
    wrong = compare_logits(replace(converted, attention_run=AttentionRun(layers)), IMAGES)
    assert wrong.layers["stem"] > 1
    assert (wrong.difference > wrong.bound).any()
    with pytest.raises(ValueError, match="derived for one dtype"):
        deviation(converted.folded, FoldedRun(), small_network().attention_run, TYPED.astype(float))


def turned(layer):
    """The taps of a head change sign."""
    return replace(layer, output=layer.output.at[2].multiply(-1))


def without_head(layer):
    return replace(layer, output=layer.output.at[4].set(0))


def without_the_uniform_head(layer):
    return replace(layer, output=layer.output.at[-1].set(0))


def exchanged_taps(layer):
    return replace(layer, output=layer.output[jnp.array([2, 1, 0, *range(3, 10)])])


def off_by_little(layer):
    """A thousandth of one head."""
    return replace(layer, output=layer.output.at[4].multiply(1.001))


def in_another_phase(layer):
    """The pixels between those that a stride keeps: every offset one further."""
    shifted = tuple((row + 1, column) for row, column in layer.encoding.offsets)
    ring = ((0, 2), (1, 1))
    return replace(layer, encoding=replace(layer.encoding, offsets=shifted), ring=ring)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("stem", turned),
        ("blocks.0.second", without_head),
        ("blocks.1.first", without_the_uniform_head),
        ("blocks.1.second", exchanged_taps),
        ("blocks.0.first", off_by_little),
        ("blocks.1.first", in_another_phase),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_wrong_layer_is_found_and_named(name, change) -> None:
    found = compare_logits(with_layer(name, change), IMAGES)
    assert not found.passed
    assert max(found.layers, key=found.layers.__getitem__) == name
    assert [layer for layer, share in found.layers.items() if share > 1] == [name]


@pytest.mark.slow
def test_another_epsilon_is_found() -> None:
    """The statistics folded with ε = 10⁻² in place of the norm's 10⁻⁵."""
    model = nnx.clone(small_model())
    for layer in (model.stem, *(part for b in model.blocks for part in (b.first, b.second))):
        layer.norm.epsilon = 1e-2
    wrong = convert_resnet(model, CHANNELS, CHANNELS / 2, leak=0.25)
    right = small_network()
    found = compare_logits(replace(wrong, model_run=right.model_run), IMAGES)
    assert not found.passed
    assert found.layers["stem"] > 1


@dataclass(frozen=True)
class NoisyRun(FoldedRun):
    """Known noise on one layer's result, of which its error owns up to a share."""

    name: str
    noise: float
    owned: float = 1.0

    def apply(self, step, images):
        found = super().apply(step, images)
        draw = np.random.default_rng(2).uniform(-1, 1, found.shape).astype(np.float32)
        return found + self.noise * draw if step.name == self.name else found

    def error(self, step, images):
        found = super().error(step, images)
        if step.name != self.name:
            return found
        largest = (1 + float(jnp.abs(step.kernel).max())) * (1 + float(jnp.abs(images).max()))
        return found._replace(floor=found.floor + self.owned * 1.01 * self.noise / largest)


@pytest.mark.parametrize("name", ["stem", "blocks.0.second", "blocks.1.shortcut"])
def test_the_identity_carries_large_errors_through_every_step(name) -> None:
    """Noise of a tenth changes signs before ReLU, so slopes lie between 0 and 1."""
    folded = small_network().folded
    found = deviation(folded, FoldedRun(), NoisyRun(name, 0.1), TYPED)
    assert found.passed
    share = (found.difference / found.bound).max()
    assert 1e-3 < share <= 1


def test_what_equals_its_bound_passes_and_what_is_not_finite_does_not() -> None:
    logits, bound = np.array([[1.0, 2.0]]), np.array([[0.5, 1.0]])
    assert Deviation(logits, logits + bound, bound, {"a": 1.0}).passed
    assert not Deviation(logits, logits + bound, bound, {"a": 1.0, "b": 1.0001}).passed
    assert not Deviation(logits, logits + 2 * bound, bound, {"a": 1.0}).passed
    assert not Deviation(logits, logits, bound + np.inf, {}).passed


def test_the_bound_of_a_linear_map_is_what_each_class_is_charged() -> None:
    """Of five classes, three channels and two images, times 1 + 2⁻²⁰."""
    kernel = jnp.arange(-7.0, 8).reshape(3, 5)
    step, means = Linear(kernel, jnp.ones(5)), np.arange(1.0, 7).reshape(2, 3)
    images = jnp.asarray(np.broadcast_to(means[:, None, None], (2, 2, 2, 3)))
    found = deviation((Mean(), step), FoldedRun(), FoldedRun(), images)
    assert_equal(found.logits, found.other_logits)
    of_mean = mean_error(images, images) @ np.abs(np.asarray(kernel))
    expected = (of_mean + linear_error(step, means, means)) * (1 + 2.0**-20)
    assert_within(found.bound, expected, 1e-12 * expected)
    assert_equal(found.logits, means @ np.asarray(kernel) + 1)


def test_an_error_that_is_not_owned_up_to_is_found() -> None:
    folded = small_network().folded
    assert not deviation(folded, FoldedRun(), NoisyRun("stem", 0.1, 0.1), TYPED).passed


def test_what_has_no_bound_is_refused() -> None:
    converted = small_network()
    with pytest.raises(ValueError, match=r"images\.dtype=float16, but the bound is derived for"):
        deviation(converted.folded, FoldedRun(), FoldedRun(), TYPED.astype("float16"))
    with pytest.raises(ValueError, match=r"images\.dtype=float64, but the kernel of stem is in"):
        deviation(converted.folded, FoldedRun(), FoldedRun(), TYPED.astype("float64"))
    with pytest.raises(ValueError, match="a step Attention"):
        deviation(converted.attention, FoldedRun(), FoldedRun(), TYPED)
    (stem, *_) = mixing_steps(converted.attention)
    with pytest.raises(ValueError, match="derived for pixels, leaky biases"):
        leak_of(replace(stem.layer, patch_size=(2, 2)))
    assert covered_backend(stem.layer, TYPED) == "shift"


def test_not_a_number_passes_nothing() -> None:
    def broken(layer):
        return replace(layer, output=layer.output.at[0].set(jnp.nan))

    assert not compare_logits(with_layer("stem", broken), IMAGES).passed


def classes_of(converted, images, labels):
    """`same_classes` of the trained model and the attention network."""
    runs = (converted.model_run, converted.attention_run)
    return same_classes(*(logits_of(converted.folded, run, images) for run in runs), labels)


@pytest.mark.slow
def test_no_image_changes_class_and_certainty_is_what_margins_say() -> None:
    converted = small_network()
    images = small_images(13)
    labels = np.arange(13) % 3
    found = classes_of(converted, images, labels)
    assert found.passed
    assert (found.images, found.same) == (13, 13)
    assert found.correct == found.attention_correct
    first = jnp.array([99.0, 0, 0, 0])
    wrong = with_layer("blocks.1.second", lambda layer: replace(layer, bias=layer.bias + first))
    assert not classes_of(wrong, images, labels).passed
    bound = np.full((2, 2), 0.5)
    logits = np.array([[2.0, 0.5], [1.0, 0.5]])
    assert margins(logits, bound).tolist() == [0.5, -0.5]
    assert Deviation(logits, logits, bound, {}).certain.tolist() == [True, False]
