"""The value and output maps of the heads, arranged so that they cost least.

Head h adds A_h X V_h O_h. The two maps may be one, V_h O_h: that multiplies features × out numbers
for each query and head, in place of head_dim × (features + out), and mixes `features` channels in
place of head_dim. Which is cheaper is a matter of sizes alone.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Num

from convattn.encodings.layer import AttentionLayer
from convattn.fast.products import product
from convattn.operators.arrays import promoted
from convattn.operators.attention import place_single_map
from convattn.operators.shifts import TokenGrid


class HeadMaps(NamedTuple):
    """What is applied to every key before the heads attend, and to what they have seen after.

    Attributes:
        `before` is `[heads, features, width]` or None for the identity; `after` is `[heads, width,
        out_features]` or None for the identity. The head gains are in the last of them, or in
        `gains` if there is neither.
    """

    before: Array | None
    after: Array | None
    gains: Array | None = None


def arrange_maps(
    layer: AttentionLayer,
    grid: TokenGrid,
    tokens: int,
    mixing: float,
    dtype: np.dtype,
) -> HeadMaps:
    """The maps of a layer, fused into one where that takes fewer products.

    Args:
        tokens: How many the layer is applied to, all images together.
        mixing: How many products attention takes for each token, head and channel.
        dtype: In which sums are taken.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention(jnp.ones((3, 2, 5)), form="limit")
    >>> grid = TokenGrid((8,), layer.ring)
    >>> maps = arrange_maps(layer, grid, 8, 16.0, np.dtype("float32"))
    >>> maps.before, maps.after.shape
    (None, (3, 2, 5))
    """
    value, output = place_single_map(layer.value, layer.output)
    if value is not None and output is not None and fuses(value, output, tokens, mixing):
        output = product("hde,heo->hdo", value, output, dtype=dtype)
        value = None
    gains = layer.encoding.head_gains(grid.number_of_keys)
    if gains is not None and output is not None:
        return HeadMaps(value, scaled(output, gains, dtype))
    if gains is not None and value is not None:
        return HeadMaps(scaled(value, gains, dtype), None)
    return HeadMaps(value, output, gains)


def scaled(
    maps: Num[Array, "*batch heads rows columns"], gains: Num[Array, " heads"], dtype: np.dtype
) -> Num[Array, "*batch heads rows columns"]:
    """Each head's map, or its weights, times its gain, in `dtype`."""
    axes = (*range(maps.ndim - 3), -2, -1)
    return maps.astype(dtype) * jnp.expand_dims(gains.astype(dtype), axes)


def fuses(
    value: Num[Array, "heads features width"],
    output: Num[Array, "heads width out_features"],
    tokens: int,
    mixing: float,
) -> bool:
    """Whether one map V_h O_h takes fewer products than the two.

    >>> value, output = jnp.zeros((9, 400, 400)), jnp.zeros((9, 400, 400))
    >>> fuses(value, output, tokens=4096, mixing=128.0), fuses(value, output, 16, 8.0)
    (True, False)
    """
    heads, features, width = value.shape
    out = output.shape[2]
    separate = tokens * heads * (features * width + mixing * width + width * out)
    once = heads * features * width * out
    together = once + tokens * heads * (mixing * features + features * out)
    return together < separate


def out_features(layer: AttentionLayer, features: int) -> int:
    """How many features the layer's result has."""
    for array in (layer.output, layer.value):
        if array is not None:
            return int(array.shape[2])
    return features


def sum_dtype(layer: AttentionLayer, tokens: Array) -> np.dtype:
    """The dtype in which a back end sums: at least float32, and as wide as tokens and maps."""
    arrays = [array for array in (layer.value, layer.output, layer.bias) if array is not None]
    return promoted(tokens, *arrays, jnp.float32)
