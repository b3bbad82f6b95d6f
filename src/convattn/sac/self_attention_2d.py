"""2-D self-attention (B19 §2): every pixel attends to every pixel, with an even relative bias.

    q = x ⋆ H_Q,   k = x ⋆ H_K,   v = x ⋆ H_V                        (1), 1×1 filters
    α_rtij = k_rt · q_ij                                             (2)
    a_rtij = softmax over (r, t) of α_rtij/√d_a + b_(|i-r|, |j-t|)   (3)
    y_ij = Σ_rt a_rtij v_rt                                          (4)

and C heads are concatenated and reduced by a 1×1 convolution H_Y. The softmax of (3) runs over both
axes of the keys together, for each query. Arrays of this library are [heads, queries, keys].

This is SAC with 1×1 filters, computed from matrices instead of convolutions; a layer to train is
`convattn.sac.modules.SelfAttentiveConvolution` with the kernel size 1.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from convattn.operators.arrays import accumulation_dtype, as_array, promoted
from convattn.operators.attention import HIGHEST
from convattn.sac.attend import attend, content_scores_of_heads, floating_result
from convattn.sac.parameters import SelfAttentiveParameters, arrays_of, check_parameters
from convattn.sac.relative_bias import even_bias_scores


def self_attention_2d(
    parameters: SelfAttentiveParameters, images: Any
) -> Float[Array, "batch height width out_channels"]:
    """Multi-head 2-D self-attention.

    Args:
        parameters: Of 1×1 filters with content, at stride 1: query, key and value, and optionally
            the table of `position` and `output`, which is H_Y in blocks.
        images: `[batch, height, width, in]`; beyond the table the bias is 0.

    Returns:
        Dtype `result_type(images, value)`, float32 for integers; sums run in at least float32.

    Raises:
        ValueError: For images of another shape, for parameters that do not fit together or belong
            to a SAC alone, for 64-bit floats while 64-bit types are off.

    Source: B19 eqs. 1 to 4 and §2.1.

    >>> ones = jnp.ones((1, 1, 1, 1, 1))
    >>> image = jnp.array([[[[0.0], [6.0]]]])
    >>> self_attention_2d(SelfAttentiveParameters(ones, 0 * ones, ones), image).ravel().tolist()
    [3.0, 3.0]
    """
    parameters, images = arrays_of(parameters), as_array(images, "images")
    check_parameters(parameters, images)
    has_more = parameters.bias is not None or parameters.ordinary is not None or parameters.causal
    if (
        parameters.query is None
        or parameters.key is None
        or parameters.kernel_size != (1, 1)
        or has_more
    ):
        raise ValueError(
            f"filters of the size {parameters.kernel_size}, but expected 1 × 1 filters of "
            "queries, keys and values, and nothing beside them; for others take "
            "self_attentive_convolution"
        )
    if set(parameters.stride) != {1}:
        raise ValueError(
            f"stride={parameters.stride}, but expected 1; take self_attentive_convolution"
        )
    result = floating_result(images, parameters.value)
    working = accumulation_dtype(result)
    batch, height, width, channels = images.shape
    pixels = images.reshape(batch, height * width, channels).astype(working)

    def project(filters: Array) -> Array:
        weight = filters[:, 0, 0].astype(working)
        return jnp.einsum("bpd,hde->bphe", pixels, weight, precision=HIGHEST)

    scores = content_scores_of_heads(project(parameters.query), project(parameters.key))
    if parameters.position is not None:
        position = even_bias_scores(parameters.position, (height, width), (height, width))[None]
        dtype = promoted(scores.dtype, position.dtype)
        scores = scores.astype(dtype) + position.astype(dtype)
    mixed = attend(scores, project(parameters.value), parameters.output)
    return mixed.reshape(batch, height, width, mixed.shape[-1]).astype(result)
