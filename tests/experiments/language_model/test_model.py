"""The causal language model: what it may see, what is trained."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from flax import nnx
from lab.models.gradients import unreached
from language_model.model import LanguageModel
from language_model.settings import LanguageModelSettings

from convattn.operators.convolution import conv
from convattn_lab.models.sizes import parameter_count

LENGTH, CLASSES = 7, 11
TINY = LanguageModelSettings(scales=(1, 2), width=4, depth=1, key_features=3, inner=5)
KINDS = {"attention": TINY, "convolution": replace(TINY, operator="convolution")}


def make_model(settings: LanguageModelSettings, **options) -> LanguageModel:
    return LanguageModel(settings, classes=CLASSES, length=LENGTH, rngs=nnx.Rngs(0), **options)


@nnx.jit
def run(model, symbols):
    return model(symbols)


def sequence() -> np.ndarray:
    return np.random.default_rng(0).integers(0, CLASSES, (1, LENGTH))


class Ahead(nnx.Module):
    """A convolution of width 2 with its zeros on the right: it reads the next position."""

    def __init__(self, features: int, rngs: nnx.Rngs) -> None:
        self.kernel = nnx.Param(rngs.params.normal((2, features, features)))

    def __call__(self, tokens):
        return conv(tokens, self.kernel[...])


def leaks(model: LanguageModel) -> list[tuple[int, int]]:
    """Where a byte changes a logit before it: (the byte's place, the first logit's)."""
    before, changes = np.asarray(run(model, jnp.asarray(sequence()))), []
    for position in range(LENGTH):
        changed = sequence()
        changed[0, position] = (changed[0, position] + 1) % CLASSES
        after = np.asarray(run(model, jnp.asarray(changed)))
        differs = (after != before).any(axis=(0, 2))
        assert differs[position]  # a model that sees nothing would leak nothing
        if differs[:position].any():
            changes.append((position, int(np.argmax(differs))))
    return changes


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_byte_changes_no_logit_before_it(kind):
    """Not one bit of them."""
    assert leaks(make_model(KINDS[kind])) == []


@pytest.mark.slow
def test_a_filter_that_is_padded_on_the_right_is_caught():
    model = make_model(TINY)
    model.layers[0].mixing = Ahead(TINY.width, nnx.Rngs(1))
    assert leaks(model) == [(position, position - 1) for position in range(1, LENGTH)]


@pytest.mark.slow
def test_attention_without_causality_is_caught():
    model = make_model(TINY)
    for scale in model.layers[0].mixing.scales:
        scale.causal = False
    assert leaks(model) == [(position, 0) for position in range(1, LENGTH)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_reaches_every_parameter(kind):
    assert unreached(make_model(KINDS[kind]), jnp.asarray(sequence())) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_parameters_are_counted(kind):
    settings = replace(KINDS[kind], depth=2, scales=(1, 2, 3))
    width, hidden, scales = settings.width, settings.inner, settings.scales
    layer = 2 * width * hidden + hidden + width + 2 * 2 * width + len(scales) * width**2
    for size in scales:
        if kind == "convolution":
            layer += size * width**2
        else:
            layer += 2 * (size * width * (width + 2 * 3) + width**2 + LENGTH)
    total = CLASSES * width + 2 * layer + 2 * width + CLASSES * width + CLASSES
    assert parameter_count(nnx.eval_shape(lambda: make_model(settings))) == total


@pytest.mark.slow
def test_dropout_draws_from_the_key_alone():
    import jax

    model = make_model(replace(TINY, dropout=0.5, operator="convolution", scales=(1,)))
    symbols, key = jnp.asarray(sequence()), jax.random.key(0)
    train = nnx.jit(lambda model, key: model(symbols, training=True, dropout_key=key))
    assert_equal(train(model, None), run(model, symbols))
    assert_equal(train(model, key), train(model, key))
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(train(model, key), train(model, jax.random.key(1)))


@pytest.mark.parametrize("symbols", [np.zeros((1, 2), np.float32), np.zeros(2, np.int32)])
@pytest.mark.quick(1)
def test_other_inputs_are_refused(symbols):
    with pytest.raises(ValueError, match=r"expected integers of the shape \[batch, length\]"):
        make_model(TINY)(symbols)
