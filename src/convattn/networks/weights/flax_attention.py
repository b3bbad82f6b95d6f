"""The `attention_fn` for `flax.nnx.MultiHeadAttention` that adds a stored bias to the scores."""

from typing import Any

import jax.numpy as jnp
from flax import nnx
from jax import Array, lax
from jaxtyping import Float


class BiasedAttention(nnx.Module):
    """Dot-product attention with a bias for every head, query and key.

        out = softmax(q kᵀ/√d + bias) v

    Give it to `flax.nnx.MultiHeadAttention` as `attention_fn`. The bias is a parameter of its own,
    so it is saved, restored and trained with the module. Products run at the highest precision
    unless the module says otherwise.

    Args:
        bias: `[heads, queries, keys]`.

    >>> attend = BiasedAttention(jnp.log(jnp.array([[[1.0, 3.0]]])))
    >>> zero, value = jnp.zeros((1, 1, 1, 1)), jnp.array([[[[0.0]], [[4.0]]]])
    >>> attend(zero, jnp.zeros((1, 2, 1, 1)), value).round(5).tolist()
    [[[[3.0]]]]
    """

    def __init__(self, bias: Float[Array, "heads queries keys"]):
        self.bias = nnx.Param(jnp.asarray(bias))

    def __call__(
        self,
        query: Float[Array, "*batch queries heads key_features"],
        key: Float[Array, "*batch keys heads key_features"],
        value: Float[Array, "*batch keys heads head_features"],
        mask: Array | None = None,
        precision: Any = None,
        **options: Any,
    ) -> Float[Array, "*batch queries heads head_features"]:
        """Attend; `options` are those that `nnx.dot_product_attention_weights` takes."""
        bias = self.bias[...]
        expected = (query.shape[-2], query.shape[-3], key.shape[-3])
        if bias.shape != expected:
            raise ValueError(
                f"the bias has the shape {bias.shape}, but {expected[0]} heads, {expected[1]} "
                f"queries and {expected[2]} keys came; are the queries the image's tokens, and the "
                "keys these and the ring of zero tokens?"
            )
        precision = lax.Precision.HIGHEST if precision is None else precision
        weights = nnx.nn.attention.dot_product_attention_weights(
            query, key, bias=bias, mask=mask, precision=precision, **options
        )
        return jnp.einsum("...hqk,...khd->...qhd", weights, value, precision=precision)
