"""A network in a file: whole and unchanged, or refused."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from networks.small import small_network

from convattn.networks import Convolution, Linear, load_network, save_network
from convattn.networks.network_file import network_bytes, restore_network
from convattn.networks.steps import Mean, Relu, Residual, Scaling
from convattn.networks.weights.files import parse_weights, read_weights
from convattn.networks.weights.formats import WeightsRefused, write_safetensors


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("stored") / "network.safetensors"
    save_network(small_network().attention, path)
    return path


@pytest.mark.parametrize("network", [small_network().attention, small_network().folded])
def test_what_is_loaded_is_what_was_saved(network, tmp_path) -> None:
    path = tmp_path / "network.safetensors"
    save_network(network, path)
    loaded = load_network(path)
    assert jax.tree.structure(loaded) == jax.tree.structure(network)
    for got, wanted in zip(jax.tree.leaves(loaded), jax.tree.leaves(network), strict=True):
        assert got.dtype == wanted.dtype
        assert_equal(got, wanted)


def test_the_text_and_the_names_of_a_file_are_these() -> None:
    """Steps with their names, or with their kind and place; arrays below these names."""
    kernel, bias = jnp.ones((1, 1, 1, 1)), jnp.ones(1)
    named = Convolution(kernel, bias, 2, "stem")
    branch = (Convolution(kernel, bias), Relu())
    both = Residual(branch, (replace(named, name="short"),))
    linear = Linear(jnp.ones((1, 2)), jnp.zeros(2))
    network = (Scaling(bias, bias), named, both, Mean(), linear)
    file = parse_weights(network_bytes(network), "net")
    inner = [
        {"step": "convolution", "name": "convolution.2.branch.0", "stride": 1},
        {"step": "relu"},
    ]
    outer = [{"step": "convolution", "name": "short", "stride": 2}]
    assert json.loads(file.metadata["network"]) == [
        {"step": "scaling", "name": "scaling.0"},
        {"step": "convolution", "name": "stem", "stride": 2},
        {"step": "residual", "branch": inner, "shortcut": outer},
        {"step": "mean"},
        {"step": "linear", "name": "linear.4"},
    ]
    assert (file.metadata["format"], file.metadata["version"]) == ("convattn network", "1")
    kernels = ("stem", "short", "convolution.2.branch.0", "linear.4")
    arrays = {f"{name}.{part}" for name in kernels for part in ("kernel", "bias")}
    assert set(file.arrays) == arrays | {"scaling.0.shift", "scaling.0.scale"}
    loaded = restore_network(file)
    assert [type(step).__name__ for step in loaded] == [type(step).__name__ for step in network]


def drop_array(arrays, metadata):
    del arrays["blocks.0.first.output"]


def add_array(arrays, metadata):
    arrays["surplus"] = arrays["stem.bias"]


def other_version(arrays, metadata):
    metadata["version"] = "2"


def layer_twice(arrays, metadata):
    steps = json.loads(metadata["network"])
    metadata["network"] = json.dumps([*steps, steps[0]])


def no_steps(arrays, metadata):
    metadata["network"] = metadata["network"][:-5]


def unknown_step(arrays, metadata):
    metadata["network"] = json.dumps([{"step": "pooling"}])


def not_a_number(arrays, metadata):
    arrays["stem.output"] = arrays["stem.output"] * float("nan")


def of_stride(stride):
    """A convolution beside which nothing is left."""

    def change(arrays, metadata):
        arrays.clear()
        arrays |= {"c.kernel": np.ones((1, 1, 3, 2)), "c.bias": np.zeros(2)}
        step = {"step": "convolution", "name": "c", "stride": stride}
        metadata["network"] = json.dumps([step])

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (of_stride(0), "stride=0, but expected"),
        (of_stride(True), "stride=True, but expected"),
        (of_stride(10**18), "stride=1000000000000000000, but expected at most"),
        (drop_array, "has no array"),
        (add_array, "'surplus', of which no layer knows"),
        (other_version, "holds no network of this library"),
        (layer_twice, "two layers that are named"),
        (no_steps, "its description is damaged"),
        (unknown_step, "its description is damaged"),
        (not_a_number, "non-finite"),
    ],
)
def test_a_damaged_file_is_refused(stored, tmp_path, change, message) -> None:
    file = read_weights(stored)
    arrays, metadata = dict(file.arrays), dict(file.metadata)
    change(arrays, metadata)
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(write_safetensors(arrays, metadata))
    with pytest.raises(WeightsRefused, match=message):
        load_network(path)


def test_a_layer_s_file_is_no_network(tmp_path) -> None:
    import convattn as ca

    path = tmp_path / "layer.safetensors"
    ca.save_layer(ca.conv_to_attention([[[1.0]]]), path)
    with pytest.raises(WeightsRefused, match="expected a file from convattn convert --network"):
        load_network(path)


def test_what_cannot_be_saved_is_refused(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"written as \.safetensors"):
        save_network((), tmp_path / "network.npz")
    (stem, *_) = (step for step in small_network().attention if hasattr(step, "layer"))
    with pytest.raises(ValueError, match="two layers are named 'stem'"):
        save_network((stem, stem), tmp_path / "network.safetensors")
    assert not list(tmp_path.iterdir())
    assert isinstance(small_network().attention[-1], Linear)
