"""Two layers in files: restored exactly; what does not fit is refused."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

import convattn as ca
from convattn.networks.weights.converted_layer import convert_to_two_layers
from convattn.networks.weights.files import WeightsFile
from convattn.networks.weights.formats import WeightsRefused
from convattn.networks.weights.stored_layer import layer_arrays, layer_metadata, restore_layer

KERNEL = np.random.default_rng(0).normal(size=(3, 2, 2, 3)).astype(np.float32)
IMAGES = np.random.default_rng(1).normal(size=(1, 4, 5, 2)).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"form": "limit"}, {"stride": 2}, {"bias": np.ones(3)}])
def test_what_was_saved_is_restored(options, tmp_path):
    layers = ca.conv_to_two_layers(KERNEL, **options)
    path = tmp_path / "layers.npz"
    ca.save_layer(layers, path)
    restored = ca.load_layer(path)
    assert jax.tree.structure(restored) == jax.tree.structure(layers)
    assert np.array_equal(restored(IMAGES), layers(IMAGES))


def tampered(change):
    layers = ca.conv_to_two_layers(KERNEL)
    text = json.loads(layer_metadata(layers)["layer"])
    arrays = layer_arrays(layers)
    change(text, arrays)
    return WeightsFile("f", arrays, {**layer_metadata(layers), "layer": json.dumps(text)})


def set_exact(text, arrays):
    text["exact"] = False


def other_ring(text, arrays):
    text["first"]["ring"] = [[2, 1], [0, 0]]


def offsets_aside(text, arrays):
    text["first"]["encoding"]["offsets"] = [[-1, 0], [0, 1], [1, 0]]


def fewer_features(text, arrays):
    arrays["second.output"] = arrays["second.output"][:, :4]


def long_stride(text, arrays):
    text["stride"] = [1, 10**18]


def wrong_class(text, arrays):
    text["first"]["class"] = "TwoLayers"


def long_bias(text, arrays):
    del text["bias"]
    arrays["bias"] = np.ones(5, np.float32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_exact, "the layers' leak says otherwise"),
        (other_ring, "the first layer's ring and offsets differ"),
        (offsets_aside, "the first layer's ring and offsets differ"),
        (fewer_features, "the features between two layers differ"),
        (long_stride, "stride=10*, but expected at most"),
        (wrong_class, "is described as 'TwoLayers', but expected AttentionLayer"),
        (long_bias, "the shape of bias and the channels out differ"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    with pytest.raises(WeightsRefused, match=message):
        restore_layer(tampered(change))


@pytest.mark.slow
def test_a_conversion_that_is_wrong_is_seen(monkeypatch):
    from convattn.networks.weights import converted_layer

    (right,) = convert_to_two_layers(KERNEL, None, {}).comparisons
    assert right.passed
    assert right.route == "both layers"
    original = converted_layer.conv_to_two_layers
    monkeypatch.setattr(
        converted_layer,
        "conv_to_two_layers",
        lambda kernel, bias, **options: replace(original(kernel + 0.1, bias, **options)),
    )
    assert not convert_to_two_layers(KERNEL, None, {}).comparisons[0].passed
