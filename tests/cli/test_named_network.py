"""Networks by the names of a command line."""

import sys

import numpy as np
import pytest

from convattn.cli.named_network import named_network

SOURCE = """
import jax.numpy as jnp
kernel = jnp.ones(3)
def network():
    return lambda images: jnp.convolve(images, kernel)
def of_size(size):
    return network()
def number():
    return 3
def broken():
    return [][0]
def of_neighbour():
    from neighbour_of_own_networks import network
    return network()
def unfinished():
    import no_module_of_this_name
def gone():
    return open("gone.npy")
def refused():
    import convattn
    return convattn.conv_to_attention(kernel.reshape(3, 1, 1), form="neither")
def of_jax():
    return jnp.reshape(kernel, (2, 2))
"""


def test_a_function_of_a_file_and_of_a_module(tmp_path, monkeypatch) -> None:
    (tmp_path / "own_networks.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    for name in ("own_networks.py:network", "own_networks:network"):
        network = named_network(name)
        assert network.function(np.ones(1)).tolist() == [1.0, 1.0, 1.0]
        assert network.example_shape is None


def test_modules_beside_the_file_can_be_imported(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "own_networks.py").write_text(SOURCE)
    (folder / "neighbour_of_own_networks.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    before = [*sys.path]
    network = named_network("models/own_networks.py:of_neighbour")
    assert network.function(np.ones(1)).tolist() == [1.0, 1.0, 1.0]
    assert sys.path == before


@pytest.mark.parametrize(
    ("name", "weights", "message"),
    [
        ("own_networks.py:netwerk", None, "has no 'netwerk'; near ones are network"),
        ("own_networks.py:of_size", None, "cannot be called without arguments.*'size'"),
        ("own_networks.py:number", None, "gives int, but expected a function"),
        ("own_networks.py:broken", None, "own_networks.py:broken ends in IndexError: list index"),
        ("own_networks.py:gone", None, "own_networks.py:gone ends in FileNotFoundError"),
        ("own_networks.py:of_jax", None, "own_networks.py:of_jax ends in TypeError"),
        ("own_networks.py:refused", None, "^form='neither', but expected"),
        ("own_networks.py:unfinished", None, "unfinished ends in ModuleNotFoundError: No module"),
        ("own_networks.py:network", "w.safetensors", "for a function of JAX, but expected none"),
        ("nowhere.py:network", None, "there is no file nowhere.py"),
        ("no_such_module:network", None, "there is no module no_such_module"),
        ("resnet50", None, "but expected one of torchvision/NAME"),
        ("tensorflow/resnet50", None, "but expected one of torchvision/NAME"),
    ],
)
def test_what_there_is_not_is_refused(tmp_path, monkeypatch, name, weights, message) -> None:
    (tmp_path / "own_networks.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        named_network(name, weights)
