"""A converted function in a file: what comes back is what was written, or nothing."""

import json
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from networks.transformation.convolutions import convolve

import convattn as ca
from convattn.networks.transformation.network_file import (
    PROGRAM,
    exported_bytes,
    network_bytes,
    restore_network,
)
from convattn.networks.weights.files import parse_weights
from convattn.networks.weights.formats import WeightsRefused, read_safetensors, write_safetensors

pytestmark = pytest.mark.usefixtures("unchecked")  # jaxtyping knows no symbols
rng = np.random.default_rng(0)
STEM = jnp.asarray(rng.normal(size=(3, 3, 3, 4)), jnp.float32)
STACKED = jnp.asarray(rng.normal(size=(3, 3, 3, 1, 4)) / 3, jnp.float32)


def function(images):
    """A stem, three depthwise convolutions in a scan, and a mean."""

    with jax.named_scope("stem"):
        features = jax.jit(lambda x: convolve(x, STEM, window_strides=(2, 2)))(images)
    features, _ = jax.lax.scan(
        lambda x, k: (jnp.tanh(convolve(x, k, feature_group_count=4)), None), features, STACKED
    )
    return {"mean": features.mean((1, 2)), "features": features}


ZEROS = jnp.zeros((1, 6, 8, 3), jnp.float32)


@cache
def converted():
    layers, apply, _ = ca.attention_of(function, ZEROS)
    return layers, apply


@cache
def written() -> bytes:
    return network_bytes(*converted(), ZEROS)


def restored(content: bytes):
    return restore_network(parse_weights(content, "net.safetensors"))


@pytest.mark.slow
def test_a_file_runs_on_any_number_of_images() -> None:
    network = restored(written())
    assert list(network.layers) == ["stem", "convolution"]
    assert network.layers["convolution"].output.shape == (3, 10, 1, 4)
    images = rng.normal(size=(3, 6, 8, 3)).astype(np.float32)
    outputs, expected = network(images), function(images)
    for name in ("mean", "features"):  # values of tanh, whose three layers double what rounds
        assert_within(outputs[name], expected[name], 2.0**-16)
    zeroed = {**network.layers, "stem": jax.tree.map(jnp.zeros_like, network.layers["stem"])}
    assert not jnp.allclose(network.apply(zeroed, images)["mean"], expected["mean"], atol=1e-3)
    assert (network.arguments[0].shape[1:], network.arguments[0].dtype) == ((6, 8, 3), jnp.float32)


@pytest.mark.slow
def test_the_images_of_each_layer_outside_of_loops_are_seen() -> None:
    network, images = restored(written()), np.ones((2, 6, 8, 3), np.float32)
    (name,) = network.inputs(images)
    assert name == "stem"
    assert_equal(network.inputs(images)[name], images)


def test_layers_are_restored_bit_by_bit(tmp_path) -> None:
    layers, apply = converted()
    path = tmp_path / "net.safetensors"
    ca.save_network(layers, apply, path, ZEROS)
    restored = ca.load_network(path).layers
    assert jax.tree.structure(restored) == jax.tree.structure(layers)
    for one, other in zip(jax.tree.leaves(restored), jax.tree.leaves(layers), strict=True):
        assert_equal(np.asarray(one), np.asarray(other))
    with pytest.raises(ValueError, match=r"written as \.safetensors"):
        ca.save_network(layers, apply, tmp_path / "net.npz", ZEROS)
    with pytest.raises(FileNotFoundError, match="convert network has written"):
        ca.load_network(tmp_path / "resnet50")
    stacked = layers["convolution"]
    scores = stacked.encoding.values.at[1].set(jnp.nan)
    damaged = replace(stacked, encoding=replace(stacked.encoding, values=scores))
    with pytest.raises(ValueError, match=r"encoding\.values has 90 non-finite"):
        ca.save_network({**layers, "convolution": damaged}, apply, path, ZEROS)
    with pytest.raises(ValueError, match="example holds 3, but expected arrays"):
        ca.save_network(layers, apply, path, ZEROS, 3)


def test_a_name_may_stand_below_another() -> None:
    def nested(images):
        with jax.named_scope("block"):
            images = convolve(images, STEM[..., :3])
            with jax.named_scope("skip"):
                return convolve(images, STEM[..., 1:])

    images = np.ones((1, 4, 4, 3), np.float32)
    layers, apply, _ = ca.attention_of(nested, images)
    assert list(restored(network_bytes(layers, apply, images)).layers) == ["block", "block/skip"]


@pytest.mark.parametrize(
    ("factor", "count"),
    [
        (lambda images: jnp.asarray([1.0, 2.0, 3.0, 4.0][: len(images)])[:, None, None, None], 4),
        (lambda images: 2 if images.shape[0] == 1 else 1, 1),
        (lambda images: 2 if images.shape[0] % 2 == 0 else 1, 1),
    ],
)
@pytest.mark.quick(1)
def test_a_function_that_needs_its_number_of_images_is_written_for_it(factor, count) -> None:
    def asking(images):
        return convolve(images, STEM) * factor(images)

    images = np.ones((count, 4, 4, 3), np.float32)
    layers, apply, _ = ca.attention_of(asking, images)
    network = restored(network_bytes(layers, apply, images))
    assert network.arguments[0].shape == images.shape
    assert_within(network(images), asking(images), 2.0**-15)


def test_a_small_output_is_not_hidden_by_a_large_one() -> None:
    def asking(images):
        features = convolve(images, STEM)
        return 1e8 * features, features * (2 if images.shape[0] == 1 else 1)

    images = np.ones((2, 4, 4, 3), np.float32)
    layers, apply, _ = ca.attention_of(asking, images)
    assert restored(network_bytes(layers, apply, images)).arguments[0].shape[0] == 2


def test_layers_of_other_names_are_refused() -> None:
    network = restored(written())
    renamed = {f"other {name}": layer for name, layer in network.layers.items()}
    with pytest.raises(ValueError, match="but expected a dictionary of layers"):
        network.apply(renamed, np.zeros((1, 6, 8, 3), np.float32))


def test_what_cannot_be_exported_is_refused() -> None:
    with pytest.raises(ValueError, match=r"cannot be exported: .*callback"):
        exported_bytes(
            lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), "float32"), x),
            np.float32(1),
        )


def changed(change) -> bytes:
    """The file with something of it changed."""
    arrays, metadata = read_safetensors(written(), "net.safetensors")
    described = json.loads(metadata["layers"])
    arrays = dict(arrays)
    change(arrays, metadata, described)
    return write_safetensors(arrays, {**metadata, "layers": json.dumps(described)})


DAMAGE = [  # of the arrays, the metadata and what it says of the layers
    (lambda a, *_: a.update({PROGRAM: np.roll(a[PROGRAM], 1)}), "not the one that was written"),
    (lambda a, *_: a.pop(PROGRAM), "damaged"),
    (lambda a, *_: a.update({"stem2/output": np.ones(3, np.float32)}), "of which no layer knows"),
    (lambda a, *_: a.pop("stem/output"), "output"),
    (lambda a, *_: a.update({"stem/output": a["stem/output"][..., :3]}), "those of its program"),
    (lambda a, metadata, _: metadata.update(version="2"), "holds no network of this library"),
    (lambda *parts: parts[2]["convolution"].update(axes=9), "no layer that works"),
    (lambda *parts: parts[2]["stem"]["layer"].update(stride=[1, 10**18]), "stride"),
]


@pytest.mark.parametrize(("change", "message"), DAMAGE)
def test_damage_is_refused(change, message) -> None:
    with pytest.raises(WeightsRefused, match=message):
        restored(changed(change))


def test_what_is_not_changed_is_restored() -> None:
    assert restored(changed(lambda *parts: None))
