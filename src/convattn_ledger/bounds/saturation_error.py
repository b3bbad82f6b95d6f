"""How far a layer at finite α or M is from the convolution that it tends to.

Let A_h be a head's rows at finite parameters and S_h what they tend to: at each query the one-hot
row of the nearest key to q + Δ (quadratic), or that of the key at q + δ, and the uniform row where
there is none (bias). Σ_h S_h X W_h + b is the limit layer: with the ring the zero-padded
convolution, on the bare grid the edge-replicate or the mean-padded one. A row of A_h - S_h sums to
zero and has the L1 norm 2 TV, so its positive and its negative part have the sum TV each, and

    |((A_h - S_h) X W_h)_qj| ≤ TV_h · (max_k (X W_h)_kj - min_k (X W_h)_kj).

Summed over the heads, with TV_h ≤ 1 - θ(α_h)^(-axes) or (N-1)/(e^M + N - 1) from
`saturation.py`, this bounds the layer's distance from its limit: `saturation_error_
bound`. A spread is at most 2·max|X|·Σ_i |W_ij|, which is the bound before any image is known:
`saturation_error_factor`. For one head it is reached: X = c at the target, -c at every other key.

It speaks of real arithmetic. What rounding adds is bounded elsewhere (`convattn.bounds.rounding`
for exact forms, `convattn_ledger.evidence.softmax_rounding` for exactly known scores).
"""

import math
from functools import reduce
from typing import Any

import jax.numpy as jnp
import numpy as np
from flint import arb
from jaxtyping import Float

from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.encodings.quadratic import QuadraticEncoding
from convattn.encodings.quadratic_grid import QuadraticGridEncoding
from convattn.fast.application import layer_features
from convattn.operators.arrays import as_array
from convattn.operators.patches import add_zero_ring, patchify
from convattn.operators.roundoff import gamma, unit_roundoff
from convattn.operators.shifts import TokenGrid
from convattn_ledger.bounds.saturation import (
    bias_total_variation,
    quadratic_total_variation_bound,
    upper,
)

INFLATION = 1 + 2.0**-20  # more than evaluating nonnegative sums in float64 can lose


def head_saturation(encoding: object, number_of_keys: int) -> list[arb]:
    """For each head, a ball above which its total variation to its limit never lies.

    Args:
        encoding: Quadratic with integer centres and α ≥ 0.05, or one-hot biases without a leak.
        number_of_keys: N, the ring counted.

    Source: S.saturation of this project's ledger.

    >>> heads = BiasEncoding(jnp.array([[math.log(3.0)]]), None, ((0,),))
    >>> head_saturation(heads, 4)[0].overlaps(arb("0.5 +/- 1e-6"))  # 3/(3 + 3)
    True
    """
    if isinstance(encoding, QuadraticEncoding | QuadraticGridEncoding):
        if isinstance(encoding, QuadraticGridEncoding):
            # θ(α) falls in α, so that the smaller α of two axes serves both.
            looks, widths = encoding.head_centers, encoding.head_alpha.min(axis=1)
        else:
            looks, widths = encoding.centers, encoding.alpha
        centers, sharpness = np.asarray(looks, np.float64), np.asarray(widths, np.float64)
        if (centers != np.round(centers)).any():
            raise ValueError(
                f"the centres {centers.tolist()} are not all integers, so two keys may be equally "
                "near and the head tends to no single one; round them"
            )
        return [quadratic_total_variation_bound(float(a), centers.shape[1]) for a in sharpness]
    if isinstance(encoding, BiasEncoding) and encoding.uniform_weight is None:
        values = np.asarray(encoding.values, np.float64)
        if not (((values > 0).sum(axis=1) == 1) & ((values != 0).sum(axis=1) == 1)).all():
            raise ValueError(
                f"the biases {values.tolist()} are not one M > 0 and zeros in each head, so their "
                "rows do not tend to a single key; convert with encoding='bias', exact=False"
            )
        return [bias_total_variation(float(row.max()), number_of_keys) for row in values]
    raise ValueError(
        f"no saturation is derived for this {type(encoding).__name__}, only for the quadratic "
        "encoding and for one-hot biases without a leak (exact forms have no such error)"
    )


def saturation_error_factor(
    layer: AttentionLayer, number_of_keys: int
) -> Float[np.ndarray, " patch_out"]:
    """Σ_h 2·TV_h·Σ_i |W_h,ij|: times max|X| it bounds |layer - limit| for every image.

    Args:
        layer: With an encoding that `head_saturation` knows, and an output or a value map.
        number_of_keys: N of the grid that it will meet, the ring counted.

    Source: S.saturation of this project's ledger.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention([[[1.0]], [[-2.0]], [[3.0]]], form="limit", sharpness=20.0)
    >>> saturation_error_factor(layer, 10).round(8).tolist()  # 2·9/(e^20 + 9)·(1 + 2 + 3)
    [2.2e-07]
    """
    layer.require_no_register("the distance of a row is that of tokens alone")
    distances = [upper(ball) for ball in head_saturation(layer.encoding, number_of_keys)]
    maps = reduce(np.matmul, map(np.abs, head_maps(layer)))
    return 2 * np.einsum("h,hij->j", np.array(distances), maps) * INFLATION


def saturation_error_bound(
    layer: AttentionLayer,
    images: Any,
    *,
    border: str = "zeros",
) -> Float[np.ndarray, "batch *space out_channels"]:
    """A bound on the distance of a layer from its limit, for each image and output feature.

    Args:
        layer: From `conv_to_attention(…, form="limit")`, encoding `"quadratic"` or `"bias"`.
        images, border: As they are given to `apply_attention`. With the layer's own ring the limit
            is `conv(images, kernel, bias)`; with `border="none"` it is padded with the nearest
            token, or with the mean of all.

    Returns:
        float64, of the shape of the result; the same number at all queries.

    Source: S.saturation of this project's ledger.

    >>> import convattn as ca
    >>> kernel, image = [[[1.0]], [[2.0]], [[1.0]]], jnp.array([[[1.0], [2.0], [4.0]]])
    >>> layer = ca.conv_to_attention(kernel, encoding="quadratic", sharpness=9.0)
    >>> error = abs(ca.apply_attention(layer, image) - ca.conv(image, kernel))
    >>> bool((error <= saturation_error_bound(layer, image)).all())
    True
    """
    if layer.content is not None:
        raise ValueError("the layer has content scores, but the bound covers positions only")
    require_zero_ring(layer)
    parts = head_maps(layer)
    images = as_array(images, "images")
    tokens = patchify(images, layer.patch_size)
    if tokens.shape[-1] != layer_features(layer):
        raise ValueError(
            f"images.shape={images.shape} gives tokens of {tokens.shape[-1]} features, but the "
            f"layer takes {layer_features(layer)}"
        )
    grid = layer.token_grid(images.shape[1:-1], border)
    keys = np.asarray(add_zero_ring(tokens, grid.ring), np.float64)
    keys = keys.reshape(len(images), grid.number_of_keys, -1)

    maps, magnitudes = reduce(np.matmul, parts), reduce(np.matmul, map(np.abs, parts))
    products = keys.shape[-1] + (parts[0].shape[-1] if len(parts) > 1 else 0)
    mapped = np.einsum("bki,hij->bhkj", keys, maps, optimize=True)
    largest = np.einsum("bki,hij->bhkj", np.abs(keys), magnitudes, optimize=True).max(axis=2)
    slack = 2 * gamma(products, unit_roundoff(jnp.float64)) * largest
    spread = mapped.max(axis=2) - mapped.min(axis=2) + slack
    distances = [upper(ball) for ball in head_saturation(layer.encoding, grid.number_of_keys)]
    features = np.einsum("h,bhj->bj", np.array(distances), spread) * INFLATION
    return _spread_over_pixels(layer, features, grid)


def require_zero_ring(layer: AttentionLayer) -> None:
    """Refuse a layer that fills its ring, has a causal mask or a register."""
    layer.require_no_register("the bound is derived for tokens")
    if layer.causal or layer.padding is not None:
        fill = "causal mask" if layer.padding is None else layer.padding.fill.lower()
        raise ValueError(
            f"the layer fills its ring, or masks keys ({fill}), but the bound is derived for a "
            "ring of zero tokens and all keys; convert with padding='SAME_TORCH'"
        )


def head_maps(layer: AttentionLayer) -> list[Float[np.ndarray, "heads _ _"]]:
    """The maps whose product is each head's, in float64: one or two."""
    maps = [array for array in (layer.value, layer.output) if array is not None]
    if not maps:
        raise ValueError("the layer has no map; give it an output map, the identity if need be")
    return [np.asarray(array, np.float64) for array in maps]


def _spread_over_pixels(
    layer: AttentionLayer, features: Float[np.ndarray, "batch patch_out"], grid: TokenGrid
) -> Float[np.ndarray, "batch *space out_channels"]:
    """The same features at every query, as an image."""
    patch, sides = layer.output_patch_size, grid.queries
    channels = features.shape[1] // math.prod(patch)
    tile = features.reshape(len(features), *patch, channels)
    image = np.tile(tile, (1, *sides, 1))
    return image[(slice(None), *(slice(None, None, s) for s in layer.subsampling))]
