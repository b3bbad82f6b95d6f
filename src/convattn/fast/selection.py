"""Which back end serves a layer: the one that is named, or the one that is expected to be fastest.

The choice looks at types, shapes, static fields and the platform only, so that it works under jit.
"""

import math

import jax

from convattn.encodings.layer import AttentionLayer
from convattn.fast.backend import BackEnd
from convattn.fast.chunked import CHUNKED
from convattn.fast.cost_model import seconds
from convattn.fast.dense import DENSE
from convattn.fast.dot_product import DOT_PRODUCT
from convattn.fast.options import AttentionOptions
from convattn.fast.separable.back_end import SEPARABLE
from convattn.fast.shift.back_end import SHIFT
from convattn.fast.windowed.back_end import WINDOWED
from convattn.operators.shifts import TokenGrid, symbolic_axes

BACK_ENDS = {
    back_end.name: back_end
    for back_end in (DENSE, SEPARABLE, SHIFT, WINDOWED, CHUNKED, DOT_PRODUCT)
}

_HOLD_WEIGHTS = ("dense", "dot_product")
MAX_WEIGHT_BYTES = 2**31


def choose_backend(
    name: str,
    layer: AttentionLayer,
    grid: TokenGrid,
    tokens: tuple[int, ...],
    options: AttentionOptions,
) -> BackEnd:
    """The back end of that name, or for `"auto"` the cheapest that serves the layer.

    Every one serves a layer without heads, whose result is its bias.

    Args:
        tokens: The shape of the tokens, `[batch, *grid.queries, features]`.
    """
    if not isinstance(name, str) or name not in ("auto", *BACK_ENDS):
        raise ValueError(f"backend={name!r}, but expected one of auto, {', '.join(BACK_ENDS)}")
    if not layer.heads:  # nothing to attend with, so that nobody has a reason to refuse
        return BACK_ENDS.get(name, CHUNKED)
    if symbolic_axes(grid.queries):
        return _serving_symbolic(name, layer, grid, options)
    if name == "auto":
        return cheapest(layer, grid, tokens, options)
    reason = BACK_ENDS[name].reason_to_refuse(layer, grid, options)
    if reason is not None:
        raise ValueError(f"backend={name!r} cannot serve this layer: {reason}")
    return BACK_ENDS[name]


def _serving_symbolic(
    name: str, layer: AttentionLayer, grid: TokenGrid, options: AttentionOptions
) -> BackEnd:
    """The shift back end, which alone forms no table from the size of the grid."""
    reason = SHIFT.reason_to_refuse(layer, grid, options)
    if reason is None and name in ("auto", "shift"):
        return SHIFT
    remedy = "export with concrete sizes, only the batch symbolic"
    if name not in ("auto", "shift"):
        remedy += "" if reason else ", or take backend='shift', which serves this layer"
        reason = "it computes its tables from them"
    raise ValueError(
        f"images of symbolic sizes, tokens {grid.queries}, but backend={name!r} expected integers: "
        f"{reason}; {remedy}"
    )


def cheapest(
    layer: AttentionLayer, grid: TokenGrid, tokens: tuple[int, ...], options: AttentionOptions
) -> BackEnd:
    """The back end with the least expected time.

    `"windowed"` counts only where windows are given, and those that hold all weights only where
    these take at most `MAX_WEIGHT_BYTES` bytes; `"chunked"` serves every layer.
    """
    platform = jax.default_backend()
    too_large = weights_bytes(layer, grid, tokens[0]) > MAX_WEIGHT_BYTES
    expected = {
        name: seconds(back_end.work(layer, grid, tokens[0], tokens[-1], options), platform)
        for name, back_end in BACK_ENDS.items()
        if (name != "windowed" or options.windows is not None)
        and not (too_large and name in _HOLD_WEIGHTS)
        and back_end.reason_to_refuse(layer, grid, options) is None
    }
    return BACK_ENDS[min(expected, key=expected.__getitem__)]


def weights_bytes(layer: AttentionLayer, grid: TokenGrid, batch: int) -> int:
    """What the weights of all pairs take in float32; with content they differ by image.

    >>> import convattn as ca, jax.numpy as jnp
    >>> layer = ca.conv_to_attention(jnp.ones((3, 3, 1, 1)), form="limit")
    >>> weights_bytes(layer, TokenGrid((224, 224), ((0, 0), (0, 0))), 1) // 2**30
    84
    """
    images = 1 if layer.content is None else batch
    return 4 * images * layer.heads * math.prod(grid.queries) * grid.number_of_keys
