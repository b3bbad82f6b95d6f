"""Networks by the names of a command line."""

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
"""


def test_a_function_of_a_file_and_of_a_module(tmp_path, monkeypatch) -> None:
    (tmp_path / "own_networks.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    for name in ("own_networks.py:network", "own_networks:network"):
        network = named_network(name)
        assert network.function(np.ones(1)).tolist() == [1.0, 1.0, 1.0]
        assert network.example_shape is None


@pytest.mark.parametrize(
    ("name", "weights", "message"),
    [
        ("own_networks.py:netwerk", None, "has no 'netwerk'; near ones are network"),
        ("own_networks.py:of_size", None, "cannot be called without arguments.*'size'"),
        ("own_networks.py:number", None, "gives int, but expected a function"),
        ("own_networks.py:broken", None, "own_networks.py:broken ends in IndexError: list index"),
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
