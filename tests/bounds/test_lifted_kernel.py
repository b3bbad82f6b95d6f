"""Lifted kernels by definition, multiplicities by characters, numbers of heads, refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import convattn as ca
from convattn.bounds.flattened_kernel import exact_rank
from convattn.bounds.heads import count_heads
from convattn.bounds.lifted_kernel import lifted_kernel, lifted_rank, multiplicities

# Of each irreducible representation its dimension, and its character on the identity, the quarter
# turns, the half turn, the reflections along the axes and those along the diagonals.
CHARACTERS = {
    "p4": ((1, 1, 1), (1, -1, 1), (1, 0, -1), (1, 0, -1)),
    "p4m": (
        (1, 1, 1, 1, 1),
        (1, 1, 1, -1, -1),
        (1, -1, 1, 1, -1),
        (1, -1, 1, -1, 1),
        (2, 0, -2, 0, 0),
    ),
}


@pytest.mark.parametrize("group", ["p4", "p4m"])
@pytest.mark.parametrize("size", range(1, 9))
def test_multiplicities_are_those_of_the_characters(size, group):
    odd = size % 2
    fixed, classes = (size**2, odd, odd, odd * size, size), (1, 2, 1, 2, 2)
    order = {"p4": 4, "p4m": 8}[group]
    expected = [
        (row[0], sum(n * x * f for n, x, f in zip(classes, row, fixed, strict=False)) / order)
        for row in CHARACTERS[group]
    ]
    assert sorted(multiplicities(size, group)) == sorted(expected)
    assert multiplicities(size, group)[0] == expected[0]  # the trivial one


@given(st.sampled_from(["p4", "p4m"]), st.integers(1, 5), st.integers(1, 2), st.integers(1, 3))
def test_a_drawn_kernel_has_the_rank_and_a_constant_one_has_one(group, size, channels, filters):
    originals = np.random.default_rng(size).integers(
        -(2**30), 2**30, (size, size, channels, filters)
    )
    flat = np.moveaxis(lifted_kernel(originals, group), 2, -1).reshape(size**2, -1)
    assert exact_rank(flat) == lifted_rank(size, group, channels * filters)
    ones = lifted_kernel(np.ones_like(originals), group)
    assert (ones == 1).all()
    assert ones.shape == (size, size, channels, filters * {"p4": 4, "p4m": 8}[group])


@pytest.mark.parametrize("group", ["p4", "p4m"])
def test_the_copies_of_a_turned_filter_are_those_of_the_filter_in_another_order(group):
    filters = np.arange(50).reshape(5, 5, 1, 2)
    copies = lifted_kernel(filters, group).reshape(5, 5, 2, -1)
    turned = lifted_kernel(np.rot90(filters), group).reshape(5, 5, 2, -1)
    order = [1, 2, 3, 0] if group == "p4" else [1, 2, 3, 0, 7, 4, 5, 6]
    assert (turned == copies[..., order]).all()
    assert (copies[..., 0] == filters[:, :, 0]).all()
    assert (copies[0, 0, :, 1] == filters[0, 4, 0]).all()  # anticlockwise
    assert group == "p4" or (copies[0, 0, :, 4] == filters[0, 4, 0]).all()


@pytest.mark.parametrize(
    ("size", "group", "filters", "numbers"),
    [
        (3, "p4", 1, (5, 5)),
        (3, "p4", 2, (9, 9)),
        (3, "p4", 3, (9, 10)),
        (3, "p4m", 1, (8, 8)),
        (3, "p4m", 3, (9, 10)),
        (4, "p4m", 3, (16, 17)),
        (5, "p4m", 5, (25, 25)),
        (5, "p4m", 6, (25, 26)),
        (1, "p4m", 1, (1, 2)),
    ],
)
def test_numbers_of_heads(size, group, filters, numbers):
    counts = count_heads(size, group=group, out_channels=filters)
    assert (counts.limit.necessary, counts.exact.necessary) == numbers
    assert (counts.limit.sufficient, counts.exact.sufficient) == numbers
    assert {count.claim for _, count in counts.rows()} == {"S.group"}
    assert (counts.offsets, counts.rank) == (size**2, lifted_rank(size, group, filters))
    dilated = count_heads(size, group=group, in_channels=filters, dilation=3)
    assert dilated.as_dict() == counts.as_dict()


@pytest.mark.parametrize("filters", [1, 2])
def test_a_layer_has_as_many_heads(filters):
    originals = np.random.default_rng(0).integers(-(2**18), 2**18, (3, 3, 1, filters))
    layer = ca.conv_to_attention(
        lifted_kernel(originals, "p4m").astype(np.float32), num_heads="min"
    )
    assert layer.heads == count_heads(3, group="p4m", out_channels=filters).exact.sufficient


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group": "p6"}, "group='p6', but expected 'p4', .* 'p4m', .* or None; leave it out"),
        ({"group": "p4", "patch_size": 2}, r"group='p4' .*patch_size=\(2, 2\).* square .*leave"),
        (
            {"group": "p4", "kernel_size": (3, 5)},
            r"kernel_size=\(3, 5\).* expected a square kernel",
        ),
        ({"group": "p4", "kernel_size": (3,)}, r"kernel_size=\(3,\).* expected a square kernel"),
        (
            {"group": "p4", "dilation": (1, 2)},
            r"dilation=\(1, 2\), but expected a square .* one dil",
        ),
        ({"group": "p4", "layers": 2}, "layers=2, .* expected none of these; leave them out"),
        ({"group": "p4", "head_dim": 2}, "head_dim=2, .* expected none of these"),
        ({"group": "p4", "attention": "shared"}, "attention='shared', .* expected none of these"),
        ({"group": "p4", "kv_groups": 2}, "kv_groups=2 and causal=False, but expected none"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        count_heads(**{"kernel_size": 3, **options})


@pytest.mark.parametrize("group", ["P4", "p6", ""])
def test_another_group_is_refused(group):
    for call in (
        lambda: lifted_kernel(np.ones((3, 3, 1, 1)), group),
        lambda: multiplicities(3, group),
    ):
        with pytest.raises(ValueError, match="expected 'p4'"):
            call()


@pytest.mark.parametrize("shape", [(3, 3, 1), (3, 5, 1, 1)])
def test_filters_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match=r"expected square filters \[K, K, in, r\]"):
        lifted_kernel(np.ones(shape), "p4")
