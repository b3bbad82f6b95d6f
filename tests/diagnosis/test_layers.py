from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from torch_packages import torch_package

import convattn as ca
from convattn.diagnosis import layers
from convattn.diagnosis.layers import (
    array_layers,
    layer_attention,
    relative_bias,
    swin_layers,
)
from convattn.encodings import BiasEncoding
from convattn.networks.weights.files import WeightsFile

SIZE = (5, 6)


@pytest.mark.slow
def test_the_keys_of_the_grid_come_last_and_the_ring_before():
    kernel = np.random.default_rng(0).integers(-3, 4, (3, 3, 1, 2)).astype(float)
    layer = ca.conv_to_attention(kernel, form="limit")
    extracted = layer_attention(layer, None, SIZE)
    assert extracted.grid == SIZE
    assert extracted.attention.shape == (2, 9, 30, 56)
    interior = extracted.attention[0, :, :, -30:].reshape(9, *SIZE, *SIZE)
    for head, (down, right) in enumerate(np.ndindex(3, 3)):
        for row, column in np.ndindex(SIZE):
            key = row + down - 1, column + right - 1
            row_of_keys = interior[head, row, column]
            inside = 0 <= key[0] < SIZE[0] and 0 <= key[1] < SIZE[1]
            assert row_of_keys.sum() == inside
            assert not inside or row_of_keys[key] == 1


@pytest.mark.slow
def test_a_register_stands_before_the_keys_of_the_grid():
    layer = ca.conv_to_attention(np.ones((3, 3, 1, 2)), border="register")
    extracted = layer_attention(layer, None, SIZE)
    assert extracted.attention.shape == (2, 18, 30, 31)
    assert_within(extracted.attention.sum(axis=-1), np.ones((2, 18, 30)), 1e-12)
    assert_within(extracted.attention[0, :9, 0, 0].max(), 0.5, 1e-12)  # without a target
    image = np.random.default_rng(1).normal(size=(1, *SIZE, 1))
    result = np.einsum(
        "hqk,ki,hio->qo", extracted.at_mean[..., 1:], image.reshape(30, 1), extracted.maps
    )
    assert_within(result.reshape(1, *SIZE, 2), ca.conv(image, np.ones((3, 3, 1, 2))), 1e-12)


@pytest.mark.parametrize("encoding", ["bias", "scalar"])
@pytest.mark.quick(1)
def test_attention_and_maps_make_the_layer(encoding):
    """Also where the value maps depend on the number of keys."""
    kernel = np.random.default_rng(0).integers(-3, 4, (3, 1, 2, 3)).astype(float)
    layer = ca.conv_to_attention(kernel, encoding=encoding)
    extracted = layer_attention(layer, None, SIZE)
    image = np.random.default_rng(1).normal(size=(1, *SIZE, 2))
    attention = extracted.at_mean[:, :, -30:]
    result = np.einsum("hqk,ki,hio->qo", attention, image.reshape(30, 2), extracted.maps)
    expected = np.asarray(ca.apply_attention(layer, jnp.asarray(image)))
    assert_within(result.reshape(*SIZE, 3), expected[0], 1e-6 if encoding == "scalar" else 1e-10)


def content_layer() -> ca.AttentionLayer:
    rng = np.random.default_rng(2)
    query, key, output = (jnp.asarray(rng.normal(size=(2, 3, 3))) for _ in range(3))
    encoding = BiasEncoding(jnp.zeros((2, 1)), None, ((0, 0),))
    content = ca.ContentScores(query, key)
    return ca.AttentionLayer(encoding, None, output, content=content)


def test_content_is_that_of_each_image_and_of_the_mean_image():
    layer, images = content_layer(), np.random.default_rng(3).normal(size=(3, *SIZE, 3))
    extracted = layer_attention(layer, images, None)
    maps_of = jax.jit(ca.attention_maps)
    expected = np.asarray(maps_of(layer, jnp.asarray(images)).weights)
    assert_equal(extracted.attention, expected.reshape(3, 2, 30, 30))
    mean = np.asarray(maps_of(layer, jnp.asarray(images.mean(0, keepdims=True))).weights)
    assert_equal(extracted.at_mean, mean.reshape(2, 30, 30))
    assert np.abs(extracted.attention.mean(axis=0) - extracted.at_mean).max() > 0.01


def test_the_attention_of_one_image_is_that_of_the_mean_image():
    layer, images = content_layer(), np.random.default_rng(3).normal(size=(2, *SIZE, 3))
    extracted = layer_attention(layer, images[:1], None)
    assert_equal(extracted.at_mean, extracted.attention[0])
    both = layer_attention(layer, images, None)
    assert_equal(both.attention[:1], extracted.attention)
    assert np.abs(both.at_mean - both.attention[0]).max() > 0.01
    same = layer_attention(layer, images[[0, 0]], None)
    assert_within(same.at_mean, extracted.at_mean, 1e-12)


def test_a_layer_without_images_needs_their_size_or_them():
    layer = ca.conv_to_attention(np.ones((3, 3, 1, 1)))
    with pytest.raises(ValueError, match=r"but expected images or image_size \(in pixels\)$"):
        layer_attention(layer, None, None)
    with pytest.raises(ValueError, match="but expected 1 channels"):
        layer_attention(layer, np.zeros((2, 3, 8, 8)), None)  # the channels first
    empty = replace(layer, encoding=layer.encoding.take_heads([]), output=layer.output[:0])
    with pytest.raises(ValueError, match=r"0 heads .* has no heads"):
        layer_attention(empty, None, SIZE)
    for none in (None, np.zeros((0, *SIZE, 3))):
        with pytest.raises(ValueError, match=r"given no images, but expected images$"):
            layer_attention(content_layer(), none, SIZE)
    with pytest.raises(ValueError, match="a layer of sequences"):
        layer_attention(ca.conv_to_attention(np.ones((3, 1, 1))), None, SIZE)


@pytest.mark.parametrize(("keys", "grid"), [(9, (3, 3)), (10, (3, 3)), (11, (3, 3)), (1, (1, 1))])
def test_a_square_of_tokens_is_found(keys, grid):
    uniform = np.full((1, 2, keys, keys), 1 / keys)
    (extracted,) = array_layers({"": uniform}, None)
    assert (extracted.grid, extracted.name, extracted.maps) == (grid, "layer 1", None)


@pytest.mark.parametrize("shape", [(1, 2, 0, 9), (1, 2, 9, 0), (1, 0, 9, 9), (0, 2, 9, 9)])
@pytest.mark.parametrize("layers", [(), (3,)], ids=["one", "several"])
def test_arrays_with_an_empty_axis_are_refused(shape, layers):
    with pytest.raises(ValueError, match="with no empty axis"):
        next(array_layers({"": np.zeros((*layers, *shape))}, None))
    assert not [*array_layers({"": np.zeros((0, 1, 2, 9, 9))}, None)]


def test_other_tokens_are_two_at_most():
    """Of 12 keys no square is left by fewer than three others; with the sides they are known."""
    uniform = np.full((1, 2, 12, 12), 1 / 12)
    with pytest.raises(ValueError, match="12 keys, which are no square of tokens with up"):
        next(array_layers({"": uniform}, None))
    (extracted,) = array_layers({"": uniform}, (3, 3))
    assert extracted.grid == (3, 3)


def test_room_is_that_of_sixteen_times_the_model_or_of_many_numbers():
    layers.require_room(2**25, 1, "it")
    layers.require_room(16 * 2**22, 2**22, "it")
    with pytest.raises(ValueError, match=r"^it has 33,554,433 numbers, but expected at most 33,55"):
        layers.require_room(2**25 + 1, 1, "it")
    with pytest.raises(ValueError, match=r"at most 67,108,864 of a model of 4,194,304;"):
        layers.require_room(2**26 + 1, 2**22, "it")


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((2, 9, 9), r"shape \(2, 9, 9\), but expected attention probabilities \[images, heads"),
        ((1, 2, 64, 16), "64 queries and 16 keys, but expected as many"),
        ((1, 2, 8, 8), "8 keys, which are no square .* as image_size"),
    ],
)
def test_other_arrays_are_refused(shape, said):
    with pytest.raises(ValueError, match=said):
        next(array_layers({"": np.full(shape, 1 / shape[-1])}, None))


def swin_dict(names: tuple[str, str, str], prefix: str) -> dict[str, np.ndarray]:
    """Two layers, windows of 3 × 3, widths 4 and 6, 2 and 3 heads."""
    rng, arrays = np.random.default_rng(0), {}
    for stage, (width, heads) in enumerate([(4, 2), (6, 3)]):
        rows = 3 * width if "qkv" in names[0] else width
        for name, shape in zip(names, [(rows, width), (width, width), (25, heads)], strict=True):
            arrays[f"{prefix}layers.{stage}.blocks.0.{name}"] = rng.normal(size=shape)
    return arrays


TIMM = ("attn.qkv.weight", "attn.proj.weight", "attn.relative_position_bias_table")
FILES = (
    *("attention.self.value.weight", "attention.output.dense.weight"),
    "attention.self.relative_position_bias_table",
)
MEMORY = (
    *("attention.v_proj.weight", "attention.o_proj.weight"),
    "attention.relative_position_bias.relative_position_bias_table",
)


@pytest.mark.parametrize("names", [TIMM, FILES, MEMORY], ids=["timm", "files", "memory"])
def test_a_swin_layer_is_seen_by_its_table_alone(names):
    arrays = swin_dict(names, "" if names is TIMM else "swin.encoder.")
    first, second = swin_layers(WeightsFile("net", arrays, {}))
    assert (first.grid, second.attention.shape) == ((3, 3), (1, 3, 9, 9))
    values, output, table = (list(arrays.values())[index] for index in (3, 4, 5))
    maps = [values[-6:][2 * h : 2 * h + 2].T @ output[:, 2 * h : 2 * h + 2].T for h in range(3)]
    assert_within(second.maps, np.stack(maps), 1e-12)
    scores = np.empty((9, 9))
    for query, key in np.ndindex(9, 9):  # the row of (q - k), counted row by row from (-2, -2)
        down, right = query // 3 - key // 3 + 2, query % 3 - key % 3 + 2
        scores[query, key] = table[5 * down + right, 1]
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert_within(second.attention[0, 1], weights, 1e-12)


def test_what_a_swin_layer_would_take_is_compared_with_all_that_the_file_holds(monkeypatch):
    arrays, asked = swin_dict(TIMM, ""), []
    monkeypatch.setattr(layers, "require_room", lambda *args: asked.append(args))
    swin_layers(WeightsFile("net", arrays, {}))
    stored = sum(array.size for array in arrays.values())
    (first, second) = (f"layers.{number}.blocks.0.attn" for number in (0, 1))
    assert asked == [
        (2 * 3**4, stored, f"the attention of {first}"),
        (2 * 4**2, stored, f"the maps of {first}"),
        (3 * 3**4, stored, f"the attention of {second}"),
        (3 * 6**2, stored, f"the maps of {second}"),
    ]


def test_what_else_a_swin_layer_holds_is_not_read():
    """Queries, keys, biases and the index of positions."""
    arrays = swin_dict(TIMM, "")
    expected = swin_layers(WeightsFile("net", arrays, {}))
    more = {"qkv.bias": 12, "proj.bias": 4, "relative_position_index": 9}
    named = {f"layers.0.blocks.0.attn.{name}": np.ones(size) for name, size in more.items()}
    read = swin_layers(WeightsFile("net", arrays | named | {"norm.weight": np.ones(4)}, {}))
    for one, two in zip(read, expected, strict=True):
        assert_equal(one.attention, two.attention)
        assert_equal(one.at_mean, two.at_mean)
        assert one.name == two.name


def test_what_a_swin_layer_lacks_is_listed():
    arrays = swin_dict(TIMM, "")
    del arrays["layers.0.blocks.0.attn.proj.weight"]
    arrays["layers.1.blocks.0.attn.logit_scale"] = np.zeros(3)
    arrays["layers.1.blocks.0.attn.relative_position_bias_table"] = np.zeros((24, 3))
    with pytest.raises(ValueError, match="not those of a Swin transformer") as caught:
        swin_layers(WeightsFile("net", arrays, {}))
    for part in (
        "layers.0.blocks.0.attn.proj.weight is missing",
        "layers.1.blocks.0.attn.logit_scale is unexpected",
        "relative_position_bias_table has shape (24, 3), expected ((2w - 1)², heads)",
    ):
        assert part in str(caught.value)
    arrays = swin_dict(TIMM, "")
    arrays["layers.0.blocks.0.attn.relative_position_bias_table"] = np.zeros(1)
    with pytest.raises(ValueError, match=r"has shape \(1,\), expected \(\(2w - 1\)², heads\)"):
        swin_layers(WeightsFile("net", arrays, {}))
    arrays = swin_dict(TIMM, "")
    arrays["layers.0.blocks.0.attn.qkv.weight"] = np.zeros((8, 4))
    with pytest.raises(ValueError, match=r"have shapes \(8, 4\) and \(4, 4\)"):
        swin_layers(WeightsFile("net", arrays, {}))


def test_pairs_with_the_class_token_have_the_last_three_rows():
    table = np.arange(18.0)[:, None]
    bias = relative_bias(table, (2, 3), 1)[0]
    assert_equal(bias[0], [17, *[15] * 6])
    assert_equal(bias[1:, 0], [16] * 6)
    assert_equal(bias[1:, 1:], relative_bias(table[:15], (2, 3), 0)[0])


@pytest.mark.slow
def test_the_bias_is_swins_own():
    _, swin = torch_package("timm.models.swin_transformer")
    attention = swin.WindowAttention(8, 2, window_size=(3, 3))
    table = attention.relative_position_bias_table.detach().numpy()
    theirs = attention._get_rel_pos_bias()[0].detach().numpy()
    assert_equal(relative_bias(table, (3, 3), 0), theirs)
