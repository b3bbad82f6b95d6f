import json
from dataclasses import replace

import numpy as np
import pytest
from comparison import assert_equal, assert_within
from diagnosis.small_transformers import SIDES, hugging_face, images, timm_dict
from diagnosis.test_layers import TIMM, content_layer, swin_dict
from rich.console import Console

import convattn as ca
from convattn.cli.diagnosis_tables import printed_table
from convattn.diagnosis import Diagnosis, diagnose
from convattn.diagnosis import reading as module
from convattn.diagnosis.layers import LayerAttention
from convattn.diagnosis.tables import head_table, layer_table
from convattn.files import write_file
from convattn.networks.weights.formats import write_npz, write_safetensors
from convattn.operators.padding import Padding

FORMS = (".2f", ".2f", "+.1f", "+.1f", ".2f")
WIDE = {
    name: np.zeros(tuple({8: 64, 24: 192}.get(n, n) for n in array.shape))
    for name, array in timm_dict(1).items()
}


def text(table) -> str:
    console = Console(width=120, color_system=None)
    with console.capture() as captured:
        console.print(printed_table(table))
    return captured.get()


def test_a_converted_convolution_is_diagnosed_as_one():
    kernel = np.random.default_rng(0).integers(-3, 4, (3, 3, 2, 2)).astype(float)
    layer = ca.conv_to_attention(kernel, form="limit")
    (measured,) = diagnose(layer, image_size=(5, 6)).layers
    shifts = np.array([(row, column) for row in (-1, 0, 1) for column in (-1, 0, 1)])
    heads = measured.heads
    assert_equal(heads.one_shift, np.ones(9))
    assert_equal(heads.shift, shifts)
    assert_equal(heads.entropy, np.zeros(9))
    assert_equal(heads.positions, np.ones(9))
    assert_within(heads.distance, np.linalg.norm(shifts, axis=1), 1e-12)
    assert_within(heads.elsewhere[[4, 1, 3, 0]], [0, 1 / 5, 1 / 6, 1 / 3], 1e-12)
    assert measured.convolution.relative == 0
    expected = ca.count_heads_of_kernel(kernel)
    assert measured.convolution.whole.limit == measured.convolution.as_near.limit == expected.limit
    assert measured.convolution.whole.exact == expected.exact
    assert (layer.heads, expected.rank) == (9, 4)


@pytest.mark.parametrize("padding", ["SAME", "CIRCULAR"])
@pytest.mark.quick(1)
def test_the_distance_is_that_of_attention_to_conv(padding):
    """Of a layer that fills its ring, with zeros in its place, as the report says."""
    kernel = np.random.default_rng(0).integers(-3, 4, (3, 3, 1, 2)).astype(float)
    layer = ca.conv_to_attention(kernel, form="limit", padding=padding)
    (measured,) = diagnose(layer, image_size=(5, 6), kernel_size=(1, 3)).layers
    zeros = replace(layer, padding=None)
    expected = ca.attention_to_conv(zeros, (1, 3), image_size=(5, 6)).residual
    assert_within(measured.convolution.relative, float(expected.relative_frobenius), 1e-10)
    assert measured.convolution.relative > 0.1


def test_positions_explain_all_without_content_and_less_with_it():
    pixels = np.random.default_rng(3).normal(size=(3, 4, 5, 3))
    (measured,) = diagnose(content_layer(), pixels).layers
    assert (measured.heads.positions < 0.9).all()
    arrays = timm_dict(beit=True)
    content = diagnose(arrays, images())
    for name in arrays:
        if name.endswith(("qkv.weight", "q_bias")):
            arrays[name][:8] = 0  # queries of zeros: the table decides
    alone = diagnose(arrays, images())
    for with_content, without in zip(content.layers, alone.layers, strict=True):
        assert (with_content.heads.positions < 0.9).all()
        assert_equal(without.heads.positions, [1, 1])


def as_file(folder, arrays, suffix):
    content = write_npz(dict(arrays), {}) if suffix == "npz" else write_safetensors(arrays, {})
    write_file(folder / f"net.{suffix}", content)
    return folder / f"net.{suffix}"


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_files_and_arrays_and_both_namings_say_the_same(suffix, tmp_path):
    arrays = {name: array.astype(np.float32) for name, array in timm_dict().items()}
    expected = diagnose(arrays, images(), heads=2)
    stored = diagnose(as_file(tmp_path, arrays, suffix), images(), heads=2)
    assert stored.as_dict()["layers"] == expected.as_dict()["layers"]
    renamed = diagnose(hugging_face(arrays), images(), heads=2)
    for one, other in zip(expected.layers, renamed.layers, strict=True):  # ε differs
        assert_within(one.heads.entropy, other.heads.entropy, 1e-5)
        assert_within(one.convolution.relative, other.convolution.relative, 1e-5)
    assert renamed.notes[0].startswith("Names: Hugging Face; LayerNorm with ε = 1e-12 before")


def test_the_map_of_a_layer_is_that_at_the_mean_token():
    """Two images and their mean in its first layer, where tokens are linear in the pixels."""
    pixels = images(2)
    convolution = diagnose(timm_dict(1), pixels, heads=2).layers[0].convolution
    mean = diagnose(timm_dict(1), pixels.mean(axis=0, keepdims=True), heads=2).layers[0]
    assert_within(convolution.relative, mean.convolution.relative, 1e-12)
    assert_within(convolution.heads, mean.convolution.heads, 1e-12)
    other = diagnose(timm_dict(1), pixels[:1], heads=2).layers[0].convolution
    assert abs(other.relative - convolution.relative) > 1e-3


def test_without_images_positions_alone_decide_and_it_is_said():
    sizes = tuple(4 * side for side in SIDES)
    diagnosis = diagnose(timm_dict(), heads=2, image_size=sizes)
    zeros = diagnose(timm_dict(), np.zeros((1, *sizes, 3)), heads=2)
    assert diagnosis.as_dict()["layers"] == zeros.as_dict()["layers"]
    assert diagnosis.notes[2].startswith("No images: one image of zeros")
    assert np.isnan(diagnosis.layers[0].heads.positions).all()
    assert diagnosis.as_dict()["layers"][0]["heads"][0]["positions"] is None


def test_parameters_without_positions_are_refused_unless_told_that_nothing_is_turned():
    """A network that turns its queries and keys holds nothing that says so."""
    arrays = timm_dict()
    turned = {name: array for name, array in arrays.items() if name != "pos_embed"}
    size = tuple(side * 4 for side in SIDES)
    with pytest.raises(ValueError, match="rotary positions"):
        diagnose(turned, image_size=size, heads=2)
    result = diagnose(turned, image_size=size, heads=2, rotary="none")
    assert result.notes[1] == diagnose(arrays, image_size=size, heads=2).notes[1] == module.NOWHERE


def test_layers_are_chosen_and_keep_their_numbers():
    every = diagnose(timm_dict(3), images(), heads=2)
    (second,) = diagnose(timm_dict(3), images(), heads=2, layers=[2]).layers
    assert second.number == 2
    assert second.as_dict() == every.layers[1].as_dict()
    with pytest.raises(ValueError, match=r"layers=\[4\], but the model has layers 1 to 3"):
        diagnose(timm_dict(3), images(), heads=2, layers=[4])


def test_a_file_of_attention_and_a_stored_layer(tmp_path):
    maps = np.stack([np.eye(5)[None, None]] * 2)  # [layers, images, heads, queries, keys]
    np.save(tmp_path / "maps.npy", maps)
    diagnosis = diagnose(tmp_path / "maps.npy")
    assert [layer.name for layer in diagnosis.layers] == ["layer 1", "layer 2"]
    assert diagnosis.layers[0].grid == (2, 2)  # and a class token
    assert diagnosis.layers[0].heads.one_shift[0] == 1
    assert diagnosis.layers[1].convolution.relative is None
    assert "–" in text(layer_table(diagnosis))
    layer = ca.conv_to_attention(np.ones((3, 3, 1, 1)), form="limit")
    ca.save_layer(layer, tmp_path / "layer.npz")
    stored = diagnose(tmp_path / "layer.npz", image_size=5)
    assert stored.as_dict()["layers"] == diagnose(layer, image_size=5).as_dict()["layers"]


def test_swin_is_seen_in_one_window_and_it_is_said():
    diagnosis = diagnose(swin_dict(TIMM, ""))
    assert [layer.name for layer in diagnosis.layers] == [
        "layers.0.blocks.0.attn",
        "layers.1.blocks.0.attn",
    ]
    assert "A Swin transformer is not run" in diagnosis.notes[0]
    assert diagnosis.layers[1].convolution.whole.rank == 3


def test_what_must_be_said_of_a_layer_is_said(monkeypatch):
    """That positions alone decide, of a layer without content; what fills its ring, of that."""
    uniform = np.full((1, 1, 4, 4), 1 / 4)
    attention = LayerAttention("layer 1", (2, 2), uniform, uniform[0], None)
    monkeypatch.setattr(module, "layer_attention", lambda *args: attention)
    layer = ca.conv_to_attention(np.ones((3, 3, 1, 1)), form="limit")
    filled = replace(layer, padding=Padding("CIRCULAR", ((1, 1),) * 2, ((1, 1),) * 2))
    alone = "Positions alone decide: the layer has no content scores."
    ring = "The padding (circular) is filled in before. Distances and shifts are counted from the "
    for model, patch, expected in (
        (content_layer(), (1, 1), []),
        (layer, (1, 1), [alone]),
        (filled, (1, 1), [alone, ring]),
        (replace(layer, patch_size=(2, 1)), (2, 1), [alone]),
    ):
        diagnosis = diagnose(model, image_size=2)
        *notes, last = diagnosis.notes
        assert [note[: len(ring)] for note in notes] == expected
        assert last.startswith("Uniform attention on 2 × 2 tokens")
        assert diagnosis.patch_size == patch


def test_attention_by_name_is_of_one_layer_or_of_several():
    """Arrays of four and of five axes together; with another beside them they are no attention."""
    maps = np.full((2, 1, 2, 6, 6), 1 / 6)
    diagnosis = diagnose({"a": maps[0], "b": maps}, image_size=(2, 3))
    assert [layer.name for layer in diagnosis.layers] == ["a", "b layer 1", "b layer 2"]
    assert diagnosis.notes[0].startswith("Attention without value maps")
    assert diagnosis.patch_size is None
    assert diagnose({"a": maps[0]}, image_size=(2, 3)).model == "the state dict"
    with pytest.raises(ValueError, match="no state dict of a vision transformer"):
        diagnose({"a": maps[0], "c": maps[0, 0]}, image_size=(2, 3))


def test_a_network_is_told_by_its_notes():
    """Its names, its heads if they are assumed, and how many images there were."""
    (names, turns, images_of, _) = diagnose(timm_dict(1), images(2), heads=2).notes
    assert names == (
        "Names: timm; LayerNorm with ε = 1e-06 before attention and MLP, which no tensor tells; "
        "MLP with gelu."
    )
    assert (turns, images_of) == (module.NOWHERE, "2 images.")
    assert diagnose(timm_dict(1), images(1), heads=2).notes[2].startswith("One image: what pos")
    diagnosis = diagnose(WIDE, images(1))
    assert diagnosis.notes[2] == "1 heads, assumed: 64 features each."
    assert len(diagnosis.layers[0].heads.distance) == 1


def test_tables_and_json_hold_every_head_and_layer():
    diagnosis = diagnose(timm_dict(), images(), heads=2)
    document = json.loads(json.dumps(diagnosis.as_dict(), allow_nan=False))
    assert (document["schema"], document["model"]) == (1, "the state dict")
    assert document["notes"] == list(diagnosis.notes)
    assert document["patch_size"] == [4, 4]
    assert [layer["layer"] for layer in document["layers"]] == [1, 2]
    head = document["layers"][1]["heads"][1]
    assert head["head"] == 2
    measures = diagnosis.layers[1].heads
    assert head["distance"] == measures.distance[1]
    assert head["covariance"] == measures.covariance[1].tolist()
    assert head["shift"] == measures.shift[1].tolist()
    rows = text(head_table(diagnosis)).splitlines()
    assert len(rows) == 5
    numbers = [measures.distance, measures.entropy, *measures.center.T, measures.spread]
    cells = [f"{each[1]:{form}}" for each, form in zip(numbers, FORMS, strict=True)]
    cells += [f"{measures.positions[1]:.2f}", f"{measures.one_shift[1]:.2f}"]
    cells += [f"{each:+d}" for each in measures.shift[1]]
    cells += [f"{measures.elsewhere[1]:.2f}", f"{diagnosis.layers[1].convolution.heads[1]:.2f}"]
    assert rows[4].split() == ["2", *cells]
    assert rows[3].split()[:3] == ["layer", "2", "1"]
    header = (
        "layer head distance entropy center spread by position one shift shift elsewhere to conv"
    )
    assert rows[0].split() == header.split()
    nearest = diagnosis.layers[1].convolution
    counts = nearest.whole.rank, nearest.whole.limit, nearest.whole.exact, nearest.as_near.rank
    named = f"layer 2 2 3 × 3 {nearest.relative:.3g}".split()
    assert text(layer_table(diagnosis)).splitlines()[2].split() == [*named, *map(str, counts)]
    assert f"{diagnosis.layers[1].convolution.relative:.3g}" in text(layer_table(diagnosis))


WRONG = [
    ({"images": images().transpose(0, 3, 1, 2)}, r"transpose\(0, 2, 3, 1\)"),
    ({"images": images()[0]}, r"shape \(8, 12, 3\) .* at least one image"),
    ({"images": np.zeros((1, 8, 12, 3), np.uint8)}, r"bytes are normalised by \(images / 255"),
    ({"images": np.full((1, 8, 12, 3), np.nan)}, "not finite"),
    ({"images": images(), "image_size": 8}, "both given"),
    ({"images": images(), "kernel_size": 7}, "take a smaller kernel"),
]


@pytest.mark.parametrize(("options", "said"), WRONG)
def test_wrong_images_and_options_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        diagnose(timm_dict(), **({"heads": 2} | options))


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        (np.full((1, 1, 4, 4), 0.25), {"images": images()}, "are of images already"),
        (np.full((1, 1, 4, 4), 0.25), {"heads": 2}, "heads=2, but expected none: the model says"),
        (np.full((4, 4), 0.25), {}, "expected attention probabilities"),
        (np.zeros((0, 1, 1, 4, 4)), {}, "attention has no layers"),
        *(
            (swin_dict(TIMM, ""), options, "expected none for a Swin transformer")
            for options in ({"images": images()}, {"image_size": 3}, {"heads": 2})
        ),
        ({}, {}, "no state dict of a vision transformer"),
        (content_layer(), {"image_size": 4}, "expected images"),
    ],
    ids=range(9),
)
def test_what_does_not_go_with_a_model_is_refused(model, options, said):
    with pytest.raises(ValueError, match=said):
        diagnose(model, **options)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\x80\x02}q\x00.", "is a pickle"), (b"", "is empty"), (None, "damaged|not a valid")],
)
def test_damaged_files_and_pickles_are_refused(content, said, tmp_path):
    if content is None:
        stored = as_file(tmp_path, timm_dict(), "safetensors").read_bytes()
        content = stored[: len(stored) // 2]
    (tmp_path / "net.bin").write_bytes(content)
    with pytest.raises(ValueError, match=said):
        diagnose(tmp_path / "net.bin")


def test_what_uniform_attention_would_have_stands_beside_it():
    diagnosis = diagnose(np.full((1, 1, 4, 4), 0.25), kernel_size=1)
    assert isinstance(diagnosis, Diagnosis)
    (head,) = diagnosis.as_dict()["layers"][0]["heads"]
    assert diagnosis.notes[-1] == (
        f"Uniform attention on 2 × 2 tokens: distance {head['distance']:.2f}, entropy "
        f"{head['entropy']:.2f}, spread {head['spread']:.2f}, one shift {head['one_shift']:.2g}, "
        f"to conv {head['to_convolution']:.2f}."
    )


@pytest.mark.slow
def test_what_must_be_said_of_other_paddings_and_dilations_is_said():
    kernel = np.ones((2, 2, 1, 1))
    layer = ca.conv_to_attention(kernel, form="limit", padding="SAME", dilation=2)
    notes = " ".join(diagnose(layer, image_size=6).notes)
    assert "the kernel's centre, which for output 0 is pixel (-1, -1)" in notes
    assert "(2, 2) pixels apart" in notes
    assert "d(K - 1) + 1" in notes
    measured = diagnose(layer, image_size=9, kernel_size=5).layers[0]
    assert measured.convolution.relative < 1e-6


def test_a_module_is_refused_with_what_to_pass():
    class Network:
        def state_dict(self):
            return {}

    with pytest.raises(ValueError, match=r"model=Network, a module, .* pass model.state_dict\(\)"):
        diagnose(Network(), np.zeros((1, 8, 8, 3)))


def test_a_narrow_terminal_cuts_no_word():
    diagnosis = diagnose(np.full((1, 1, 4, 4), 0.25), kernel_size=1)
    console = Console(width=80)
    with console.capture() as printed:
        console.print(printed_table(head_table(diagnosis)))
    assert "…" not in printed.get()
