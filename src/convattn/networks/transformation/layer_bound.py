"""How far a layer of attention can be from its convolution on given images: derived.

|attention - convolution| ≤ the bound of `convattn.bounds.rounding` for the attention, plus
γ_(n+2)·G for the convolution, a sum of n products and the bias, G being the majorant of both.
"""

from functools import partial
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from convattn.bounds.majorant import majorant_layer
from convattn.bounds.rounding import layer_error_bound
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.fast.grouped import grouped_attention
from convattn.operators.arrays import accumulation_dtype
from convattn.operators.roundoff import gamma, unit_roundoff


def layer_bound(
    layer: AttentionLayer,
    kernel: Array,
    bias: Array | None,
    images: Array,
    groups: int,
) -> float | None:
    """A bound on the largest |attention - convolution|; None where none is derived.

    It assumes that the convolution is a sum of products in its own dtype, as it is on a CPU.

    Args:
        layer: From the channels of one group to those of all, in the dtype in which it attends.
        kernel: `[*K, in/groups, out]`.
        images: `[batch, *space, in]`.

    Returns:
        None for the limit form, for split heads of low rank, and below float32.
    """
    encoding = layer.encoding
    exact = isinstance(encoding, BiasEncoding) and encoding.leak is not None
    if not exact or layer.output is None:
        return None
    dtype = jnp.result_type(images, layer.output)
    if jnp.finfo(dtype).bits < 32:
        return None
    with jax.enable_x64(True):
        majorant = np.asarray(grouped_majorant(layer, kernel, bias, images, groups))
    own = gamma(prod(kernel.shape[:-1]) + 2, unit_roundoff(accumulation_dtype(dtype)))
    try:
        attention = layer_error_bound(layer, images.astype(dtype), majorant)
    except ValueError:  # the dtype is too narrow for any
        return None
    return float((attention + own * majorant * (1 + 2.0**-20)).max(initial=0))


@partial(jax.jit, static_argnames="groups")
def grouped_majorant(
    layer: AttentionLayer, kernel: Array, bias: Array | None, images: Array, groups: int
) -> Array:
    """G of `convattn.bounds.majorant`, group by group, as one program."""
    wide = majorant_layer(layer, kernel, None)
    total = grouped_attention(wide, jnp.abs(images.astype(jnp.float64)), groups)
    return total if bias is None else total + jnp.abs(bias.astype(jnp.float64))
