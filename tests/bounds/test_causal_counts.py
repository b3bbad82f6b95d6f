"""Heads under a causal mask: T + 1 by scores that know what a query sees, and what is refused."""

import pytest

from convattn.bounds.heads import count_heads


@pytest.mark.parametrize(
    ("options", "limit", "exact", "claim"),
    [
        ({"in_channels": 4}, (4, 4), (5, 5), "S.causal"),
        ({"attention": "shared"}, (4, 4), (5, 5), "S.causal"),
        ({}, (2, 2), (2, 2), "S.kernel"),  # rank one
        ({"in_channels": 4, "dilation": 3}, (4, 4), (5, 5), "S.causal"),
        ({"in_channels": 4, "kv_groups": 2}, (4, 4), (6, 6), "S.causal"),
    ],
    ids=str,
)
def test_known_numbers(options, limit, exact, claim):
    counts = count_heads((4,), causal=True, **options)
    assert (counts.limit.necessary, counts.limit.sufficient) == limit
    assert (counts.exact.necessary, counts.exact.sufficient) == exact
    assert counts.exact.sufficient.claim == claim
    assert "how many keys a query sees" in counts.exact.sufficient.reason
    assert "N - D + 1" in counts.regime["causal"]
    assert "causal" not in count_heads((4,)).regime


def test_narrow_heads_are_split_as_without_a_mask():
    sizes = {"in_channels": 8, "out_channels": 8, "head_dim": 4}
    masked, plain = count_heads((4,), causal=True, **sizes), count_heads((4,), **sizes)
    assert masked.exact.sufficient == plain.exact.sufficient
    assert masked.exact.necessary == plain.exact.necessary


@pytest.mark.parametrize(("size", "patch"), [(3, 1), ((3, 5), 1), ((3,), 2)])
def test_a_mask_is_of_a_sequence_of_tokens(size, patch):
    with pytest.raises(ValueError, match=r"write kernel_size=\(3,\) and patch_size=1, or leave"):
        count_heads(size, patch_size=patch, causal=True)
