"""Files that are given to diagnose and are neither a network that it reads nor attention."""

import numpy as np
import pytest

from convattn.diagnosis import diagnose
from convattn.networks.weights.names import unread_network

NOT_READ = {
    "a PiT of timm": "transformers.0.blocks.0.attn.qkv.weight",
    "a ViT of lucidrains' vit-pytorch": "transformer.layers.0.0.to_qkv.weight",
    "a network of Cordonnier's attention-cnn": "encoder.layer.0.attention.self.attention_centers",
    "a ViT with gated MLPs (SwiGLU)": "blocks.0.mlp.fc1_g.weight",
    "a ResNet of basic blocks (1, 0, 0, 0)": "layer1.0.conv2.weight",  # of 64 channels
}


@pytest.mark.parametrize(("kind", "name"), NOT_READ.items())
def test_a_network_that_is_not_read_is_named_in_three_lines(kind, name):
    arrays = {f"blocks.{block}.mlp.fc1.weight": np.ones((2, 3)) for block in range(400)}
    arrays[name] = np.ones((64, 64, 3, 3) if "conv" in name else (2, 2))
    with pytest.raises(ValueError, match="the state dict has the tensors of ") as caught:
        diagnose(arrays)
    assert kind in str(caught.value)
    assert len(str(caught.value)) < 320


POOLED = ["pos_embed", "fc_norm.weight", "blocks.0.attn.qkv.weight", "blocks.0.mlp.fc1.weight"]


@pytest.mark.parametrize(
    "more", [None, "cls_token", "blocks.0.attn.qkv.bias", "blocks.0.ls1.gamma"]
)
def test_blocks_that_normalise_what_they_add_are_told_by_what_timm_s_lacks(more):
    """All of timm's networks without that tensor are of pre-norm blocks, but one."""
    names = [f"module.{name}" for name in [*POOLED, *([more] if more else [])]]
    network = unread_network({name: np.ones((2, 2)) for name in names})
    assert (network or "").startswith("a ViT that normalises what its blocks add") == (more is None)


ENORMOUS = ["cls_token", "pos_embed", "norm.weight", "blocks.0.attn.q_bias", "blocks.0.norm1.bias"]


@pytest.mark.parametrize(
    ("width", "more", "is_refused"),
    [
        (1792, None, True),
        (1408, None, False),
        (1792, "blocks.0.gamma_1", False),
        (1792, "blocks.0.attn.relative_position_bias_table", False),
    ],
)
def test_eva_02_e_is_told_by_its_width_from_the_eva_of_pre_norm_blocks(width, more, is_refused):
    """Of timm's eva02_enormous_patch14_clip_224 and eva_giant_patch14_clip_224."""
    arrays = {f"visual.{name}": np.ones(2) for name in [*ENORMOUS, *([more] if more else [])]}
    arrays["visual.blocks.0.attn.qkv.weight"] = np.broadcast_to(0.0, (3 * width, width))
    network = unread_network(arrays)
    assert (network or "").startswith("a ViT that normalises what its blocks add") == is_refused


def test_an_unknown_network_does_not_list_all_its_names():
    unknown = {f"stages.{number}.mix.weight": np.ones((2, 3)) for number in range(400)}
    with pytest.raises(ValueError, match=r"expected blocks called .* and 397 more") as caught:
        diagnose(unknown)
    assert len(str(caught.value)) < 500


KERNELS = np.random.default_rng(0).normal(size=(4, 3, 3, 3))


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"conv1.weight": KERNELS}, r"conv1\.weight, shape \(4, 3, 3, 3\).*a network of convol"),
        ({"conv1.weight": KERNELS, "conv1.bias": np.ones(4)}, "tensors of a network of convol"),
        ({"layer1.0.conv2.weight": KERNELS}, "these the tensors of a ResNeXt"),
        ({"a": np.full((1, 1, 4, 4), 0.25), "b": -KERNELS[None]}, "b, shape .* after the softmax"),
        ({"a": np.full((1, 1, 4, 4), 0.3)}, r"attention\[0, 0, 0\] has the sum 1\.2 and the least"),
        ({"a": np.array([[[[1.5, -0.5], [0, 1]]]])}, "the least entry -0.5"),
    ],
    ids=range(6),
)
def test_arrays_of_four_axes_are_attention_only_if_they_can_be(arrays, said):
    with pytest.raises(ValueError, match=said):
        diagnose(arrays)
