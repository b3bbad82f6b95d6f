"""The forward pass against timm and transformers where they are installed, and by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparison import assert_equal, assert_within
from networks.diagnosis.small_transformers import PATCH, SIDES, hugging_face, images, timm_dict
from torch_packages import torch_package

from convattn.networks.diagnosis import transformers
from convattn.networks.diagnosis.state_dicts import VisionTransformer, read_transformer
from convattn.networks.diagnosis.transformers import attention_layers, head_maps, token_grid
from convattn.networks.weights.files import WeightsFile

CLOSE = 1e-10  # of numbers up to one, in float64: some 10⁵ roundings
PIXELS = tuple(side * PATCH for side in SIDES)


def read(arrays: dict[str, Any], heads: int | None = 2) -> VisionTransformer:
    return read_transformer(WeightsFile("file", arrays, {}), heads)


def maps(model: VisionTransformer, pixels: np.ndarray) -> list[np.ndarray]:
    return [layer.attention for layer in attention_layers(model, pixels)]


def randomised(torch: Any, model: Any) -> tuple[Any, dict[str, np.ndarray]]:
    """A model in float64 with random parameters, and its state dict."""
    model = model.double().eval()
    torch.manual_seed(0)
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(torch.randn_like(value))
    return model, {name: value.numpy() for name, value in model.state_dict().items()}


def timm_model(models: Any, kind: str) -> Any:
    sizes = {"img_size": PIXELS, "patch_size": PATCH, "embed_dim": 16, "depth": 3, "num_heads": 4}
    if kind == "beit":
        return models.beit.Beit(**sizes, qkv_bias=True, init_values=0.5, use_rel_pos_bias=True)
    if kind == "shared tables":
        shared = {"use_shared_rel_pos_bias": True, "use_abs_pos_emb": False}
        return models.beit.Beit(**sizes, qkv_bias=True, **shared)
    if kind == "deit":
        return models.deit.VisionTransformerDistilled(**sizes)
    vit = models.vision_transformer.VisionTransformer
    if kind == "registers":
        return vit(**sizes, reg_tokens=2, no_embed_class=True, init_values=0.5)
    return vit(**sizes)


def test_a_small_file_does_not_take_all_memory():
    """Positions for 10,000 tokens are 640 kB, and the attention between them is 1.6 GB."""
    arrays = {**timm_dict(1), "pos_embed": np.zeros((1, 10_001, 8))}
    with pytest.raises(ValueError, match=r"the attention of a layer has 200,040,002 numbers, but"):
        token_grid(read(arrays), None)
    arrays["pos_embed"] = np.zeros((1, 2_501, 8))
    assert token_grid(read(arrays), None) == (50, 50)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["vit", "registers", "deit", "beit", "shared tables"])
def test_the_attention_is_timms(kind):
    torch, timm = torch_package("timm")
    model, arrays = randomised(torch, timm_model(timm.models, kind))
    expected = []
    for block in model.blocks:
        block.attn.fused_attn = False
        block.attn.attn_drop.register_forward_pre_hook(lambda _, given: expected.append(given[0]))
    pixels = images(2)
    with torch.no_grad():
        model(torch.from_numpy(pixels.transpose(0, 3, 1, 2)))
    heads = None if kind in ("beit", "shared tables") else 4
    found = maps(read(arrays, heads), pixels)
    assert len(found) == len(expected) == 3
    for ours, theirs in zip(found, expected, strict=True):
        assert_within(ours, theirs.numpy(), CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ViT", "DeiT", "Beit"])
def test_the_attention_is_hugging_faces(kind, tmp_path, monkeypatch):
    torch, theirs = torch_package("transformers")
    softmax = torch.nn.functional.softmax  # theirs is in float32 whatever the model is in
    wide = lambda scores, dim, dtype=None: softmax(scores, dim)  # noqa: E731
    monkeypatch.setattr(torch.nn.functional, "softmax", wide)
    sides = PIXELS if kind != "Beit" else (8, 8)  # of BEiT they keep one side alone
    settings = getattr(theirs, f"{kind}Config")(
        image_size=sides if kind != "Beit" else 8,
        patch_size=PATCH,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=24,
        attn_implementation="eager",
        **({"use_relative_position_bias": True} if kind == "Beit" else {}),
    )
    model, arrays = randomised(torch, getattr(theirs, f"{kind}Model")(settings))
    model.save_pretrained(tmp_path)
    from convattn.networks.weights.files import read_weights

    pixels = images(2)[:, : sides[0], : sides[1]]
    with torch.no_grad():
        given = torch.from_numpy(pixels.transpose(0, 3, 1, 2).copy())
        expected = model(given, output_attentions=True).attentions
    stored = dict(read_weights(tmp_path / "model.safetensors").arrays)
    for held in (arrays, stored):  # in memory and in files they have different names
        found = maps(read(held, None if kind == "Beit" else 4), pixels)
        for ours, wanted in zip(found, expected, strict=True):
            assert_within(ours, wanted.numpy(), CLOSE)


@pytest.mark.parametrize("memory", [False, True], ids=["files", "memory"])
@pytest.mark.parametrize("options", [{}, {"distilled": True}, {"beit": True}], ids=str)
def test_the_same_weights_by_other_names_are_the_same_network(options, memory):
    arrays = timm_dict(**options)
    ours, other = read(arrays), read(hugging_face(arrays, memory))
    assert (ours.epsilon, other.epsilon) == (1e-6, 1e-12)
    for one, two in zip(
        maps(ours, images()), maps(replace(other, epsilon=1e-6), images()), strict=True
    ):
        assert_equal(one, two)


def test_attention_is_the_softmax_of_the_formula():
    """One query by hand, from the arrays as PyTorch holds them."""
    arrays = timm_dict(1)
    (layer,) = attention_layers(read(arrays), pixels := images(1))
    patch = pixels[0, :PATCH, PATCH : 2 * PATCH].transpose(2, 0, 1)  # the second token
    kernel = arrays["patch_embed.proj.weight"]
    token = np.einsum("wcij,cij->w", kernel, patch) + arrays["patch_embed.proj.bias"]
    place = arrays["pos_embed"][0]
    tokens = {0: arrays["cls_token"][0, 0] + place[0], 2: token + place[2]}

    def part(number: int, which: int) -> np.ndarray:
        x = tokens[number]
        x = (x - x.mean()) / np.sqrt(x.var() + 1e-6)
        x = x * arrays["blocks.0.norm1.weight"] + arrays["blocks.0.norm1.bias"]
        x = arrays["blocks.0.attn.qkv.weight"] @ x + arrays["blocks.0.attn.qkv.bias"]
        return x[8 * which : 8 * which + 4]  # the first of two heads of four features

    ratio = np.exp((part(2, 0) @ part(0, 1) - part(2, 0) @ part(2, 1)) / 2)
    seen = layer.attention[0, 0, 2]
    assert_within(seen[0] / seen[2] / ratio, 1, CLOSE)


def test_the_maps_of_a_head_are_what_it_adds_to_the_tokens():
    model = read(timm_dict(1, beit=True))
    block = model.blocks[0]
    rng = np.random.default_rng(3)
    normal, seen = rng.normal(size=(1, 7, 8)), rng.random((1, 2, 7, 7))
    values = transformers.by_head(normal @ block["value.weight"].T, 2)
    joined = (seen @ values).swapaxes(1, 2).reshape(1, 7, -1)
    expected = joined @ block["output.weight"].T * block["scale1"]
    found = np.einsum("hqk,ki,hio->qo", seen[0], normal[0], head_maps(block, 2))
    assert_within(found, expected[0], 1e-12)


@pytest.mark.parametrize(
    ("options", "size", "said"),
    [
        ({}, (12, 12), r"12 × 12 pixels: 9 patches in 3 × 3, but the model has positions for 7"),
        ({}, (10, 12), "patches of 4 × 4 do not divide it; give images of the size"),
        ({}, None, r"no image size: 4 patches in 2 × 2, but the model has positions for 7 tokens"),
        ({"beit": True}, (12, 12), "a table of 15 relative positions"),
    ],
)
def test_images_of_another_size_are_refused(options, size, said):
    with pytest.raises(ValueError, match=said):
        token_grid(read(timm_dict(**options)), size)


def test_channels_first_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"images\.transpose\(0, 2, 3, 1\)"):
        next(attention_layers(read(timm_dict()), images().transpose(0, 3, 1, 2)))


PLANTED = {
    "query and key exchanged": lambda b: b | {"query.weight": b["key.weight"]},
    "no layer scale": lambda b: b | {"scale1": np.ones(8)},
    "table turned": lambda b: b | {"table": b["table"][::-1]},
    "another gain": lambda b: b | {"norm2.weight": 1.1 * b["norm2.weight"]},
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_error_changes_the_attention(name):
    """The comparisons above see each part: none of them cancels."""
    model = read(timm_dict(beit=True))
    first, *rest = model.blocks
    wrong = replace(model, blocks=(PLANTED[name](dict(first)), *rest))
    assert np.abs(maps(model, images())[1] - maps(wrong, images())[1]).max() > 1e-3
