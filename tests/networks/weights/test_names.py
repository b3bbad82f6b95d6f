"""Prefixes and kinds of networks, told from the names of a state dict."""

import numpy as np
import pytest

from convattn.networks.weights.convolution_layout import find_convolution
from convattn.networks.weights.files import WeightsFile
from convattn.networks.weights.formats import WeightsRefused
from convattn.networks.weights.names import looks_like, unread_network

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
    "vit.layers.0.attention.q_proj.weight": "ViT of Hugging Face",
    "vision_model.embeddings.patch_embedding.weight": "CLIP or SigLIP of Hugging Face",
    "transformers.1.blocks.0.attn.qkv.weight": "PiT of timm",
    "blocks.0.mlp.fc1_g.weight": "ViT with gated MLPs (SwiGLU), such as EVA-02",
    "dinov2.encoder.layer.0.mlp.weights_in.weight": "ViT with gated MLPs",
    "encoder.layer.0.mlp.gate_proj.weight": "ViT with gated MLPs",
}


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_a_transformer_is_named_and_what_diagnose_does_not_read_is_told_apart(name, kind):
    stored = {name: np.ones((3, 3), np.float32), "other": np.ones(3, np.float32)}
    assert kind in looks_like(stored)
    with pytest.raises(WeightsRefused, match="vision transformer is for convattn diagnose"):
        find_convolution(WeightsFile("net", stored, {}))
    said = unread_network(stored)
    if any(word in kind for word in ("gated", "PiT", "lucidrains", "Cordonnier")):
        assert kind in said
        assert "an array [images, heads, queries, keys] for each layer" in said
        assert "docs/diagnose.md" in said
    else:
        assert said is None


def test_a_gated_mlp_is_told_by_its_shapes():
    """Of timm's EVA-02, whose names are those of a ViT: 2n rows for n columns."""
    fc1, fc2 = "model.blocks.0.mlp.fc1.weight", "model.blocks.0.mlp.fc2.weight"
    gated = {fc1: np.ones((12, 4)), fc2: np.ones((4, 6)), "blocks.0.attn.qkv.weight": KERNEL}
    assert "gated MLPs" in looks_like(gated)
    assert "gated MLPs" in unread_network(gated)
    assert unread_network(gated | {fc1: np.ones((6, 4))}) is None
    assert unread_network({fc1: np.ones(()), fc2: np.ones((4, 6))}) is None
    assert unread_network({fc1: np.ones((12, 4))}) is None


def test_convolutions_have_no_heads():
    """Kernels and biases alone, a ResNet with its classifier, and nothing of a transformer."""
    for arrays, kind in (
        ({"0.weight": KERNEL, "0.bias": np.ones(4), "count": np.ones(())}, "convolutions alone"),
        ({"layer1.0.conv2.weight": KERNEL, "fc.weight": np.ones((2, 4))}, "wide ResNet"),
    ):
        said = unread_network(arrays)
        assert kind in said[: len(said) // 2]
        assert said.endswith(", which has no attention heads and is for convattn convert kernel")
    for arrays in ({}, {"0.bias": np.ones(4)}, {"0.weight": KERNEL, "1.weight": np.ones((2, 4))}):
        assert unread_network(arrays) is None


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
