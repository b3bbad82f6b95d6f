"""Majorants of scores: every term made positive, worked out by hand for small encodings.

Each example has two heads, three shifts and one more size of every other kind, so that no two axes
of an array are equally long. Most numbers are dyadic, so that the majorants are exact.
"""

import math
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal

from convattn.encodings.absolute import AbsoluteEncoding
from convattn.encodings.axial import AxialEncoding
from convattn.encodings.axial_rotary import AxialRotaryEncoding
from convattn.encodings.base import RelativePosition
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.enumerated import EnumeratedEncoding
from convattn.encodings.gaussian import GaussianEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.encodings.learned import LearnedEncoding
from convattn.encodings.mixture import MixtureEncoding
from convattn.encodings.polygon import PolygonEncoding
from convattn.encodings.quadratic import QuadraticEncoding
from convattn.encodings.quadratic_grid import QuadraticGridEncoding
from convattn.encodings.relative import RelativeEncoding
from convattn.encodings.rotary import RotaryEncoding
from convattn.encodings.scalar import ScalarEncoding
from convattn.operators.shifts import TokenGrid
from convattn_ledger.bounds.back_ends.scores import (
    exact_scores,
    far_shift,
    score_majorant,
    score_roundings,
)

LINE = np.array([[0], [1], [-3]])
PLANE = np.array([[0, 1], [2, -1], [-3, 0]])
RELATIVE = 1e-14  # fewer than 45 roundings of float64, of positive numbers alone


def layer_of(encoding, axes=1, content=None):
    """A layer without maps."""
    ones = (1,) * axes
    ring = ((0, 0),) * axes
    return AttentionLayer(encoding, None, None, None, content, ones, ones, ones, ring)


def table(function, shifts, heads=2):
    """`[heads, shifts]` of a function of both."""
    return [[function(head, shift.tolist()) for shift in shifts] for head in range(heads)]


ALPHA, CENTERS = [2.0, -0.5], [[1.0, -2.0], [0.0, 3.0]]
SHARP, PLACES = ([2.0, -0.5], [3.0]), ([1.0, -2.0], [5.0])
OFFSETS, VALUES = ((1,), (0,)), [[-2.0, 3.0], [0.5, -1.0]]
QUERY, ROWS = [[2.0, -3.0], [-1.0, 0.5]], [[[-1.0], [2.0], [4.0]], [[5.0], [-7.0], [1.0]]]
NEAR = np.array([[-1, 1], [0, 0], [1, -1]])
CODES = {0: 0, 1: 5, -3: 2}
VECTORS, KEYS = [[-1.0, 2.0], [3.0, 0.5], [1.0, -4.0]], [[1.0, -2.0, 3.0], [0.5, 1.0, -1.0]]
QUERIES = [-2.0, 1.0, 4.0]
TURNS = [[[0.25, -1.0], [2.0, 0.125], [0.5, 0.75]], [[-0.5, 3.0], [0.0, 1.0], [1.5, -0.25]]]
COSINE, SINE = [[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]], [[-4.0, 1.0, 2.0], [0.5, -0.5, 8.0]]


def entry(head, shift):
    return abs(VALUES[head][OFFSETS.index((shift[0],))]) if shift[0] in (0, 1) else 0.0


def relative_majorant(head, shift):
    pairs = product(range(3), range(2))
    return sum(abs(QUERIES[e] * KEYS[f][e] * VECTORS[shift[0] + 1][f]) for e, f in pairs)


def waves(head, turned):
    """Σ (|a| + |b|)(1 + x + x²/2) for rounded angles x = 2π·turned, pair by pair."""
    angles = (2 * math.pi * turn for turn in turned)
    sizes = (abs(a) + abs(b) for a, b in zip(COSINE[head], SINE[head], strict=True))
    return sum(n * (1 + x + x**2 / 2) for n, x in zip(sizes, angles, strict=True))


MAJORANTS = {  # encoding, shifts, and the majorant of a head at a shift, for seven keys
    "quadratic": (  # α|δ - Δ|², summed over the axes, one α a head
        QuadraticEncoding(jnp.array(ALPHA), jnp.array(CENTERS)),
        PLANE,
        lambda h, d: abs(ALPHA[h]) * sum((d[a] - CENTERS[h][a]) ** 2 for a in (0, 1)),
    ),
    "quadratic_grid": (  # or one a coordinate
        QuadraticGridEncoding(
            tuple(map(jnp.array, SHARP)), tuple(map(jnp.array, PLACES)), ((0, 0), (1, 0))
        ),
        PLANE,
        lambda h, d: abs(SHARP[0][h]) * (d[0] - PLACES[0][h]) ** 2 + 3 * (d[1] - 5) ** 2,
    ),
    "learned": (
        LearnedEncoding(jnp.array(QUERY), tuple(map(jnp.array, ROWS))),
        NEAR,
        lambda h, d: sum(abs(QUERY[h][a] * ROWS[a][d[a] + 1][0]) for a in (0, 1)),
    ),
    "relative": (
        RelativeEncoding(jnp.array([QUERIES]), jnp.array([KEYS]), jnp.array(VECTORS)),
        np.array([[-1], [1]]),
        relative_majorant,
    ),
    "enumerated": (  # α(n - n_h)², the spare number where a shift has none
        EnumeratedEncoding(
            jnp.array(ALPHA), jnp.array([1.0, 4.0]), ((0,), (1,)), codes=(0, 5), spare=2
        ),
        LINE,
        lambda h, d: abs(ALPHA[h]) * (CODES[d[0]] - (1.0, 4.0)[h]) ** 2,
    ),
    "bias": (BiasEncoding(jnp.array(VALUES), None, OFFSETS), LINE, entry),
    "leaky bias": (  # |b| log(1 + N(1/ε - 1))
        BiasEncoding(jnp.array(VALUES), jnp.array(0.125), OFFSETS),
        LINE,
        lambda h, d: math.log1p(7 * 7) * entry(h, d),
    ),
    "mixture": (  # log(1 + Nw)
        MixtureEncoding(jnp.array([[3.0, 0.5]]), OFFSETS),
        LINE,
        lambda h, d: math.log1p(7 * {1: 3.0, 0: 0.5}.get(d[0], 0.0)),
    ),
    "scalar": (
        ScalarEncoding(jnp.array([-2.0, 3.0]), jnp.array([0.5, -4.0]), None, OFFSETS),
        LINE,
        lambda h, d: (2, 3)[h] * {1: 0.5, 0: 4.0}.get(d[0], 0.0),
    ),
    "polygon": (
        PolygonEncoding(jnp.array([[2.0, -3.0]]), ((-1,), (0,), (1,), (2,))),
        np.array([[-1], [0], [1], [2], [9]]),
        lambda h, d: {-1: 2.0, 0: 3.0, 1: 2.0, 2: 3.0}.get(d[0], 0.0),
    ),
    "rotary": (  # x = 2π Σ|f||δ|
        RotaryEncoding(jnp.array(TURNS), jnp.array(COSINE), jnp.array(SINE)),
        PLANE,
        lambda h, d: waves(h, (np.abs(TURNS[h]) @ np.abs(d)).tolist()),
    ),
    "axial_rotary": (  # two pairs for rows, one for columns
        AxialRotaryEncoding(
            *(
                (part[:, :2], part[:, 2:])
                for part in (jnp.array(TURNS)[:, :, 0], jnp.array(COSINE), jnp.array(SINE))
            )
        ),
        PLANE,
        lambda h, d: waves(h, [abs(a[0] * d[j // 2]) for j, a in enumerate(TURNS[h])]),
    ),
}


@pytest.mark.parametrize("name", MAJORANTS)
@pytest.mark.quick(4)
def test_majorants_are_the_scores_with_every_term_made_positive(name):
    encoding, shifts, majorant = MAJORANTS[name]
    result = jax.jit(lambda encoding: encoding.shift_majorant(shifts, 7))(encoding)
    expected = table(majorant, shifts, heads=len(result))
    np.testing.assert_allclose(result, expected, rtol=RELATIVE, atol=1e-15)


@pytest.mark.slow
def test_gaussian_majorant_squares_sums_of_magnitudes():
    """½ Σ_i (Σ_j |R_ij||δ_j - Δ_j|)², and R|δ - Δ| times that row for a derivative."""
    centers, root = [[1.0, -2.0], [0.5, 3.0]], [[[1.0, -2.0], [0.0, 4.0]], [[3.0, 0.5], [1.0, 1.0]]]
    encoding = GaussianEncoding(jnp.array(centers), jnp.array(root))

    def far(head, shift):
        return [abs(s - c) for s, c in zip(shift, centers[head], strict=True)]

    def rows(head, shift):
        return [abs(a) * far(head, shift)[0] + abs(b) * far(head, shift)[1] for a, b in root[head]]

    result, vjp = jax.vjp(lambda encoding: encoding.shift_majorant(PLANE, 7), encoding)
    assert_equal(result, table(lambda h, d: sum(row**2 for row in rows(h, d)) / 2, PLANE))
    (back,) = vjp(jnp.ones(result.shape))
    for (h, i, j), slope in np.ndenumerate(back.root_precision):
        assert slope == sum(rows(h, d)[i] * far(h, d)[j] for d in PLANE.tolist())


@pytest.mark.slow
def test_the_majorant_of_a_leaky_bias_passes_back_the_magnitude_of_its_derivative():
    """d/dε log(1 + N(1/ε - 1)) = -N/ε²/(1 + N(1/ε - 1))."""
    leaky = BiasEncoding(jnp.array(VALUES), jnp.array(0.125), OFFSETS)
    back = jax.grad(lambda encoding: encoding.shift_majorant(LINE, 5).sum())(leaky)
    assert float(back.uniform_weight) == pytest.approx(5 * 64 / 36 * 6.5, rel=RELATIVE)


@pytest.mark.slow
def test_the_score_of_a_shift_without_an_entry_is_one_for_each_head():
    """Farther than any offset on every axis; encodings without entries have no such shift."""
    offsets = ((-2, 1), (1, 0))
    exponents, logs = jnp.array([1.0, 3.0]), jnp.array([2.0, -1.0])
    encoding = ScalarEncoding(exponents, logs, jnp.array(5.0), offsets)
    assert_equal(far_shift(encoding), [[3, 2]])
    layer, keys = layer_of(encoding, 2), jnp.ones((1, 16, 1))
    grid = TokenGrid((2, 1), ((2, 0), (1, 2)))
    result = exact_scores(layer, grid, keys)
    assert_equal(result.background, [-5.0, -15.0])
    assert_equal(score_majorant(layer, grid, keys).background, [5.0, 15.0])
    plain = layer_of(QuadraticEncoding(jnp.ones(2), jnp.ones((2, 2))), 2)
    assert far_shift(plain.encoding) is None
    assert exact_scores(plain, grid, keys).background is None
    assert score_majorant(plain, grid, keys).background is None


@pytest.mark.slow
def test_content_adds_to_the_majorant_of_positions():
    """(|x_q||Q| + |a|)(|x_k||K| + |c|), beside |b| at the offset."""
    maps, biases = (jnp.full((2, 1, 1), n) for n in (-2.0, 3.0)), ([[-1.0]] * 2, [[0.5]] * 2)
    content = ContentScores(*maps, *map(jnp.array, biases), scaled=False)
    bias = BiasEncoding(jnp.array([[-4.0], [8.0]]), None, ((1,),))
    tokens, grid = [1.0, -5.0, 2.0], TokenGrid((2,), ((1, 0),))
    keys = jnp.array(tokens)[None, :, None]
    result = score_majorant(layer_of(bias, 1, content), grid, keys)
    for (h, q, k), pair in np.ndenumerate(result.pairs[0]):  # the first query is token 1
        at_query, at_key = 2 * abs(tokens[q + 1]) + 1, 3 * abs(tokens[k]) + 0.5
        assert pair == at_query * at_key + (k - q == 2) * (4.0, 8.0)[h]
    assert result.pairs.shape == (1, 2, 2, 3)
    assert result.background is None


def test_the_majorant_of_rows_and_columns_is_the_sum_of_theirs():
    """|P_q||Q||K|ᵀ|P_k|ᵀ of each axis, and no shift without an entry."""
    rows, columns = jnp.array([[1.0], [-2.0], [3.0]]), jnp.array([[-5.0], [7.0]])
    query, key = (jnp.full((2, 1, 1), -3.0),) * 2, (jnp.array([[[2.0]], [[-4.0]]]),) * 2
    layer = layer_of(AxialEncoding(query, key, (rows, columns)), 2)
    result = score_majorant(layer, TokenGrid((2, 2), ((1, 0), (0, 0))), jnp.ones((1, 6, 1)))
    expected = [
        [
            [factor * (p * r + q * c) for r in (1.0, 2.0, 3.0) for c in (5.0, 7.0)]
            for p in (2.0, 3.0)
            for q in (5.0, 7.0)
        ]
        for factor in (3 * 2, 3 * 4)
    ]
    assert_equal(result.pairs, expected)
    assert result.background is None


ONES = {shape: jnp.ones(shape) for shape in ((3, 2, 5), (3, 4, 6), (3, 2), (3, 4), (3, 7))}
ROUNDINGS = {
    "absolute": (AbsoluteEncoding(ONES[3, 2, 5], ONES[3, 2, 5]), 16 + 2 * 2 + 5),
    "axial": (
        AxialEncoding((ONES[3, 2, 5], ONES[3, 4, 6]), (ONES[3, 2, 5], ONES[3, 4, 6])),
        16 + (2 * 2 + 5) + (2 * 4 + 6),
    ),
    "relative": (RelativeEncoding(jnp.ones((3, 6)), ONES[3, 4, 6]), 16 + 4 + 6),
    "learned": (LearnedEncoding(ONES[3, 7], (jnp.ones((5, 7)),)), 16 + 7),
    "rotary": (
        RotaryEncoding(jnp.ones((3, 4, 2)), ONES[3, 4], ONES[3, 4]),
        16 + 16 + 4 + 2 * 2,
    ),
    "axial_rotary": (
        AxialRotaryEncoding(*((ONES[3, 2], ONES[3, 7]),) * 3),
        16 + 16 + (2 + 2) + (7 + 2),
    ),
    "gaussian": (GaussianEncoding(ONES[3, 2], jnp.ones((3, 2, 2))), 16 + 4 * 2),
    "quadratic": (QuadraticEncoding(jnp.ones(3), ONES[3, 2]), 16),
}


@pytest.mark.parametrize("name", ROUNDINGS)
def test_roundings_of_a_score_are_counted_encoding_by_encoding(name):
    """Sixteen and the lengths of the sums on the path; content adds its own, and its tables."""
    encoding, count = ROUNDINGS[name]
    assert score_roundings(layer_of(encoding), 11) == count
    maps = jnp.ones((3, 11, 5))
    content = ContentScores(maps, maps)
    assert score_roundings(layer_of(encoding, 1, content), 11) == count + 2 * 11 + 5 + 8
    tables = (jnp.ones((7, 2)), jnp.ones((7, 3)))
    content = ContentScores(maps, maps, tables=tables)
    assert score_roundings(layer_of(encoding, 1, content), 11) == count + 2 * 11 + 5 + 8 + 2 + 1


@pytest.mark.slow
def test_gains_have_a_majorant_and_their_derivative_another():
    """Σ t^h + |N - T|, and t^h |log t| for each exponent; one for what has no gain."""
    exponents, logs = [1.0, -2.0], [0.5, -0.25, 1.0]
    offsets = ((0,), (1,), (2,))
    for logit, outside in ((None, 2), (jnp.array(3.0), 0)):
        encoding = ScalarEncoding(jnp.array(exponents), jnp.array(logs), logit, offsets)
        result, vjp = jax.vjp(lambda encoding: encoding.gain_majorant(1), encoding)
        powers = [[math.exp(h * log) for log in logs] for h in exponents]
        expected = [sum(row) + outside for row in powers]
        np.testing.assert_allclose(result, expected, rtol=RELATIVE)
        (back,) = vjp(jnp.ones(2))
        through = [sum(p * abs(log) for p, log in zip(row, logs, strict=True)) for row in powers]
        np.testing.assert_allclose(back.exponents, through, rtol=RELATIVE)
    assert_equal(QuadraticEncoding(jnp.ones(3), jnp.ones((3, 1))).gain_majorant(5), [1.0] * 3)


def test_a_class_without_a_majorant_is_refused_by_name():
    class OwnEncoding(RelativePosition):
        """Scores of zero."""

        heads = 1

    grid = TokenGrid((2,), ((0, 0),))
    for ask in (
        lambda: score_majorant(layer_of(OwnEncoding()), grid, jnp.zeros((1, 2, 1))),
        lambda: score_roundings(layer_of(OwnEncoding()), 1),
    ):
        with pytest.raises(ValueError, match=r"scores of this OwnEncoding; give"):
            ask()
