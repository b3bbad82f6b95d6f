"""How far two layers computed in floating point can be from the convolution that they are.

Layer 1 is off by E_1 and layer 2, on what layer 1 gave, by E_2: each by the bounds for one layer
(`convattn.bounds.rounding`, `convattn.bounds.limit_rounding`), whose majorants are here the layers
with the absolute values of their maps, in float64. Layer 2 passes E_1 on through its attention and
the absolute values of its maps, so that

    |computed - exact| ≤ E_2 + |layer 2|(E_1).

The gain 1 + 1/γ of the uniform head is worked out in the dtype of the leak, in seven roundings or
fewer, which its share of the majorant carries; bias and cast add one rounding each.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from convattn.bounds.limit_rounding import one_hot_bound
from convattn.bounds.rounding import layer_error_bound
from convattn.constructions.two_layers import TwoLayers
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention
from convattn.operators.arrays import accumulation_dtype
from convattn.operators.patches import patchify, unpatchify
from convattn.operators.roundoff import gamma, unit_roundoff


def two_layers_bound(
    layers: TwoLayers, images: Any
) -> Float[np.ndarray, "images rows columns features"]:
    """A bound on |layers(images) - conv(images, kernel, bias)|, entry by entry, in float64.

    Args:
        layers: From `two_layers`, in the dtype under test.
        images: As they are given to it; they count as exact.

    >>> import convattn as ca
    >>> layers = ca.conv_to_two_layers(jnp.ones((3, 3, 1, 1)))
    >>> bool((two_layers_bound(layers, jnp.ones((1, 4, 5, 1))) < 1e-2).all())
    True
    """
    images = jnp.asarray(images)
    padded = layers.padded(patchify(images, layers.patch_size))
    between = apply_attention(layers.first, padded)
    second = layers.second_at(padded.shape[1:3])
    with jax.enable_x64(True):
        second_magnitude = _magnitudes(second, between)
        first_magnitude = _magnitudes(layers.first, padded)
    if layers.exact:
        before = layer_error_bound(layers.first, padded, first_magnitude)
        own = layer_error_bound(second, between, second_magnitude)
        uniform_weight = layers.first.encoding.uniform_weight  # type: ignore[attr-defined]
        own = own + gamma(8, unit_roundoff(uniform_weight.dtype)) * second_magnitude * (
            1 + 2.0**-20
        )
    else:
        before = one_hot_bound(layers.first, padded, first_magnitude)
        own = one_hot_bound(second, between, second_magnitude)
    with jax.enable_x64(True):
        total = own + _magnitudes(second, jnp.asarray(before))
        pixels = [
            np.asarray(unpatchify(layers.cropped(jnp.asarray(part)), layers.patch_size))
            for part in (total, second_magnitude)
        ]
    bound, largest = (part[:, :: layers.stride[0], :: layers.stride[1]] for part in pixels)
    if layers.bias is not None:
        bias = np.abs(np.asarray(layers.bias).astype(np.float64))
        dtype = jnp.result_type(between.dtype, accumulation_dtype(between.dtype))
        roundoff = unit_roundoff(between.dtype) + 2 * unit_roundoff(dtype)
        bound = bound + 2 * roundoff * (largest + bound + bias)
    return bound * (1 + 2.0**-20)


def _magnitudes(layer: AttentionLayer, images: Any) -> np.ndarray:
    """Σ_h A_h |X| |W_h| in float64; called under `jax.enable_x64(True)`."""
    assert layer.output is not None
    absolute_layer = replace(layer, output=jnp.abs(layer.output).astype(jnp.float64))
    return np.asarray(apply_attention(absolute_layer, jnp.abs(images).astype(jnp.float64)))
