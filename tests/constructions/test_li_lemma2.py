import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within
from roundings import ELEMENTARY, gamma, roundoff, softmax_factor
from token_grids import GRIDS, interior, places

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_lemma2 import one_hot_bias_heads
from convattn.operators.attention import attention_weights


def geometry_of(grid):
    return ConvolutionGeometry.of((3, 4)[: len(grid.queries)])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("grid", GRIDS)
def test_the_default_is_one_hot_where_the_key_exists_and_uniform_elsewhere(grid, dtype):
    geometry = geometry_of(grid)
    encoding = one_hot_bias_heads(geometry, None, dtype)
    weights = np.asarray(attention_weights(encoding.positional_scores(grid)))
    queries, keys = places(grid)
    seen = [0, 0]
    for head, offset in enumerate(geometry.offsets):
        for row in range(len(queries)):
            target = tuple(q + d for q, d in zip(queries[row], offset, strict=True))
            exists = row in interior(grid, (offset,))
            expected = [float(key == target) for key in keys]
            if not exists:  # 1/N is one division, rounded the same in NumPy
                one = np.ones((), weights.dtype)
                expected = [float(one / np.asarray(len(keys), weights.dtype))] * len(keys)
            assert_equal(weights[head, row], expected)
            seen[exists] += 1
    assert seen[1]
    assert seen[0] or not any(len(axis) == 1 for axis in grid.ring)


@pytest.mark.parametrize("logit", [0.5, 2.0, 10.0, 40.0])
def test_at_finite_m_the_weights_are_those_of_equation_10(logit):
    """e^M/(e^M + N - 1) and 1/(e^M + N - 1): the reference itself has five roundings and an exp."""
    grid = GRIDS[3]
    geometry = geometry_of(grid)
    weights = jax.nn.softmax(
        one_hot_bias_heads(geometry, logit, "float64").positional_scores(grid), axis=-1
    )
    queries, keys = places(grid)
    count, u = len(keys), roundoff("float64")
    total = math.exp(logit) + count - 1
    factor = softmax_factor(0.0, count, u) * (1 + ELEMENTARY * u) * (1 + gamma(5, u))
    for head, offset in enumerate(geometry.offsets):
        for row in interior(grid, (offset,)):
            target = tuple(q + d for q, d in zip(queries[row], offset, strict=True))
            expected = np.array([math.exp(logit * (key == target)) / total for key in keys])
            assert_within(weights[head, row], expected, (factor - 1) * expected)


@pytest.mark.parametrize("logit", [7.0, np.float64(7.0), jnp.asarray(7.0, "float64")])
def test_a_logit_of_another_dtype_does_not_widen_the_table(logit):
    encoding = one_hot_bias_heads(ConvolutionGeometry.of((2,)), logit, jnp.float32)
    assert_dtype(encoding.values, "float32")
    assert_equal(encoding.values, [[7, 0], [0, 7]])


def test_in_float64_forty_is_not_machine_precision():
    """L21's M = 40 leaves the largest weight below one from N = 28 keys on, and not before.

    `math.fsum` rounds the sum once. Softmax may lose what it adds one by one: how it sums decides.
    """
    for keys, whole in [(27, True), (28, False)]:
        total = math.fsum([1.0] + [math.exp(-40)] * (keys - 1))
        assert (1 / total == 1) is whole
