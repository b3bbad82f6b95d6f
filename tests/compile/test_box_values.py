"""Intervals of a network's values on a box, and its rounding in float32."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled_networks import Parameters, convolve

from convattn.compile.box_values import BoxValues
from convattn.compile.evaluation import evaluate, node_values
from convattn.compile.reader import read_network
from convattn.networks.transformation.attention_of import attention_of

KERNELS = Parameters(8).kernel(3, 3, 2, 3), Parameters(9).kernel(3, 3, 3, 3)
MIDDLE = np.random.default_rng(0).random((5, 6, 2)).astype(np.float32)
LOWER, UPPER = MIDDLE - np.float32(0.25), MIDDLE + np.float32(0.25)


def network(images):
    maps = jax.nn.relu(convolve(images, KERNELS[0], window_strides=(2, 1)) + 0.1)
    return jax.nn.relu6(4 * convolve(maps, KERNELS[1])).mean((1, 2)) - 0.5


def bent(images):
    maps = jnp.abs(convolve(images, KERNELS[0]) - 0.2)
    return jax.nn.gelu(convolve(maps, KERNELS[1]), approximate=False).mean((1, 2))


def drawn(count=40):
    shares = np.random.default_rng(1).random((count, *MIDDLE.shape))
    shares[: count // 2] = shares[: count // 2] < 0.5
    return np.clip(LOWER + shares * (UPPER - LOWER), LOWER, UPPER).astype(np.float32)


def read(function):
    return read_network(function, (jnp.asarray(MIDDLE[None]),), (1, 1), False)


@pytest.mark.parametrize("function", [network, bent])
def test_values_of_images_lie_in_the_intervals_which_are_not_wide(function):
    box = BoxValues(read(function), LOWER, UPPER)
    for value, numbers in node_values(box.network, drawn()).items():
        low, high = box.low[value], box.high[value]
        assert (low <= numbers).all()
        assert (numbers <= high).all()
        assert (high - low).max() <= 60 * (numbers.max(0) - numbers.min(0)).max()


def test_a_point_has_a_point_as_its_interval():
    box = BoxValues(read(network), MIDDLE, MIDDLE)
    low, high = box.interval(box.network.logits)
    expected = np.asarray(network(MIDDLE[None].astype(np.float32)), np.float64)
    assert (high - low).max() <= 1e-12
    assert np.abs(low - expected).max() <= 1e-6


@pytest.mark.parametrize("function", [network, bent])
@pytest.mark.quick(1)
def test_float32_is_within_its_error_which_is_not_far(function):
    images, box = drawn(), BoxValues(read(function), LOWER, UPPER)
    apart = np.abs(np.asarray(function(images), np.float64) - evaluate(box.network, images)).max(0)
    bound = box.evaluation_error("float32")
    assert (apart <= bound).all()
    assert bound.max() <= 1e-3
    assert (bound > 1e5 * box.evaluation_error("float64")).all()


def test_attention_in_the_exact_form_is_within_its_error():
    images = drawn(8)
    layers, apply, _ = attention_of(network, images, backend="dense")
    given = apply.inputs(layers, images)
    box = BoxValues(read(network), LOWER, UPPER)
    pairs = [(layer, given[name].shape) for name, layer in layers.items()]
    bound = box.evaluation_error("float32", pairs)
    exact = evaluate(box.network, images)
    assert (np.abs(np.asarray(apply(layers, images)) - exact) <= bound).all()
    assert (bound > box.evaluation_error("float32")).all()
    name = next(iter(layers))
    output = 1.02 * layers[name].output
    wrong = {**layers, name: replace(layers[name], output=output)}
    assert not (np.abs(np.asarray(apply(wrong, images)) - exact) <= bound).all()


@pytest.mark.parametrize(
    ("lower", "upper", "named"),
    [
        (LOWER[:4], UPPER, "lower and upper of"),
        (UPPER, LOWER, "no box"),
        (LOWER, np.full_like(UPPER, np.inf), "no box"),
    ],
)
def test_what_is_no_box_is_refused(lower, upper, named):
    with pytest.raises(ValueError, match=named):
        BoxValues(read(network), lower, upper)
