from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within
from sac.random_parameters import integers, sac
from sac.slow_definitions import printed_bias, printed_products, printed_star, query_first

from convattn.ledger.evidence.softmax_rounding import mixture_within, weights_within
from convattn.sac import (
    EvenBias,
    SelfAttention2DParameters,
    self_attention_2d,
    self_attentive_convolution,
)


def parameters(heads=2):
    maps = (integers(seed, heads, 3, 4, magnitude=1) for seed in range(3))
    table = EvenBias(integers(3, heads, 3, 5))
    return SelfAttention2DParameters(*maps, position=table)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_one_head_is_eqs_1_to_4(dtype) -> None:
    """Scores are integers over 2, exact; the softmax and the mixture have their derived bounds."""
    given, images = parameters(heads=1), integers(9, 2, 3, 5, 3, magnitude=2)
    result = self_attention_2d(
        jax.tree.map(lambda part: part.astype(dtype), given), images.astype(dtype)
    )
    assert_dtype(result, dtype)
    maps = [np.asarray(part[0], int).T[:, None, None] for part in (given.query, given.key)]
    value = np.asarray(given.value[0], int).T[:, None, None]
    for image, got in zip(np.asarray(images, int), result, strict=True):
        q, k = (printed_star(image, part) for part in maps)
        products = printed_products(q, k) / 2
        bias = printed_bias(np.asarray(given.position.values[0]), (3, 5))
        weights = weights_within(query_first(products + bias), dtype)
        mixed = mixture_within(weights, printed_star(image, value).reshape(15, 4) * 1.0, dtype)
        assert_within(got.reshape(15, 4), mixed.reference, mixed.bound)


def test_heads_are_concatenated_and_reduced() -> None:
    """With one-hot attention everything is an integer: y* ⋆ H_Y is the sum of blocks."""
    table = jnp.zeros((2, 3, 5)).at[:, 0, 0].set(128.0)
    given = replace(parameters(), position=EvenBias(table), output=integers(7, 2, 4, 6))
    given = replace(given, query=0 * given.query)
    images = integers(9, 2, 3, 5, 3)
    heads = [np.asarray(images) @ np.asarray(given.value[head]) for head in range(2)]
    joined = np.concatenate(heads, axis=-1) @ np.asarray(given.output).reshape(8, 6)
    assert_equal(self_attention_2d(given, images), joined)


def test_it_is_the_1_by_1_self_attentive_convolution() -> None:
    wide = replace(sac(0, (1, 1)), position=EvenBias(integers(8, 2, 3, 4)))
    maps = (part[:, 0, 0] for part in (wide.query, wide.key, wide.value))
    narrow = SelfAttention2DParameters(*maps, wide.position, wide.output)
    images = integers(9, 2, 3, 4, 3)
    assert_equal(self_attention_2d(narrow, images), self_attentive_convolution(wide, images))


@pytest.mark.parametrize("shape", [(3, 4, 3), (1, 3, 4, 2)])
def test_other_images_are_refused(shape, unchecked) -> None:
    with pytest.raises(ValueError, match=r"images.shape=.*should be \[batch, height, width, 3\]"):
        self_attention_2d(parameters(), jnp.ones(shape))
