"""S.dp2's numbering and the quadratic encoding's scores, and where the limit looks."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from proofs.coq.computed_values import as_fraction, binary, listed, paired, rational, whole

from convattn.constructions.enumerated import enumerated_construction
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.encodings.quadratic import QuadraticEncoding, printed_features, printed_target
from convattn.operators.shifts import TokenGrid
from convattn_check.grid_matrices import read_grid
from convattn_check.polynomial import constant
from convattn_ledger.certificates.equality import equality_body

GEOMETRIES = [  # kernel, patch, dilation
    ((3, 3), (1, 1), (1, 1)),
    ((3, 5), (2, 2), (1, 1)),
    ((1, 4), (1, 3), (1, 2)),
    ((3, 3), (1, 1), (2, 1)),
]
SHIFTS = np.stack(np.meshgrid(range(-3, 4), range(-4, 3), indexing="ij"), -1).reshape(-1, 2)


def pairs(shifts, term=whole) -> str:
    return listed(paired(shift, term) for shift in np.asarray(shifts).tolist())


@pytest.mark.parametrize("alpha", [1, 4])
@pytest.mark.parametrize(("kernel", "patch", "dilation"), GEOMETRIES)
def test_enumerated_scores(coq_value, kernel, patch, dilation, alpha):
    """The number of every shift, and every score, to the last bit: they are small integers."""
    geometry = ConvolutionGeometry.of(kernel, patch, 1, dilation)
    offsets, shifts = pairs(geometry.offsets), pairs(SHIFTS)
    numbers, scores, listing = coq_value(
        f"let offsets := {offsets} in let shifts := {shifts} in "
        "([seq shift_number offsets s | s <- shifts], "
        f"[seq [seq numbered_score {binary(alpha)} offsets d s | s <- shifts] | d <- offsets], "
        "[seq shift_number offsets d | d <- offsets])"
    )
    encoding, _ = enumerated_construction(
        jnp.ones((geometry.heads, 1, 1)), geometry, jnp.asarray(float(alpha))
    )
    assert_equal(encoding.shift_codes(SHIFTS), np.array(numbers))
    assert_equal(encoding.shift_scores(SHIFTS, 1), np.array(scores))
    assert tuple(listing) == encoding.codes
    attention = equality_body("enumerated", kernel, patch, dilation=dilation)["attention"]
    assert attention["codes"] == listing
    spare = coq_value(f"shift_number {offsets} {paired((9, 9))}")
    assert attention["spare"] == encoding.spare == spare
    with pytest.raises(AssertionError):
        assert_equal(encoding.shift_codes(-SHIFTS), np.array(numbers))


CENTERS = [(0, 0), (1, -2), (-3, 1)]


@pytest.mark.parametrize("alpha", [1, 3])
def test_quadratic_scores(coq_value, alpha):
    """Eq. 9's features and vectors, the centred scores, and the constant between the two."""
    centers = np.array(CENTERS)
    encoding = QuadraticEncoding(jnp.full(3, float(alpha)), jnp.asarray(centers, float))
    scores = coq_value(
        f"[seq [seq centred_score {binary(alpha)} c s | s <- {pairs(SHIFTS, binary)}] "
        f"| c <- {pairs(centers, binary)}]"
    )
    assert_equal(encoding.shift_scores(SHIFTS, 1), np.array(scores))
    few = SHIFTS[::8]
    features = coq_value(
        f"[seq [seq fraction x | x <- quadratic_features s] | s <- {pairs(few, rational)}]"
    )
    targets = coq_value(
        f"[seq [seq fraction x | x <- quadratic_target {rational(alpha)} c] "
        f"| c <- {pairs(centers, rational)}]"
    )
    as_numbers = np.vectorize(lambda *printed: int(as_fraction(printed)), otypes=[int])
    rows, columns = (np.array(printed, dtype=int) for printed in (features, targets))
    assert_equal(printed_features(few), as_numbers(*np.moveaxis(rows, -1, 0)))
    vectors = as_numbers(*np.moveaxis(columns, -1, 0))
    assert_equal(printed_target(jnp.full(3, alpha), jnp.asarray(centers)), vectors)
    constant = alpha * (centers**2).sum(-1)
    printed_scores = vectors @ printed_features(SHIFTS).T
    assert_equal(printed_scores, np.array(scores) + constant[:, None])


def place_tables(coq_value, side, reach) -> list[tuple[np.ndarray, np.ndarray]]:
    """On each axis the clamped place [query, offset] and the square [query, offset, key]."""
    tables = []
    for n, m in zip(side, reach, strict=True):

        def over(entry: str, n: int = n, m: int = m) -> str:
            return f"[seq [seq {entry} | i <- iota 0 {2 * m + 1}] | y <- iota 0 {n}]"

        squares = f"[seq axis_square {m} y i k | k <- iota 0 {n}]"
        clamped, nearest, printed = coq_value(
            f"({over(f'clamped {n} {m} (y + i)')}, "
            f"{over(f'nearest {n} (y%:Z + (i%:Z - {m}%:Z))')}, {over(squares)})"
        )
        assert clamped == nearest
        tables.append((np.array(clamped), np.array(printed)))
    return tables


GRIDS = [((2, 3), (1, 2)), ((4, 1), (2, 0)), ((3, 5), (1, 1))]


@pytest.mark.parametrize("alpha", [1, 8])
@pytest.mark.parametrize(("side", "reach"), GRIDS)
def test_where_the_limit_looks_without_a_ring(coq_value, side, reach, alpha):
    """Scores are -α·squared distance to q + δ; their only maximum is at the clamped key."""
    (down, down_squares), (right, right_squares) = place_tables(coq_value, side, reach)
    squares = down_squares[:, None, :, None, :, None] + right_squares[None, :, None, :, None, :]
    queries = side[0] * side[1]
    expected = squares.reshape(queries, -1, queries).transpose(1, 0, 2)
    offsets = ConvolutionGeometry.of([2 * m + 1 for m in reach]).offsets
    encoding = QuadraticEncoding(
        jnp.full(len(offsets), float(alpha)), jnp.asarray(offsets, jnp.float64)
    )
    scores = np.asarray(encoding.positional_scores(TokenGrid(side, ((0, 0), (0, 0)))))
    assert_equal(scores, -alpha * expected)
    keys = (down[:, None, :, None] * side[1] + right[None, :, None, :]).reshape(queries, -1).T
    at_keys = np.take_along_axis(scores, keys[..., None], -1)
    assert_equal((scores == at_keys).sum(-1), np.ones_like(keys))
    assert_equal(scores.argmax(-1), keys)
    near = [index for index, d in enumerate(offsets) if np.all(np.abs(d) < side)]
    for border in ("nearest", "edge"):
        looks = certified_rows(border, side, [offsets[index] for index in near])
        assert_equal(looks, np.eye(queries, dtype=int)[keys[near]])
    with pytest.raises(AssertionError):
        assert_equal(scores.argmax(-1), keys[::-1])


def certified_rows(border: str, side, offsets) -> np.ndarray:
    """[offset, query, key]: the checker's matrices of this border."""
    shifts = [list(offset) for offset in offsets]
    body = {"border": border, "grid": list(side), "shifts": shifts, "stride": 1}
    shape, entries, _ = read_grid(body, "E")
    rows = np.zeros(shape, int)
    for place, weight in entries.items():
        assert weight == constant(Fraction(1))
        rows[place] = 1
    return rows
