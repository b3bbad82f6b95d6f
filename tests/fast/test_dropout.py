"""Dropout: the same zeros in every back end, unbiased, and absent at the rate zero."""

from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from fast.layers import LayerBucket, make_layer_case, quadratic

from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention
from convattn.fast.dropout import dropped_draws, keep_scale, kept_scale
from convattn.fast.options import AttentionOptions, Dropout
from convattn.fast.selection import BACK_ENDS
from convattn.nnx.layers.dropout import dropout

PLAIN = LayerBucket(quadratic, 2, 2, (3, 4), ((1, 0), (0, 2)), 3, output=5)
CASE = make_layer_case(PLAIN, 1, "float64")
OPTIONS = AttentionOptions(dropout=Dropout(0.4, jax.random.key(7)))
DROPPING = [
    name
    for name, back_end in BACK_ENDS.items()
    if back_end.refusal(CASE.layer, CASE.grid, OPTIONS) is None
]
SERVING = [
    name
    for name, back_end in BACK_ENDS.items()
    if back_end.refusal(CASE.layer, CASE.grid, AttentionOptions()) is None
]
# The exact rate is the nearest multiple of 2⁻³², and 1/(1 - it) is held in float32.
PROBABILITY_ERROR, SCALE_ERROR = 2.0**-33, 2.0**-23


@partial(jax.jit, static_argnums=(0, 1, 2))
def all_scales(rate, queries, keys, key=0):
    """Of three images and two heads."""
    dropout = Dropout(rate, jax.random.key(key))
    return keep_scale(dropout, 3, 2, jnp.arange(queries)[:, None], jnp.arange(keys))


@pytest.mark.parametrize("rate", [0.1, 0.3, 1 / 3, 0.5, 1e-12, 1 - 1e-12, 1 - 2.0**-53])
def test_the_mean_over_all_draws_is_exactly_no_dropout(rate):
    dropped = dropped_draws(rate)
    assert 0 <= dropped < 2**32
    off = abs(Fraction(dropped, 2**32) - Fraction(rate))
    assert off <= Fraction(1, 2**33 if rate < 0.9 else 2**32)
    exact = Fraction(2**32, 2**32 - dropped)
    assert exact * (1 - Fraction(dropped, 2**32)) == 1
    assert kept_scale(rate) == float(exact)
    if 0.1 <= rate < 0.5:
        assert kept_scale(rate) != 1 / (1 - rate)  # planted: the rate that was asked for


@pytest.mark.slow
def test_64_bit_types_change_no_draw():
    key, pairs = jax.random.key(3), (jnp.arange(20)[:, None], jnp.arange(30))
    draws = {}
    for wide in (False, True):
        with jax.enable_x64(wide):

            def scales(key):
                scales = keep_scale(Dropout(0.3, key), 2, 2, *pairs)
                features = dropout(jnp.ones(999, jnp.float32), 0.3, key)
                return scales, features, jax.random.bernoulli(key, 0.7, (999,))  # planted

            draws[wide] = jax.tree.map(np.asarray, jax.jit(scales)(key))
            assert_dtype(draws[wide][0], "float32")
    for without, with_ in zip(draws[False][:2], draws[True][:2], strict=True):
        assert_equal(without, with_)
        assert 0 < (without == 0).sum() < without.size
    assert (draws[False][2] != draws[True][2]).any()


@pytest.mark.parametrize("axis", range(4))
def test_images_heads_queries_and_keys_draw_apart(axis):
    scales = np.moveaxis(np.asarray(all_scales(0.5, 40, 50)), axis, 0)
    assert (scales[0] != scales[1]).any()


@pytest.mark.slow
def test_some_pairs_draw_what_they_draw_among_all():
    queries, keys = np.array([[4], [0]]), np.array([[6, 2, 2], [1, 0, 3]])
    dropout = Dropout(0.5, jax.random.key(0))
    some = keep_scale(dropout, 3, 2, jnp.asarray(queries), jnp.asarray(keys))
    assert_equal(some, np.asarray(all_scales(0.5, 40, 50))[:, :, queries, keys])


@pytest.mark.parametrize("name", sorted(set(BACK_ENDS) - set(DROPPING)))
def test_the_others_refuse_by_name(name):
    with pytest.raises(ValueError, match=f"backend='{name}' cannot serve this layer"):
        apply_attention(
            CASE.layer, CASE.images, backend=name, dropout_rate=0.4, dropout_key=jax.random.key(7)
        )


@pytest.mark.parametrize("name", SERVING)
@pytest.mark.quick(2)
def test_the_rate_zero_is_no_dropout_to_the_last_bit(name):
    plain = weights_as_output(name, None, None)
    assert_equal(weights_as_output(name, 0.0, jax.random.key(7)), plain)


ONE_HEAD = AttentionLayer(CASE.layer.encoding.take_heads([0]), None, None, ring=PLAIN.ring)


@partial(jax.jit, static_argnums=(0, 1))
def weights_as_output(name, rate, key):
    """One head without maps on tokens that are unit vectors: the result is its weights.

    Sums have one term that is not zero, so nothing but the weights themselves is rounded.
    """
    images = jnp.eye(12).reshape(1, 3, 4, 12)
    options = {} if rate is None else {"dropout_rate": rate, "dropout_key": key}
    if name == "windowed":
        shifts = CASE.grid.shift_ranges
        options["windows"] = [tuple((axis.start, axis.stop - 1) for axis in shifts)]
    out = apply_attention(ONE_HEAD, images, backend=name, **options)
    return out.reshape(12, 12)


@pytest.mark.slow
@pytest.mark.parametrize("name", DROPPING)
def test_the_zeros_are_those_of_keep_scale(name):
    """Keys are counted with their ring, so that the image's own stand apart from one another."""
    dropped = weights_as_output(name, 0.4, OPTIONS.dropout.key)
    grid = CASE.grid
    query_keys = np.ravel_multi_index(tuple(grid.query_positions.T), grid.keys)
    scale = keep_scale(OPTIONS.dropout, 1, 1, jnp.arange(12)[:, None], jnp.asarray(query_keys))[
        0, 0
    ]
    assert_equal(dropped == 0, scale == 0)
    assert 0 < int((dropped == 0).sum()) < 144
