"""Layers are seen with their own inputs, in compiled parts too, and what is not seen is said."""

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from convattn.nnx import AttentionConv, to_attention, to_convolution


def ones(*shape: int) -> jax.Array:
    """In the dtype of Flax's parameters."""
    return jnp.ones(shape, jnp.float32)


class Transformed(nnx.Module):
    """Calls its convolution in a transformation of Flax, and reads its parameters if told to."""

    def __init__(self, transform, reads=False) -> None:
        self.conv = nnx.Conv(2, 2, (3,), rngs=nnx.Rngs(0))
        self.transform, self.reads = transform, reads

    def __call__(self, images):
        outputs = self.transform(lambda conv, images: conv(images))(self.conv, images)
        parameters = jax.tree.leaves(nnx.state(self, nnx.Param)) if self.reads else []
        return outputs, sum(jnp.abs(array).sum() for array in parameters)


def as_it_is(function):
    return function


@pytest.mark.slow
def test_the_inputs_of_a_layer_in_a_compiled_part_are_its_own():
    images = ones(1, 5, 2).at[:, 4].set(-5)
    model, report = to_attention(Transformed(nnx.jit), images)
    assert report.layers[0].difference <= report.layers[0].bound
    assert report.passed
    model.conv.uniform_weight_logit[...] += 1
    back, report = to_convolution(model, images)
    true = jnp.abs(model.conv(images) - back.conv(images)).max() / jnp.abs(model.conv(images)).max()
    assert report.layers[0].on_own_inputs
    assert report.layers[0].distance == pytest.approx(float(true), rel=1e-6)


@pytest.mark.slow
def test_what_is_not_seen_does_not_pass_and_is_said():
    model, report = to_attention(Transformed(nnx.remat), ones(1, 5, 2))
    assert report.layers[0].difference is None
    assert report.passed is None
    assert str(report).splitlines()[1].endswith("no derived bound says something of all of it")
    report = to_convolution(model, ones(1, 5, 2)).report
    assert not report.layers[0].on_own_inputs
    assert "on a random image" in str(report)


def test_a_model_that_computes_with_parameters_of_layers_does_not_pass():
    _, report = to_attention(Transformed(as_it_is, reads=True), ones(1, 5, 2))
    assert report.layers[0].passed
    assert report.difference > 1
    assert (report.passed, report.rest_is_same) == (None, False)
    assert to_attention(Transformed(as_it_is), ones(1, 5, 2)).report.passed is True


class Doubled(AttentionConv):
    """Twice a layer."""

    def __call__(self, inputs):
        return 2 * super().__call__(inputs)


@pytest.mark.slow
def test_a_layer_of_another_kind_is_compared_as_it_is():
    _, report = to_convolution(Doubled(2, 2, (3,), rngs=nnx.Rngs(0)), ones(1, 5, 2))
    assert 0.4 < report.layers[0].distance < 0.6
