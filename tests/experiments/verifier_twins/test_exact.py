"""Rational arithmetic beside JAX, and its bounds beside images."""

from fractions import Fraction

import jax
import numpy as np
import pytest
from verifier_twins.catalogue import PAIRS
from verifier_twins.exact import Certified, logits, network_rows, rational
from verifier_twins.networks import drawn

SMALL = [pair for pair in PAIRS if np.prod(pair.network.image) <= 48]


def images(pair, count=2):
    rng = np.random.default_rng(pair.seed)
    return rng.integers(0, 257, (count, *pair.network.image)) / 256


@pytest.mark.quick(3)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_logits_are_exactly_those_of_jax_in_float64(pair):
    batch = images(pair)
    with jax.enable_x64(True):
        expected = np.asarray(pair.network(batch))
    layers = network_rows(pair.network)
    for image, row in zip(batch, expected, strict=True):
        assert logits(layers, rational(image)) == rational(row)


@pytest.mark.parametrize("pair", SMALL, ids=lambda pair: pair.name)
def test_no_image_of_a_box_is_below_the_certified_bound(pair):
    (middle,) = images(pair, 1)
    lower, upper = middle - 1 / 32, middle + 1 / 32
    layers = network_rows(pair.network)
    certified = Certified(layers, rational(lower), rational(upper))
    form, shift = layers[-1].forms[0], layers[-1].shifts[0]
    least = certified.least(form, len(layers) - 1)[0] + shift
    rng = np.random.default_rng(0)
    values = []
    for _ in range(12):
        corner = np.where(rng.random(middle.shape) < 0.5, lower, upper)
        values.append(logits(layers, rational(corner))[0])
    assert least <= min(values)
    assert min(values) - least <= 4 * (max(values) - min(values)) + Fraction(1, 4)


def test_a_point_is_certified_exactly():
    network = drawn(3, (2, 4, 4), (2, 2), 2, ({}, {"stride": 2}))
    image = rational(np.random.default_rng(0).integers(0, 257, network.image) / 256)
    layers = network_rows(network)
    certified = Certified(layers, image, image)
    expected = logits(layers, image)
    for form, shift, value in zip(layers[-1].forms, layers[-1].shifts, expected, strict=True):
        assert certified.least(form, 2)[0] + shift == value
