"""S.padding: what the heads see of the keys of a bare grid beside one token of zero value."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from proofs.coq.computed_values import as_fraction, binary, rational

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_theorem1 import bias_construction
from convattn.constructions.register import limit_register
from convattn.encodings.layer import AttentionLayer
from convattn.encodings.quadratic import QuadraticEncoding
from convattn.fast.dense import softmax_weights
from convattn.operators.shifts import TokenGrid

GRIDS = [((2, 3), (1, 1)), ((3, 1), (1, 0)), ((1, 2), (0, 2))]
UNIT = 2.0**-53


def over_heads(entry: str, side, reach) -> str:
    """A sequence of it for every offset (i, j) and query (y, x)."""
    counts = (side[1], side[0], 2 * reach[1] + 1, 2 * reach[0] + 1)
    for name, count in zip("xyji", counts, strict=True):
        entry = f"[seq {entry} | {name} <- iota 0 {count}]"
    return entry


def with_register(encoding) -> AttentionLayer:
    return AttentionLayer(encoding, None, None, register=limit_register(encoding))


def over_keys(entry: str, side) -> str:
    return f"[seq [seq {entry} | l <- iota 0 {side[1]}] | k <- iota 0 {side[0]}]"


def rounding(scores: np.ndarray, keys: int) -> float:
    """How far a weight may be off.

    A score is a small whole number times a logarithm within 4 units in the last place: 10u of it,
    and twice that of a difference. exp adds 8u, the sum over the keys and the zero token and the
    quotient (N + 3)u; both sides of the quotient bear the error of exp. Weights are at most one.
    """
    return (2 * (8 + 20 * float(np.abs(scores).max())) + keys + 3) * UNIT


@pytest.mark.parametrize("number", [Fraction(4), Fraction(5, 2)])
@pytest.mark.parametrize(("side", "reach"), GRIDS)
def test_biased_heads(coq_value, side, reach, number):
    """The biases M at the target and M/2 at the zero token, exp(M/2) = e."""
    grid = TokenGrid(side, ((0, 0), (0, 0)))
    geometry = ConvolutionGeometry.of([2 * m + 1 for m in reach])
    logit = 2 * float(np.log(float(number)))
    encoding, _ = bias_construction(jnp.zeros((geometry.heads, 1, 1)), geometry, logit)
    places = f"{side[0]} {side[1]} {reach[0]} {reach[1]} {rational(number)} y x i j"
    row = f"fraction (biased_row {places} (biased_weight {places} k l))"
    printed = np.array(coq_value(over_heads(over_keys(row, side), side, reach)))
    values = [float(as_fraction(value)) for value in printed.reshape(-1, 3).tolist()]
    expected = np.array(values).reshape(-1, grid.number_of_keys, grid.number_of_keys)
    scores = np.asarray(encoding.positional_scores(grid))
    bound = rounding(scores, grid.number_of_keys)
    weights = softmax_weights(with_register(encoding), grid, None)
    assert_within(weights, expected, bound)
    with pytest.raises(AssertionError):
        assert_within(weights, expected[::-1], bound)


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize(("side", "reach"), GRIDS)
def test_quadratic_heads(coq_value, side, reach, number):
    """The scores -α·squared distance, and -α/2 at the zero token, exp(α/2) = b."""
    grid = TokenGrid(side, ((0, 0), (0, 0)))
    offsets = ConvolutionGeometry.of([2 * m + 1 for m in reach]).offsets
    alpha = 2 * np.log(float(number))
    encoding = QuadraticEncoding(jnp.full(len(offsets), alpha), jnp.asarray(offsets, jnp.float64))
    assert_equal(limit_register(encoding).scores, np.full(len(offsets), -alpha / 2))
    places = f"{side[0]} {side[1]} {reach[0]} {reach[1]} {binary(number)} y x i j"
    row = over_keys(f"squared_weight {places} k l", side)
    printed = coq_value(over_heads(f"({row}, squared_total {places})", side, reach))
    rows = [pair for block in printed for line in block for cells in line for pair in cells]
    values = [weight / total for row, total in rows for line in row for weight in line]
    expected = np.array(values).reshape(-1, grid.number_of_keys, grid.number_of_keys)
    scores = np.asarray(encoding.positional_scores(grid))
    bound = rounding(scores, grid.number_of_keys)
    weights = softmax_weights(with_register(encoding), grid, None)
    assert_within(weights, expected, bound)
    with pytest.raises(AssertionError):
        assert_within(weights, expected[::-1], bound)
