"""``convattn convert network`` of networks of PyTorch, with their weights and to ONNX."""

import pickle
import runpy

import jax
import numpy as np
import onnxruntime
import pytest
import timm
import torch

import convattn as ca
from convattn.cli.__main__ import main
from convattn.torch import functions
from convattn.torch.networks import Network

pytestmark = pytest.mark.usefixtures("unchecked")  # jaxtyping knows no symbols
NAME = "timm/test_efficientnet"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Weights, images, and the outputs that PyTorch has for them."""
    model = timm.create_model("test_efficientnet", pretrained=False).eval()
    torch.save({"state_dict": model.state_dict()}, tmp_path / "net.pth")
    images = np.random.default_rng(0).normal(size=(2, 3, 32, 40)).astype(np.float32)
    np.save(tmp_path / "images.npy", images)
    with torch.no_grad():
        np.save(tmp_path / "outputs.npy", model(torch.from_numpy(images)).numpy())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_network_of_timm_becomes_a_file_and_onnx(folder, capsys) -> None:
    options = ("--weights", "net.pth", "--images", "images.npy", "--expected", "outputs.npy")
    with jax.enable_x64(False):
        code = main(
            ["convert", "network", NAME, *options, "--onnx", "net.onnx", "-o", "n.safetensors"]
        )
        captured = capsys.readouterr()
        assert code == 0, captured.err
        assert "convolutions -> attention layers of 2 and 10 heads" in captured.out
        assert "as ONNX for images (2, 3, 32, 40)" in captured.out
        images, expected = np.load("images.npy"), np.load("outputs.npy")
        logits = np.asarray(ca.load_network("n.safetensors")(images))
    session = onnxruntime.InferenceSession("net.onnx", providers=["CPUExecutionProvider"])
    (other,) = session.run(None, {session.get_inputs()[0].name: images})
    for outputs in (logits, other):
        assert np.abs(outputs - expected).max() <= 1e-5 * np.abs(expected).max()


def test_wrong_weights_and_names_are_refused(folder, capsys) -> None:
    state = torch.load("net.pth", weights_only=True)["state_dict"]
    first = next(iter(state))
    torch.save({k: v for k, v in state.items() if k != first}, "missing.pth")
    (folder / "code.pth").write_bytes(pickle.dumps(print))
    for words, message in (
        ((NAME, "--weights", "missing.pth"), f"{first} is missing"),
        ((NAME, "--weights", "code.pth"), "pickle"),
        ((NAME, "--weights", "nowhere.pth"), "nowhere.pth"),
        (("timm/test_resnt",), "near ones are"),
        (("torchvision/resnet19",), "near ones are"),
    ):
        assert main(["convert", "network", *words, "--image-size", "32"]) == 2
        assert message in capsys.readouterr().err.replace("'", "")
    assert not list(folder.glob("*.safetensors"))


def test_outputs_that_are_not_pytorchs_are_refused(folder, capsys, monkeypatch) -> None:
    (folder / "up.py").write_text(
        "import torch\n\ndef net():\n    return torch.nn.ConvTranspose2d(4, 6, 2, groups=2)\n"
    )
    np.save("four.npy", np.random.default_rng(0).normal(size=(1, 4, 5, 6)).astype(np.float32))
    args = ["convert", "network", "up.py:net", "--images", "four.npy", "-o", "up.safetensors"]
    with monkeypatch.context() as patch:  # torchax as it is
        patch.setattr(functions, "correct", lambda environment: None)
        assert main(args) == 2
    assert "torchax computes up.py:net otherwise than PyTorch, by" in capsys.readouterr().err
    assert not (folder / "up.safetensors").exists()
    assert main(args) == 0


TWO = """import torch

class Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, images):
        outputs = self.conv(images)
        return {"z": outputs, "a": outputs.relu().mean((2, 3)), "b": outputs.argmax(1)}
"""


def test_each_output_is_compared_and_which_one_expected_is(folder, capsys, monkeypatch) -> None:
    """Of a dictionary in the order of its keys, as JAX has it; integers are equal."""
    (folder / "two.py").write_text(TWO)
    module = runpy.run_path("two.py")["Two"]().eval()
    torch.save(module.state_dict(), "two.pth")
    with torch.no_grad():
        outputs = module(torch.from_numpy(np.load("images.npy")))
    np.save("a.npy", outputs["a"].numpy())
    args = ["convert", "network", "two.py:Two", "--weights", "two.pth", "--images", "images.npy"]
    assert main([*args, "--expected", "a.npy", "-o", "two.safetensors"]) == 0
    assert "the first of 3 outputs of the network as it was built" in capsys.readouterr().out
    changed = Network.outputs_in_pytorch

    def other(self, images):
        first, *rest = changed(self, images)
        return [first, *(each + 1 for each in rest)]

    monkeypatch.setattr(Network, "outputs_in_pytorch", other)
    assert main([*args, "-o", "three.safetensors"]) == 2
    assert "torchax computes two.py:Two otherwise than PyTorch" in capsys.readouterr().err


def test_parts_by_number_are_said_to_be_those_of_a_weight_norm(folder, capsys) -> None:
    (folder / "one.py").write_text(
        "import torch\n\ndef net():\n    return torch.nn.Conv2d(3, 4, 3)\n"
    )
    normed = torch.nn.utils.parametrizations.weight_norm(torch.nn.Conv2d(3, 4, 3))
    torch.save(normed.state_dict(), "normed.pth")
    args = ["convert", "network", "one.py:net", "--weights", "normed.pth"]
    assert main([*args, "--images", "images.npy", "-o", "one.safetensors"]) == 0
    assert "are taken for a weight norm alone" in capsys.readouterr().out
