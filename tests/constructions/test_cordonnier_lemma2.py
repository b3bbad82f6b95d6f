import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within
from roundings import gamma, roundoff, softmax_factor
from token_grids import GRIDS, places

from convattn.constructions.cordonnier_lemma2 import one_hot_sharpness, quadratic_heads
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.operators.attention import attention_weights

HALVES = ("bfloat16", "float16")
DTYPES = ("float64", "float32", *HALVES)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("keys", [2, 4097])
def test_the_sharpness_leaves_exact_zeros_and_half_of_it_does_not(dtype, keys):
    sharpness = one_hot_sharpness(dtype)
    assert math.frexp(sharpness)[0] == 0.5  # a power of two
    scores = jnp.zeros((1, keys), dtype).at[0, 1:].set(-sharpness)
    one_hot = np.zeros((1, keys))
    one_hot[0, 0] = 1
    assert_equal(attention_weights(scores), one_hot)
    halved = np.asarray(attention_weights(scores / 2))
    assert (halved[0, 1:] > 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_sharpness_is_beyond_the_logarithm_of_the_smallest_number(dtype):
    """Half of the smallest subnormal number is 2⁻¹⁵⁰ in float32 and 2⁻¹⁰⁷⁵ in float64."""
    exponent = 1075 if dtype == "float64" else 150
    sharpness = one_hot_sharpness(dtype)
    assert sharpness / 2 < exponent * math.log(2) < sharpness


def nearest(query, offset, keys):
    return min(
        keys,
        key=lambda k: sum((a - q - d) ** 2 for a, q, d in zip(k, query, offset, strict=True)),
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("grid", GRIDS)
def test_attention_is_one_hot_at_the_target_or_else_at_the_nearest_key(grid, dtype):
    geometry = ConvolutionGeometry.of((3, 4)[: len(grid.queries)], dilation=2)
    encoding = quadratic_heads(geometry, None, dtype)
    assert encoding.heads == geometry.heads
    for array in jax.tree.leaves(encoding):
        assert_dtype(array, "float64" if dtype == "float64" else "float32")
    weights = np.asarray(attention_weights(encoding.positional_scores(grid)))
    queries, keys = places(grid)
    targets = beyond = 0
    for head, offset in enumerate(geometry.offsets):
        for row, query in enumerate(queries):
            target = tuple(q + d for q, d in zip(query, offset, strict=True))
            if target in keys:
                hit, targets = target, targets + 1
            else:
                hit, beyond = nearest(query, offset, keys), beyond + 1
            assert_equal(weights[head, row], [float(key == hit) for key in keys])
    assert targets
    assert beyond


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0, 8.0, 46.0])
def test_at_finite_alpha_every_weight_is_positive_and_the_target_has_its_share(alpha):
    """1/(1 + Σ e^(-α|δ-Δ|²)), summed in float64 by `math.fsum`.

    Scores are exact, so only softmax rounds, and the reference by γ_N and the error of exp.
    """
    grid = GRIDS[3]
    geometry = ConvolutionGeometry.of((3, 3))
    encoding = quadratic_heads(geometry, alpha, "float64")
    weights = np.asarray(jax.nn.softmax(encoding.positional_scores(grid), axis=-1))
    assert (weights > 0).all() or alpha > 8  # 46·(2² + 5²) is beyond what float64 can hold
    queries, keys = places(grid)
    u = roundoff("float64")
    factor = softmax_factor(0.0, len(keys), u) * (1 + gamma(len(keys) + 16, u))
    for head, offset in enumerate(geometry.offsets):
        for row, query in enumerate(queries):
            target = tuple(q + d for q, d in zip(query, offset, strict=True))
            if target not in keys:
                continue
            rest = [
                math.exp(-alpha * sum((k - t) ** 2 for k, t in zip(key, target, strict=True)))
                for key in keys
                if key != target
            ]
            assert max(rest) <= math.exp(-alpha)  # the nearest rival is one step away
            share = 1 / (1 + math.fsum(rest))
            assert_within(weights[head, row, keys.index(target)], share, factor - 1)


def test_heads_share_their_rows_and_columns():
    encoding = quadratic_heads(ConvolutionGeometry.of((3, 4), dilation=(1, 2)), 4.0, "float32")
    assert_equal(encoding.centers[0], [-1.0, 0.0, 1.0])
    assert_equal(encoding.centers[1], [-2.0, 0.0, 2.0, 4.0])
    assert encoding.pairs == tuple((row, column) for row in range(3) for column in range(4))


def test_heads_look_at_key_minus_query():
    """With the opposite sign the first head would look after the query instead of before it."""
    grid = GRIDS[0]  # five queries, one key before and two after
    encoding = quadratic_heads(ConvolutionGeometry.of((3,)), None, "float32")
    first = np.asarray(attention_weights(encoding.positional_scores(grid)))[0]
    assert_equal(first.argmax(axis=-1), np.arange(5))
