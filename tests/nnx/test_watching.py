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
        self.conv = nnx.Conv(1, 1, (3,), rngs=nnx.Rngs(0))
        self.transform, self.reads = transform, reads

    def __call__(self, images):
        outputs = self.transform(lambda conv, images: conv(images))(self.conv, images)
        parameters = jax.tree.leaves(nnx.state(self, nnx.Param)) if self.reads else []
        return outputs, sum(jnp.abs(array).sum() for array in parameters)


def as_it_is(function):
    return function


def test_the_inputs_of_a_layer_in_a_compiled_part_are_its_own():
    images = jnp.array([[[1.0], [1.0], [1.0], [1.0], [-5.0]]], jnp.float32)
    model, report = to_attention(Transformed(nnx.jit), images)
    assert report.layers[0].difference <= report.layers[0].bound
    assert report.passed
    model.conv.uniform_weight_logit[...] += 1
    back, report = to_convolution(model, images)
    true = jnp.abs(model.conv(images) - back.conv(images)).max() / jnp.abs(model.conv(images)).max()
    assert report.layers[0].on_own_inputs
    assert report.layers[0].distance == pytest.approx(float(true), rel=1e-6)


def test_what_is_not_seen_does_not_pass_and_is_said():
    model, report = to_attention(Transformed(nnx.remat), ones(1, 5, 1))
    assert report.layers[0].difference is None
    assert report.passed is None
    assert str(report).splitlines()[1].endswith("no derived bound says something of all of it")
    report = to_convolution(model, ones(1, 5, 1)).report
    assert not report.layers[0].on_own_inputs
    assert "on a random image" in str(report)


def test_a_model_that_computes_with_parameters_of_layers_does_not_pass():
    _, report = to_attention(Transformed(as_it_is, reads=True), ones(1, 5, 1))
    assert report.layers[0].passed
    assert report.difference > 1
    assert (report.passed, report.rest_is_same) == (None, False)
    assert to_attention(Transformed(as_it_is), ones(1, 5, 1)).report.passed is True


class ScaledCopy(nnx.Module):
    """Calls a copy of its convolution with other parameters, as fake quantisation does."""

    def __init__(self, kind=nnx.Param):
        self.conv = nnx.Conv(3, 4, (2, 2), rngs=nnx.Rngs(0))
        self.gain = kind(jnp.asarray(1.0))

    def __call__(self, inputs):
        graph, state = nnx.split(self.conv)
        return nnx.merge(graph, jax.tree.map(lambda leaf: leaf * self.gain[...], state))(inputs)


class Standardised(nnx.Module):
    """Puts a kernel of unit norm into its convolution at each call, as weight norm does."""

    def __init__(self):
        self.conv = nnx.Conv(3, 4, (3, 3), rngs=nnx.Rngs(0))
        self.gain = nnx.Param(jnp.ones(4))
        self.direction = nnx.Param(self.conv.kernel[...])

    def __call__(self, inputs):
        norm = jnp.sqrt((self.direction[...] ** 2).sum((0, 1, 2)))
        self.conv.kernel[...] = self.gain[...] * self.direction[...] / norm
        return self.conv(inputs)


def scaled_by_a_statistic():
    return ScaledCopy(nnx.BatchStat)


class IntegerGain(nnx.Module):
    """Scales the kernel of a copy by an integer, or by a mask."""

    def __init__(self, kind=jnp.int32):
        self.conv = nnx.Conv(3, 4, (3, 3), rngs=nnx.Rngs(0))
        self.gain = nnx.Variable(jnp.ones((), kind))

    def __call__(self, inputs):
        graph, state = nnx.split(self.conv)
        state = jax.tree.map(lambda leaf: leaf * self.gain[...], state)
        return nnx.merge(graph, state)(inputs)


def masked():
    return IntegerGain(bool)


KINDS = [ScaledCopy, scaled_by_a_statistic, Standardised, IntegerGain, masked]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("called", [False, True])
def test_a_kernel_that_is_computed_at_each_call_is_refused(kind, called):
    model, images = kind(), jnp.ones((1, 6, 6, 3))
    if called:
        model(images)
    with pytest.raises(ValueError, match="conv: the model computes its kernel at each call"):
        to_attention(model, images)


class Doubled(AttentionConv):
    """Twice a layer."""

    def __call__(self, inputs):
        return 2 * super().__call__(inputs)


def test_a_layer_of_another_kind_is_compared_as_it_is():
    model = nnx.Sequential(Doubled(3, 4, (3, 3), rngs=nnx.Rngs(0)))
    _, report = to_convolution(model, jnp.ones((1, 6, 6, 3)))
    assert 0.4 < report.layers[0].distance < 0.6
