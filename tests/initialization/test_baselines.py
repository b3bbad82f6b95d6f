"""The baselines: the products that they print, what they keep, refusals."""

import numpy as np
import pytest
from nnx.vision_transformer.usual_parameters import usual_parameters

from convattn.initialization import impulse, mimetic, truncated_normal

GRID = (4, 4)
WIDTH, HEADS = 32, 4
ALL = (impulse, mimetic, truncated_normal)


def products(parameters, number=0):
    """W_Q W_Kᵀ of each head, and W_V W_O, for tokens in rows."""
    qkv = parameters[f"blocks.{number}.attn.qkv.weight"].astype(np.float64)
    query, key, value = np.split(qkv, 3)
    split = (part.reshape(HEADS, -1, WIDTH) for part in (query, key))
    scores = np.einsum("hdi,hdj->hij", *split)
    output = parameters[f"blocks.{number}.attn.proj.weight"].astype(np.float64)
    return scores, value.T @ output.T


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_names_shapes_and_seeds(make):
    usual = usual_parameters(WIDTH, grid=GRID)
    one, two, other = (make(usual, heads=HEADS, seed=seed) for seed in (0, 0, 1))
    assert one.keys() == usual.keys()
    assert all((one[n].shape, one[n].dtype) == (a.shape, a.dtype) for n, a in usual.items())
    assert all(np.array_equal(one[name], two[name]) for name in usual)
    name = "blocks.1.attn.qkv.weight"
    assert not np.array_equal(one[name], other[name])
    for unchanged in ("patch_embed.proj.weight", "norm.weight"):
        assert np.array_equal(one[unchanged], usual[unchanged])


def test_mimetic_products():
    """Σ over the kept directions; W_V W_O is not cut: its diagonal is -0.4 + 0.4 z."""
    parameters = mimetic(usual_parameters(WIDTH, grid=GRID), heads=HEADS)
    scores, maps = products(parameters)
    limit = 0.4 * np.sqrt(3 / WIDTH) + 1e-6
    assert np.abs(maps + 0.4 * np.eye(WIDTH)).max() <= limit
    assert np.abs(maps + 0.4 * np.eye(WIDTH)).max() > 0.5 * limit
    assert all(np.linalg.matrix_rank(each, tol=1e-5) == WIDTH // HEADS for each in scores)
    one_head = mimetic(usual_parameters(WIDTH, grid=GRID), heads=1)
    query, key, _ = np.split(one_head["blocks.0.attn.qkv.weight"].astype(np.float64), 3)
    limit = 0.7 * np.sqrt(3 / WIDTH) + 1e-6
    assert np.abs(query.T @ key - 0.7 * np.eye(WIDTH)).max() <= limit


def test_impulses_look_at_their_offsets_where_the_rank_allows():
    """As many features as tokens, and one head: the largest score is at the offset."""
    usual = usual_parameters(WIDTH, grid=GRID, before=(), deviation=1.0)
    parameters = impulse(usual, heads=1)
    assert np.allclose(parameters["pos_embed"], 18 * usual["pos_embed"])
    query, key, _ = np.split(parameters["blocks.0.attn.qkv.weight"].astype(np.float64), 3)
    assert np.linalg.norm(query) == pytest.approx(7, rel=1e-5)
    assert np.linalg.norm(key) == pytest.approx(7, rel=1e-5)
    positions = parameters["pos_embed"][0].astype(np.float64)
    centred = positions - positions.mean(axis=1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    scores = normal @ query.T @ key @ normal.T
    assert (scores.argmax(axis=1) == np.arange(16)).all()  # the first offset is (0, 0)


def test_impulses_leave_out_the_directions_that_positions_do_not_have():
    """One head on as many tokens as channels: normalised positions have one direction less."""
    usual = usual_parameters(16, grid=GRID, before=(), deviation=1.0)
    parameters = impulse(usual, heads=1)
    query, key, _ = np.split(parameters["blocks.0.attn.qkv.weight"].astype(np.float64), 3)
    positions = parameters["pos_embed"][0].astype(np.float64)
    normal = positions - positions.mean(axis=1, keepdims=True)
    normal /= np.sqrt((normal**2).mean(axis=1, keepdims=True) + 1e-5)
    scores = normal @ query.T @ key @ normal.T
    assert (scores.argmax(axis=1) == np.arange(16)).mean() > 0.9
    alike = usual | {"pos_embed": np.ones_like(usual["pos_embed"])}
    with pytest.raises(ValueError, match="the same at all tokens"):
        impulse(alike, heads=1)


def test_impulses_on_a_grid_that_is_no_square_take_its_size():
    """15 tokens and one for the class: of 16 positions alone it may as well be 4 × 4."""
    usual = usual_parameters(WIDTH, grid=(3, 5), deviation=1.0)
    with pytest.raises(ValueError, match=r"or 3 × 5 or 5 × 3 patches with them"):
        impulse(usual, heads=1)
    patch = usual["patch_embed.proj.weight"].shape[-1]
    ways = [impulse(usual, heads=2, image_size=(a * patch, b * patch)) for a, b in ((3, 5), (5, 3))]
    one, other = (parameters["blocks.0.attn.qkv.weight"] for parameters in ways)
    assert not np.allclose(one, other)


def test_truncated_normal_has_its_deviation():
    parameters = truncated_normal(usual_parameters(64, grid=GRID), heads=HEADS)
    weights = parameters["blocks.0.mlp.fc1.weight"]
    assert weights.std() == pytest.approx(0.02, rel=0.05)
    assert not parameters["blocks.0.attn.qkv.bias"].any()
    assert (parameters["blocks.0.norm1.weight"] == 1).all()
    assert not parameters["blocks.0.norm1.bias"].any()


def test_refusals():
    usual = usual_parameters(WIDTH, grid=GRID)
    without = {name: array for name, array in usual.items() if name != "pos_embed"}
    with pytest.raises(ValueError, match="no added positions"):
        impulse(without, heads=HEADS)
    with pytest.raises(ValueError, match="blocks called"):
        mimetic({"weight": np.ones(3)}, heads=1)
    with pytest.raises(ValueError, match="divisor of 32"):
        truncated_normal(usual, heads=3)
    narrow = {n: a for n, a in usual.items() if not n.startswith("blocks")}
    for number in range(2):
        for name, array in usual.items():
            if name.startswith(f"blocks.{number}."):
                narrow[name] = array
        narrow[f"blocks.{number}.attn.qkv.weight"] = np.ones((48, WIDTH), np.float32)
        narrow[f"blocks.{number}.attn.qkv.bias"] = np.ones(48, np.float32)
        narrow[f"blocks.{number}.attn.proj.weight"] = np.ones((WIDTH, 16), np.float32)
    with pytest.raises(ValueError, match="16 features in all, but expected 32"):
        mimetic(narrow, heads=2)
