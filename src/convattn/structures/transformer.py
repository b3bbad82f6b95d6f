"""The Transformer's layer and A19's attention convolution, each written as the other.

A layer's heads are those of A19 eq. 7: scaled dot products (eq. 9) and their column-wise softmax
for the basis, Θ_k = Θ_value,k Θ_O,kᵀ (eq. 10) for the parameter. In `convattn.operators.attention`
the weights are `[heads, queries, keys]`, softmax over the last axis: the transposes of A19's A_k.
"""

from typing import NamedTuple

import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Num

from convattn.encodings.layer import ContentScores
from convattn.structures.attention_convolution import Mechanism, softmax_mechanism
from convattn.structures.bi_affine import BiAffine
from convattn.structures.masking import Blank
from convattn.structures.output_maps import maps_from_parameter, parameter_from_maps
from convattn.structures.scaled_dot_product import (
    ScaledDotProduct,
    as_scaled_dot_product,
    scaled_dot_product_scores,
)


class AttentionConvolution(NamedTuple):
    """What `self_attention_convolution` takes."""

    mechanism: Mechanism
    theta: Array


class TransformerLayer(NamedTuple):
    """What `ContentScores.scores` and `multi_head_self_attention` take; `residual`: `HeadMaps`'."""

    content: ContentScores
    value: Array
    output: Array
    residual: Array


def as_attention_convolution(
    content: ContentScores,
    value: Num[Array, "heads in_channels width"] | None,
    output: Num[Array, "heads width out_channels"] | None,
    mask: Bool[Array | np.ndarray, "keys queries"] | None = None,
    *,
    blank: Blank = "refuse",
) -> AttentionConvolution:
    """A Transformer layer as mechanism and parameter of a self-attention convolution.

    Args:
        content, value, output: As the layer has them.
        mask, blank: As in `column_softmax`, keys first.

    Raises:
        ValueError: For content scores with tables of relative positions: A19's scores depend on
            what keys and queries hold alone.

    Source: A19 eqs. 7, 9 and 10.

    >>> import jax.numpy as jnp
    >>> content = ContentScores(jnp.zeros((1, 2, 3)), jnp.zeros((1, 2, 3)))
    >>> as_attention_convolution(content, None, jnp.ones((1, 2, 5))).theta.shape
    (1, 2, 5)
    """
    if content.tables is not None:
        raise ValueError(
            "content.tables is not None, but the scores of A19 eq. 9 depend on what keys and "
            "queries hold alone; take the tables away, or put positions into the tokens"
        )
    maps = ScaledDotProduct(
        content.key, content.query, content.key_bias, content.query_bias, content.scaled
    )

    def scores(
        keys: Float[Array, "batch keys features"], queries: Float[Array, "batch queries features"]
    ) -> Float[Array, "batch heads keys queries"]:
        return scaled_dot_product_scores(keys, queries, maps)

    return AttentionConvolution(
        softmax_mechanism(scores, mask, blank=blank), parameter_from_maps(value, output)
    )


def as_transformer_layer(
    parameters: BiAffine | ScaledDotProduct,
    theta: Num[Array, "heads in_channels out_channels"],
    width: int | None = None,
) -> TransformerLayer:
    """A self-attention convolution with a softmax over the keys, as a Transformer layer.

    Args:
        parameters: Of the mechanism; bi-affine ones take key features min(P', Q') + 1 = P + 1.
        theta, width: As in `maps_from_parameter`; a width below the rank of a Θ_k leaves a
            residual.

    Raises:
        ValueError: For a mechanism whose keys or queries have other features than x: in
            self-attention all three are the same.

    Source: A19 eqs. 7, 9 and 10, read from right to left.

    >>> import jax.numpy as jnp
    >>> layer = as_transformer_layer(BiAffine(offset=jnp.zeros(1)), jnp.ones((1, 2, 5)))
    >>> layer.content.key.shape, layer.value.shape, layer.output.shape
    ((1, 2, 3), (1, 2, 2), (1, 2, 5))
    """
    features = theta.shape[1]
    if isinstance(parameters, BiAffine):
        parameters = as_scaled_dot_product(parameters, features, features)
    if parameters.key.shape[1] != features or parameters.query.shape[1] != features:
        raise ValueError(
            f"key.shape={parameters.key.shape} and query.shape={parameters.query.shape}, but the "
            f"layer's tokens have {features} features, as theta.shape={theta.shape} says; a layer "
            "of self-attention has the same tokens for x, keys and queries"
        )
    content = ContentScores(
        parameters.query,
        parameters.key,
        parameters.query_bias,
        parameters.key_bias,
        parameters.scaled,
    )
    return TransformerLayer(content, *maps_from_parameter(theta, width))
