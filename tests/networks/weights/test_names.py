"""Prefixes and kinds of networks, told from the names of a state dict."""

import numpy as np
import pytest

from convattn.networks.weights.convolution_layout import find_convolution
from convattn.networks.weights.files import WeightsFile
from convattn.networks.weights.formats import WeightsRefused
from convattn.networks.weights.names import looks_like

KERNEL = np.ones((4, 4, 3, 3), np.float32)
KINDS = {
    "encoder.layers.encoder_layer_0.self_attention.in_proj_weight": "ViT of torchvision",
    "Transformer/encoderblock_0/MultiHeadDotProductAttention_1/query/kernel": "ViT of Google's",
    "transformer.layers.0.0.fn.to_qkv.weight": "lucidrains' vit-pytorch",
    "module.transformer.layers.3.0.to_qkv.weight": "lucidrains' vit-pytorch",
    "encoder.layer.0.attention.self.attention_centers": "Cordonnier's attention-cnn",
    "layers.0.blocks.0.attn.qkv.weight": "Swin of timm",
    "backbone.blocks.0.attn.qkv.weight": "ViT of timm",
    "vit.encoder.layer.0.attention.attention.query.weight": "ViT of Hugging Face",
}


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_a_transformer_is_named(name, kind):
    stored = {name: np.ones((3, 3), np.float32), "other": np.ones(3, np.float32)}
    assert kind in looks_like(stored)
    with pytest.raises(WeightsRefused, match="vision transformer is for convattn diagnose"):
        find_convolution(WeightsFile("net", stored, {}))


@pytest.mark.parametrize(
    ("outside", "inside", "kind"),
    [
        (64, 64, r"a ResNet of bottleneck blocks (3, 4, 6, 3), as resnet50 has"),
        (128, 128, r"a wide ResNet: bottleneck blocks (3, 4, 6, 3) with 128 channels"),
        (128, 4, r"a ResNeXt: a ResNet of bottleneck blocks (3, 4, 6, 3) with 32 groups"),
    ],
)
def test_a_resnet_is_named_by_its_blocks(outside, inside, kind):
    stored = {
        f"layer{stage}.{block}.conv{number}.weight": np.empty((outside, inside, 3, 3))
        for stage, depth in enumerate((3, 4, 6, 3), start=1)
        for block in range(depth)
        for number in (1, 2, 3)
    }
    assert looks_like(stored).startswith(kind)
    assert looks_like({"conv1.weight": KERNEL}) is None


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "backbone.", "model."])
def test_a_prefix_before_the_layer_is_named(prefix):
    stored = {f"{prefix}conv1.weight": KERNEL, "head.weight": np.ones((2, 4), np.float32)}
    with pytest.raises(WeightsRefused, match=rf"with the prefix '{prefix}'; give that name"):
        find_convolution(WeightsFile("net", stored, {}), "conv1")
    assert find_convolution(WeightsFile("net", stored, {}), f"{prefix}conv1").layout == "oihw"
