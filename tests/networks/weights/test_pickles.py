"""Files of PyTorch: never unpickled, and refused with a script that converts the file at hand."""

import argparse
import collections
import io
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from convattn.networks.weights.files import parse_weights, read_weights
from convattn.networks.weights.formats import WeightsRefused

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 2


def archive(*members: str, content: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for member in members:
            file.writestr(member, content)
    return buffer.getvalue()


def named(module: str, protocol: int = PROTOCOL) -> bytes:
    """A pickle that names a class `Net` of a module, which need not be there."""
    if protocol < 4:
        return b"\x80\x02c" + module.encode() + b"\nNet\n."
    text = b"".join(b"\x8c" + bytes([len(w)]) + w + b"\x94" for w in (module.encode(), b"Net"))
    return b"\x80\x04" + text + b"\x93."


PLAIN = pickle.dumps(collections.OrderedDict(a=1), PROTOCOL)
OTHER = pickle.dumps({"args": argparse.Namespace(lr=1)}, PROTOCOL)
LEGACY = b"".join(pickle.dumps(value, PROTOCOL) for value in (MAGIC, 1001, {}))
KINDS = {
    "plain": (archive("net/data.pkl", content=PLAIN), "weights_only=True"),
    "arguments": (archive("net/data.pkl", content=OTHER), "weights_only=False"),
    "a module": (archive("net/data.pkl", content=named("models.resnet")), "weights_only=False"),
    "another protocol": (archive("net/data.pkl", content=named("torch", 4)), "weights_only=False"),
    "TorchScript": (archive("net/code/net.py", "net/data.pkl"), "torch.jit.load('net.pth', map_lo"),
    "before 1.6": (LEGACY + PLAIN, "weights_only=True"),
    "before 1.6, a module": (LEGACY + named("torch.nn.modules.conv"), "weights_only=False"),
    "pickled tensors": (named("torch._utils", 4), "__import__('pickle').load"),
    "pickled arrays": (pickle.dumps({"a": np.ones(2)}), "numpy.savez("),
    "cut": (archive("net/data.pkl", content=PLAIN[:-3]), "weights_only=True"),
}


@pytest.mark.parametrize(("content", "expected"), KINDS.values(), ids=KINDS)
def test_the_script_is_that_of_the_kind(content, expected):
    with pytest.raises(
        WeightsRefused, match=r"^net.pth is a .*reading one runs the program"
    ) as error:
        parse_weights(content, "net.pth")
    script = str(error.value).partition("\n\n")[2]
    assert expected in script
    compile(script, "script", "exec")


def test_no_function_is_called_when_a_pickle_is_looked_at():
    with pytest.raises(WeightsRefused, match="is a pickle"):
        parse_weights(b"\x80\x02cos\nabort\n)R.", "net.pth")


@pytest.mark.slow
def test_the_script_converts_where_torch_is(tmp_path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors.torch")
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    state = network.to(memory_format=torch.channels_last).state_dict()
    tied = {**state, "tied": state["0.weight"], "part": state["0.weight"][1:]}
    moments = torch.optim.Adam(network.parameters())
    network(torch.ones(1, 3, 4, 4)).sum().backward()
    training = {
        "epoch": 1,
        "best": torch.ones(()),
        "args": argparse.Namespace(),
        "state_dict": state,
    }
    kinds = {
        "tied": tied,
        "training": {**training, "optimizer": moments.state_dict()},
        "network": network,
        "old": state,
        "script": torch.jit.script(network.eval()),
    }
    for kind, value in kinds.items():
        path, result = tmp_path / f"{kind}.pth", tmp_path / "weights.safetensors"
        if kind == "script":
            value.save(path)
        else:
            torch.save(value, path, _use_new_zipfile_serialization=kind != "old")
        with pytest.raises(WeightsRefused) as error:
            read_weights(path)
        script = str(error.value).partition("\n\n")[2]
        subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
        expected = tied if kind == "tied" else state
        arrays = read_weights(result).arrays
        assert arrays.keys() == expected.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, expected[name].numpy())
        result.unlink()
