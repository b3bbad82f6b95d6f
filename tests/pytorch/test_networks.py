import numpy as np
import pytest
import safetensors.torch
import torch
import torchvision
from torch import nn

from convattn.cli.named_network import named_network
from convattn.torch import network
from convattn.torch.checkpoints import load_into, read_state_dict

OWN = """
import torch, jax.numpy as jnp
def module(): return torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3))
def normed():
    torch.nn.utils.parametrizations.weight_norm((conv := module())[0])
    return conv
def function(): return jnp.sin
def number(): return 3
"""
IMAGES = torch.linspace(-1, 1, 3 * 64 * 64).reshape(1, 3, 64, 64)


@pytest.fixture(scope="module")
def resnet():
    return torchvision.models.resnet18(num_classes=7).eval()


def renamed(state, prefix):
    return {f"{prefix}{name}": tensor for name, tensor in state.items()}


@pytest.mark.parametrize("wrap", ["state", "state_dict", "model"])
@pytest.mark.parametrize("form", ["zip", "legacy", "safetensors"])
def test_weights_of_any_container_and_prefix(resnet, wrap, form, tmp_path) -> None:
    file = tmp_path / "weights.bin"
    state = renamed(resnet.state_dict(), "module.")
    if form == "safetensors":
        safetensors.torch.save_file(state, file)
    else:
        value = state if wrap == "state" else {"epoch": torch.tensor(3), wrap: state}
        torch.save(value, file, _use_new_zipfile_serialization=form == "zip")
    loaded = network("torchvision/resnet18", file)
    assert loaded.example_shape == (3, 224, 224)
    prefix, classes = loaded.notes
    assert "prefix 'module.'" in prefix
    assert "7 classes" in classes
    own = loaded.module.state_dict()
    assert all(torch.equal(own[name], each) for name, each in resnet.state_dict().items())
    with torch.no_grad():
        expected = resnet(IMAGES).numpy()
    assert abs(loaded.function(IMAGES) - expected).max() <= 1e-4 * abs(expected).max()


def test_what_does_not_fit_is_listed(resnet, tmp_path) -> None:
    file, state = tmp_path / "w.pt", resnet.state_dict()
    torch.save({**renamed(state, "backbone."), "head.weight": torch.ones(2)}, file)
    with pytest.raises(ValueError, match=r"205 tensors .*and 195 more; .*below 'backbone\.'") as e:
        network("torchvision/resnet18", file)
    assert str(e.value).count("is missing") == 10
    torch.save(state, file)
    with pytest.raises(ValueError, match="look like a ResNet of basic blocks"):
        network("torchvision/resnet50", file)
    wrong = {**state, "bn1.weight": torch.ones(3), "more": torch.ones(1)}
    del wrong["conv1.weight"], wrong["bn1.num_batches_tracked"]
    torch.save(wrong, file)
    with pytest.raises(ValueError) as e:
        network("torchvision/resnet18", file)
    for problem in (
        "'conv1.weight' is missing",
        "'more' is unexpected",
        "'bn1.weight' has shape (3,), expected (64,)",
    ):
        assert problem in str(e.value)
    assert "num_batches_tracked" not in str(e.value)


@pytest.mark.parametrize("dtype", [torch.int8, torch.complex64])
def test_numbers_of_another_kind_are_refused(resnet, dtype, tmp_path) -> None:
    state = resnet.state_dict()
    torch.save({**state, "conv1.weight": state["conv1.weight"].to(dtype)}, tmp_path / "w.pt")
    with pytest.raises(ValueError, match=f"'conv1.weight' is of {dtype}, but expected"):
        network("torchvision/resnet18", tmp_path / "w.pt")


def test_a_pickle_with_code_is_refused_with_a_script(resnet, tmp_path) -> None:
    file = tmp_path / "whole.pth"
    for zipped in (True, False):
        torch.save(resnet, file, _use_new_zipfile_serialization=zipped)
        with pytest.raises(ValueError, match=r"(?s)torch\.nn.*weights_only=False") as refused:
            network("torchvision/resnet18", file)
        assert "save_file" in str(refused.value)


@pytest.mark.parametrize(
    ("content", "match"),
    [({"a": 1}, "holds 'a', but expected tensors"), ([torch.ones(1)], "holds a list")],
)
def test_a_file_without_a_state_dict(content, match, tmp_path) -> None:
    torch.save(content, tmp_path / "w.pt")
    with pytest.raises(ValueError, match=match):
        read_state_dict(tmp_path / "w.pt")


def test_a_damaged_file(resnet, tmp_path) -> None:
    file = tmp_path / "w.pt"
    torch.save(resnet.state_dict(), file)
    file.write_bytes(file.read_bytes()[:5000])
    with pytest.raises(ValueError, match="damaged"):
        read_state_dict(file)


def test_weight_norm_is_computed_or_kept(tmp_path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    source = network(f"{tmp_path / 'own.py'}:normed").module
    torch.save(source.state_dict(), tmp_path / "w.pt")
    same = network(f"{tmp_path / 'own.py'}:normed", tmp_path / "w.pt").module
    plain = network(f"{tmp_path / 'own.py'}:module", tmp_path / "w.pt").module
    assert torch.equal(same[0].weight, source[0].weight)
    gap = plain[0].weight - source[0].weight
    assert gap.abs().max() <= 2**-20 * source[0].weight.abs().max()  # a norm of 9 numbers


def test_all_dtypes_of_weights(tmp_path) -> None:
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        state = {"weight": torch.rand(2, 3).to(dtype), "bias": torch.rand(2).to(dtype)}
        safetensors.torch.save_file(state, tmp_path / "w.safetensors")
        layer, _ = load_into(nn.Linear(3, 2), read_state_dict(tmp_path / "w.safetensors"), "w")
        assert layer.weight.dtype == (dtype if dtype == torch.float64 else torch.float32)
        assert torch.equal(layer.weight.to(dtype), state["weight"])
    np.savez(tmp_path / "w.npz", weight=np.ones((2, 3)), bias=np.ones(2))
    assert read_state_dict(tmp_path / "w.npz")["weight"].shape == (2, 3)


def test_ones_own_functions(tmp_path, monkeypatch) -> None:
    (tmp_path / "own_networks.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    assert network("own_networks.py:module").function(torch.ones(1, 1, 4, 5)).shape == (1, 2, 2, 3)
    for name, match in (
        ("own_networks:modul", "no 'modul'; near ones are module"),
        ("own_networks:number", "gives int"),
        ("own_networks:function", "but expected a torch.nn.Module"),
        ("not_there:f", "no module not_there"),
        ("not_there.py:f", "no file not_there.py"),
    ):
        with pytest.raises(ValueError, match=match):
            network(name)
    assert named_network("own_networks:function").function(0.0) == 0
    assert named_network("own_networks:module").function(torch.ones(1, 1, 4, 5)).shape[1] == 2


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("timm/resnet5O", "timm has no such network; near ones are .*timm/resnet50"),
        ("timm/resnet50.a1_in1kk", r"near ones are timm/resnet50\.a1_in1k"),
        ("torchvision/resnt50", "near ones are torchvision/resnet50"),
        ("resnet50", "expected one of torchvision/NAME"),
        ("keras/resnet50", "expected one of torchvision/NAME"),
    ],
)
def test_names_that_there_are_not(name, match) -> None:
    with pytest.raises(ValueError, match=match):
        network(name)


def test_the_shape_of_an_example() -> None:
    assert network("timm/resnet18.a1_in1k").example_shape == (3, 224, 224)
    assert network("timm/test_vit").example_shape == (3, 160, 160)
    assert network("torchvision/inception_v3").example_shape == (3, 299, 299)


def test_inception_tells_of_transform_input(tmp_path) -> None:
    module = network("torchvision/googlenet").module
    torch.save(module.state_dict(), tmp_path / "w.pt")
    (note,) = network("torchvision/googlenet", tmp_path / "w.pt").notes
    assert "transform_input" in note
