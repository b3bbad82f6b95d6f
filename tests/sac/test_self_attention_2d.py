from dataclasses import replace

import jax
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within
from sac.random_parameters import apply, integers, sac
from sac.slow_definitions import (
    as_printed,
    printed_bias,
    printed_products,
    printed_star,
    query_first,
)

from convattn.sac import EvenBias, SelfAttentiveParameters, self_attention_2d
from convattn_ledger.evidence.softmax_rounding import mixture_within, weights_within


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_one_head_is_eqs_1_to_4(dtype) -> None:
    """Scores are integers over 2, exact; the softmax and the mixture have their derived bounds."""
    filters = (integers(seed, 1, 1, 1, 3, 4, magnitude=1) for seed in range(3))
    parameters = SelfAttentiveParameters(*filters, position=EvenBias(integers(3, 1, 3, 5)))
    images = integers(9, 2, 3, 5, 3, magnitude=2)
    result = jax.jit(self_attention_2d)(
        jax.tree.map(lambda part: part.astype(dtype), parameters), images.astype(dtype)
    )
    assert_dtype(result, dtype)
    parts = (parameters.query, parameters.key, parameters.value)
    query, key, value = (as_printed(np.asarray(part[0], int)) for part in parts)
    bias = printed_bias(np.asarray(parameters.position.values[0]), (3, 5))
    for image, output in zip(np.asarray(images, int), result, strict=True):
        products = printed_products(printed_star(image, query), printed_star(image, key)) / 2
        weights = weights_within(query_first(products + bias), dtype)
        mixed = mixture_within(weights, printed_star(image, value).reshape(15, 4) * 1.0, dtype)
        assert_within(output.reshape(15, 4), mixed.reference, mixed.bound)


def test_it_is_the_1_by_1_self_attentive_convolution() -> None:
    parameters = replace(sac(0, (1, 1)), position=EvenBias(integers(8, 2, 3, 4)))
    images = integers(9, 2, 3, 4, 3)
    assert_equal(jax.jit(self_attention_2d)(parameters, images), apply(parameters, images))
