"""The forward pass against timm and transformers where they are installed, and by hand."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparison import assert_equal, assert_within
from diagnosis.small_transformers import PATCH, SIDES, hugging_face, images, timm_dict
from torch_packages import torch_package

from convattn.diagnosis import transformers
from convattn.diagnosis.transformers import (
    attention_layers,
    block_output,
    head_maps,
)
from convattn.networks.vision_transformer import token_grid as grids
from convattn.networks.vision_transformer.state_dicts import VisionTransformer, read_transformer
from convattn.networks.vision_transformer.token_grid import token_grid
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
        block.attn.attn_drop.register_forward_pre_hook(lambda _, args: expected.append(args[0]))
    pixels = images(2)
    with torch.no_grad():
        model(torch.from_numpy(pixels.transpose(0, 3, 1, 2)))
    heads = None if kind in ("beit", "shared tables") else 4
    actual = maps(read(arrays, heads), pixels)
    assert len(actual) == len(expected) == 3
    for ours, theirs in zip(actual, expected, strict=True):
        assert_within(ours, theirs.numpy(), CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ViT", "DeiT", "Beit"])
def test_the_attention_is_hugging_faces(kind, tmp_path, monkeypatch):
    torch, theirs = torch_package("transformers")
    softmax = torch.nn.functional.softmax  # theirs is in float32 whatever the model is in
    in_float64 = lambda scores, dim, dtype=None: softmax(scores, dim)  # noqa: E731
    monkeypatch.setattr(torch.nn.functional, "softmax", in_float64)
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
        batch = torch.from_numpy(pixels.transpose(0, 3, 1, 2).copy())
        expected = model(batch, output_attentions=True).attentions
    stored = dict(read_weights(tmp_path / "model.safetensors").arrays)
    for state in (arrays, stored):  # in memory and in files they have different names
        actual = maps(read(state, None if kind == "Beit" else 4), pixels)
        for ours, theirs in zip(actual, expected, strict=True):
            assert_within(ours, theirs.numpy(), CLOSE)


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
    positions = arrays["pos_embed"][0]
    tokens = {0: arrays["cls_token"][0, 0] + positions[0], 2: token + positions[2]}

    def part(number: int, which: int) -> np.ndarray:
        x = tokens[number]
        x = (x - x.mean()) / np.sqrt(x.var() + 1e-6)
        x = x * arrays["blocks.0.norm1.weight"] + arrays["blocks.0.norm1.bias"]
        x = arrays["blocks.0.attn.qkv.weight"] @ x + arrays["blocks.0.attn.qkv.bias"]
        return x[8 * which : 8 * which + 4]  # the first of two heads of four features

    ratio = np.exp((part(2, 0) @ part(0, 1) - part(2, 0) @ part(2, 1)) / 2)
    row = layer.attention[0, 0, 2]
    assert_within(row[0] / row[2] / ratio, 1, CLOSE)


def test_the_maps_of_a_head_are_what_it_adds_to_the_tokens():
    model = read(timm_dict(1, beit=True))
    block = model.blocks[0]
    rng = np.random.default_rng(3)
    normal, attention = rng.normal(size=(1, 7, 8)), rng.random((1, 2, 7, 7))
    values = transformers.by_head(normal @ block["value.weight"].T, 2)
    joined = (attention @ values).swapaxes(1, 2).reshape(1, 7, -1)
    expected = joined @ block["output.weight"].T * block["scale1"]
    actual = np.einsum("hqk,ki,hio->qo", attention[0], normal[0], head_maps(block, 2))
    assert_within(actual, expected[0], 1e-12)


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


def without_positions(**options: Any) -> VisionTransformer:
    return replace(read(timm_dict(**options)), positions=None)


def test_the_grid_without_a_size_is_a_square_of_positions_or_of_the_table():
    """Positions with or without those of other tokens; a table of (2w - 1)² rows and three."""
    model = without_positions()
    for count, sides in ((10, (3, 3)), (17, (4, 4))):
        assert token_grid(replace(model, positions=np.zeros((count, 8))), None) == sides
    alone = replace(model, prefix=np.zeros((0, 8)), positions=np.zeros((16, 8)))
    assert token_grid(alone, None) == (4, 4)
    registers = replace(model, prefix=np.zeros((5, 8)), positions=np.zeros((196, 8)))
    assert token_grid(registers, None) == (14, 14)
    table = np.zeros((7 * 7 + 3, 2))
    assert token_grid(replace(model, table=table), None) == (4, 4)
    assert token_grid(replace(model, table=table), (16, 16)) == (4, 4)
    (block, *rest) = model.blocks
    of_block = replace(model, blocks=({**block, "table": table}, *rest))
    assert token_grid(of_block, None) == (4, 4)
    assert token_grid(read(timm_dict()), PIXELS) == SIDES
    assert token_grid(read(timm_dict(1, beit=True)), PIXELS) == SIDES
    assert token_grid(model, (20, 8)) == (5, 2)


@pytest.mark.parametrize(
    ("others", "count", "square", "other"),
    [(1, 169, (13, 13), (12, 14)), (1, 9, (3, 3), (2, 4)), (5, 25, (5, 5), (4, 5))],
)
def test_a_grid_that_may_be_two_is_not_guessed(others, count, square, other):
    """Positions of a square, or of one row less and one column more with the tokens before."""
    model = replace(
        without_positions(), prefix=np.zeros((others, 8)), positions=np.zeros((count, 8))
    )
    words = (
        rf"{square[0]} × {square[1]} patches without the {others} before them, or {other[0]} × "
        rf"{other[1]} or {other[1]} × {other[0]} patches with them; give images or image_size"
    )
    with pytest.raises(ValueError, match=words):
        token_grid(model, None)
    for sides in (square, other, other[::-1]):
        assert token_grid(model, (sides[0] * PATCH, sides[1] * PATCH)) == sides


@pytest.mark.parametrize(
    ("changed", "size", "said"),
    [
        ({}, None, "no image size: 0 patches in 0 × 0, but the model has neither positions nor"),
        ({"table": np.zeros((3, 2))}, None, "0 patches in 0 × 0, but patches of 4 × 4 do not div"),
        ({"table": np.zeros((12, 2))}, (8, 12), "6 patches in 2 × 3, but the model has a table of"),
        ({}, (0, 4), "0 × 4 pixels: 0 patches in 0 × 1, but patches of 4 × 4 do not divide it"),
        ({"positions": np.zeros((8, 8))}, (8, 12), "positions for 8 tokens, 1 of them not patches"),
        (
            {"table": np.zeros((18, 2)), "prefix": np.zeros((0, 8))},
            (8, 12),
            "a table of 15 relative positions",
        ),
        (
            {"table": np.zeros((18, 2)), "prefix": np.zeros((2, 8))},
            (8, 12),
            "a table of 15 relative positions",
        ),
    ],
)
def test_a_grid_that_the_parameters_do_not_have_is_refused(changed, size, said):
    with pytest.raises(ValueError, match=said):
        token_grid(replace(without_positions(), **changed), size)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "shape", [(), (2, 3, 8), (1, 3, 8, 12, 3), (0, 8, 12, 3), (1, *PIXELS, 2), (1, *PIXELS, 4)]
)
def test_images_of_another_shape_are_refused_without_a_remedy(shape):
    with pytest.raises(ValueError, match=r"expected \[images, height, width, 3\]$"):
        next(attention_layers(read(timm_dict()), np.zeros(shape)))


def test_a_block_adds_the_attention_and_then_the_mlp():
    """One token by hand, in which each part, its bias and its scale count."""
    arrays = timm_dict(1, beit=True)
    model, b = read(arrays), {name[9:]: array for name, array in arrays.items()}
    rng = np.random.default_rng(5)
    tokens, attention = rng.normal(size=(2, 7, 8)), rng.random((2, 2, 7, 7))
    output = block_output(model, model.blocks[0], tokens, attention)

    def normal(x: np.ndarray, part: str) -> np.ndarray:
        x = (x - x.mean()) / math.sqrt(x.var() + 1e-6)
        return x * b[f"{part}.weight"] + b[f"{part}.bias"]

    values = [b["attn.qkv.weight"][16:] @ normal(x, "norm1") + b["attn.v_bias"] for x in tokens[1]]
    joined = [sum(attention[1, i // 4, 3, k] * values[k][i] for k in range(7)) for i in range(8)]
    token = b["attn.proj.weight"] @ np.array(joined) + b["attn.proj.bias"]
    token = tokens[1, 3] + b["gamma_1"] * token
    hidden = b["mlp.fc1.weight"] @ normal(token, "norm2") + b["mlp.fc1.bias"]
    hidden = np.array([x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in hidden])
    token = token + b["gamma_2"] * (b["mlp.fc2.weight"] @ hidden + b["mlp.fc2.bias"])
    assert_within(output[1, 3], token, CLOSE)
    plain = {name: array for name, array in model.blocks[0].items() if "scale" not in name}
    ones = plain | {"scale1": np.ones(8), "scale2": np.ones(8)}
    assert_equal(
        block_output(model, plain, tokens, attention), block_output(model, ones, tokens, attention)
    )
    assert_equal(head_maps(plain, 2), head_maps(ones, 2))


def test_positions_are_added_before_or_behind_the_other_tokens():
    """Those of the patches alone, and those of all tokens with zeros for the class."""
    model = read(timm_dict())
    positions = model.positions.copy()
    positions[0] = 0
    patches = replace(model, positions=positions[1:])
    behind = replace(model, positions=positions)
    none = replace(model, positions=None)
    for one, two, three in zip(*(maps(m, images()) for m in (patches, behind, none)), strict=True):
        assert_equal(one, two)
        assert np.abs(one - three).max() > 1e-3
    bare = replace(model, prefix=np.zeros((0, 8)), positions=positions[1:])
    twice = replace(bare, positions=None, patch_bias=bare.patch_bias + 1.0)
    ones = replace(bare, positions=np.ones((6, 8)))
    for one, two in zip(maps(twice, images()), maps(ones, images()), strict=True):
        assert_within(one, two, CLOSE)  # once, not again with the other tokens


def test_a_layer_of_one_image_is_seen_at_that_image():
    model = read(timm_dict())
    (first, second) = attention_layers(model, images(1))
    assert_equal(first.at_mean, first.attention[0])
    assert_equal(second.at_mean, second.attention[0])
    assert [first.name, second.name, first.grid] == ["layer 1", "layer 2", SIDES]


@pytest.mark.parametrize(
    ("what", "numbers"),
    [
        ("the attention of a layer", 2 * (6 + 1) ** 2),
        ("an image", 6 * 3 * 4 * 4),
        ("the linear map of all heads of a layer", 2 * 8**2),
    ],
)
def test_what_a_network_would_take_is_compared_with_all_that_it_holds(monkeypatch, what, numbers):
    """The first refused as soon as it is more than is allowed."""
    model, asked = read(timm_dict(1, beit=True)), []
    positions = replace(model, positions=np.zeros((7, 8)), table=np.zeros((18, 2)))
    monkeypatch.setattr(grids, "require_room", lambda *args: asked.append(args))
    assert token_grid(positions, PIXELS) == SIDES
    arrays = [model.patch, np.zeros((7, 8)), np.zeros((18, 2)), *model.blocks[0].values()]
    assert (numbers, sum(array.size for array in arrays), what) in asked


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
