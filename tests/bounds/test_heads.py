"""Numbers of heads: known values, layers that have them, ranks that need them, refusals."""

import subprocess
import sys
from functools import partial

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import convattn as ca
from convattn.bounds.head_width import balanced_ranks, map_widths, matricisation_ranks, split_heads
from convattn.bounds.heads import OVERLAP, count_heads
from convattn.operators.shifts import axis_token_offsets

RGB = {"in_channels": 3, "out_channels": 3}
TWO = {"in_channels": 2, "out_channels": 2}
SHARED = {"attention": "shared"}


def numbers(counts):
    return tuple(
        int(count)
        for regime in (counts.limit, counts.exact)
        for count in (regime.necessary, regime.sufficient)
    )


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({"kernel_size": 3, "in_channels": 3}, (4, 4, 4, 4)),
        ({"kernel_size": 3, "in_channels": 3, "out_channels": 64}, (9, 9, 10, 10)),
        ({"kernel_size": 3, "in_channels": 4, "out_channels": 2}, (9, 9, 9, 9)),
        ({"kernel_size": 1, "patch_size": 4}, (1, 1, 2, 2)),
        ({"kernel_size": 3, "patch_size": 16}, (9, 9, 10, 10)),
        ({"kernel_size": 9, "patch_size": 2}, (10, 10, 10, 10)),
        ({"kernel_size": (9,), "patch_size": 2}, (4, 4, 4, 4)),
        ({"kernel_size": (9,), "patch_size": 2, "in_channels": 2}, (5, 5, 6, 6)),
        ({"kernel_size": 4, "patch_size": 3}, (9, 9, 10, 10)),
        ({"kernel_size": 2, "patch_size": 3}, (4, 4, 5, 5)),
        # five offsets in blocks of 2, 1 and 2: rank 3, and one block has a one-hot row
        ({"kernel_size": (3,), "patch_size": 2, "dilation": 3}, (3, 3, 4, 4)),
        ({"kernel_size": 3, "patch_size": 2, "dilation": 2}, (2, 2, 2, 2)),
        ({"kernel_size": 3, "attention": "shared"}, (9, 9, 10, 10)),
        ({"kernel_size": (3,), "patch_size": 2, "dilation": 3, **SHARED}, (5, 5, 6, 6)),
        ({"kernel_size": 5, "patch_size": 16, **RGB, "head_dim": 64}, (12, 19, 24, 31)),
        ({"kernel_size": 3, "patch_size": 16, "head_dim": 64, **SHARED}, (9, 9, 13, 14)),
        ({"kernel_size": 3, "in_channels": 64, "out_channels": 4, "head_dim": 1}, (36, 36, 40, 40)),
        ({"kernel_size": 3, "in_channels": 3, "head_dim": 1}, (4, 4, 4, 4)),
        ({"kernel_size": 1, "patch_size": 4, "head_dim": 8}, (2, 2, 4, 4)),
    ],
    ids=str,
)  # fmt: skip
def test_known_numbers(sizes, expected):
    assert numbers(count_heads(**sizes)) == expected


def test_other_claims_than_those_of_the_answers():
    limit = ca.count_heads(3, patch_size=16, **RGB, head_dim=64).limit
    assert (limit.bounded.claim, limit.bounded_sufficient.claim) == ("S.headdim", "S.headdim")
    wide_heads = count_heads(5, patch_size=2, head_dim=100)  # nothing is split
    assert wide_heads.exact.necessary.claim == "S.kernel"
    for sizes in (
        {"kernel_size": (3, 5), "patch_size": 3},
        {"kernel_size": 3, "patch_size": (3, 4)},
        {"kernel_size": (3,), "patch_size": 3},
        {"kernel_size": 4, "patch_size": 3},
        {"kernel_size": 3, "patch_size": 2, "dilation": 3, "in_channels": 9},
    ):
        assert count_heads(**sizes).limit.sufficient.claim == "S.dp2"


@pytest.mark.parametrize(
    ("sizes", "basis"),
    [
        ({"kernel_size": 31, "patch_size": 1, "in_channels": 3}, "proved"),
        ({"kernel_size": 31, "patch_size": 16}, "proved"),
        ({"kernel_size": (31,), "patch_size": 2, "in_channels": 4}, "proved"),
        ({"kernel_size": 9, "patch_size": 2, "in_channels": 4}, "proved"),
        ({"kernel_size": 7, "patch_size": 2, "in_channels": 3}, "checked"),
        ({"kernel_size": (21, 3), "patch_size": (1, 16), "in_channels": 15}, "checked"),
    ],
    ids=str,
)
def test_what_is_proved_and_what_is_checked(sizes, basis):
    assert count_heads(**sizes).exact.necessary.basis == basis


def test_what_suffices_is_proved_whatever_is_known_of_the_rank():
    """Of 25 offsets, 18 are a rank found by computation, which no kernel exceeds."""
    for head_dim in (None, 100):
        checked = count_heads(7, patch_size=2, in_channels=2, head_dim=head_dim).exact
        assert (checked.necessary, checked.sufficient) == (19, 19)
        assert (checked.necessary.basis, checked.sufficient.basis) == ("checked", "proved")
    shared = count_heads(7, patch_size=2, in_channels=2, attention="shared")
    for count in (
        shared.limit.necessary,
        shared.limit.sufficient,
        shared.exact.necessary,
        shared.exact.sufficient,
    ):
        assert count.basis == "proved"


def test_the_basis_of_a_substitution_is_that_of_its_rank():
    """One pair of channels is free, and its rank, 7, is computed: 7 + ⌈8/2⌉ heads."""
    counts = count_heads((2, 6), patch_size=2, in_channels=2, out_channels=2, head_dim=2)
    assert counts.exact.necessary.as_dict() == {
        "count": 11,
        "claim": "S.headdim",
        "basis": "checked",
        "reason": "substitution of 7 heads",
    }
    assert (counts.limit.bounded, counts.limit.bounded.basis) == (10, "checked")
    assert counts.limit.bounded.reason == "substitution of 6 heads"
    windows = count_heads(
        3, patch_size=16, **RGB, head_dim=64
    ).limit.bounded  # 9 offsets: no computation
    assert (windows, windows.basis, windows.reason) == (20, "proved", "substitution of 8 heads")
    one = count_heads((2, 6), patch_size=2, head_dim=1)  # no pair is free: the full width decides
    assert one.exact.necessary.basis == "checked"  # 7 + 1 heads by the rank of F


FULL = ("rank F + 1", "rank F + 1 at finite scores")
BALANCED = "rank F + 1 for a kernel with F·1 = 0, whose row space holds no nonnegative vector"
OFFSETS = ("rank F, one for each offset", "one head for each offset", "and a uniform head")
ALL_ONE_HOT = ("the one-hot rows of all offsets", "the one-hot rows, and no weight is zero")
ANSWERS = [
    ({"kernel_size": 3},
     [(2, "S.kernel", "proved", BALANCED), (2, "S.kernel", "proved", FULL[1])],
     [(2, "S.kernel", "proved", FULL[0]), (2, "S.kernel", "proved", FULL[0])]),
    ({"kernel_size": 5, "patch_size": 2},
     [(9, "S.heads", "proved", OFFSETS[0]), (9, "L21.theorem1", "proved", OFFSETS[1])],
     [(10, "S.kernel", "proved", FULL[0]), (10, "S.finite", "proved", OFFSETS[2])]),
    ({"kernel_size": (1, 3), "patch_size": 2},
     [(3, "S.heads", "proved", OFFSETS[0]), (3, "S.dp2", "proved", OFFSETS[1])],
     [(4, "S.kernel", "proved", FULL[0]), (4, "S.finite", "proved", OFFSETS[2])]),
    ({"kernel_size": 7, "patch_size": 2, "in_channels": 2},
     [(19, "S.kernel", "checked", BALANCED), (19, "S.kernel", "proved", FULL[1])],
     [(19, "S.kernel", "checked", FULL[0]), (19, "S.kernel", "proved", FULL[0])]),
    ({"kernel_size": (2, 6), "patch_size": 2},
     [(7, "S.heads", "checked", "rank F"), (8, "S.kernel", "proved", FULL[1])],
     [(8, "S.kernel", "checked", FULL[0]), (8, "S.kernel", "proved", FULL[0])]),
    ({"kernel_size": 3, "patch_size": 2, "attention": "shared"},
     [(9, "S.heads", "proved", ALL_ONE_HOT[0]), (9, "L21.theorem1", "proved", OFFSETS[1])],
     [(10, "S.heads", "proved", ALL_ONE_HOT[1]), (10, "S.finite", "proved", OFFSETS[2])]),
    ({"kernel_size": 3, "patch_size": 16, "head_dim": 64, **RGB},
     [(12, "S.headdim", "proved", "N_H d_H >= max(rk_in, rk_out)"),
      (16, "S.width", "proved", "coordinates share heads, maps grow like 1/ε")],
     [(24, "S.headdim", "proved", "N_H d_H >= rk_in + rk_out"),
      (28, "S.width", "proved", "coordinates share the heads")]),
]  # fmt: skip


@pytest.mark.parametrize(("sizes", "limit", "exact"), ANSWERS)
def test_each_number_says_where_it_is_from(sizes, limit, exact):
    """Necessary and sufficient, the claim, the basis and the reason; what is open between them."""
    counts = count_heads(**sizes)
    for actual, expected in ((counts.limit, limit), (counts.exact, exact)):
        assert [
            tuple(count.as_dict().values()) for count in (actual.necessary, actual.sufficient)
        ] == (expected)
        (least, claim, _, reason), (most, other, _, enough) = expected
        if least == most:
            assert actual.difference == ""
        elif actual.bounded is None:
            assert actual.difference == (
                f"{least} heads are shown to be necessary ({claim}: {reason}) and {most} to "
                f"suffice ({other}: {enough}); whether fewer than {most} do for every kernel "
                "is open"
            )


def test_what_is_open_says_what_bounded_maps_need():
    said = count_heads(3, patch_size=16, **RGB, head_dim=64).limit.difference
    for part in (
        "12 heads are shown to be necessary (S.headdim: N_H d_H >= max(rk_in, rk_out))",
        "20 if the value maps stay bounded (S.headdim: substitution of 8 heads)",
        "16 to suffice (S.width: coordinates share heads, maps grow like 1/ε)",
        "20 with bounded ones (S.headdim)",
    ):
        assert part in said
    assert said.endswith(OVERLAP)
    both = count_heads(3, layers=2)
    assert (both.limit.each, both.exact.each) == ((1, 2), (2, 2))  # S.kernel in one of them
    assert {count.claim for count in (both.limit.sufficient, both.exact.sufficient)} == {"S.depth"}


def test_the_regimes_are_said():
    """They are part of every answer: which layers and images the numbers are for."""
    regime = count_heads(3).regime
    assert sorted(regime) == ["exact", "limit"]
    assert "(S.content)" in regime["exact"]


@pytest.mark.parametrize(
    ("sizes", "limit", "bounded", "enough"),
    [
        (
            {"kernel_size": (2,), "in_channels": 2, "out_channels": 2, "head_dim": 1},
            (2, 4),
            4,
            None,
        ),
        ({"kernel_size": 3, **RGB, "head_dim": 1}, (9, 27), None, None),
        ({"kernel_size": 3, "patch_size": 16, **RGB, "head_dim": 64}, (12, 16), 20, 20),
        ({"kernel_size": 5, "patch_size": 16, **RGB, "head_dim": 64}, (12, 19), 20, 24),
        ({"kernel_size": 3, "patch_size": 16, **RGB, "head_dim": 10**6}, (9, 9), None, None),
    ],
    ids=str,
)
def test_bounded_value_maps(sizes, limit, bounded, enough):
    actual = count_heads(**sizes).limit
    assert (actual.necessary, actual.sufficient) == limit
    assert (actual.bounded, actual.bounded_sufficient) == (bounded, enough)
    document = actual.as_dict()["bounded"]
    assert (None if document is None else document["count"]) == bounded


def test_a_balanced_kernel_takes_four_heads_of_dimension_one():
    """W = (I, -I): with t_h > 0 the sum of t_h V_h U_h is zero, which three such heads cannot be.

    Its maps are columns V = [v_h] and rows U = [u_h], both of rank two; three columns and rows have
    a product of rank one at least (Sylvester), four can have zero.
    """
    blocks = [np.eye(2, dtype=int), -np.eye(2, dtype=int)]
    assert not sum(blocks).any()
    ranks = [int(np.linalg.matrix_rank(np.concatenate(blocks, axis))) for axis in (1, 0)]
    assert tuple(ranks) == balanced_ranks((2,), (1,), (1,), 2, 2) == (2, 2)


@pytest.mark.parametrize(
    ("kernel_size", "patch", "dilation", "channels"),
    [
        ((2,), (1,), (1,), (2, 2)),
        ((3, 5), (3, 1), (1, 2), (1, 5)),
        ((2, 3), (2, 3), (4, 3), (7, 1)),
    ],
    ids=str,
)
def test_balanced_ranks_are_reached_by_kernels_whose_maps_add_up_to_zero(
    kernel_size, patch, dilation, channels
):
    kernel = np.random.default_rng(0).integers(1, 99, (*kernel_size, *channels)).astype(np.float32)
    own = [axis for axis, size in enumerate(patch) if dilation[axis] % size == 0]
    last = tuple(-1 if axis in own else slice(None) for axis in range(len(kernel_size)))
    kernel[last] -= kernel.sum(axis=tuple(own))
    blocks = np.asarray(
        ca.conv_to_attention(kernel, patch_size=patch, dilation=dilation, form="limit").output
    )
    assert not blocks.sum(axis=0).any()
    ranks = [int(np.linalg.matrix_rank(np.concatenate(list(blocks), axis))) for axis in (1, 0)]
    least = balanced_ranks(kernel_size, patch, dilation, *channels)
    assert all(a >= b > 0 for a, b in zip(ranks, least, strict=True))


@pytest.mark.parametrize(
    ("sizes", "channels", "expected"),
    [
        # P divides no dilation: nothing is free
        (((3, 3), (16, 16), (1, 1)), (3, 3), (0, 0)),
        # the first axis has 2 - 1 free taps, the second 1 + 2 // ⌈2/1⌉ = 2 taps apart, of 2 pixels
        (((2, 3), (1, 2), (1, 1)), (4, 1), (2 * 2, 2)),
        # 3 - 1 taps, and 1 + 4 // ⌈5/2⌉ = 2 apart; 5 pixels
        (((5, 3), (5, 1), (2, 1)), (1, 7), (5, 5 * 4)),
        # 3 · 2 - 1 taps on both axes together
        (((3, 2), (2, 1), (4, 3)), (9, 1), (2 * 5, 2)),
    ],
)
def test_balanced_ranks_by_hand(sizes, channels, expected):
    """pixels · min(channels, others · free taps · taps apart)."""
    assert balanced_ranks(*sizes, *channels) == expected


@pytest.mark.parametrize("kernel_size", [(3, 3), (4, 5), (3,), (1, 2)])
@pytest.mark.parametrize("patch", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2, 3])
@pytest.mark.parametrize("channels", [(1, 1), (2, 3)])
def test_bounds_are_in_order(kernel_size, patch, dilation, channels):
    named = dict(zip(("in_channels", "out_channels"), channels, strict=True))
    offsets = 1
    for size in kernel_size:
        offsets *= len(axis_token_offsets(size, patch, dilation))
    bounds = {}
    for attention in ("per_kernel", "shared"):
        for head_dim in (None, 1, 3, 100):
            counts = count_heads(
                kernel_size,
                patch_size=patch,
                dilation=dilation,
                head_dim=head_dim,
                attention=attention,
                **named,
            )
            assert counts.offsets == offsets
            for part in (counts.limit, counts.exact):
                assert 1 <= part.necessary <= part.sufficient
                assert bool(part.difference) == (part.necessary != part.sufficient)
            bounded = counts.limit.bounded
            assert bounded is None or counts.limit.necessary < bounded <= counts.exact.necessary
            assert bounded is None or head_dim is not None
            enough = counts.limit.bounded_sufficient or counts.limit.sufficient
            assert counts.limit.sufficient <= enough <= counts.exact.sufficient
            assert bounded is None or bounded <= enough
            assert counts.limit.necessary <= counts.exact.necessary
            assert counts.limit.sufficient <= counts.exact.sufficient
            bounds[attention, head_dim] = numbers(counts)
        assert bounds[attention, 100] == bounds[attention, None]
        assert all(a >= b for a, b in zip(bounds[attention, 1], bounds[attention, 3], strict=True))
    assert bounds["shared", None] == (offsets, offsets, offsets + 1, offsets + 1)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("head_dim", [None, 2, 5])
@pytest.mark.parametrize("dilation", [1, 2])
def test_layers_of_the_library_have_the_shared_number(exact, head_dim, dilation):
    """One-hot attention serves every kernel; the maps are split by coordinates."""
    options = {"patch_size": (2, 1), "dilation": dilation, "head_dim": head_dim}
    convert = partial(ca.conv_to_attention, form="exact" if exact else "limit", **options)
    layer = jax.eval_shape(convert, np.ones((3, 4, 2, 3), np.float32))
    channels = {"in_channels": 2, "out_channels": 3}
    counts = count_heads((3, 4), **options, **channels, attention="shared")
    if not exact:
        assert layer.heads == (counts.limit.bounded_sufficient or counts.limit.sufficient)
    elif head_dim is None:
        assert layer.heads == counts.exact.sufficient
    else:  # S.width has fewer
        split = split_heads((3, 4), (2, 1), (dilation,) * 2, 2, 3, head_dim)
        assert counts.exact.sufficient <= layer.heads == split - (-4 // head_dim)


@pytest.mark.parametrize("patch", [(3, 2), (4, 4), (1, 6)])
@pytest.mark.parametrize("dilation", [(1, 1), (2, 3), (5, 6)])
def test_widths_are_the_pixels_that_a_map_uses(patch, dilation):
    """Counted one by one; and split into heads one by one."""
    axes = []
    for size, pixels, spread in zip((5, 4), patch, dilation, strict=True):
        read: dict[int, set[int]] = {}
        for pixel in range(pixels):
            for tap in range(-((size - 1) // 2), size // 2 + 1):
                offset, other = divmod(pixel + tap * spread, pixels)
                read.setdefault(offset, set()).add(other)
        axes.append([len(read[offset]) for offset in sorted(read)])
    expected = [2 * a * b for a in axes[0] for b in axes[1]]
    sizes = ((5, 4), patch, dilation, 2, 3)
    assert map_widths(*sizes) == expected
    for width in (1, 5, 64):
        assert split_heads(*sizes, width) == sum(-(-one // width) for one in expected)


def test_matricisation_ranks_are_reached():
    for shape, patch in (
        ((3, 3, 5, 1), 1),
        ((3, 3, 2, 2), 2),
        ((5, 3, 1, 4), 1),
        ((5, 5, 9, 1), 2),
    ):
        kernel = np.random.default_rng(0).integers(1, 99, shape).astype(np.float32)
        layer = ca.conv_to_attention(kernel, patch_size=patch, form="limit")
        blocks = np.asarray(layer.output)
        ranks = [int(np.linalg.matrix_rank(np.concatenate(list(blocks), axis))) for axis in (1, 0)]
        least = matricisation_ranks(shape[:2], (patch,) * 2, (1, 1), *shape[2:])
        assert all(a >= b for a, b in zip(ranks, least, strict=True))
        assert max(least) > patch**2 or patch == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel_size": 0}, "kernel_size=0, but expected an integer ≥ 1"),
        ({"kernel_size": (3, 3, 3)}, "one or two integers"),
        ({"kernel_size": ()}, "one or two integers"),
        ({"kernel_size": "33"}, "kernel_size='33', but expected an integer"),
        ({"kernel_size": 2.0}, "kernel_size=2.0"),
        ({"kernel_size": True}, "kernel_size=True"),
        ({"kernel_size": 3, "patch_size": (1, 2, 3)}, "or 2 of them, one for each axis"),
        ({"kernel_size": (3,), "dilation": (1, 1)}, "dilation=.* or 1 of them"),
        ({"kernel_size": 3, "patch_size": 0}, "patch_size=0"),
        ({"kernel_size": 3, "dilation": -1}, "dilation=-1"),
        ({"kernel_size": 3, "in_channels": 0}, "in_channels=0"),
        ({"kernel_size": 3, "out_channels": 1.5}, "out_channels=1.5"),
        ({"kernel_size": 3, "head_dim": 0}, "head_dim=0"),
        ({"kernel_size": 4097}, "kernel_size=4097, but expected at most 4096"),
        ({"kernel_size": 3, "patch_size": 10**9}, "patch_size=1000000000, but .* at most 4096"),
        ({"kernel_size": 3, "dilation": 5000}, "dilation=5000, but .* at most 4096"),
        ({"kernel_size": 3, "in_channels": 10**6 + 1}, "in_channels=1000001, but .* 1000000"),
        ({"kernel_size": 999, "patch_size": 100, "dilation": 99}, "blocks, but .* at most 2500"),
        ({"kernel_size": 67, "patch_size": 2, "in_channels": 130}, "more than 250000 numbers"),
        ({"kernel_size": 3, "attention": "one"}, "attention='one', but expected 'per_kernel'"),
    ],
    ids=str,
)  # fmt: skip
def test_refusals(unchecked, arguments, message):
    with pytest.raises(ValueError, match=message):
        count_heads(**arguments)


@pytest.mark.parametrize(
    "sizes",
    [
        {"kernel_size": 4096, "in_channels": 10**6, "out_channels": 10**6, "head_dim": 3},
        {"kernel_size": 4096, "patch_size": 2, "head_dim": 10**30},
        {"kernel_size": 4096, "patch_size": 4096, "dilation": 2048, **RGB, "head_dim": 64},
    ],
    ids=str,
)
def test_large_sizes_have_closed_forms(sizes, monkeypatch):
    """Nothing of the size of a kernel is drawn, and no matrix made."""
    from convattn.bounds import generic_rank

    monkeypatch.setattr(generic_rank.FixedKernel, "pair", None)
    counts = count_heads(**sizes)
    assert counts.limit.necessary <= counts.limit.sufficient


def test_it_loads_neither_jax_nor_numpy():
    code = (
        "import sys; from convattn import count_heads; "
        "count_heads(9, patch_size=2, in_channels=2); "
        "print({'jax', 'numpy'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 3), st.integers(1, 4), st.booleans())
def test_two_layers(rows, columns, patch, channels, shared):
    """Their product is what one layer needs, and no fewer in all have such a product."""
    sizes = {"patch_size": patch, "in_channels": channels, "out_channels": channels}
    attention = "shared" if shared else "per_kernel"
    one = count_heads((rows, columns), **sizes, attention=attention)
    two = count_heads((rows, columns), **sizes, attention=attention, layers=2)
    for regime, more in (("limit", 0), ("exact", 1)):
        actual = getattr(two, regime)
        needed = (one.offsets if shared else one.rank) + more
        best = min(a + b for a in range(1, 60) for b in range(1, 60) if a * b >= needed)
        assert actual.necessary == best <= actual.sufficient == sum(actual.each)
        assert actual.each[0] * actual.each[1] >= needed
        assert bool(actual.difference) == (actual.necessary < actual.sufficient)


def test_two_layers_of_full_rank():
    counts = count_heads(5, in_channels=5, out_channels=5, layers=2)
    assert (counts.limit.each, counts.exact.each) == ((5, 5), (5, 6))
    assert (counts.limit.necessary, counts.exact.necessary) == (10, 11)
    assert counts.as_dict()["exact"]["each"] == (5, 6)


@pytest.mark.parametrize(
    ("sizes", "options"),
    [((3,), {}), (3, {"head_dim": 4}), (3, {"patch_size": 2, "dilation": 2}),
     (3, {"patch_size": (1, 2), "dilation": (3, 1)}), (3, {"layers": 3})],
)  # fmt: skip
def test_two_layers_that_are_refused(sizes, options):
    with pytest.raises(ValueError, match="layers="):
        count_heads(sizes, **({"layers": 2} | options))


def test_the_counts_print_as_a_table():
    """A line for each number, with its claim; as `convattn heads` shows them."""
    counts = count_heads(3, patch_size=16, in_channels=3, out_channels=3, head_dim=64)
    lines = str(counts).splitlines()
    assert [line.split("  ")[0] for line in lines] == [words for words, _ in counts.rows()]
    assert [int(line[42:].split()[0]) for line in lines] == [12, 20, 16, 20, 24, 28]
    assert lines[-1].endswith("28  S.width    proved   coordinates share the heads")
