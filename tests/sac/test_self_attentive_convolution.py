from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from sac.random_parameters import apply, integers, one_hot_tables, sac, scores_of
from sac.slow_definitions import (
    as_printed,
    printed_bias,
    printed_products,
    printed_star,
    query_first,
)

from convattn.sac import EvenBias

IMAGES = integers(9, 2, 4, 6, 3)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(2, 3), (3, 2)])
def test_scores_are_those_of_n_by_m_filters(size) -> None:
    parameters = replace(sac(0, size), position=EvenBias(integers(8, 2, 4, 6)))
    scores, mask = scores_of(parameters, IMAGES)
    assert mask is None
    for image in range(2):
        for head in range(2):
            x = np.asarray(IMAGES[image], int)
            q, k = (
                printed_star(x, as_printed(np.asarray(part[head], int)))
                for part in (parameters.query, parameters.key)
            )
            bias = printed_bias(np.asarray(parameters.position.values[head]), (4, 6))
            expected = query_first(printed_products(q, k) / 2 + bias)
            assert_equal(scores[image, head], expected)


def test_one_hot_heads_give_their_values() -> None:
    """b_00 = M: every query attends to itself; concatenation, H_Y, H_R and its merge are exact."""
    parameters = replace(
        sac(0, (2, 3), content=False, ordinary=True),
        position=one_hot_tables((0, 0), (0, 0), size=(1, 1)),
        bias=integers(7, 4),
    )
    x = np.asarray(IMAGES[1], int)
    heads = [printed_star(x, as_printed(np.asarray(part, int))) for part in parameters.value]
    y = np.concatenate(heads, axis=-1) @ np.asarray(parameters.output).reshape(10, 4)
    beside = printed_star(x, as_printed(np.asarray(parameters.ordinary, int)))
    merged = np.concatenate([y, beside], axis=-1) @ np.asarray(parameters.merge)
    assert_equal(apply(parameters, IMAGES)[1], merged + np.asarray(parameters.bias))


@pytest.mark.slow
def test_stride_with_all_keys_is_the_full_result_at_every_other_pixel() -> None:
    table = one_hot_tables((0, 0), (0, 0), size=(1, 1))
    parameters = replace(sac(0, (2, 3), content=False, ordinary=True), position=table)
    full = apply(parameters, IMAGES)
    strided = replace(parameters, stride=(3, 2))
    assert_equal(apply(strided, IMAGES), full[:, ::3, ::2])
    rich = replace(sac(0, (2, 3)), position=EvenBias(integers(8, 2, 4, 6)))
    scores = scores_of(rich, IMAGES)[0].reshape(2, 2, 4, 6, 24)
    coarse = scores_of(replace(rich, stride=(3, 2)), IMAGES)[0]
    assert_equal(coarse.reshape(2, 2, 2, 3, 24), scores[:, :, ::3, ::2])


@pytest.mark.slow
def test_stride_of_keys_too_is_attention_on_the_coarse_grid() -> None:
    parameters = replace(
        sac(0, (2, 3)), stride=(3, 2), key_stride=(3, 2), position=EvenBias(integers(8, 2, 4, 6))
    )
    scores, _ = scores_of(parameters, IMAGES)
    x = np.asarray(IMAGES[0], int)
    q, k = (
        printed_star(x, as_printed(np.asarray(part[1], int)))[::3, ::2]
        for part in (parameters.query, parameters.key)
    )
    bias = printed_bias(np.asarray(parameters.position.values[1]), (2, 3))
    assert_equal(scores[0, 1], query_first(printed_products(q, k) / 2 + bias))
    assert apply(parameters, IMAGES).shape == (2, 2, 3, 4)


def test_masked_keys_count_for_nothing() -> None:
    parameters = replace(sac(0, (1, 2), content=False), output=None)
    mask = np.zeros((4, 6), bool)
    mask[1:3, ::3] = True  # four keys
    values = sum(
        printed_star(np.asarray(IMAGES[0], int), as_printed(np.asarray(part, int)))
        for part in parameters.value
    )
    expected = np.broadcast_to(values[mask].mean(axis=0), (4, 6, 5))
    result = apply(parameters, IMAGES, key_mask=jnp.asarray(mask))
    assert_equal(result[0], expected)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16", "int32"])
def test_dtypes(dtype) -> None:
    parameters = replace(
        sac(0, (1, 1), content=False), position=one_hot_tables((0, 0), size=(1, 1))
    )
    parameters = jax.tree.map(lambda part: part.astype(dtype), parameters)
    table = EvenBias(jnp.full((1, 1, 1), 1024.0))  # the bias keeps its own type
    result = apply(replace(parameters, position=table), IMAGES.astype(dtype))
    assert_dtype(result, "float32" if dtype == "int32" else dtype)
    expected = sum(
        np.asarray(IMAGES, float) @ np.asarray(value[0, 0], float) @ np.asarray(output, float)
        for value, output in zip(parameters.value, parameters.output, strict=True)
    )
    assert_equal(result, np.asarray(jnp.asarray(expected).astype(dtype), float))
