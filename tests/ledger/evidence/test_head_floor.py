"""The floor under every layer with too few heads: what it is at least, and at most."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from convattn_ledger import EvidenceFailed, Level
from convattn_ledger.evidence import exact_convolution, head_floor, layer_runs
from convattn_ledger.evidence.head_floor import (
    copying_kernel,
    fewer_heads_fail,
    floor_below,
    least_squares_maps,
    receptive_fields,
)
from convattn_ledger.evidence.printed_output_map import flattened_blocks, output_blocks


def case(seed: int, size: int = 3, patch: int = 1, channels: int = 2):
    """Random images, their receptive fields, W^O and F of the copying kernel."""
    images = np.random.default_rng(seed).integers(0, 256, (3, 8, 12, channels))
    blocks = output_blocks(copying_kernel(size, channels), patch)
    return images, receptive_fields(images, size, patch), blocks, flattened_blocks(blocks)


@pytest.mark.parametrize(("size", "patch"), [(3, 1), (3, 2), (5, 1), (5, 2)])
def test_fields_times_the_map_are_the_convolution_inside(size, patch):
    images, fields, blocks, _ = case(0, size, patch)
    outputs = fields.reshape(len(fields), -1) @ blocks.reshape(-1, blocks.shape[2])
    reach = (size - 1) // 2 if patch == 1 else 1
    exact = exact_convolution(images, copying_kernel(size, 2))
    inside = exact[:, patch * reach : -patch * reach, patch * reach : -patch * reach]
    assert sorted(outputs.ravel()) == sorted(inside.ravel())
    rows = 8 // patch - 2 * reach
    first = outputs.reshape(3, rows, -1, patch, patch, size**2)[:, 0, 0]
    assert np.array_equal(first, inside[:, :patch, :patch])


@given(seeds(), st.integers(1, 8))
def test_random_layers_stay_above_the_floor(seed, heads):
    """Softmax rows over the nine offsets, and the values of least squares for these rows."""
    _, fields, blocks, flattened = case(seed)
    floor = floor_below(fields, flattened, heads)
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(9), heads)
    attended = np.einsum("rof,ho->rhf", fields, rows).reshape(len(fields), -1)
    expected = fields.reshape(len(fields), -1) @ blocks.reshape(-1, blocks.shape[2])
    maps, *_ = np.linalg.lstsq(attended, expected.astype(float), rcond=None)
    squared = ((attended @ maps - expected) ** 2).sum(axis=1).mean()
    assert 0 < floor < squared


def test_the_floor_is_met_where_all_directions_are_alike():
    """Fields ± the unit vectors: sum zero, G = 2I, and the truncated F is the best layer."""
    _, _, blocks, flattened = case(0)
    positive = np.eye(18, dtype=np.int64)
    units = np.concatenate([positive, -positive]).reshape(36, 9, 2)
    expected = blocks.reshape(-1, blocks.shape[2])
    for heads in range(1, 9):
        floor = floor_below(units, flattened, heads)
        dropped = expected.reshape(9, 2, -1).copy()
        dropped[:heads] = 0
        assert 0.99 * (dropped**2).sum() / 18 < floor < (dropped**2).sum() / 18


def test_a_bias_is_allowed_for():
    """Fields that all hold a constant: a bias alone could serve them, so there is no floor."""
    _, _, _, flattened = case(0)
    units = np.eye(18, dtype=np.int64).reshape(18, 9, 2)
    with pytest.raises(EvidenceFailed, match="there is no floor"):
        floor_below(units, flattened, 1)


def test_the_floor_falls_with_every_head_and_ends():
    _, fields, _, flattened = case(1)
    floors = [floor_below(fields, flattened, heads) for heads in range(9)]
    assert floors == sorted(floors, reverse=True)
    with pytest.raises(EvidenceFailed, match="9 heads have no floor"):
        floor_below(fields, flattened, 9)


def test_no_floor_for_a_kernel_of_smaller_rank_or_fields_in_a_plane():
    _, fields, _, flattened = case(2)
    lower = flattened.copy()
    lower[:, 8] = lower[:, 7]
    with pytest.raises(EvidenceFailed, match="F has rank 8"):
        floor_below(fields, lower, 7)
    with pytest.raises(EvidenceFailed, match="there is no floor"):
        floor_below(np.full_like(fields, 7), flattened, 8)


def test_least_squares_with_all_offsets_is_the_kernel():
    _, fields, blocks, _ = case(3)
    expected = fields.reshape(len(fields), -1) @ blocks.reshape(-1, blocks.shape[2])
    outputs = least_squares_maps(fields, expected, list(range(9)))
    assert np.array_equal(outputs.round(6), blocks)
    assert np.abs(least_squares_maps(fields, expected, list(range(8))) - blocks[:8]).max() > 1e-3


def exact_form(convert):
    return lambda *k, **options: convert(*k, **{**options, "form": "exact"})


@pytest.mark.parametrize(
    ("module", "name", "change", "message"),
    [
        (layer_runs, "conv_to_attention", exact_form, "the layer has 10 heads, expected 9"),
        (
            head_floor,
            "floor_below",
            lambda floor: lambda *args: 1e9,
            "8 heads reach a mean squared error of",
        ),
    ],
    ids=["a head too many", "a floor too high"],
)
@pytest.mark.quick(1)
def test_a_planted_error_is_seen(run, few_images, monkeypatch, module, name, change, message):
    monkeypatch.setattr(module, name, change(getattr(module, name)))
    with pytest.raises(EvidenceFailed, match=message):
        fewer_heads_fail("nine", 3).check(run)
    assert fewer_heads_fail("nine", 3).level is Level.BOUNDED
