"""Enclosed evidence passes on the real numbers and fails on planted ones."""

import pytest
from flint import arb

from convattn_ledger import EvidenceFailed, Level
from convattn_ledger.evidence import bias_saturation_enclosed, total_variation_enclosed
from convattn_ledger.evidence import enclosures as module

BOUND = "quadratic_total_variation_bound"


def quadratic(**options):
    return total_variation_enclosed("here", **{"alphas": (1.0, 46.0), "keys": (3, 4), **options})


def bias(**options):
    return bias_saturation_enclosed("here", **{"logits": (1.0, 40.0), "keys": (2, 28), **options})


def test_quadratic_heads(run):
    evidence = quadratic()
    assert evidence.level is Level.ENCLOSED
    assert "ball arithmetic" in evidence.assumes
    line = evidence.check(run)
    assert line.startswith("grid (3, 4), 3 centres, every query; α=1: TV < ")
    assert "α=46: TV < 4.2e-20" in line


@pytest.mark.parametrize(
    "options",
    [
        *({"alphas": (alpha,)} for alpha in (0.05, 0.7, 104.0, 500.0)),
        {"keys": (9,), "centers": ((0,), (-2,), (12,))},
    ],
    ids=str,
)
def test_every_alpha_and_sequences(run, options):
    assert quadratic(**options).check(run)


def test_biases(run):
    evidence = bias()
    assert evidence.level is Level.ENCLOSED
    line = evidence.check(run)
    assert line.startswith("rows of N keys, N in (2, 28); at N = 28: M=1: TV < 0.9")
    assert "M=40: TV < 1.1e-16" in line


NO_DISTANCES = (
    lambda ball: ball * 9,
    lambda ball: ball * 0,
    lambda ball: -ball,
    lambda ball: ball.union(arb(0)),
    lambda ball: ball.union(arb(1)),
    lambda ball: arb("nan"),
)


@pytest.mark.parametrize(
    ("evidence", "name", "change", "message"),
    [
        *(
            (evidence, name, change, "should lie between 0 and")
            for evidence, name in (
                (quadratic, "quadratic_total_variation"),
                (bias, "bias_total_variation"),
            )
            for change in NO_DISTANCES
        ),
        (quadratic, BOUND, lambda ball: ball / 9, "should lie between 0 and"),
        (quadratic, BOUND, lambda ball: ball * 9, "should be below .* to zero"),
        (quadratic, BOUND, lambda ball: ball.union(arb(9)), "should be below"),
    ],
)
def test_a_planted_distance_or_bound_fails(run, monkeypatch, evidence, name, change, message):
    original = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *args: change(original(*args)))
    with pytest.raises(EvidenceFailed, match=message):
        evidence().check(run)


@pytest.mark.parametrize(
    ("evidence", "error", "message"),
    [
        (quadratic(alphas=(0.01,)), ValueError, r"at least 0\.05"),
        # At the corner a target two tokens outside leaves e^(-5α), 2⁻⁴³²⁸, for the next key.
        (quadratic(alphas=(600.0,)), EvidenceFailed, "should lie between 0 and"),
        # The weight of a single key is one at every α: a distance of zero is not above zero.
        (quadratic(keys=(1, 1), centers=((0, 0),)), EvidenceFailed, "should lie between 0 and"),
        (bias(keys=(1,)), EvidenceFailed, "N=1: total variation"),
    ],
)
def test_what_is_no_limit_fails(run, evidence, error, message):
    with pytest.raises(error, match=message):
        evidence.check(run)
