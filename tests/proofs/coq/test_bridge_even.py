"""B19.sa2d: the even heads' rows and maps, as Coq and the library have them."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from proofs.coq.computed_values import as_fraction, rational

from convattn.sac.even_kernels import sac_from_even_kernel
from convattn.sac.relative_bias import EvenBias, even_bias_scores

CASES = [((2, 3), (1, 2)), ((3, 1), (1, 0)), ((1, 2), (2, 1))]  # side, reach
UNIT = 2.0**-53


def printed_heads(coq_value, side, reach) -> tuple[np.ndarray, list[int]]:
    """Whether a head meets a key, [head, query, key], and how many keys it meets."""
    axes, counts = [], []
    for n, r in zip(side, reach, strict=True):
        entry = f"nat_of_bool (axis_met {r} y k a)"
        for name, count in [("k", n + 2 * r), ("y", n), ("a", r + 1)]:
            entry = f"[seq {entry} | {name} <- iota 0 {count}]"
        axes.append(np.array(coq_value(entry)))
        counts.append(coq_value(f"[seq axis_places a | a <- iota 0 {r + 1}]"))
    met = np.einsum("ayk,bxl->abyxkl", *axes)
    keys = met.shape[4] * met.shape[5]
    return met.reshape(-1, side[0] * side[1], keys), np.outer(*counts).reshape(-1).tolist()


def image_queries(side, reach) -> np.ndarray:
    """The rows of the image's own cells among those of the ringed image."""
    rows, columns = [n + 2 * r for n, r in zip(side, reach, strict=True)]
    cells = np.arange(rows * columns).reshape(rows, columns)
    return cells[reach[0] : reach[0] + side[0], reach[1] : reach[1] + side[1]].reshape(-1)


def unit_tables(reach, uniform_weight) -> EvenBias:
    """One head for each pair of distances, with a bias there alone, and the uniform one."""
    heads = (reach[0] + 1) * (reach[1] + 1)
    return EvenBias(
        jnp.eye(heads + 1, heads).reshape(-1, reach[0] + 1, reach[1] + 1), uniform_weight
    )


@pytest.mark.parametrize("uniform_weight", [Fraction(1, 2), Fraction(1, 4), Fraction(3, 5)])
@pytest.mark.parametrize(("side", "reach"), CASES)
def test_rows(coq_value, side, reach, uniform_weight):
    """Every weight, with e = 1 + N(1/ε - 1) of the ringed image's N keys.

    The library's e is off by a relative 8(1 + M)u, M = log e, where exp and log1p are within 4
    units in the last place; the sum over N keys and the quotient add (N + 4)u, and both sides of
    the quotient bear the error of e. Weights are at most one.
    """
    met, counts = printed_heads(coq_value, side, reach)
    ringed = tuple(n + 2 * r for n, r in zip(side, reach, strict=True))
    keys = ringed[0] * ringed[1]
    queries = image_queries(side, reach)
    bits = np.asarray(even_bias_scores(unit_tables(reach, None), ringed, ringed))[:, queries]
    assert_equal(bits, np.concatenate([met, np.zeros_like(met[:1])]))
    assert_equal(met.sum(-1), np.repeat(counts, met.shape[1]).reshape(len(met), -1))

    height = 1 + keys * (1 / uniform_weight - 1)
    expected = np.full((len(met) + 1, *met.shape[1:]), 1 / keys)
    for head, count in enumerate(counts):
        terms = [
            f"fraction (even_weight {keys} {count} {rational(height)} {at})"
            for at in ("true", "false")
        ]
        at_met, other = (float(as_fraction(value)) for value in map(coq_value, terms))
        expected[head] = np.where(met[head], at_met, other)
    scores = even_bias_scores(unit_tables(reach, float(uniform_weight)), ringed, ringed)
    weights = jax.nn.softmax(scores, axis=-1)[:, queries]
    bound = (2 * 8 * (1 + np.log(float(height))) + keys + 4) * UNIT
    assert_within(weights, expected, bound)
    with pytest.raises(AssertionError):
        assert_within(weights, np.roll(expected, 1, axis=0), bound)


@pytest.mark.parametrize("uniform_weight", [Fraction(1, 2), Fraction(1, 5)])
@pytest.mark.parametrize("keys", [12, 35])
def test_maps(coq_value, uniform_weight, keys):
    """What multiplies the taps, whatever N is; 8u covers the rounding of ε and of four operations.

    1/ε - 1 cancels to no less than one here, so that an error u of ε is one of at most 2u in it.
    """
    height = rational(1 + keys * (1 / uniform_weight - 1))
    shifts = [f"(Some {count}%N)" for count in (1, 2, 2, 4)] + ["None"]
    scales = [
        as_fraction(coq_value(f"fraction (even_scale {keys} {height} {count})")) for count in shifts
    ]
    gain = 1 / uniform_weight - 1
    assert scales == [count + 1 / gain for count in (1, 2, 2, 4)] + [-1 / gain]
    quarter = np.array([[3.0, 5.0], [7.0, 11.0]])
    kernel = quarter[np.ix_([1, 0, 1], [1, 0, 1])].reshape(3, 3, 1, 1)
    values = sac_from_even_kernel(kernel, uniform_weight=float(uniform_weight)).value[:, 0, 0, 0, 0]
    taps = np.array([*quarter.reshape(-1), quarter.sum()])
    expected = np.array([float(scale) for scale in scales]) * taps
    assert_within(values, expected, 8 * UNIT * np.abs(expected))
    with pytest.raises(AssertionError):
        assert_within(values, expected[::-1], 8 * UNIT * np.abs(expected))
