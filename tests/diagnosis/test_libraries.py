"""What other libraries' networks compute, stored and, where they are installed, run anew."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from comparison import assert_equal, assert_within
from diagnosis.library_models import (
    HEADS,
    HUGGING_FACE,
    IMAGES,
    STORED,
    TIMM,
    of_torch,
    stored_dict,
)
from torch_packages import torch_package

from convattn.diagnosis.models import diagnose
from convattn.diagnosis.transformers import attention_layers
from convattn.networks.vision_transformer.state_dicts import (
    ACTIVATIONS,
    read_transformer,
    with_parts,
)
from convattn.networks.weights.files import WeightsFile, read_weights

CLOSE = 1e-10  # of numbers up to one, in float64: some 10⁵ roundings; stored are twelve digits
LIBRARIES = json.loads(STORED.read_text())
ACTIVATION = {"timm CLIP, quick GELU": "quick_gelu"}  # the names are those of timm's other CLIP
SETTINGS = {  # as each library has them: naming, ε and activation
    "Hugging Face DINOv2": ("Hugging Face's DINOv2", 1e-6, "gelu"),
    "Hugging Face DINOv2 with registers": ("Hugging Face's DINOv2", 1e-6, "gelu"),
    "Hugging Face SigLIP": ("Hugging Face's SigLIP", 1e-6, "gelu_tanh"),
    "Hugging Face CLIP": ("Hugging Face's CLIP", 1e-5, "quick_gelu"),
    "timm SigLIP": ("timm", 1e-6, "gelu"),
    "timm CLIP": ("timm's CLIP", 1e-5, "gelu"),
    "timm CLIP, quick GELU": ("timm's CLIP", 1e-5, "quick_gelu"),
    "timm DINOv2 with registers": ("timm", 1e-6, "gelu"),
    "torchvision": ("torchvision", 1e-6, "gelu"),
    "Google": ("Google", 1e-6, "gelu_tanh"),
}
OTHER_NAMES = {  # for the same tensors, those of published files
    "Hugging Face DINOv2": {
        **{r"\.q_proj": ".attention.query", r"\.k_proj": ".attention.key"},
        **{r"\.v_proj": ".attention.value", r"\.o_proj": ".output.dense", "^": "dinov2."},
    },
    "torchvision": {r"mlp\.0": "mlp.linear_1", r"mlp\.3": "mlp.linear_2"},
    "Google": {
        **{"LayerNorm_1": "LayerNorm_2", "MlpBlock_0": "MlpBlock_3"},
        "MultiHeadDotProductAttention_0": "MultiHeadDotProductAttention_1",
    },
}


def read(arrays, kind="", **options):
    options = {"activation": ACTIVATION.get(kind), **options}
    return read_transformer(WeightsFile("net", arrays, {}), HEADS, **options)


def rows(model):
    layers = attention_layers(model, IMAGES)
    return np.array([layer.attention[-1, -1, -2] for layer in layers])


@pytest.mark.parametrize("kind", LIBRARIES)
def test_the_attention_is_the_library_s(kind):
    model = read(stored_dict(kind), kind)
    assert (model.naming, model.epsilon, model.activation) == SETTINGS[kind]
    assert_within(rows(model), np.array(LIBRARIES[kind]["attention"]), CLOSE)


@pytest.mark.parametrize("kind", [kind for kind in LIBRARIES if "CLIP" in kind])
def test_the_norm_before_the_blocks_counts(kind):
    model = read(stored_dict(kind), kind)
    assert np.abs(rows(replace(model, pre_norm={})) - rows(model)).max() > 1e-4


@pytest.mark.parametrize("kind", LIBRARIES)
def test_another_activation_or_epsilon_is_another_network(kind):
    """So the stored numbers tell the default of each."""
    right = SETTINGS[kind][2]
    others = [{"activation": name} for name in {*ACTIVATIONS} - {right}] + [{"epsilon": 1e-4}]
    for options in others:
        wrong = rows(read(stored_dict(kind), kind, **options))
        assert np.abs(wrong - LIBRARIES[kind]["attention"]).max() > 1e-7


@pytest.mark.parametrize("kind", LIBRARIES)
def test_every_tensor_is_put_back_where_it_was(kind):
    arrays = stored_dict(kind)
    file = WeightsFile("net", arrays, {})
    result = with_parts(file, read(arrays, kind))
    assert result.keys() == arrays.keys()
    for name, array in arrays.items():
        assert_equal(result[name], array)


@pytest.mark.parametrize("kind", OTHER_NAMES)
def test_other_names_are_the_same_network(kind):
    renamed = stored_dict(kind)
    for old, new in OTHER_NAMES[kind].items():
        changed = {re.sub(old, new, name): array for name, array in renamed.items()}
        assert changed.keys() != renamed.keys()
        renamed = changed
    assert_equal(rows(read(renamed)), rows(read(stored_dict(kind))))


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.vision_model.", "params/"])
@pytest.mark.parametrize("kind", LIBRARIES)
def test_all_names_may_stand_below_others(kind, prefix):
    below = {f"{prefix}{name}": array for name, array in stored_dict(kind).items()}
    assert_equal(rows(read(below, kind)), rows(read(stored_dict(kind), kind)))


def test_a_text_tower_beside_it_is_left_alone():
    """Its blocks have the names of the other tower's, and come first."""
    for kind in ("Hugging Face CLIP", "Hugging Face SigLIP"):
        vision = stored_dict(kind)
        text = {f"text_model.{n}": a[:8] for n, a in vision.items() if "layers" in n}
        both = text | {f"vision_model.{name}": array for name, array in vision.items()}
        both |= {"logit_scale": np.ones(()), "visual_projection.weight": np.ones((3, 16))}
        both |= {"vision_model.embeddings.position_ids": np.arange(10)[None]}
        for above in ("", "module."):
            below = {above + name: array for name, array in both.items()}
            assert_equal(rows(read(below)), rows(read(vision)))


BEHIND = ("norm.", "head", "post_layernorm.", "layernorm.", "attn_pool.", "encoder.ln.")
FREE = ("cls_token", "class_embedding", "class_token", "cls", "reg_token", "register_tokens")
FREE += ("pos_embed", "position_embeddings", "position_embedding.weight", "pos_embedding")
FREE += ("mask_token", ".bias", "/bias", "_bias", "gamma", "lambda1", "norm/scale")


@pytest.mark.parametrize("kind", LIBRARIES)
def test_each_tensor_is_missed_by_its_own_name(kind):
    arrays = stored_dict(kind)
    missed = 0
    for name in arrays:
        if name.startswith(BEHIND) or name.endswith(FREE):
            continue
        with pytest.raises(ValueError, match="not those") as caught:
            read({other: array for other, array in arrays.items() if other != name})
        assert f"{name} is missing" in str(caught.value)
        missed += 1
    assert missed >= 1 + 2 * 6  # the patches; two norms and four matrices of each layer


@pytest.mark.parametrize("kind", LIBRARIES)
def test_each_tensor_that_is_turned_is_noticed(kind):
    arrays = stored_dict(kind)
    for name, array in arrays.items():
        if name.startswith(BEHIND) or array.shape == array.shape[::-1] or "mask" in name:
            continue
        if array.ndim < 3 and name.endswith("embedding.weight"):
            continue  # positions may be of any number of tokens
        with pytest.raises(ValueError, match="has shape"):
            read(arrays | {name: array.transpose()})


def test_google_s_kernels_say_the_heads():
    model = read_transformer(WeightsFile("net", stored_dict("Google"), {}))
    assert (model.heads, model.assumed) == (HEADS, False)
    with pytest.raises(ValueError, match="heads=2, but expected 4, the heads of the kernels"):
        read_transformer(WeightsFile("net", stored_dict("Google"), {}), 2)


def test_positions_of_late_registers_are_added_to_them_when_they_are_put_back():
    """Of DINOv2 with registers: a class token, four registers and nine patches."""
    arrays = stored_dict("Hugging Face DINOv2 with registers")
    file = WeightsFile("net", arrays, {})
    model = read(arrays)
    assert_equal(model.positions[1:5], np.zeros((4, 16)))
    model.positions[1:5] = 1.0
    result = with_parts(file, model)
    assert_equal(result["embeddings.register_tokens"], arrays["embeddings.register_tokens"] + 1)
    assert_equal(result["embeddings.position_embeddings"], arrays["embeddings.position_embeddings"])


def test_a_bias_of_the_patches_without_a_tensor_is_refused():
    arrays = stored_dict("Hugging Face CLIP")
    model = read(arrays)
    assert_equal(model.patch_bias, np.zeros(16))
    model.patch_bias[0] = 1
    with pytest.raises(ValueError, match="net has no bias of the patches"):
        with_parts(WeightsFile("net", arrays, {}), model)


def test_the_notes_say_the_activation():
    clip = stored_dict("Hugging Face CLIP")
    with pytest.raises(ValueError, match=r"tensors of CLIP.*give activation \(--activation quick"):
        diagnose(clip, IMAGES, heads=HEADS)
    diagnosis = diagnose(clip, IMAGES, heads=HEADS, activation="quick_gelu")
    assert diagnosis.notes[0] == (
        "Names: Hugging Face's CLIP; LayerNorm with ε = 1e-05 before attention and MLP, which no "
        "tensor tells; MLP with quick_gelu."
    )
    other = diagnose(clip, IMAGES, heads=HEADS, activation="gelu")
    assert other.notes[0].endswith("MLP with gelu.")
    assert np.abs(other.layers[1].mean - diagnosis.layers[1].mean).max() > 1e-5
    with pytest.raises(ValueError, match="activation='relu', but expected gelu, gelu_tanh, quick"):
        diagnose(clip, IMAGES, heads=HEADS, activation="relu")


PACKAGES = dict.fromkeys(HUGGING_FACE, "transformers") | dict.fromkeys(TIMM, "timm")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*PACKAGES, "torchvision"])
def test_the_library_computes_what_is_stored(kind, tmp_path):
    """Every row of every head, in memory and as its file has them."""
    torch, package = torch_package(PACKAGES.get(kind, kind))
    arrays, expected, model = of_torch(kind, torch, package)
    assert {name: list(array.shape) for name, array in arrays.items()} == LIBRARIES[kind]["shapes"]
    state_dicts = [arrays]
    if kind in HUGGING_FACE:
        model.save_pretrained(tmp_path)
        state_dicts.append(dict(read_weights(tmp_path / "model.safetensors").arrays))
    for each in state_dicts:
        layers = attention_layers(read(each, kind), IMAGES)
        for layer, theirs in zip(layers, expected, strict=True):
            assert_within(layer.attention, theirs, CLOSE)
