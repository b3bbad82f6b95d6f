"""The least number of blocks: against powers, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import convattn as ca


@given(
    size=st.integers(1, 9),
    heads=st.integers(1, 20),
    channels=st.integers(1, 12),
    patch=st.integers(1, 3),
)
def test_it_is_the_least_power_that_reaches_the_rank(size, heads, channels, patch):
    sizes = {"patch_size": patch, "in_channels": channels}
    blocks, counts = ca.count_blocks(size, heads, **sizes), ca.count_heads(size, **sizes)
    assert blocks.claim == "S.blocks"
    assert blocks.basis == counts.exact.necessary.basis
    assert (heads + 1) ** blocks >= counts.rank
    assert blocks == (counts.offsets > 1) or (heads + 1) ** (blocks - 1) < counts.rank


@pytest.mark.parametrize(
    ("size", "heads", "channels", "expected"),
    [
        (27, 12, 768, 3),  # the offsets between 14 × 14 tokens, with ViT-B's heads
        (27, 26, 768, 2),
        (27, 728, 768, 1),
        (3, 2, 3, 2),
        (3, 8, 3, 1),
        (3, 1, 1, 1),
        (1, 1, 1, 0),  # a map of one token
        ((9,), 2, 3, 2),
    ],
)
def test_known_numbers(size, heads, channels, expected):
    assert ca.count_blocks(size, heads, in_channels=channels, out_channels=channels) == expected


@pytest.mark.parametrize("heads", [0, -3, True])
def test_heads_are_positive_integers(heads):
    with pytest.raises(ValueError, match=r"heads=.*, but expected an integer ≥ 1"):
        ca.count_blocks(3, heads)
