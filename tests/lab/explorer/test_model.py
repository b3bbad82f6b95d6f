"""The numbers behind the page are those of diagnose, and of the attention itself."""

import threading
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within

import convattn as ca
from convattn.diagnosis.models import diagnose
from convattn.diagnosis.transformers import attention_layers
from convattn.networks.weights.files import read_weights
from convattn_lab.explorer import positional_layer
from convattn_lab.explorer.model import ExploredModel, NotThere, query_numbers
from convattn_lab.explorer.opening import open_source
from convattn_lab.explorer.source import as_numbers

SINGLE = 2.0**-24


def test_numbers_are_those_of_diagnose(vit, files) -> None:
    images = vit.source.prepare(np.stack([vit.pixels(key) for key in vit.samples[:3]]))
    expected = diagnose(files / "vit.safetensors", images, heads=2).layers
    for number, layer in enumerate(expected):
        result = vit.numbers(number)
        assert {key: result[key] for key in layer.as_dict()} == layer.as_dict()
        assert_equal(np.array(result["taps"]), layer.convolution.taps)
    assert vit.numbers(0) != vit.numbers(1)


def test_a_query_attends_as_in_the_network(vit, files) -> None:
    from convattn.networks.vision_transformer.state_dicts import read_transformer

    network = read_transformer(read_weights(files / "vit.safetensors"), 2)
    image = vit.samples[4]
    pixels = vit.source.prepare(vit.pixels(image)[None]).astype(np.float64)
    for kind, inputs in (("full", pixels), ("position", np.zeros((1, 8, 12, 3)))):
        layer = list(attention_layers(network, inputs))[1]
        expected = layer.attention[0, :, 1 + 4, 1:].reshape(2, 2, 3)
        here, above = (getattr(vit.attention(image, 1, (row, 1)), kind) for row in (1, 0))
        assert_within(here, expected, SINGLE)
        assert np.abs(above - expected).max() > 0.01


@pytest.mark.slow
def test_a_still_layer_is_read_from_its_table(layer, files, monkeypatch) -> None:
    stored = ca.load_layer(files / "layer.safetensors")
    maps = ca.attention_maps(stored, (8, 9)).weights[:, :, :, 1:-1, 1:-1]
    for query in ((0, 0), (3, 5), (7, 8)):
        result = layer.attention("s0", 0, query).full
        assert_within(result, np.asarray(maps[:, query[0], query[1]]), 1e-12)
    with pytest.raises(AssertionError):
        assert_within(result, np.asarray(maps[:, 7, 7]), 1e-12)
    monkeypatch.setattr(positional_layer, "MAX_WEIGHTS", 100_000)
    assert replace(layer.source.positional[0], image_size=(40, 30)).measured().grid == (9, 9)


@pytest.mark.slow  # test_server has a quick one
def test_before_and_after_conversion(layer, files) -> None:
    stored = ca.load_layer(files / "layer.safetensors")
    before, after = layer.outputs("s0", 0)
    image = jnp.asarray(layer.source.prepare(layer.pixels("s0")[None]))
    assert_within(after, np.asarray(ca.apply_attention(stored, image))[0], 1e-5)
    assert np.abs(before - after).max() < 1e-4 < np.abs(before).max()
    wrong = replace(stored, encoding=replace(stored.encoding, values=stored.encoding.values[::-1]))
    assert np.abs(np.asarray(ca.apply_attention(wrong, image))[0] - before).max() > 0.1
    assert layer.numbers(0)["convolution"]["relative_distance"] < 1e-6
    assert layer.numbers(0)["convolution"]["kernel_size"] == [3, 3]


def test_attention_that_was_recorded(files) -> None:
    result = ExploredModel(open_source(files / "maps.npy", image_size=(2, 3)))
    maps = np.load(files / "maps.npy")
    attention = result.attention("s1", 0, (1, 2))
    assert_equal(attention.full, maps[1, :, 6, 1:].reshape(3, 2, 3))
    assert_equal(attention.position, maps[:, :, 6, 1:].mean(axis=0).reshape(3, 2, 3))
    assert_within(np.array(attention.numbers["full"]["elsewhere"]), maps[1, :, 6, 0], 1e-12)
    assert result.source.image_size is None


def test_the_numbers_of_a_query() -> None:
    row = np.zeros((2, 3, 4))
    row[0, 2, 1], row[1, 0, 0], row[1, 0, 2] = 1, 0.25, 0.25
    result = query_numbers(row, (0, 1))
    assert result["center"] == [[2, 0], [0, 0]]
    assert (result["distance"], result["spread"]) == ([2, 1], [0, 1])
    assert result["elsewhere"] == [0, 0.5]
    assert_within(np.array(result["entropy"]), np.array([0, np.log(2)]), 1e-15)


def test_images_that_were_sent_are_forgotten_in_their_order(vit) -> None:
    sent = [vit.add(np.full((8, 12, 3), shade, np.uint8), "grey") for shade in range(40)]
    with pytest.raises(NotThere, match="send it"):
        vit.pixels(sent[0])
    assert vit.label(sent[-1]) == "grey"
    assert vit.attention(sent[-1], 0, (0, 0)).full.shape == (2, 2, 3)
    assert vit.label(vit.samples[0])


def test_a_run_refuses_what_it_says_itself(tmp_path) -> None:
    with pytest.raises(ValueError, match="--heads was given, but the folder of a run says it"):
        open_source(tmp_path, heads=2)
    with pytest.raises(ValueError, match=r"has no config\.json"):
        open_source(tmp_path)
    assert as_numbers(np.ones((1, 1, 1, 3), np.uint8)).dtype == np.float32


def channels_first(images):
    """A strided, a depthwise and a 1 × 1 convolution, as PyTorch lays its images out."""
    kernels = [np.random.default_rng(n).normal(size=size) for n, size in enumerate(SIZES)]
    for kernel, stride, groups in zip(kernels, (2, 1, 1), (1, 4, 1), strict=True):
        images = jax.lax.conv_general_dilated(
            images,
            jnp.asarray(kernel, images.dtype),
            (stride, stride),
            "VALID",
            feature_group_count=groups,
        )
    return images.mean((2, 3))


SIZES = ((4, 3, 3, 3), (4, 1, 3, 2), (5, 4, 1, 1))


@pytest.mark.slow
def test_a_converted_network_of_normalised_images(tmp_path, monkeypatch) -> None:
    path = tmp_path / "net.safetensors"
    images = jnp.zeros((1, 3, 24, 20), jnp.float32)
    layers, apply, _ = ca.attention_of(channels_first, images)
    ca.save_network(layers, apply, path, images)
    result = ExploredModel(open_source(path))
    assert [layer.grid for layer in result.layers] == [(21, 17), (9, 8), (9, 8)]
    result.measure()
    for number in range(3):
        before, after = result.outputs("s0", number)
        assert np.abs(before - after).max() < 1e-5 * np.abs(before).max()
        assert (
            np.abs(before - result.outputs("s1", number).after).max() > 0.01 * np.abs(before).max()
        )
        assert result.numbers(number)["convolution"]["relative_distance"] < 1e-6
    for options, message in (
        ({"image_size": (8, 8)}, r"images of \(24, 20\) pixels"),
        ({"heads": 2}, "--heads was given"),
    ):
        with pytest.raises(ValueError, match=message):
            open_source(path, **options)
    result = ExploredModel(open_source(path))
    last, stop = len(result.layers) - 1, threading.Event()
    assert result.numbers(last) is None  # it is asked for, so that it is measured first
    monkeypatch.setattr(result, "_measured", lambda number, _: stop.set() or {"layer": number})
    result.measure(stop)
    assert result._numbers == {last: {"layer": last}}


@pytest.mark.slow
def test_a_network_of_anything_but_images_is_refused(tmp_path) -> None:
    path = tmp_path / "net.safetensors"
    sequences = jnp.zeros((1, 9, 3), jnp.float32)
    kernel = jnp.ones((3, 3, 2), jnp.float32)
    order = ("NWC", "WIO", "NWC")
    layers, apply, _ = ca.attention_of(
        lambda x: jax.lax.conv_general_dilated(x, kernel, (1,), "SAME", dimension_numbers=order),
        sequences,
    )
    ca.save_network(layers, apply, path, sequences)
    with pytest.raises(ValueError, match="expected one array of images with three channels"):
        open_source(path)
