"""What is proved is what is run: Coq's values of the constructions, and the library's own.

Values of Coq are computed by `Eval vm_compute` from the definitions in which the theorems are
stated; `bridge/values.v` proves of those that do not reduce that they have the values printed here.
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from proofs.coq.computed_values import as_fraction, rational, read_value

from convattn.constructions.finite import finite_construction
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_output_map import token_maps
from convattn.constructions.li_theorem1 import bias_construction
from convattn.operators.shifts import TokenGrid
from convattn_ledger.certificates.equality import equality_body

SIZES = [  # kernel, patch: radii, reaches and sides that differ between the axes
    ((3, 3), (1, 1)),
    ((3, 5), (1, 1)),
    ((3, 3), (2, 2)),
    ((5, 3), (2, 3)),
    ((7, 5), (2, 4)),
    ((1, 9), (1, 2)),
]


def reaches(kernel: tuple[int, int], patch: tuple[int, int]) -> tuple[int, int]:
    """m on both axes, ⌈(K - 1)/(2P)⌉."""
    return tuple(-(-(k // 2) // p) for k, p in zip(kernel, patch, strict=True))


@pytest.mark.parametrize(("kernel", "patch"), SIZES)
def test_blocks_of_the_output_map(coq_value, kernel, patch):
    """Every entry of every block of W^O, for two channels in and three out."""
    (r1, r2), (m, n) = (k // 2 for k in kernel), reaches(kernel, patch)
    rows = f"{patch[0]} {patch[1]} {m} {n} {r1} {r2}"
    assert coq_value(f"(patch_reach {patch[0]} {r1}, patch_reach {patch[1]} {r2})") == (m, n)
    printed = coq_value(
        f"[seq [seq block_taps {rows} i j | j <- iota 0 {2 * n + 1}] | i <- iota 0 {2 * m + 1}]"
    )
    taps = np.array(printed).reshape((2 * m + 1) * (2 * n + 1), *2 * (patch[0] * patch[1],))
    weights = np.arange(1, 1 + kernel[0] * kernel[1] * 6).reshape(-1, 2, 3)
    numbered = np.concatenate([np.zeros((1, 2, 3), int), weights])
    expected = numbered[taps].transpose(0, 1, 3, 2, 4).reshape(len(taps), taps.shape[1] * 2, -1)
    maps = token_maps(
        jnp.asarray(weights.reshape(*kernel, 2, 3)), ConvolutionGeometry.of(kernel, patch)
    )
    assert_equal(maps, expected)


GRIDS = [((2, 3), (1, 2)), ((4, 1), (2, 0)), ((3, 3), (1, 1))]


def key_table(places: list[list[list[int]]], sides: tuple[int, int]) -> np.ndarray:
    """[query, offset]: the key's row-major index, or -1 where a place is the side itself."""
    down, right = (np.array(axis) for axis in places)
    index = down[:, None, :, None] * sides[1] + right[None, :, None, :]
    missing = (down == sides[0])[:, None, :, None] | (right == sides[1])[None, :, None, :]
    return np.where(missing, -1, index).reshape(len(down) * len(right), -1)


def library_grid(side: tuple[int, int], reach: tuple[int, int], ringed: bool) -> TokenGrid:
    return TokenGrid(side, tuple((m, m) if ringed else (0, 0) for m in reach))


def offset_geometry(reach: tuple[int, int]) -> ConvolutionGeometry:
    return ConvolutionGeometry.of(tuple(2 * m + 1 for m in reach))


def printed_keys(coq_value, side, reach, ringed) -> np.ndarray:
    """Where every head looks from every query, by `ringed_key` or by `axis_target`."""
    axes = []
    for n, m in zip(side, reach, strict=True):
        entry = "(y + i)%N" if ringed else f"place {n} {m} y i"
        axes.append(f"[seq [seq {entry} | i <- iota 0 {2 * m + 1}] | y <- iota 0 {n}]")
    keys = library_grid(side, reach, ringed).keys
    return key_table([coq_value(axis) for axis in axes], keys)


@pytest.mark.parametrize("ringed", [True, False])
@pytest.mark.parametrize(("side", "reach"), GRIDS)
def test_hard_attention(coq_value, side, reach, ringed):
    """The limit layer's rows are exactly one-hot at the targets; where there is none, uniform."""
    keys = printed_keys(coq_value, side, reach, ringed)
    grid = library_grid(side, reach, ringed)
    geometry = offset_geometry(reach)
    encoding, _ = bias_construction(jnp.zeros((geometry.heads, 1, 1)), geometry)
    weights = jax.nn.softmax(encoding.positional_scores(grid), axis=-1)
    expected = np.full((grid.number_of_keys + 1, grid.number_of_keys), 1 / grid.number_of_keys)
    expected[:-1] = np.eye(grid.number_of_keys)
    assert_equal(weights, expected[keys].transpose(1, 0, 2))


@pytest.mark.parametrize("ringed", [True, False])
@pytest.mark.parametrize(("side", "reach"), GRIDS)
@pytest.mark.parametrize("uniform_weight", [Fraction(1, 2), Fraction(1, 4), Fraction(3, 5)])
def test_finite_attention(coq_value, side, reach, ringed, uniform_weight):
    """Every weight of S.finite, with e = exp M = 1 + N(1/ε - 1).

    exp and log1p are taken to be within 4 units in the last place, so the library's e is off by a
    relative 8(1 + M)u: that of exp, and M times that of M. The sum over N keys adds N·u, the
    quotient u, and both sides of the quotient bear the error of e. Weights are at most one.
    """
    keys = printed_keys(coq_value, side, reach, ringed)
    grid, geometry = library_grid(side, reach, ringed), offset_geometry(reach)
    number = grid.number_of_keys
    height = 1 + number * (1 / uniform_weight - 1)
    terms = [
        f"fraction (finite_weight {number} {rational(height)} {at})" for at in ("true", "false")
    ]
    target, other = (float(as_fraction(value)) for value in map(coq_value, terms))
    expected = np.full((number + 1, number), other)
    np.fill_diagonal(expected, target)
    expected[-1] = 1 / number
    rows = np.concatenate([expected[keys], np.full((len(keys), 1, number), 1 / number)], axis=1)

    maps = jnp.ones((geometry.heads, 1, 1))
    encoding, _ = finite_construction(maps, geometry, float(uniform_weight))
    weights = jax.nn.softmax(encoding.positional_scores(grid), axis=-1)
    u = float(jnp.finfo(jnp.float64).eps) / 2
    bound = (2 * 8 * (1 + np.log(float(height))) + number + 4) * u
    assert_within(weights, rows.transpose(1, 0, 2), bound)


@pytest.mark.parametrize("uniform_weight", [Fraction(1, 2), Fraction(1, 4), Fraction(3, 5)])
@pytest.mark.parametrize("number", [6, 30])
def test_finite_maps(coq_value, number, uniform_weight):
    """What multiplies M_δ: 1/(1 - ε) and -ε/(1 - ε), whatever N is.

    The library rounds ε, 1 - ε, the quotient and the product. An error u of ε is one of ε/(1 - ε)
    times that in 1 - ε, at most 1.5 here, so that 8u covers all.
    """
    height = rational(1 + number * (1 / uniform_weight - 1))
    terms = [f"fraction (finite_scale {number} {height} {biased})" for biased in ("true", "false")]
    biased, uniform = (as_fraction(value) for value in map(coq_value, terms))
    assert (biased, uniform) == (1 / (1 - uniform_weight), -uniform_weight / (1 - uniform_weight))
    geometry = ConvolutionGeometry.of((3,))
    _, blocks = finite_construction(
        jnp.array([[[1.0]], [[2.0]], [[4.0]]]), geometry, float(uniform_weight)
    )
    expected = np.array([1, 2, 4, 7]) * np.array([float(biased)] * 3 + [float(uniform)])
    assert_within(blocks[:, 0, 0], expected, 8 * 2.0**-53 * np.abs(expected))


def test_the_certificate_holds_the_same_rationals(coq_value):
    body = equality_body("leaky", (3, 5), (2, 1))
    uniform_weight = Fraction(body["attention"]["leak"])
    terms = [
        f"fraction (finite_scale 12 {rational(1 + 12 * (1 / uniform_weight - 1))} {biased})"
        for biased in ("true", "false")
    ]
    biased, uniform = (as_fraction(value) for value in map(coq_value, terms))
    heads = body["heads"]
    for head, offset, value in body["values"]["entries"]:
        assert Fraction(value) == (uniform if head == heads - 1 else biased)
        assert head in (offset, heads - 1)
    assert len(body["values"]["entries"]) == 2 * (heads - 1)
    geometry = ConvolutionGeometry.of((3, 5), (2, 1))
    for axis, (size, patch) in enumerate([(3, 2), (5, 1)]):
        radius, reach = size // 2, -(-(size // 2) // patch)
        tap = f"if axis_tap {patch} {reach} {radius} i s t is Some u then u.+1 else 0%N"
        pixels = f"[seq [seq ({tap}) | s <- iota 0 {patch}] | t <- iota 0 {patch}]"
        term = f"[seq {pixels} | i <- iota 0 {2 * reach + 1}]"
        printed = coq_value(term)
        assert_equal(np.array(body["pattern"][axis]), np.array(printed) - 1)
        assert_equal(geometry.tap_index[axis], np.array(printed) - 1)


def test_values_that_differ_are_found(coq_value):
    """A shift with the wrong sign: the table of taps is another one."""
    assert coq_value("block_taps 2 2 1 1 1 1 0 2") != coq_value("block_taps 2 2 1 1 1 1 2 0")


def test_what_coq_refuses_is_an_error(coq_value):
    with pytest.raises(ValueError, match="no_such_name"):
        coq_value("no_such_name 3")
    assert coq_value("(1 + 1)%N") == 2


def test_reading_of_values():
    assert read_value("[:: [:: (true, 3%N)]; [::]]") == [[(True, 3)], []]
    with pytest.raises((ValueError, SyntaxError)):
        read_value("fun x => x")
