"""Token offsets and taps for any kernel size and dilation, and C20's Lemma 1."""

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from proofs.coq.computed_values import listed, whole

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_output_map import token_maps
from convattn.constructions.li_theorem1 import bias_construction
from convattn.operators.shifts import TokenGrid, axis_token_offsets
from convattn_ledger.certificates.equality import equality_body

PATCHES = [1, 2, 3, 5]
KERNELS = range(1, 7)
DILATIONS = [1, 2, 3, 5]


@pytest.mark.parametrize("patch", PATCHES)
def test_offsets_of_an_axis(coq_value, patch):
    """Odd and even kernels, with gaps: the same offsets, which Coq lists in another order."""
    entry = f"[seq (z < 0, absz z) | z <- axis_offsets {patch} K d]"
    sizes, dilations = (listed(f"{n}%N" for n in numbers) for numbers in (KERNELS, DILATIONS))
    printed = coq_value(f"[seq [seq {entry} | d <- {dilations}] | K <- {sizes}]")
    for kernel, row in zip(KERNELS, printed, strict=True):
        for dilation, offsets in zip(DILATIONS, row, strict=True):
            actual = tuple(sorted(-n if negative else n for negative, n in offsets))
            assert actual == axis_token_offsets(kernel, patch, dilation)
    assert actual != axis_token_offsets(kernel, patch, dilation + 1)


GEOMETRIES = [  # kernel, patch, dilation
    ((3, 5), (2, 1), (1, 2)),
    ((4, 3), (2, 3), (1, 2)),
    ((2, 6), (3, 2), (3, 1)),
    ((1, 5), (1, 4), (2, 3)),
]


def printed_taps(coq_value, kernel, patch, dilation, offsets) -> np.ndarray:
    """[offset, output pixel, input pixel]: the tap between the two, -1 where there is none."""
    entry = f"joining_place {patch} {kernel} {dilation} z s t"
    entry = f"[seq [seq {entry} | s <- iota 0 {patch}] | t <- iota 0 {patch}]"
    printed = np.array(coq_value(f"[seq {entry} | z <- {listed(map(whole, offsets))}]"))
    return np.where(printed == kernel, -1, printed)


@pytest.mark.parametrize(("kernel", "patch", "dilation"), GEOMETRIES)
def test_taps_between_pixels(coq_value, kernel, patch, dilation):
    """The geometry's table and the certificate's pattern; every entry of every map M_δ."""
    geometry = ConvolutionGeometry.of(kernel, patch, 1, dilation)
    body = equality_body("given", kernel, patch, dilation=dilation)
    axes = zip(kernel, patch, dilation, geometry.axis_offsets, strict=True)
    tables = [printed_taps(coq_value, *axis) for axis in axes]
    for table, index, pattern in zip(tables, geometry.tap_index, body["pattern"], strict=True):
        assert_equal(index, table)
        assert_equal(np.array(pattern), table)
    weights = np.arange(1, 1 + kernel[0] * kernel[1] * 6).reshape(*kernel, 2, 3)
    framed = np.pad(weights, [(0, 1), (0, 1), (0, 0), (0, 0)])  # -1 reads the zero
    down, right = tables
    down = down[:, None, :, None, :, None]
    maps = framed[down, right[None, :, None, :, None, :]]  # [δ, ε, t, t, s, s, in, out]
    rows = patch[0] * patch[1]
    maps = maps.reshape(geometry.heads, rows, rows, 2, 3).transpose(0, 2, 3, 1, 4)
    assert_equal(token_maps(jnp.asarray(weights), geometry), maps.reshape(-1, rows * 2, rows * 3))
    with pytest.raises(AssertionError):
        assert_equal(geometry.tap_index[1], tables[1][::-1])


@pytest.mark.parametrize("dilation", [(1, 1), (2, 1), (1, 3)])
@pytest.mark.parametrize(("side", "reach"), [((2, 3), (1, 2)), ((4, 1), (2, 0))])
def test_dilated_keys(coq_value, side, reach, dilation):
    """Each head of a dilated convolution looks at query + D·offset, in a ring of D·r."""
    geometry = ConvolutionGeometry.of([2 * r + 1 for r in reach], 1, 1, dilation)
    ring = tuple((d * r, d * r) for d, r in zip(dilation, reach, strict=True))
    assert geometry.ring == ring
    axes = []
    for d, r, n in zip(dilation, reach, side, strict=True):
        entry = f"[seq (y + {d} * i)%N | i <- iota 0 {2 * r + 1}]"
        axes.append(np.array(coq_value(f"[seq {entry} | y <- iota 0 {n}]")))
    down, right = axes
    grid = TokenGrid(side, ring)
    keys = down[:, None, :, None] * grid.keys[1] + right[None, :, None, :]
    keys = keys.reshape(side[0] * side[1], -1)
    encoding = bias_construction(jnp.zeros((geometry.heads, 1, 1)), geometry, 1.0)[0]
    assert_equal(
        encoding.positional_scores(grid), np.eye(grid.number_of_keys)[keys].transpose(1, 0, 2)
    )


def test_a_bijection_permutes_the_maps(coq_value):
    """C20.lemma1: the head h, which looks at f(h), has the map W_f(h)."""
    kernel, order = (3, 5), [7, 0, 14, 3, 9, 1, 12, 5, 11, 2, 8, 13, 4, 10, 6]
    places = [divmod(index, kernel[1]) for index in order]
    pairs = listed(f"({i}, {j})%N" for i, j in places)
    taps = "(fun i j => if joining_tap 1 1 1 2 1 2 i j (0, 0)%N (0, 0)%N is Some uv "
    taps += f"then (uv.1 * {kernel[1]} + uv.2)%N else 99%N)"
    printed = coq_value(f"[seq {taps} (f : nat * nat).1 f.2 | f <- {pairs}]")
    offsets = ConvolutionGeometry.of(kernel).offsets
    looks = [(i - kernel[0] // 2, j - kernel[1] // 2) for i, j in places]
    assert [offsets.index(shift) for shift in looks] == printed
    assert [offsets.index((-i, -j)) for i, j in looks] != printed
