"""How far the attention of a converted layer, as computed, can be from the exact convolution.

Both are given the same tokens, which count as exact. Three parts add up:

1. *Rounding* of the attention that the network holds, whatever the back end, against the exact
   value of its stored numbers: `convattn_ledger.bounds.back_ends.value_bound`.
2. *Distance* of those numbers' exact value from the convolution. The exact kind differs only in
   what was rounded when its biases M(N) and its maps were stored. These are among the roundings
   that `convattn.bounds.rounding.layer_error_bound` counts, so it bounds that, too. The limit
   stores its numbers exactly, and is off by the saturation: `saturation_error_bound`, with the
   total variation (N - 1)/(e^M + N - 1) of each head.
3. *The border*, where a convolution with zeros outside became attention without a ring: the
   difference of the two convolutions, evaluated in float64.

Source: L21 Theorem 1; S.finite, S.saturation and S.boundary of this project's ledger.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jaxtyping import Float

from convattn.bounds.majorant import majorant_of
from convattn.bounds.rounding import layer_error_bound
from convattn.constructions.conversion import conv_to_attention
from convattn.nnx.vision_transformer.attention_mixing import AttentionMixing
from convattn.nnx.vision_transformer.convolution_mixing import ConvolutionMixing
from convattn.operators.patches import patchify, unpatchify
from convattn.operators.roundoff import gamma, unit_roundoff
from convattn_lab.two_phase.settings import ConversionSettings
from convattn_ledger.bounds.back_ends.bounds import value_bound
from convattn_ledger.bounds.saturation_error import saturation_error_bound

Tokens = Float[Array, "batch rows columns features"]
Bound = Float[np.ndarray, "batch rows columns features"]
UNIT = unit_roundoff(jnp.float32)
TINY = float(jnp.finfo(jnp.float32).tiny)


def float64_mixing(mixing: ConvolutionMixing, border: str | None = None) -> ConvolutionMixing:
    """The same convolution in float64; call this, and it, under `jax.enable_x64(True)`.

    Args:
        border: Another one than the mixing's, if given.
    """
    wide: Any = nnx.clone(mixing)
    wide.dtype = np.dtype("float64")
    wide.precision = jax.lax.Precision.HIGHEST
    wide.border = mixing.border if border is None else border
    for parameter in (wide.kernel, wide.bias):
        parameter.set_value(parameter[...].astype(jnp.float64))
    return wide


def attention_bound(
    attention: AttentionMixing,
    convolution: ConvolutionMixing,
    tokens: Tokens,
    conversion: ConversionSettings,
) -> Bound:
    """A bound on |attention(tokens) - convolution(tokens)|: as computed, and exact.

    Args:
        attention: In float32, as `transfer` makes it of `convolution`.
        tokens: float32.

    Returns:
        float64.
    """
    rounding = value_bound(attention.layer(), tokens)
    distance = _distance_bound(convolution, tokens, conversion)
    if convolution.border == "zero" and conversion.border == "mean":
        with jax.enable_x64(True):
            wide = jnp.asarray(tokens, jnp.float64)
            zeros, mean = (float64_mixing(convolution, border) for border in ("zero", "mean"))
            moved = jnp.abs(zeros(wide) - mean(wide))
            small = convolution_rounding(zeros, wide) + convolution_rounding(mean, wide)
            distance = distance + np.asarray(moved + small * 2.0**-20)
    return rounding + distance


def _distance_bound(
    convolution: ConvolutionMixing, tokens: Tokens, conversion: ConversionSettings
) -> Bound:
    """A bound on the distance of the stored attention, in exact arithmetic, from the convolution.

    The convolution has the border that the attention sees.
    """
    patch_size = convolution.patch_size
    kernel, bias = convolution.kernel[...], convolution.bias[...]
    images = unpatchify(jnp.asarray(tokens), patch_size)
    bare = convolution.border == "mean" or conversion.border == "mean"
    options: dict[str, Any] = {"patch_size": patch_size, "encoding": "bias"}
    if conversion.kind == "limit":
        layer = conv_to_attention(kernel, bias, form="limit", sharpness=conversion.logit, **options)
        bound = saturation_error_bound(layer, images, border="none" if bare else "zeros")
    else:
        layer = conv_to_attention(
            kernel, bias, form="exact", uniform_weight=conversion.leak, **options
        )
        layer = replace(layer, ring=((0, 0), (0, 0))) if bare else layer
        bound = layer_error_bound(layer, images, majorant_of(layer, kernel, bias, images))
    with jax.enable_x64(True):
        return np.asarray(patchify(jnp.asarray(bound), patch_size))


def convolution_rounding(
    mixing: ConvolutionMixing, tokens: Float[Array, "batch rows columns features"]
) -> Float[Array, "batch rows columns features"]:
    """γ_n(|X| * |W| + |b|): how far a convolution in float32 can be off, underflow included.

    n is K²C + 1; with means of N tokens at the border their roundings add, N + 2.

    Args:
        mixing: In float64, see `float64_mixing`.
    """
    kernel = mixing.kernel[...]
    terms = kernel.shape[0] * kernel.shape[1] * kernel.shape[2]
    roundings = terms + 1
    if mixing.border == "mean":
        roundings += tokens.shape[1] * tokens.shape[2] + 2
    size = _magnitude_of(mixing)(jnp.abs(tokens))
    small = (terms + 8) * TINY * (1 + jnp.abs(tokens).max()) * (1 + jnp.abs(kernel).max())
    return gamma(roundings, UNIT) * size + small


def _magnitude_of(mixing: ConvolutionMixing) -> ConvolutionMixing:
    """The convolution with |W| and |b|."""
    positive = nnx.clone(mixing)
    for parameter in (positive.kernel, positive.bias):
        parameter[...] = jnp.abs(parameter[...])
    return positive
