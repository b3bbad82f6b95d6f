"""What starts as a convolution: distances on images against those that are enclosed, refusals."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from comparison import assert_equal
from diagnosis.small_transformers import hugging_face
from hypothesis import given
from hypothesis import strategies as st
from nnx.vision_transformer.usual_parameters import (
    first_tokens,
    images_between,
    measured_distances,
    measured_leaks,
    usual_parameters,
)

from convattn.diagnosis.transformers import normalised
from convattn.initialization import convolutional
from convattn.initialization.positions import CHANNELS
from convattn.networks.vision_transformer.state_dicts import read_transformer
from convattn.networks.weights.files import WeightsFile

RANGE = (-1.0, 2.0)
GRID, PATCH = (4, 5), 2
SIZE = (GRID[0] * PATCH, GRID[1] * PATCH)
HEADS = {"heads": 4, "image_range": RANGE, "image_size": SIZE}


def low_rank(rng, size, channels, taps, rank):
    """A kernel with so many taps that are not zero, of this rank each."""
    kernel = np.zeros((size[0] * size[1], channels, channels))
    for tap in rng.permutation(len(kernel))[:taps]:
        kernel[tap] = rng.normal(size=(channels, rank)) @ rng.normal(size=(rank, channels))
    return kernel.reshape(*size, channels, channels)


@pytest.mark.slow
@given(
    border=st.sampled_from(["class", "edge", "circular"]),
    grid=st.tuples(st.integers(2, 6), st.integers(2, 6)),
    size=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    kernel=st.sampled_from(["impulses", "filters", "given"]),
    leak=st.sampled_from([1e-6, 0.05, 0.5]),
    every_layer=st.booleans(),
    tokens_before=st.sampled_from([(), ("cls_token",), ("cls_token", "dist_token")]),
    scaled=st.booleans(),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
    seed=st.integers(0, 2**16),
)
def test_no_image_is_further_than_enclosed(
    border, grid, size, kernel, leak, every_layer, tokens_before, scaled, dtype, seed
):
    size = tuple(min(k, n) for k, n in zip(size, grid, strict=True))
    if border == "class" and not tokens_before:
        border = "edge"
    usual = usual_parameters(grid=grid, before=tokens_before, seed=seed, dtype=dtype)
    rng = np.random.default_rng(seed)
    if scaled:  # layer scale
        scales = (f"blocks.{block}.ls{part}.gamma" for block in (0, 1) for part in (1, 2))
        usual |= {name: rng.normal(size=32).astype(dtype) for name in scales}
    how = {"kernel": kernel, "kernel_size": size}
    if kernel == "given":
        how = {"kernel": [low_rank(rng, size, 9, min(2, size[0] * size[1]), 3) for _ in range(2)]}
    start = convolutional(
        usual,
        heads=4,
        image_range=RANGE,
        image_size=(grid[0] * PATCH, grid[1] * PATCH),
        border=border,
        leak=leak,
        every_layer=every_layer,
        seed=seed,
        **how,
    )
    enclosed = np.array([layer.leak for layer in start.layers])
    assert enclosed[0] <= leak
    assert not every_layer or (enclosed <= leak).all()
    images = images_between(*RANGE, grid, PATCH, seed)
    # both sides round in float64, so far as the largest score has digits
    assert (measured_leaks(start.parameters, start, images) <= enclosed + 1e-9).all()
    distances, sizes = measured_distances(start.parameters, start, images)
    assert (distances <= [layer.distance + 1e-9 for layer in start.layers]).all()
    assert (sizes <= [layer.largest + 1e-9 for layer in start.layers]).all()


def test_the_enclosure_is_not_far_from_what_is_seen():
    """Positions that are large beside the content leave little room between the two."""
    usual = usual_parameters(grid=GRID)
    start = convolutional(usual, kernel_size=3, position_norm=1000.0, **HEADS)
    measured = measured_leaks(start.parameters, start, images_between(*RANGE, GRID, PATCH, 0))
    assert (measured > 0.9 * np.array([layer.leak for layer in start.layers])).all()


@pytest.mark.parametrize("part", ["pos_embed", "blocks.0.attn.qkv.weight"])
@pytest.mark.quick(1)
def test_parameters_that_were_changed_leak_more(part):
    """What the property test would not see if it looked at nothing."""
    start = convolutional(usual_parameters(grid=GRID), **HEADS)
    images = images_between(*RANGE, GRID, PATCH, 0)
    changed = dict(start.parameters) | {part: start.parameters[part] / 4}
    measured = measured_leaks(changed, start, images)
    assert measured[0] > 1.5 * start.layers[0].leak
    assert measured_distances(changed, start, images)[0][0] > start.layers[0].distance / 2


def test_the_border_of_the_first_layer_is_zero_padding():
    """With a class token as the border; so sharp that nothing else is seen."""
    rng = np.random.default_rng(0)
    kernel = low_rank(rng, (3, 3), 24, 4, 8)
    usual = usual_parameters(grid=GRID)
    start = convolutional(usual, [kernel, kernel], leak=1e-12, **HEADS)
    assert start.border == "class"
    assert start.layers[0].distance < 1e-4 * start.layers[0].largest  # float32 of V and O
    images = images_between(*RANGE, GRID, PATCH, 0)
    model = read_transformer(WeightsFile("model", start.parameters, {}), 4)
    normal = normalised(first_tokens(model, images), model.blocks[0], "norm1", model.epsilon)
    bias = model.blocks[0]["norm1.bias"][:-CHANNELS]
    assert np.allclose(normal[:, 0, :-CHANNELS], bias)


def test_what_is_kept_and_what_is_set():
    usual = usual_parameters(grid=GRID)
    parameters = convolutional(usual, **HEADS).parameters
    assert parameters.keys() == usual.keys()
    assert all(
        parameters[n].shape == a.shape and parameters[n].dtype == a.dtype for n, a in usual.items()
    )
    for name in ("norm.weight", "blocks.0.mlp.fc1.weight", "blocks.1.norm2.bias"):
        assert np.array_equal(parameters[name], usual[name])
    for name in ("patch_embed.proj.weight", "blocks.0.mlp.fc2.weight", "blocks.1.mlp.fc2.bias"):
        assert np.array_equal(parameters[name][:-CHANNELS], usual[name][:-CHANNELS])
        assert not parameters[name][-CHANNELS:].any()
    query = parameters["blocks.0.attn.qkv.weight"][:32].reshape(4, 8, 32)
    original = usual["blocks.0.attn.qkv.weight"][:32].reshape(4, 8, 32)
    assert np.array_equal(query[:, 5:, :-CHANNELS], original[:, 5:, :-CHANNELS])


def test_depthwise_kernels_take_a_head_for_each_part_of_a_tap():
    kernel = np.zeros((3, 3, 1, 16))
    kernel[0, 0], kernel[2, 1] = 1, np.arange(16)
    start = convolutional(usual_parameters(grid=GRID), kernel, **HEADS)
    layer = start.layers[0]
    assert (layer.heads, layer.wanted) == (4, 4)  # ranks 16 and 15, heads of dimension 8
    assert sorted(layer.shifts) == [(-1, -1), (-1, -1), (1, 0), (1, 0)]
    assert np.array_equal(layer.kernel[2, 1, :16, :16], np.diag(np.arange(16.0)))


def test_an_approximation_keeps_the_largest_parts_and_says_how_far_it_is():
    rng = np.random.default_rng(0)
    kernel = low_rank(rng, (3, 3), 24, 9, 8) * np.arange(1, 10).reshape(3, 3, 1, 1)
    usual = usual_parameters(grid=GRID)
    with pytest.raises(ValueError, match=r"takes 9 heads of dimension 8, but the model has 4"):
        convolutional(usual, kernel, **HEADS)
    start = convolutional(usual, kernel, approximate=True, leak=1e-9, **HEADS)
    layer = start.layers[0]
    norms = np.linalg.norm(kernel, axis=(2, 3))
    largest = {
        tuple(int(at) - 1 for at in place)
        for place in np.argwhere(norms > np.sort(norms.ravel())[4])
    }
    assert {*layer.shifts} == largest
    assert (layer.heads, layer.wanted) == (4, 9)
    distances, _ = measured_distances(
        start.parameters, start, images_between(*RANGE, GRID, PATCH, 0)
    )
    assert 0 < distances[0] <= layer.distance


def test_sufficient_heads_are_those_of_any_kernel():
    start = convolutional(usual_parameters(grid=GRID), **HEADS)
    assert start.sufficient == 9 * 3  # nine taps of 24 channels in heads of eight


@pytest.mark.slow
def test_drawn_offsets_are_different_and_follow_the_seed():
    usual = usual_parameters(grid=GRID)
    one, two, other = (convolutional(usual, seed=seed, **HEADS) for seed in (0, 0, 1))
    assert one.layers[0].shifts == two.layers[0].shifts
    assert [layer.shifts for layer in one.layers] != [layer.shifts for layer in other.layers]
    assert all(len({*layer.shifts}) == 4 for layer in one.layers)
    many = usual_parameters(width=60, grid=GRID)
    start = convolutional(many, **(HEADS | {"heads": 12}))
    assert len({*start.layers[0].shifts}) == 9  # all offsets, three of them twice
    assert start.layers[0].heads == 11  # 52 channels in blocks of 5: the twelfth has none


@pytest.mark.slow
def test_names_of_hugging_face():
    usual = hugging_face(usual_parameters(grid=GRID))
    start = convolutional(usual, **HEADS)
    assert start.parameters.keys() == usual.keys()
    same = convolutional(usual_parameters(grid=GRID), **HEADS)
    assert start.layers[0].shifts == same.layers[0].shifts


TO_TORCHVISION = {
    r"^patch_embed\.proj": "conv_proj",
    **{"^cls_token": "class_token", "^pos_embed": "encoder.pos_embedding"},
    **{r"^blocks\.": "encoder.layers.encoder_layer_", r"attn\.qkv\.": "self_attention.in_proj_"},
    **{r"attn\.proj": "self_attention.out_proj", r"\.norm(\d)": r".ln_\1"},
    **{r"mlp\.fc1": "mlp.0", r"mlp\.fc2": "mlp.3", r"^norm\.": "encoder.ln."},
}


def test_names_of_torchvision():
    usual = usual_parameters(grid=GRID)
    same = convolutional(usual, **HEADS)
    for old, new in TO_TORCHVISION.items():
        usual = {re.sub(old, new, name): array for name, array in usual.items()}
    start = convolutional(usual, **HEADS)
    assert start.parameters.keys() == usual.keys()
    for one, other in zip(start.parameters.values(), same.parameters.values(), strict=True):
        assert_equal(one, other)


def test_the_printed_table_names_border_and_distance():
    text = str(convolutional(usual_parameters(grid=GRID), **HEADS))
    assert "outside the grid stands the class token" in text
    assert text.count("of the convolution, whose values are up to") == 2
    assert " of zero" not in text


def test_the_printed_table_says_unused_heads_and_bounds_of_no_use():
    lines = str(convolutional(usual_parameters(grid=GRID), leak=0.9, **HEADS)).splitlines()
    assert all(line.endswith("so the bound says nothing") for line in lines[1:])
    found = convolutional(usual_parameters(grid=GRID), "filters", **HEADS)
    left = replace(found.layers[0], heads=3)
    assert ", 1 of zero; leak" in str(replace(found, layers=(left,)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": 8}, "4 features, but expected at least 5"),
        ({"heads": 5}, "divisor of 32"),
        ({"leak": 0.0}, "leak=0.0"),
        ({"leak": 1.0}, "leak=1.0"),
        ({"leak": float("nan")}, "leak=nan"),
        ({"leak": "0.1"}, "leak='0.1'"),
        ({"leak": 0.96}, "less than 0.952"),
        ({"gain": 0}, "gain=0"),
        ({"approximate": "no"}, "expected True or False"),
        ({"heads": 4.0}, "heads=4.0"),
        ({"seed": -1}, "seed=-1"),
        ({"kernel": 1j * np.ones((1, 1, 2, 2))}, "real numbers"),
        ({"kernel": object()}, "kernel"),
        ({"kernel": np.ones((1, 1, 1, 10**6))}, "at most 24 channels"),
        ({"gain": float("inf")}, "gain=inf"),
        ({"position_norm": 0.0}, "position_norm=0.0"),
        ({"position_norm": float("nan")}, "position_norm=nan"),
        ({"border": "zero"}, "border='zero', but expected 'edge' or 'circular'"),
        ({"kernel": "gabor"}, "kernel='gabor', but expected 'impulses'"),
        ({"kernel_size": 5}, "kernel of 5 × 5 is larger than the grid of 4 × 5"),
        ({"kernel_size": 0}, "kernel_size"),
        ({"image_range": (1.0, -1.0)}, "image_range"),
        ({"image_range": ((0.0, 0.0), (1.0, 1.0))}, "all 3 channels"),
        ({"image_range": (0.0, float("inf"))}, "image_range"),
        ({"image_range": (-1e308, 1e308)}, "below 1e\\+30"),
        ({"rotary": 3}, r"rotary=3, but expected a Rotary, such as Rotary\.axial\(8\)"),
        ({"border": np.array("edge")}, "border=array"),
        ({"kernel": np.ones((1, 1, 2, 2), bool)}, "its dtype is bool"),
        ({"kernel": np.ones((7, 7, 24, 24))}, "7 × 7 is larger than the grid"),
        ({"image_size": (8, 9)}, "patches of 2 × 2 do not divide it"),
        ({"image_size": None}, "21 tokens|the model has positions"),
        ({"kernel": np.zeros((3, 3, 25, 25))}, "at most 24 channels"),
        ({"kernel": np.zeros((3, 3))}, "kernel.shape"),
        ({"kernel": np.full((1, 1, 2, 2), np.nan)}, "not finite"),
        ({"kernel": np.zeros((1, 1, 2, 2)), "kernel_size": 1}, "leave them out"),
        ({"kernel": ["impulses"]}, "1 kernels for 2 layers"),
        ({"border": "edge", "position_norm": 1e-3}, "no sharpness keeps the leak"),
    ],
)
def test_refusals(options, message, unchecked):
    with pytest.raises(ValueError, match=message):
        convolutional(usual_parameters(grid=GRID), **(HEADS | options))


def test_parameters_that_are_refused(unchecked):
    usual = usual_parameters(grid=GRID)
    with pytest.raises(ValueError, match="parameters is list"):
        convolutional([1], **HEADS)
    integers = usual | {"patch_embed.proj.weight": np.ones((32, 3, 2, 2), int)}
    with pytest.raises(ValueError, match=r"patch_embed\.proj\.weight\.dtype=int64"):
        convolutional(integers, **HEADS)
    large = {name: array * 1e31 for name, array in usual.items()}
    with pytest.raises(ValueError, match=r"has entries of 1e\+30 or more"):
        convolutional(large, **HEADS)
    half = {name: array.astype(np.float16) for name, array in usual.items()}
    with pytest.raises(ValueError, match="would overflow in float16"):
        convolutional(half, gain=1e6, **HEADS)


def test_a_leak_that_rounding_makes_larger_is_not_returned(monkeypatch):
    """The first scores leak just as much as asked for, and a little more when they are rounded."""
    usual = usual_parameters(grid=GRID, dtype=np.float16)
    assert convolutional(usual, **HEADS).layers[0].leak <= 0.1
    monkeypatch.setattr(sys.modules[convolutional.__module__], "ATTEMPTS", 1)
    options = dict(HEADS) | {"kernel_size": 1}
    with pytest.raises(ValueError, match="with scores rounded as the parameters are heads leak"):
        [convolutional(usual, leak=leak, **options) for leak in (0.1, 0.01, 1e-3, 1e-4, 1e-5)]


def test_the_smallest_leak_is_no_distance_of_zero():
    """Squares of such leaks are zero in float64."""
    start = convolutional(usual_parameters(grid=GRID), **(HEADS | {"leak": 1e-170}))
    assert start.layers[0].leak <= 1e-170
    assert start.layers[0].distance >= start.layers[0].leak > 0


def test_the_parameters_that_are_returned_are_copies():
    usual = usual_parameters(grid=GRID)
    parameters = convolutional(usual, **HEADS).parameters
    assert not any(np.shares_memory(parameters[name], array) for name, array in usual.items())


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.quick(1)
def test_the_usual_norm_of_positions_serves_every_layer_at_an_edge(size):
    alone = usual_parameters(grid=(6, 6), before=())
    how = {"heads": 4, "image_range": RANGE, "kernel_size": size}
    start = convolutional(alone, every_layer=True, **how)
    assert start.border == "edge"
    assert max(layer.leak for layer in start.layers) <= 0.1


def test_networks_that_are_refused():
    usual = usual_parameters(grid=GRID)
    without = {name: array for name, array in usual.items() if name != "pos_embed"}
    with pytest.raises(ValueError, match="no added positions"):
        convolutional(without, **HEADS)
    scales = {
        f"blocks.{n}.gamma_{i}": np.ones(usual["norm.bias"].shape) for n in (0, 1) for i in (1, 2)
    }
    with pytest.raises(ValueError, match="rotary=None, but expected a Rotary"):
        convolutional(usual | scales, **HEADS)
    clip = {name: array for name, array in usual.items() if name != "patch_embed.proj.bias"}
    clip |= {f"norm_pre.{kind}": usual[f"norm.{kind}"] for kind in ("weight", "bias")}
    with pytest.raises(ValueError, match="a LayerNorm before the blocks"):
        convolutional(clip, **HEADS)
    with pytest.raises(ValueError, match="unexpected"):
        convolutional(usual | {"blocks.0.attn.q_norm.weight": np.ones(8)}, **HEADS)
    with pytest.raises(ValueError, match="8 channels, but expected more than the 8"):
        convolutional(usual_parameters(width=8, grid=GRID), **(HEADS | {"heads": 1}))
    alone = usual_parameters(grid=GRID, before=())
    with pytest.raises(ValueError, match="'class' with a class token"):
        convolutional(alone, border="class", **HEADS)
