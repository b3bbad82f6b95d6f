import json

import numpy as np
import pytest
from comparison import assert_equal
from diagnosis.small_transformers import hugging_face, timm_dict

from convattn.networks.vision_transformer.naming import find_naming
from convattn.networks.vision_transformer.state_dicts import read_transformer
from convattn.networks.weights.files import WeightsFile


def read(arrays, heads=2):
    return read_transformer(WeightsFile("net", arrays, {}), heads)


@pytest.mark.parametrize(
    ("arrays", "above", "block"),
    [
        (timm_dict(), "", "blocks.{}."),
        ({f"a.b/{name}": array for name, array in timm_dict().items()}, "a.b/", "blocks.{}."),
        (hugging_face(timm_dict()), "vit.", "encoder.layer.{}."),
        (hugging_face(timm_dict(), memory=True), "vit.", "layers.{}."),
    ],
    ids=["timm", "below a name", "files", "memory"],
)
def test_the_names_are_found(arrays, above, block):
    naming, prefix = find_naming(WeightsFile("net", arrays, {}))
    assert (prefix, naming.block) == (above, block)
    assert naming.name == ("timm" if "blocks" in block else "Hugging Face")


def test_a_prefix_may_be_any_or_none():
    arrays = hugging_face(timm_dict())
    bare = {name.removeprefix("vit."): array for name, array in arrays.items()}
    other = {f"deit.{name}": array for name, array in bare.items()}
    for each in (bare, other):
        model = read(each)
        assert_equal(model.blocks[1]["key.weight"], read(arrays).blocks[1]["key.weight"])


def test_attention_may_have_no_biases():
    arrays = {name: part for name, part in timm_dict().items() if not name.endswith("qkv.bias")}
    assert "query.bias" not in read(arrays).blocks[0]
    assert_equal(read(arrays).blocks[0]["key.weight"], read(timm_dict()).blocks[0]["key.weight"])


def test_heads_may_be_narrower_than_the_model():
    """Four features in all, of a model of eight: those of queries, keys and values alike."""
    arrays = hugging_face(timm_dict())
    for name in arrays:
        if ".attention.attention." in name:
            arrays[name] = arrays[name][:4]
        if name.endswith("attention.output.dense.weight"):
            arrays[name] = arrays[name][:, :4]
    block = read(arrays).blocks[0]
    assert block["query.weight"].shape == block["value.weight"].shape == (4, 8)
    name = "vit.encoder.layer.1.attention.attention.value.bias"
    arrays[name] = np.zeros(8)
    with pytest.raises(ValueError, match=rf"{name} has shape \(8,\), expected \(4\)"):
        read(arrays)


def test_a_table_for_all_blocks_has_any_number_of_rows_and_says_the_heads():
    """Also where no block has one of its own."""
    name = "rel_pos_bias.relative_position_bias_table"
    plain = {key: part for key, part in timm_dict(2, beit=True).items() if "table" not in key}
    table = np.random.default_rng(0).normal(size=(18, 4))
    model = read({**plain, name: table}, None)
    assert (model.heads, model.assumed) == (4, False)
    assert_equal(model.table, table)
    assert all("table" not in block for block in model.blocks)
    with pytest.raises(ValueError, match="heads=2, but expected 4, the columns of the table"):
        read({**plain, name: table}, 2)


def test_every_problem_is_in_one_message():
    arrays = timm_dict(beit=True)
    arrays["blocks.1.mlp.fc3.weight"] = arrays.pop("blocks.1.mlp.fc2.weight")
    arrays["blocks.0.norm1.bias"] = np.zeros(9)
    arrays["blocks.1.attn.relative_position_bias_table"] = np.zeros((17, 2))
    arrays["norm_pre.weight"] = np.zeros(8)
    with pytest.raises(ValueError, match="net are not those of a vision transformer") as caught:
        read(arrays)
    said = str(caught.value)
    for part in (
        "blocks.1.mlp.fc2.weight is missing",
        "blocks.1.mlp.fc3.weight is unexpected",
        "norm_pre.weight is unexpected",
        "blocks.0.norm1.bias has shape (9,), expected (8)",
        "blocks.1.attn.relative_position_bias_table has shape (17, 2), expected (18, 2)",
    ):
        assert part in said


@pytest.mark.parametrize("rename", [dict, hugging_face, lambda a: hugging_face(a, memory=True)])
@pytest.mark.parametrize("beit", [False, True])
@pytest.mark.quick(2)
def test_each_tensor_is_missed_by_its_own_name(rename, beit):
    arrays = rename(timm_dict(beit=beit))
    outside = ("norm.", "head.", "classifier.", "vit.layernorm.")
    tokens = ("cls_token", "pos_embed", "embeddings.position_embeddings")
    for name in arrays:
        rest = {each: array for each, array in arrays.items() if each != name}
        if name.startswith(outside) or name.endswith(tokens):
            read(rest)  # not read, or of a network that has none
            continue
        with pytest.raises(ValueError, match="not those") as caught:
            read(rest)
        assert f"{name} is missing" in str(caught.value)


@pytest.mark.parametrize("beit", [False, True])
def test_each_tensor_that_is_turned_is_noticed(beit):
    arrays = timm_dict(beit=beit)
    for name, array in arrays.items():
        if name.startswith(("norm.", "head.")) or array.shape == array.shape[::-1]:
            continue
        with pytest.raises(ValueError, match="has shape"):
            read(arrays | {name: array.transpose()})


def test_very_many_problems_are_cut():
    arrays = {name: array for name, array in timm_dict(80).items() if "norm1.bias" in name}
    with pytest.raises(ValueError, match=r"… \([0-9]+ problems\)$") as caught:
        read(arrays)
    assert len(str(caught.value)) < 4000


def test_a_block_that_is_missing_between_others_is_named():
    arrays = {k.replace("blocks.1.", "blocks.5."): array for k, array in timm_dict(2).items()}
    with pytest.raises(ValueError, match=r"blocks\.1\.norm1\.weight is missing"):
        read(arrays)


def test_what_is_no_transformer_is_refused_with_what_is_there():
    with pytest.raises(ValueError, match=r"expected blocks called.*it holds 'conv1.weight'"):
        read({"conv1.weight": np.zeros((3, 3))})


@pytest.mark.parametrize(
    ("beit", "heads", "said"),
    [
        (False, 3, "heads=3, but expected a divisor of 8, the width of attention"),
        (False, 0, "heads=0, but expected a divisor"),
        (False, -2, "heads=-2, but expected a divisor"),
        (False, None, "no number of heads was given, but expected a divisor of 8"),
        (True, 4, "heads=4, but expected 2, the columns of the table of relative positions"),
    ],
)
def test_heads_that_do_not_fit_are_refused(beit, heads, said):
    with pytest.raises(ValueError, match=said):
        read(timm_dict(beit=beit), heads)


@pytest.mark.parametrize("name", ["num_heads", "num_attention_heads"])
def test_heads_and_epsilon_of_the_metadata_are_taken(name):
    text = json.dumps({name: 2, "layer_norm_eps": 1e-3})
    file = WeightsFile("net", timm_dict(), {"arguments": text})
    model = read_transformer(file)
    assert (model.heads, model.assumed, model.epsilon) == (2, False, 1e-3)
    assert read_transformer(file, epsilon=1e-4).epsilon == 1e-4
    with pytest.raises(ValueError, match=f"heads=4, but expected 2, the {name} of the file's"):
        read_transformer(file, 4)


@pytest.mark.parametrize("text", ["{", "[]", '{"num_heads": "2"}', "2"])
def test_metadata_of_other_programs_says_nothing(text):
    file = WeightsFile("net", timm_dict(), {"arguments": text})
    with pytest.raises(ValueError, match=r"give heads \(--heads\) as the network was built"):
        read_transformer(file)


def test_heads_of_64_features_are_assumed_and_said(monkeypatch):
    monkeypatch.setattr("convattn.networks.vision_transformer.state_dicts.HEAD_DIM", 4)
    model = read(timm_dict(), None)
    assert (model.heads, model.assumed) == (2, True)
    assert not read(timm_dict(), 2).assumed
    beit = read(timm_dict(beit=True), None)
    assert (beit.heads, beit.assumed) == (2, False)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
def test_quantised_weights_without_their_scales_are_refused(dtype):
    arrays = timm_dict()
    arrays["blocks.1.attn.qkv.weight"] = arrays["blocks.1.attn.qkv.weight"].astype(dtype)
    kind = np.dtype(dtype)
    with pytest.raises(
        ValueError, match=rf"1\.attn\.qkv\.weight has dtype {kind}, but expected fl"
    ):
        read(arrays)


def test_numbers_that_are_not_finite_are_refused():
    arrays = timm_dict()
    arrays["blocks.0.norm1.bias"][3] = np.nan
    with pytest.raises(ValueError, match=r"net: blocks\.0\.norm1\.bias has 1 non-finite"):
        read(arrays)
