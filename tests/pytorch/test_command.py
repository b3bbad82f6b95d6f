"""``convattn convert network`` of networks of PyTorch, with their weights and to ONNX."""

import pickle

import jax
import numpy as np
import onnxruntime
import pytest
import timm
import torch

import convattn as ca
from convattn.cli.__main__ import main

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
        said = capsys.readouterr()
        assert code == 0, said.err
        assert "convolutions -> attention layers of 2 and 10 heads" in said.out
        assert "as ONNX for images (2, 3, 32, 40)" in said.out
        images, expected = np.load("images.npy"), np.load("outputs.npy")
        found = np.asarray(ca.load_network("n.safetensors")(images))
    session = onnxruntime.InferenceSession("net.onnx", providers=["CPUExecutionProvider"])
    (other,) = session.run(None, {session.get_inputs()[0].name: images})
    for outputs in (found, other):
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
