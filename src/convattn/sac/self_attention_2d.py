"""2-D self-attention (B19 §2): every pixel attends to every pixel, with an even relative bias.

    q = x ⋆ H_Q,   k = x ⋆ H_K,   v = x ⋆ H_V                        (1), 1×1 filters
    α_rtij = k_rt · q_ij                                             (2)
    a_rtij = softmax over (r, t) of α_rtij/√d_a + b_(|i-r|, |j-t|)   (3)
    y_ij = Σ_rt a_rtij v_rt                                          (4)

and C heads are concatenated and reduced by a 1×1 convolution H_Y. The softmax of (3) runs over both
axes of the keys together, for each query. Arrays of this library are [heads, queries, keys].
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Num

from convattn.operators.arrays import accumulation_dtype, as_array
from convattn.operators.attention import HIGHEST
from convattn.sac.attend import attend, content_scores_of_heads, floating_result
from convattn.sac.fitting import arrays_of, require_shape
from convattn.sac.relative_bias import EvenBias, even_bias_scores


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SelfAttention2DParameters:
    """H_Q, H_K, H_V of 1×1 filters as matrices, b and H_Y.

    Attributes:
        query, key: `[heads, in, key_features]`.
        value: `[heads, in, head_features]`.
        position: b, or None for no bias.
        output: H_Y as blocks `[heads, head_features, out]`, or None to add the heads up (one head:
            no H_Y).
    """

    query: Num[Array, "heads in_channels key_features"]
    key: Num[Array, "heads in_channels key_features"]
    value: Num[Array, "heads in_channels head_features"]
    position: EvenBias | None = None
    output: Num[Array, "heads head_features out_channels"] | None = None


def self_attention_2d(
    parameters: SelfAttention2DParameters,
    images: Any,
) -> Float[Array, "batch height width out_channels"]:
    """Multi-head 2-D self-attention.

    Args:
        images: `[batch, height, width, in]`, any size that the table of `position` is meant for;
            beyond it the bias is 0.

    Returns:
        Dtype `result_type(images, value)`, float32 for integers; sums run in at least float32.

    Raises:
        ValueError: For images that are not `[batch, height, width, in]`, for parameters that do not
            fit together, for 64-bit floats while 64-bit types are off.

    Source: B19 eqs. 1 to 4 and §2.1.

    >>> ones = jnp.ones((1, 1, 1))
    >>> image = jnp.array([[[[0.0], [6.0]]]])
    >>> self_attention_2d(SelfAttention2DParameters(0 * ones, ones, ones), image).ravel().tolist()
    [3.0, 3.0]
    """
    parameters, images = arrays_of(parameters), as_array(images, "images")
    if images.ndim != 4 or images.shape[-1] != parameters.value.shape[1]:
        raise ValueError(
            f"images.shape={images.shape}, but should be [batch, height, width, "
            f"{parameters.value.shape[1]}] for value maps of shape {parameters.value.shape}; add "
            "the batch axis with images[None]"
        )
    check_maps(parameters)
    result = floating_result(images, parameters.value)
    working = accumulation_dtype(result)
    batch, height, width, channels = images.shape
    pixels = images.reshape(batch, height * width, channels).astype(working)

    def project(weight: Array) -> Array:
        weight = weight.astype(working)
        return jnp.einsum("bpd,hde->bphe", pixels, weight, precision=HIGHEST)

    scores = content_scores_of_heads(project(parameters.query), project(parameters.key))
    if parameters.position is not None:
        scores += even_bias_scores(parameters.position, (height, width), (height, width))
    mixed = attend(scores, project(parameters.value), parameters.output)
    return mixed.reshape(batch, height, width, mixed.shape[-1]).astype(result)


def check_maps(parameters: SelfAttention2DParameters) -> None:
    """Refuse parameters that do not fit together.

    Raises:
        ValueError: As described above.
    """
    heads, channels, features = parameters.value.shape
    require_shape(parameters.query, "query", (heads, channels, "key_features"))
    require_shape(parameters.key, "key", parameters.query.shape)
    require_shape(parameters.output, "output", (heads, features, "out"))
    position = parameters.position
    if position is not None and position.heads not in (1, heads):
        raise ValueError(
            f"position.values.shape={position.values.shape} holds {position.heads} heads, but the "
            f"value maps of shape {parameters.value.shape} have {heads}; give one table for each, "
            "or one"
        )
