"""Rotary positions: leads by brute force, leaks and distances that are enclosed, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from nnx.vision_transformer.usual_parameters import (
    images_between,
    measured_distances,
    measured_leaks,
    targets,
    usual_parameters,
    walk,
)

from convattn.initialization import Rotary, convolutional
from convattn.initialization.rotary import largest_lead

GRID, PATCH = (4, 5), 2
RANGE = (-1.0, 2.0)
WILD = 100.0  # by which images leave the range
SLOW = Rotary.axial(8, 10.0, columns_first=True, layout="halves", origin=(1.0, -2.0))
OPTIONS = {"heads": 4, "image_size": (GRID[0] * PATCH, GRID[1] * PATCH), "rotary": SLOW}


def parameters(**how):
    """Those of a network without added positions."""
    usual = usual_parameters(**({"grid": GRID} | how))
    return {name: array for name, array in usual.items() if name != "pos_embed"}


@st.composite
def rotaries(draw, pairs=4):
    """A slow pair on each axis, whose cosine falls over all grids of six and beyond, and others."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    slow = np.diag(rng.uniform(0.03, 0.06, 2) * rng.choice([-1, 1], 2))
    turns = np.concatenate([slow, rng.uniform(-0.5, 0.5, (pairs - 2, 2))])
    origin = tuple(rng.uniform(-9, 9, 2))
    return Rotary(rng.permutation(turns), draw(st.sampled_from(["interleaved", "halves"])), origin)


SIDES = st.tuples(st.integers(1, 6), st.integers(1, 6))


@given(rotary=rotaries(), grid=SIDES, seed=st.integers(0, 99))
def test_the_lead_is_that_of_all_queries_and_keys(rotary, grid, seed):
    """Of all targets up to `reach` outside; and no other amplitudes have a larger one."""
    reach = tuple(n // 2 for n in grid)
    amplitudes, lead, least = largest_lead(rotary, grid, reach)
    leads, lowest = [], []
    for shift in np.ndindex(2 * reach[0] + 1, 2 * reach[1] + 1):
        target = shift[0] - reach[0], shift[1] - reach[1]
        at = targets("edge", grid, target, 0)
        keys = np.array(list(np.ndindex(*grid)))
        steps = keys[None] - keys[:, None] - np.array(target)
        waves = np.cos(2 * np.pi * steps @ rotary.turns.T)
        rows = np.arange(len(at))
        gaps = waves[rows, at][:, None] - waves
        gaps[rows, at] = np.inf
        leads.append(gaps.reshape(-1, len(amplitudes)))
        lowest.append(waves[rows, at] @ amplitudes)
    gaps = np.concatenate(leads)
    gaps = gaps[np.isfinite(gaps).all(axis=1)]
    close = 1e-12
    assert abs(np.min(lowest) - least) < close
    if not len(gaps):
        return
    assert abs((gaps @ amplitudes).min() - lead) < close
    others = np.random.default_rng(seed).dirichlet(np.ones(len(amplitudes)), 50)
    assert (gaps @ others.T).min(axis=0).max() < lead + 1e-6  # as exact as a linear program is
    assert (gaps @ np.full(len(amplitudes), 1 / len(amplitudes))).min() < lead + 1e-6


@pytest.mark.slow
@given(
    rotary=rotaries(),
    grid=SIDES,
    size=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    kernel=st.sampled_from(["impulses", "filters"]),
    leak=st.sampled_from([1e-6, 0.05, 0.5]),
    every_layer=st.booleans(),
    tokens_before=st.sampled_from([(), ("cls_token",), ("cls_token", "reg_token")]),
    added=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_no_image_is_further_than_enclosed(
    rotary, grid, size, kernel, leak, every_layer, tokens_before, added, seed
):
    assume(grid != (1, 1))
    """Nor one that is far out of the range."""
    size = tuple(min(k, n) for k, n in zip(size, grid, strict=True))
    make = usual_parameters if added else parameters
    start = convolutional(
        make(grid=grid, before=tokens_before, seed=seed),
        kernel,
        heads=4,
        kernel_size=size,
        image_range=RANGE,
        image_size=(grid[0] * PATCH, grid[1] * PATCH),
        rotary=rotary,
        leak=leak,
        every_layer=every_layer,
        seed=seed,
    )
    enclosed = np.array([layer.leak for layer in start.layers])
    sure = enclosed if every_layer or not tokens_before else enclosed[:1]
    assert (sure <= leak * (1 + 1e-3)).all()  # the biases are rounded to float32
    assert start.border == "edge"
    images = images_between(*RANGE, grid, PATCH, seed)
    images = np.concatenate([images, WILD * images])
    # both sides round in float64, so far as the largest score has digits
    assert (measured_leaks(start.parameters, start, images, rotary) <= enclosed + 1e-9).all()
    distances, sizes = measured_distances(start.parameters, start, images, rotary)
    assert (distances <= [layer.distance + 1e-9 for layer in start.layers]).all()
    assert (sizes <= [layer.largest + 1e-9 for layer in start.layers]).all()


@pytest.mark.parametrize("before", [(), ("cls_token",)])
def test_the_leak_is_what_was_asked_for(before):
    """Scores read no token, so that the leak of the grid's keys is the same for all images."""
    start = convolutional(parameters(before=before), **OPTIONS, leak=0.01, every_layer=True)
    images = images_between(*RANGE, GRID, PATCH, 0)
    measured = measured_leaks(start.parameters, start, images, SLOW)
    assert (measured > 0.009).all()
    assert (measured < 0.01 * (1 + 1e-5)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed",
    [
        {"layout": "interleaved"},
        {"turns": SLOW.turns[::-1]},
        {"turns": SLOW.turns / 2},
        {"turns": -SLOW.turns},
    ],
    ids=["layout", "axes", "half", "sign"],
)
def test_networks_that_turn_otherwise_leak_more(changed):
    start = convolutional(parameters(before=()), **OPTIONS)
    images = images_between(*RANGE, GRID, PATCH, 0)
    other = replace(SLOW, **changed)
    assert measured_leaks(start.parameters, start, images, other)[0] > 2 * start.layers[0].leak
    assert (
        measured_distances(start.parameters, start, images, other)[0][0] > start.layers[0].distance
    )


@pytest.mark.parametrize("part", ["cls_token", "blocks.0.attn.qkv.weight"])
@pytest.mark.quick(1)
def test_a_class_token_like_the_others_is_looked_at(part):
    """What tells it apart, planted as zero."""
    start = convolutional(parameters(), **OPTIONS)
    changed = {name: array.copy() for name, array in start.parameters.items()}
    changed[part][..., -2:] = 0
    images = images_between(*RANGE, GRID, PATCH, 0)
    assert measured_leaks(changed, start, images, SLOW)[0] > 2 * start.layers[0].leak


def test_an_origin_elsewhere_lets_the_class_token_in():
    """Two pairs of half a turn over the grid: where angles start is what matters."""
    turns = np.array([[0.12, 0], [0, 0.1], [0.12, 0], [0, 0.1]])
    rotary = Rotary(turns)
    start = convolutional(parameters(), **(OPTIONS | {"rotary": rotary}))
    images = images_between(*RANGE, GRID, PATCH, 0)
    assert measured_leaks(start.parameters, start, images, rotary)[0] <= start.layers[0].leak
    other = replace(rotary, origin=(4.0, 5.0))
    assert measured_leaks(start.parameters, start, images, other)[0] > 2 * start.layers[0].leak


def test_the_class_token_of_the_first_layer_attends_to_all_alike():
    start = convolutional(parameters(), **OPTIONS)
    images = images_between(*RANGE, GRID, PATCH, 0)
    _, _, _, attention = next(walk(start.parameters, start, images, SLOW))
    count = attention.shape[-1]
    assert np.abs(attention[:, :, 0] - 1 / count).max() < 1e-4  # float32 of a query that cancels


def test_added_positions_are_kept():
    usual = usual_parameters(grid=GRID)
    start = convolutional(usual, **OPTIONS).parameters
    assert np.array_equal(start["pos_embed"][..., :-2], usual["pos_embed"][..., :-2])
    assert not start["pos_embed"][..., -2:].any()
    alone = usual_parameters(grid=GRID, before=())
    start = convolutional(alone, **OPTIONS).parameters
    for name in ("pos_embed", "patch_embed.proj.weight", "blocks.0.mlp.fc2.weight"):
        assert np.array_equal(start[name], alone[name])
    assert start["blocks.0.attn.qkv.weight"].shape == (96, 32)
    assert not start["blocks.0.attn.qkv.weight"][32:64].any()


def test_frequencies_of_dinov3_are_those_of_its_coordinates():
    """Angles 2π x/period of x = 2(i + ½)/n - 1."""
    grid, base = (6, 8), 30.0
    rotary = Rotary.axial(
        8,
        base,
        layout="halves",
        spacing=(4 * np.pi / grid[0], 4 * np.pi / grid[1]),
        origin=((1 - grid[0]) / 2, (1 - grid[1]) / 2),
    )
    rows, columns = (2 * (np.arange(n) + 0.5) / n - 1 for n in grid)
    expected = [
        2 * np.pi * at / period for at in (rows[4], columns[7]) for period in (1, base**0.5)
    ]
    assert np.allclose(rotary.tokens(grid)[4 * 8 + 7], np.exp(1j * np.array(expected)))


FAST = Rotary(np.array([[0.5, 0.0], [0.0, 0.5], [0.5, 0.5], [0.25, 0.0]]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"border": "class"}, "border='class' with rotary, but expected 'edge'"),
        ({"border": "circular"}, "border='circular' with rotary"),
        ({"heads": 2}, "rotary has 4 pairs, but expected 8"),
        ({"rotary": FAST}, "the best lead is .*; take more or other frequencies"),
        ({"rotary": Rotary(np.zeros((4, 2)))}, "the best lead is -?0"),
        ({"image_size": None}, "neither positions nor tables"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        convolutional(parameters(), **(OPTIONS | options))


def test_a_class_token_takes_a_slow_pair():
    """Whole turns are told apart without the edge, but half turns hide no class token."""
    dyadic = Rotary(np.array([[0.5, 0.0], [0.25, 0.0], [0.0, 0.5], [0.0, 0.25]]))
    sizes = {"image_size": (8, 8), "kernel_size": 1, "rotary": dyadic}
    start = convolutional(parameters(before=()), **(OPTIONS | sizes))
    assert start.layers[0].leak < 0.11
    with pytest.raises(ValueError, match=r"about half a turn or more over the grid of 4 × 4"):
        convolutional(parameters(), **(OPTIONS | sizes))


def test_networks_without_biases_are_refused():
    usual = parameters()
    without = {name: array for name, array in usual.items() if "qkv.bias" not in name}
    with pytest.raises(ValueError, match=r"no biases, but expected both .*qkv_bias=True"):
        convolutional(without, **OPTIONS)
    halves = without | {
        f"blocks.{n}.attn.{part}_bias": np.zeros(32, np.float32)
        for n in (0, 1)
        for part in ("q", "v")
    }
    with pytest.raises(ValueError, match="no biases, but expected both"):
        convolutional(halves, **OPTIONS)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rotary(np.ones(4)), r"turns\.shape=\(4,\)"),
        (lambda: Rotary(np.ones((4, 3))), r"expected \[pairs, 2\]"),
        (lambda: Rotary(np.ones((4, 2)), origin=(0.0,)), "rows and columns"),
        (lambda: Rotary(np.full((4, 2), np.nan)), "not finite"),
        (lambda: Rotary(np.ones((4, 2)), "half"), "layout='half', but expected 'interleaved'"),
        (lambda: Rotary([["a", 1]]), r"turns=\[\['a', 1\]\], but expected real numbers"),
        (lambda: Rotary(np.ones((4, 2)) * 1j), "expected real numbers"),
        (lambda: Rotary(np.ones((4, 2)), origin=("a", 0)), "origin=.*expected real numbers"),
        (lambda: Rotary.axial("a"), "head_dim='a'"),
        (lambda: Rotary.axial(12, base="a"), "base='a' and spacing"),
        (lambda: Rotary.axial(12, spacing=(1, 2, 3)), "expected two numbers"),
        (lambda: Rotary.axial(12, spacing=None), "spacing=None"),
        (lambda: Rotary.axial(6), "head_dim=6, but expected a multiple of four"),
        (lambda: Rotary.axial(8, 1.0), "base=1.0"),
    ],
)
def test_refused_frequencies(make, message, unchecked):
    with pytest.raises(ValueError, match=message):
        make()
