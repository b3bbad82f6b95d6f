"""What every operator of this package ends in: scores, softmax over the keys, the sum of heads."""

import math

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Num

from convattn.operators.arrays import promoted
from convattn.operators.attention import HIGHEST, attention_weights


def floating_result(*operands: Array) -> np.dtype:
    """The dtype of attention over these operands: integers become float32.

    >>> floating_result(jnp.ones(2, jnp.int32)), floating_result(jnp.ones(2, jnp.float16))
    (dtype('float32'), dtype('float16'))
    """
    dtype = jnp.result_type(*operands)
    return dtype if jnp.issubdtype(dtype, jnp.inexact) else promoted(dtype, jnp.float32)


def content_scores_of_heads(
    queries: Num[Array, "batch queries heads key_features"],
    keys: Num[Array, "batch keys heads key_features"],
) -> Float[Array, "batch heads queries keys"]:
    """α/√d_a: the scaled dot product of each query with each key, head by head.

    Source: B19 eqs. 2 and 3; α_rtij is key-first there, query-first here.

    >>> content_scores_of_heads(2 * jnp.ones((1, 1, 1, 4)), jnp.ones((1, 3, 1, 4))).tolist()
    [[[[4.0, 4.0, 4.0]]]]
    """
    products = jnp.einsum("bqhe,bkhe->bhqk", queries, keys, precision=HIGHEST)
    return products.astype(promoted(products.dtype, float)) / math.sqrt(queries.shape[-1])


def attend(
    scores: Float[Array, "heads queries keys"] | Float[Array, "batch heads queries keys"],
    values: Num[Array, "batch keys heads head_features"],
    output: Num[Array, "heads head_features features"] | None = None,
    mask: Bool[Array, "queries keys"] | None = None,
) -> Float[Array, "batch queries features"]:
    """Σ_h softmax(scores_h) v_h H_Y,h: B19 eq. 4, then the 1×1 convolution of its §2.1.

    Concatenating the heads and applying H_Y of d_o × C·d_o is the sum over the heads of H_Y cut
    into C blocks of d_o × d_o.

    Args:
        scores: Without the batch axis where they hold no content.
        output: H_Y, a block for each head. None adds the heads up.
        mask: True where a key may be attended to.

    >>> attend(jnp.zeros((1, 1, 2)), jnp.array([[[[2.0]], [[4.0]]]])).tolist()
    [[[3.0]]]
    """
    values = values.astype(floating_result(values))
    weights = attention_weights(scores, mask).astype(values.dtype)
    lead = "b" if scores.ndim == 4 else ""
    if output is None:
        return jnp.einsum(f"{lead}hqk,bkhe->bqe", weights, values, precision=HIGHEST)
    mixed = jnp.einsum(f"{lead}hqk,bkhe->bqhe", weights, values, precision=HIGHEST)
    return jnp.einsum("bqhe,heo->bqo", mixed, output.astype(values.dtype), precision=HIGHEST)
