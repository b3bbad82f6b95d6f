"""Compiled networks in the stock vision transformers of timm and Hugging Face, strictly loaded."""

import json

import compiled_networks as networks
import numpy as np
import pytest
from torch_packages import torch_package

import convattn as ca
from convattn.compile import NotCompiled, size, to_vision_transformer
from convattn.networks.onnx import write_onnx
from convattn.networks.weights.formats import write_safetensors

torch, timm = torch_package("timm")
transformers = pytest.importorskip("transformers")
KINDS = {
    "residual": (networks.residual(), 1),
    "pooled in patches": (networks.pooled, 2),
    "depthwise": (networks.depthwise, 1),
}
LIMITS = {"float64": 1e-12, "float32": 5e-6}
IMAGES = np.random.default_rng(0).random((3, 8, 8, 3))


def in_timm(compiled):
    model = timm.models.VisionTransformer(**compiled.arguments).to(getattr(torch, compiled.dtype))
    model.load_state_dict(tensors(compiled), strict=True)
    return model


def in_transformers(compiled):
    config = transformers.ViTConfig(**compiled.arguments)
    model = transformers.ViTForImageClassification(config).to(getattr(torch, compiled.dtype))
    model.load_state_dict(tensors(compiled), strict=True)
    return model


def tensors(compiled):
    return {name: torch.from_numpy(array.copy()) for name, array in compiled.arrays.items()}


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "build"), [("timm", in_timm), ("transformers", in_transformers)])
def test_logits_are_those_of_the_network(name, build, kind, dtype):
    function, patch = KINDS[kind]
    images = IMAGES.astype(dtype)
    compiled = to_vision_transformer(
        function, images, format=name, patch_size=patch, dtype=dtype, epsilon=None
    )
    model = build(compiled).eval()
    with torch.no_grad():
        outputs = model(torch.from_numpy(images.transpose(0, 3, 1, 2).copy()))
    logits = np.asarray(getattr(outputs, "logits", outputs))
    expected = np.asarray(function(images))
    assert np.abs(logits - expected).max() <= LIMITS[dtype] * np.abs(expected).max()
    assert (logits.argmax(1) == expected.argmax(1)).all()
    difference = np.abs(logits - np.asarray(compiled(images)))
    assert (difference <= 2 * compiled.report.bound.total).all()


def test_a_file_of_older_names_is_loaded(tmp_path):
    function, patch = KINDS["pooled in patches"]
    compiled = to_vision_transformer(
        function, IMAGES, format="transformers4", patch_size=patch, dtype="float64"
    )
    config = {"model_type": "vit", "architectures": ["ViTForImageClassification"]}
    (tmp_path / "config.json").write_text(json.dumps(config | compiled.arguments))
    content = write_safetensors(compiled.arrays, {"format": "pt"})
    (tmp_path / "model.safetensors").write_bytes(content)
    model, loading_info = transformers.ViTForImageClassification.from_pretrained(
        tmp_path, dtype=torch.float64, output_loading_info=True
    )
    assert not loading_info["missing_keys"]
    assert not loading_info["unexpected_keys"]
    with torch.no_grad():
        logits = model.eval()(torch.from_numpy(IMAGES.transpose(0, 3, 1, 2).copy())).logits
    expected = np.asarray(function(IMAGES))
    assert np.abs(logits.numpy() - expected).max() <= 1e-12 * np.abs(expected).max()


def test_as_onnx(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    images = IMAGES.astype(np.float32)
    compiled = to_vision_transformer(networks.residual(), images)
    write_onnx(compiled, images, tmp_path / "vit.onnx")
    session = runtime.InferenceSession(tmp_path / "vit.onnx")
    (logits,) = session.run(None, {session.get_inputs()[0].name: images})
    assert (np.abs(logits - networks.residual()(IMAGES)) <= 2 * compiled.report.bound.total).all()


def test_a_module_of_pytorch_is_taken_as_it_is():
    layers = (torch.nn.Conv2d(1, 2, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1))
    module, images = torch.nn.Sequential(*layers, torch.nn.Flatten()), torch.randn(2, 1, 4, 4)
    with pytest.raises(ValueError, match=r"training mode, but expected evaluation; .*eval\(\)"):
        to_vision_transformer(module, images)
    compiled = to_vision_transformer(module.eval(), images)
    difference = in_timm(compiled).eval()(images) - module(images)
    assert difference.abs().max() < 1e-6
    assert size(module, images) == compiled.report.size
    with pytest.raises(ValueError, match=r"Sequential, a module of PyTorch, .*function_of\(mod"):
        ca.with_attention(module)


def test_a_refusal_names_the_module_and_the_operator():
    block = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3, padding=1), torch.nn.SiLU())
    module = torch.nn.Sequential(block, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()).eval()
    with pytest.raises(NotCompiled, match=r"in 0/1/aten::silu: is a function of one number"):
        size(module, torch.ones(1, 1, 4, 4))
