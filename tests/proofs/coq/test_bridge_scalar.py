"""S.dp1: weights, normalisers and Lagrange coefficients, as Coq and the library have them."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_within
from proofs.coq.computed_values import binary

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.scalar import (
    lagrange_coefficients,
    scalar_bases,
    scalar_construction,
)
from convattn.operators.shifts import TokenGrid
from convattn_check.attention import read_attention
from convattn_ledger.certificates.equality import equality_body

REACHES = [(0, 1), (1, 1), (1, 2), (2, 1)]
SIDES = (2, 3)
UNIT = float(jnp.finfo(jnp.float64).eps) / 2


def sides(reach: tuple[int, int]) -> tuple[int, int]:
    """How many offsets an axis has, which is the kernel's size where P = 1."""
    return 2 * reach[0] + 1, 2 * reach[1] + 1


def base(reach: tuple[int, int]) -> str:
    """The numbers 2, …, T + 1 of the offsets, row by row."""
    return f"(fun i j => Z.of_nat (i * {sides(reach)[1]} + j + 2))"


def printed_lagrange(coq_value, reach, exact) -> list[list[Fraction]]:
    """Row h, column δ; h from 0 to T."""
    nodes = f"base_nodes {reach[0]} {reach[1]} {base(reach)} {binary(int(exact))}"
    columns = coq_value(
        f"let nodes := {nodes} in "
        "[seq (denominator nodes z, numerators nodes z) | z <- behead nodes]"
    )
    scaled = [[Fraction(n, scale) for n in numerators] for scale, numerators in columns]
    return [list(row) for row in zip(*scaled, strict=True)]


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("reach", REACHES)
def test_lagrange_coefficients(coq_value, reach, exact):
    rows, columns = sides(reach)
    actual = printed_lagrange(coq_value, reach, exact)
    expected = [list(row) for row in lagrange_coefficients(rows * columns, exact)]
    if not exact:  # no constant coefficient
        assert actual.pop(0) == [0] * (rows * columns)
    assert actual == expected
    actual[1][2] = -actual[1][2]
    assert actual != expected


@pytest.mark.parametrize("reach", REACHES)
def test_certificates_hold_the_same_polynomials(coq_value, reach):
    """L_δ = master/((z - t_δ)·denominator_δ): here the quotient is multiplied out again."""
    body = equality_body("scalar", sides(reach))
    bases = [int(value) for value in body["attention"]["bases"]]
    assert bases == list(scalar_bases(len(bases)))
    printed = printed_lagrange(coq_value, reach, True)
    for column, (value, scale) in enumerate(
        zip(bases, body["values"]["denominators"], strict=True)
    ):
        polynomial = [row[column] * int(scale) for row in printed]
        raised, lowered = [0, *polynomial], [*(-value * c for c in polynomial), 0]
        product = [a + b for a, b in zip(raised, lowered, strict=True)]
        assert product == [int(c) for c in body["values"]["master"]]


def printed_weights(coq_value, reach, head, outside) -> np.ndarray:
    """[query, key]: what each key weighs before normalisation, in a ring as wide as the reach."""
    (m, n), (rows, columns) = reach, SIDES
    entry = f"key_power {m} {n} {base(reach)} {binary(outside)} {head} y x k l"
    for name, side in [("l", columns + 2 * n), ("k", rows + 2 * m), ("x", columns), ("y", rows)]:
        entry = f"[seq {entry} | {name} <- iota 0 {side}]"
    printed = coq_value(entry)
    return np.array(printed, dtype=object).reshape(rows * columns, -1)


def library(reach, exact):
    """The encoding, and the grid in its ring."""
    geometry = ConvolutionGeometry.of(sides(reach))
    maps = jnp.ones((geometry.heads, 1, 1))
    encoding, _ = scalar_construction(maps, geometry, exact=exact)
    return encoding, TokenGrid(SIDES, tuple((m, m) for m in reach))


def relative(power: float) -> float:
    """How far exp(h·log t) may be from t^h.

    log, exp and their like are taken to be within 4 units in the last place. The error 8u of log t,
    and the rounding of the product with h, are relative ones in the exponent h·log t ≥ 0, so that
    exp has 9u times that, to first order, and 8u of its own; 2 covers the higher orders.
    """
    return 2 * UNIT * (8 + 9 * np.log(max(power, 1.0)))


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("reach", REACHES[:2])
def test_weights_and_normalisers(coq_value, reach, exact):
    encoding, grid = library(reach, exact)
    scores = np.asarray(encoding.positional_scores(grid))
    first, outside = (0, 1) if exact else (1, 0)
    gains = np.asarray(encoding.head_gains(grid.number_of_keys))
    assert len(gains) == len(scores) == encoding.heads
    for head, (row, gain) in enumerate(zip(scores, gains, strict=True)):
        power = head + first
        weights = printed_weights(coq_value, reach, power, outside)
        spread = np.array([[relative(w) for w in line] for line in weights]) * weights
        vanishing = 0.0 if exact else np.exp(-float(encoding.logit))
        assert_within(np.exp(row), weights.astype(float), spread.astype(float) + vanishing)
        terms = f"{reach[0]} {reach[1]} {base(reach)}"
        printed = coq_value(
            f"weight_sum {terms} {grid.number_of_keys} {power}"
            if exact
            else f"power_sum {terms} {power} {binary(0)}"
        )
        assert printed == sum(weights[0])
        rounding = relative(printed) + (len(encoding.offsets) + 2) * UNIT
        assert_within(gain, float(printed), printed * rounding)


@pytest.mark.parametrize("reach", REACHES)
def test_certified_rows(coq_value, reach):
    """What a key weighs is c_δ + u1, or u1 elsewhere, and the normaliser is Σ c + u1·N."""
    body = equality_body("scalar", sides(reach))
    offsets = [tuple(offset) for offset in body["offsets"]]
    grid = TokenGrid(SIDES, tuple((m, m) for m in reach))
    assert body["attention"]["exponents"] == list(range(len(offsets) + 1))
    rows = read_attention(body["attention"], offsets, body["heads"]).rows
    for power, row in enumerate(rows[:4]):
        u1 = row.pop(len(offsets) + 1)
        expected = np.full((6, grid.number_of_keys), u1)
        places = [tuple(key) for key in grid.key_positions.tolist()]
        for query, position in enumerate(grid.query_positions.tolist()):
            for index, offset in enumerate(offsets):
                key = places.index(tuple(np.add(position, offset).tolist()))
                expected[query, key] += row.get(index, 0)
        weights = printed_weights(coq_value, reach, power, 1)
        assert (weights == expected).all()
        assert sum(weights[-1]) == sum(row.values()) + u1 * grid.number_of_keys
        expected[-1, -1] += 1
        assert not (weights == expected).all()
