"""Heads that share value maps: known numbers, layers that have them, refusals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convattn.bounds.heads import count_heads

VIT = {"kernel_size": 3, "patch_size": 16, "in_channels": 3, "out_channels": 3, "head_dim": 64}


def test_twelve_groups_of_width_64():
    counts = count_heads(**VIT, kv_groups=12)
    assert (counts.groups, counts.groups.claim) == (12, "S.gqa")
    assert (counts.limit.necessary, counts.limit.sufficient) == (12, 108)
    assert (counts.exact.necessary, counts.exact.sufficient) == (24, 120)
    assert counts.limit.bounded == 24  # 20 without groups
    assert counts.exact.sufficient.claim == "S.gqa"
    assert "10 heads for each of 12 groups (S.finite" in counts.exact.sufficient.reason
    assert ("value maps: necessary", counts.groups) in counts.rows()
    assert counts.as_dict()["groups"]["count"] == 12
    assert "groups" not in count_heads(3).as_dict()


def test_with_as_many_groups_as_heads_nothing_is_shared():
    assert count_heads(**VIT, kv_groups=28).exact.sufficient == 28


@given(groups=st.integers(1, 12), head_dim=st.sampled_from([None, 27, 40]))
def test_one_wide_map_costs_no_head(groups, head_dim):
    sizes = {"kernel_size": 3, "in_channels": 27, "out_channels": 2, "head_dim": head_dim}
    alone, shared = count_heads(**sizes), count_heads(**sizes, kv_groups=groups)
    for before, after in ((alone.limit, shared.limit), (alone.exact, shared.exact)):
        for name in ("necessary", "sufficient"):
            count = getattr(after, name)
            assert count == -(-getattr(before, name) // groups) * groups
            assert ("multiple" in count.reason) == (getattr(before, name) % groups > 0)


def test_fewer_outputs_need_fewer_numbers_of_a_token():
    """64 numbers of a token, of which nine taps with four outputs each read 36."""
    sizes = {"in_channels": 64, "out_channels": 4, "head_dim": 6}
    assert count_heads(3, **sizes, kv_groups=6).groups == 6
    with pytest.raises(ValueError, match="36 are necessary"):
        count_heads(3, **sizes, kv_groups=5)


def test_refusals():
    with pytest.raises(ValueError, match=r"kv_groups=8 .* hold 512 .* at least 768"):
        count_heads(**VIT, kv_groups=8)
    with pytest.raises(ValueError, match="take kv_groups=12 or more, or head_dim=96 or more"):
        count_heads(**VIT, kv_groups=8)
    with pytest.raises(ValueError, match="kv_groups=0, but expected an integer ≥ 1"):
        count_heads(3, kv_groups=0)
    with pytest.raises(ValueError, match="kv_groups=2 with layers=2"):
        count_heads(3, layers=2, kv_groups=2)
