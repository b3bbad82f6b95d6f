"""Rotary positions, whose angles stand in no tensor: refused without them, timm's with them."""

import math

import numpy as np
import pytest
from diagnosis.library_models import IMAGES, state_dict, stored_dict, waves

from convattn.diagnosis.models import diagnose
from convattn.diagnosis.reading import NOWHERE
from convattn.diagnosis.transformers import attention_layers
from convattn.initialization import Rotary
from convattn.networks.vision_transformer.state_dicts import read_transformer
from convattn.networks.weights.files import WeightsFile

WIDTH, PATCH, GRID, HEADS = 16, 4, (3, 2), 2
BLOCK = {
    "attn.proj.weight": (WIDTH, WIDTH), "attn.proj.bias": (WIDTH,), "norm1.weight": (WIDTH,),
    "attn.qkv.weight": (3 * WIDTH, WIDTH), "attn.qkv.bias": (3 * WIDTH,), "norm1.bias": (WIDTH,),
    "mlp.fc1.weight": (4 * WIDTH, WIDTH), "mlp.fc1.bias": (4 * WIDTH,), "norm2.weight": (WIDTH,),
    "mlp.fc2.weight": (WIDTH, 4 * WIDTH), "mlp.fc2.bias": (WIDTH,), "norm2.bias": (WIDTH,),
    "gamma_1": (WIDTH,), "gamma_2": (WIDTH,),
}  # fmt: skip
NAMES = {
    **{f"blocks.0.{name}": shape for name, shape in BLOCK.items()},
    **{"cls_token": (1, 1, WIDTH), "head.bias": (2,), "head.weight": (2, WIDTH)},
    **{"norm.bias": (WIDTH,), "norm.weight": (WIDTH,), "patch_embed.proj.bias": (WIDTH,)},
    "patch_embed.proj.weight": (WIDTH, 3, PATCH, PATCH),
}
DINOV3 = {name: shape for name, shape in NAMES.items() if name != "blocks.0.attn.qkv.bias"}
VIT = {name: shape for name, shape in NAMES.items() if "gamma_" not in name}
VIT |= {"pos_embed": (1, 7, WIDTH)}
# timm 1.0.31: embed_dim=16, depth=1, num_heads=2, img_size=(12, 8), patch_size=4, every tensor the
# `waves` of its place among the sorted names, the image those of 5: attention of head 2, of the
# last query but one.
OF_TIMM = {
    "vit_small_patch16_rope_224": (
        NAMES,
        (0.1277084, 0.1629439, 0.2320024, 0.1045915, 0.1626856, 0.0872592, 0.122809),
    ),
    "vit_small_patch16_rope_ape_224": (
        {**NAMES, "pos_embed": (1, 6, WIDTH)},
        (0.1332934, 0.1461358, 0.2515678, 0.1168687, 0.170196, 0.0667377, 0.1152006),
    ),
    "vit_small_patch16_dinov3": (
        {**DINOV3, "reg_token": (1, 4, WIDTH)},
        (
            *(0.1066396, 0.1082819, 0.1074269, 0.1150762, 0.1188242, 0.0891749),
            *(0.1013277, 0.0698497, 0.0754567, 0.0503843, 0.0575578),
        ),
    ),
}


def turns(name):
    if not name.endswith("dinov3"):
        return Rotary.axial(8, columns_first=True)
    spacing = tuple(4 * math.pi / side for side in GRID)
    origin = tuple((1 - side) / 2 for side in GRID)
    return Rotary.axial(8, layout="halves", spacing=spacing, origin=origin)


IMAGE = waves((1, 12, 8, 3), 5)


@pytest.mark.parametrize("name", OF_TIMM)
def test_the_attention_is_timms(name):
    """timm takes cosines in float32: 1e-6 is some ten of its roundings."""
    shapes, expected = OF_TIMM[name]
    file = WeightsFile("model", state_dict(shapes), {})
    model = read_transformer(file, HEADS)
    assert model.is_rotary
    (layer,) = attention_layers(model, IMAGE, lambda width, grid: turns(name))
    assert np.abs(layer.attention[0, 1, -2] - expected).max() < 1e-6
    (plain,) = attention_layers(model, IMAGE)
    assert np.abs(plain.attention[0, 1, -2] - expected).max() > 1e-3


@pytest.mark.parametrize("name", OF_TIMM)
def test_without_the_angles_it_is_refused(name):
    shapes, _ = OF_TIMM[name]
    with pytest.raises(ValueError, match=r"rotary positions.*give rotary \(--rotary timm, dinov3"):
        diagnose(state_dict(shapes), IMAGE, heads=HEADS)
    result = diagnose(state_dict(shapes), IMAGE, heads=HEADS, rotary=turns(name))
    assert result.notes[1].startswith("Queries and keys turned by")
    assert "spacing=trained/present" in result.notes[1]
    untaught = diagnose(state_dict(shapes), IMAGE, heads=HEADS, rotary="none")
    assert untaught.notes[1] == NOWHERE
    assert np.abs(result.layers[0].mean - untaught.layers[0].mean).max() > 1e-3


def test_a_library_is_named_by_a_word():
    shapes, _ = OF_TIMM[next(iter(OF_TIMM))]
    how = {"timm base=50": {"base": 50.0, "columns_first": True}, "dinov3": None}
    by_word, other = (diagnose(state_dict(shapes), IMAGE, heads=HEADS, rotary=w) for w in how)
    axial = lambda width, grid: Rotary.axial(width, **how["timm base=50"])  # noqa: E731
    by_value = diagnose(state_dict(shapes), IMAGE, heads=HEADS, rotary=axial)
    assert (by_word.layers[0].mean == by_value.layers[0].mean).all()
    assert (by_word.layers[0].mean != other.layers[0].mean).any()
    assert by_word.notes[1].startswith("Queries and keys turned by timm base=50.")


def test_a_vit_with_positions_needs_none():
    assert diagnose(state_dict(VIT), IMAGE, heads=HEADS).notes[1] == NOWHERE


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rotary": Rotary.axial(4)}, "rotary turns 2 pairs, but expected 4"),
        ({"rotary": "timms"}, "rotary='timms', but expected timm, dinov3 or none"),
        ({"rotary": ""}, "rotary='', but expected timm, dinov3 or none"),
        ({"rotary": "timm turns=3"}, "rotary='timm turns=3', but .* KEY=VALUE with base"),
        ({"rotary": "timm columns_first=False"}, "expected columns_first=true or false"),
        ({"rotary": "timm columns_first=1"}, "expected columns_first=true or false"),
        ({"rotary": f"timm base={10**400}"}, "expected base=a number, "),
        ({"rotary": "timm origin=true"}, "expected origin=a number, "),
        ({"rotary": 3}, "rotary=3, but expected timm, dinov3 or none, a convattn"),
        ({"rotary": "none", "norm_epsilon": 0.0}, "norm_epsilon=0.0, but expected a number"),
    ],
)
def test_what_does_not_fit_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        diagnose(state_dict(NAMES), IMAGE, heads=HEADS, **options)


def test_epsilon_counts():
    diagnoses = [
        diagnose(state_dict(NAMES), IMAGE, heads=HEADS, rotary="none", norm_epsilon=epsilon)
        for epsilon in (1e-12, 1e-2)
    ]
    assert "ε = 0.01" in diagnoses[1].notes[0]
    assert np.abs(diagnoses[0].layers[0].mean - diagnoses[1].layers[0].mean).max() > 1e-4


def test_rotary_goes_with_state_dicts():
    with pytest.raises(ValueError, match="rotary=none, but expected none"):
        diagnose(np.full((1, 1, 4, 4), 0.25), rotary="none")


@pytest.mark.parametrize("prefix", ["", "module."])
@pytest.mark.parametrize(
    ("kind", "left_out", "added"),
    [
        ("timm CLIP", (), None),  # any pooling
        ("timm CLIP", ("norm.",), None),
        ("timm CLIP", (), "attn_pool.latent"),
        ("ViT", ("norm.",), None),  # vit_pe_spatial without its norm_pre
        ("ViT", (), "attn_pool.latent"),  # vit_pe_core without it
    ],
)
def test_a_perception_encoder_is_not_taken_for_another(kind, left_out, added, prefix):
    """Their tensors are those of timm's CLIP, and without the first LayerNorm of its ViT."""
    arrays = state_dict(VIT) if kind == "ViT" else stored_dict(kind)
    stored = {
        prefix + n: a for n, a in arrays.items() if not left_out or not n.startswith(left_out)
    }
    if added:
        stored[prefix + added] = waves((1, 1, WIDTH), 3)
    options = {"heads": 2, "activation": "gelu"}
    images = IMAGE if kind == "ViT" else IMAGES
    with pytest.raises(ValueError, match="has the tensors of a network with rotary positions"):
        diagnose(stored, images, **options)
    assert diagnose(stored, images, **options, rotary="none").notes[1] == NOWHERE


def test_layer_scale_tells_timms_vit_and_missing_class_tokens_its_siglip():
    dinov2 = stored_dict("timm DINOv2 with registers")
    dinov2 = {name: array for name, array in dinov2.items() if not name.startswith("norm.")}
    for arrays in (dinov2, stored_dict("timm SigLIP")):
        assert not read_transformer(WeightsFile("model", arrays, {}), 4).is_rotary


def test_class_and_register_tokens_without_positions_have_the_epsilon_of_dinov3():
    models = {
        n: read_transformer(WeightsFile("m", state_dict(s), {}), 2) for n, (s, _) in OF_TIMM.items()
    }
    assert {name: model.epsilon for name, model in models.items()} == {
        "vit_small_patch16_rope_224": 1e-6,
        "vit_small_patch16_rope_ape_224": 1e-6,
        "vit_small_patch16_dinov3": 1e-5,
    }


# transformers 5.24, PaddleOCRVisionModel of the sizes of the stored networks, its softmax in
# float64: of the last image and head the last row but one, of both layers.
OF_PADDLE_OCR = (
    (
        *(0.1882668, 0.2124253, 0.1754687, 0.0778368, 0.1098134),
        *(0.0795389, 0.0500505, 0.0555547, 0.051045),
    ),
    (
        *(0.3130672, 0.2371874, 0.172669, 0.0851106, 0.0665204),
        *(0.0472674, 0.0336802, 0.0260405, 0.0184573),
    ),
)


def test_paddle_ocr_is_not_taken_for_a_siglip():
    """Their tensors are those of Hugging Face's SigLIP without its pooling head."""
    siglip = stored_dict("Hugging Face SigLIP")
    assert not read_transformer(WeightsFile("model", siglip, {}), 4).is_rotary
    stored = {f"vision_model.{n}": a for n, a in siglip.items() if not n.startswith("head.")}
    with pytest.raises(ValueError, match="has the tensors of a network with rotary positions"):
        diagnose(stored, IMAGES, heads=4)
    turns = Rotary.axial(4, base=1e4, layout="halves")
    layers = [
        attention_layers(read_transformer(WeightsFile("model", stored, {}), 4), IMAGES, rotary)
        for rotary in (lambda width, grid: turns, None)
    ]
    for expected, turned, plain in zip(OF_PADDLE_OCR, *layers, strict=True):
        assert np.abs(turned.attention[-1, -1, -2] - expected).max() < 1e-6
        assert np.abs(plain.attention[-1, -1, -2] - expected).max() > 1e-3
