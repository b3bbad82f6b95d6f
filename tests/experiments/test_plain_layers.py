"""The baselines compute what the library computes; otherwise their times would mean nothing.

Scores are sums of products of magnitude at most S, and softmax turns an absolute error t of a score
into a factor e^(±2t) of a weight: as many roundings as t holds. With the sums over N keys and
heads × D channels the results differ by 2γ_n·max|X|·Σ|O|, n counted below, generously.
"""

import importlib.util
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from benchmarks import layers
from benchmarks.plain_layer import (
    convolution,
    plain_attention,
    plain_parameters,
    positional_scores,
)
from benchmarks.settings import Settings
from benchmarks.torch_layer import torch_layer
from comparison import assert_within, gamma

import convattn as ca
from convattn.bounds.majorant import majorant_of
from convattn.bounds.rounding import layer_error_bound
from convattn.operators.attention import HIGHEST
from convattn.operators.shifts import TokenGrid

SETTINGS = Settings()
SIDE, WIDTH, FEATURES = 3, 4, 5
GRID = TokenGrid((SIDE, WIDTH), ((0, 0), (0, 0)))
ROUNDINGS_OF_A_SCORE = 2 * layers.POSITION_FEATURES + 16
MAKERS = {
    "quadratic": layers.quadratic,
    "learned": layers.learned,
    "gaussian": layers.gaussian,
    "content": layers.content,
}


@jax.jit
def dense(layer, tokens):
    return ca.apply_attention(layer, tokens, backend="dense")


@jax.jit
def plain(layer, tokens):
    return plain_attention(plain_parameters(layer), tokens, HIGHEST)


def layer_of(name):
    return MAKERS[name](max(SIDE, WIDTH), FEATURES, SETTINGS)


def images():
    values = np.random.default_rng(0).normal(size=(2, SIDE, WIDTH, FEATURES))
    return jnp.asarray(values, jnp.float32)


def score_magnitude(layer, tokens):
    """S: no product of a score, nor a partial sum, is larger."""
    encoding = layer.encoding
    reach = max(SIDE, WIDTH)
    if hasattr(encoding, "tables"):
        largest = max(float(jnp.abs(table).max()) for table in encoding.tables)
        magnitude = float(jnp.abs(encoding.query).sum(-1).max()) * largest
    else:
        distance = 2 * (reach + float(jnp.abs(encoding.centers).max()))
        stretch = getattr(encoding, "root_precision", jnp.full((1, 1, 1), 2.0))
        magnitude = (float(jnp.abs(stretch).max()) * 2 * distance) ** 2
    if layer.content is not None:
        left, right = (
            jnp.abs(tokens).sum(-1).max() * jnp.abs(matrix).max()
            for matrix in (layer.content.query, layer.content.key)
        )
        magnitude += float(left * right) * FEATURES
    return magnitude


def bound(layer, tokens):
    scores = 2 * ROUNDINGS_OF_A_SCORE * score_magnitude(layer, tokens)
    sums = GRID.number_of_keys + layer.heads * FEATURES + 16
    together = gamma(math.ceil(2 * (scores + sums)), jnp.float32)
    largest = float(jnp.abs(tokens).max())
    return 2 * together * largest * np.abs(np.asarray(layer.output)).sum((0, 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_plain_layer_is_the_layer(name) -> None:
    layer, tokens = layer_of(name), images()
    actual = plain(layer, tokens)
    expected = dense(layer, tokens)
    limit = bound(layer, tokens)
    assert_within(actual, expected, limit)
    turned = dense(layer, tokens[:, ::-1])
    with pytest.raises(AssertionError, match="within"):
        assert_within(actual, turned, limit)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quadratic", "learned", "gaussian"])
def test_plain_scores_are_the_encodings(name) -> None:
    layer = layer_of(name)
    magnitude = score_magnitude(layer, images())
    limit = 2 * gamma(ROUNDINGS_OF_A_SCORE, jnp.float32) * magnitude
    actual = positional_scores(layer.encoding, SIDE, WIDTH)
    assert_within(actual, layer.encoding.positional_scores(GRID), limit)


@pytest.mark.slow
def test_finite_layer_is_the_convolution_it_is_timed_against() -> None:
    layer, kernel = layers.finite(SIDE, FEATURES, SETTINGS), layers.kernel(FEATURES, SETTINGS)
    tokens = images()
    expected = convolution(kernel.astype(float), tokens.astype(float), HIGHEST)
    limit = layer_error_bound(layer, tokens, majorant_of(layer, kernel, None, tokens))
    actual = dense(layer, tokens)
    assert_within(actual, expected, limit)
    turned = convolution(kernel[::-1].astype(float), tokens.astype(float), HIGHEST)
    with pytest.raises(AssertionError, match="within"):
        assert_within(actual, turned, limit)


def test_grid_layer_has_nine_heads_on_three_rows_and_three_columns() -> None:
    layer = layers.grid_of_centers(SIDE, FEATURES, SETTINGS)
    centers = np.asarray(layer.encoding.head_centers)
    assert layer.heads == 9
    assert len(np.unique(centers, axis=0)) == 9
    assert [len(np.unique(axis)) for axis in centers.T] == [3, 3]


needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed"
)


@needs_torch
def test_torch_layer_is_the_layer() -> None:
    layer, tokens = layer_of("quadratic"), images()
    apply, parameters, tensor = torch_layer(layer, tokens)
    actual = apply(tensor).detach().numpy()
    limit = bound(layer, tokens)
    expected = dense(layer, tokens)
    assert_within(actual, expected, limit)
    turned = apply(tensor.flip(1)).detach().numpy()
    with pytest.raises(AssertionError, match="within"):
        assert_within(turned, expected, limit)
    shapes = [tuple(parameter.shape) for parameter in parameters]
    assert shapes == [(9,), (9, 2), (FEATURES, 9 * FEATURES)]
