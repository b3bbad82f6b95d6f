"""Content attention through `jax.nn.dot_product_attention`, with all other scores as its bias."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Num

from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.fast.backend import BackEnd, Work
from convattn.fast.content import content_factors, content_scale
from convattn.fast.maps import arrange_maps, sum_dtype
from convattn.fast.options import DEFAULT_OPTIONS, AttentionOptions
from convattn.fast.products import is_highest, product
from convattn.operators.patches import add_zero_ring
from convattn.operators.relative_content import relative_products, relative_scores
from convattn.operators.shifts import TokenGrid

# Zeros in their place would serve, but XLA multiplies broadcast operands wrongly on CPUs: with jax
# 0.10.2, up to every second compilation of dot_product_attention(zeros, zeros, …) gives NaN.
_WITHOUT_CONTENT = (
    "it has no content scores, so that the queries and keys of dot_product_attention would have "
    "no features; use separable, shift, chunked or dense"
)


def refusal(layer: AttentionLayer, grid: TokenGrid, options: AttentionOptions) -> str | None:
    """Layers without content, in float64, with dropout, or at two precisions at once."""
    if layer.content is None:
        return _WITHOUT_CONTENT
    if grid.ahead is not None:
        return "it has a causal mask, which its scores do not hold; use chunked or dense"
    dtypes = [getattr(leaf, "dtype", None) for leaf in jax.tree.leaves(layer)]
    if jnp.float64 in (*dtypes, options.tokens_dtype):
        return (
            "it has float64 parameters or is given float64 images, but dot_product_attention takes "
            "softmax in float32 whatever it is given; use dense or chunked, or cast to float32"
        )
    if options.dropout is not None:
        return "dropout_rate is above 0, but the weights are never returned; use dense or chunked"
    if precision_name(options.precision) is None:
        return (
            f"precision={options.precision}, but dot_product_attention takes one named precision "
            "for both operands; give one of jax.lax.Precision, or use dense or chunked"
        )
    return None


def attend(
    layer: AttentionLayer,
    grid: TokenGrid,
    tokens: Num[Array, "batch *grid features"],
    options: AttentionOptions,
) -> Num[Array, "batch *grid out_features"]:
    """Σ_h g_h A_h X W_val,h W_out,h with the A_h inside `jax.nn.dot_product_attention`.

    Queries, keys and values must all be as wide as one another there, so the narrower are filled up
    with zeros, which adds zeros to the scores and columns that are cut off to the result. The ring
    takes part with its keys and with values of zero.

    At the highest precision all is in float32. At another, bfloat16 tokens make queries, keys,
    values and weights bfloat16 on accelerators, and each head's result too, as in any such
    attention; sums are in float32. On CPUs they are float32: there XLA ends the whole process for
    some bfloat16 heads of one channel. So is float16 everywhere, which CPUs do not multiply here.
    """
    dtype, content = sum_dtype(layer, tokens), _content_of(layer)
    if dtype == jnp.float64:
        raise ValueError(
            f"tokens.dtype={tokens.dtype}, but backend='dot_product' takes softmax in float32; use "
            "dense or chunked, or cast the images to float32"
        )
    batch, count = tokens.shape[0], math.prod(grid.queries)
    maps = arrange_maps(layer, grid, batch * count, float(grid.number_of_keys), dtype)
    left, right = content_factors(content, grid, tokens, dtype)
    if maps.before is None:
        values = jnp.broadcast_to(
            tokens[..., None, :], (*tokens.shape[:-1], layer.heads, tokens.shape[-1])
        )
    else:
        formula = "b...d,hde->b...he"
        values = product(formula, tokens, maps.before, dtype=dtype, precision=options.precision)
    values = add_zero_ring(values, (*grid.ring, (0, 0)))
    values = values.reshape(batch, grid.number_of_keys, *values.shape[-2:])
    width, head_dim = left.shape[-1], values.shape[-1]
    accelerated = jax.default_backend() != "cpu" and not is_highest(options.precision)
    narrow = accelerated and tokens.dtype == jnp.bfloat16
    bias = layer.encoding.positional_scores(grid)[None]
    if content.tables is not None:
        bias = bias + relative_scores(content.tables, left, grid) / content_scale(content)
    operands = (jnp.swapaxes(left, 1, 2), jnp.swapaxes(right, 1, 2), values)
    query, key, value = (
        widened(operand.astype(jnp.bfloat16 if narrow else dtype), max(width, head_dim))
        for operand in operands
    )
    with jax.default_matmul_precision(precision_name(options.precision)):
        attended = jax.nn.dot_product_attention(
            query,
            key,
            value,
            bias=bias,
            scale=1 / content_scale(content),
        )
    attended = attended[..., :head_dim]
    if maps.gains is not None:
        attended = attended.astype(dtype) * maps.gains.astype(dtype)[:, None]
    if maps.after is None:
        result = attended.astype(dtype).sum(axis=2)
    else:
        formula = "bqhd,hdo->bqo"
        result = product(formula, attended, maps.after, dtype=dtype, precision=options.precision)
    return result.reshape(batch, *grid.queries, result.shape[-1])


def _content_of(layer: AttentionLayer) -> ContentScores:
    """The content scores of a layer that has them."""
    if layer.content is None:
        raise ValueError(f"layer.content=None, but expected ContentScores: {_WITHOUT_CONTENT}")
    return layer.content


def widened(array: Num[Array, "*lead width"], width: int) -> Num[Array, "*lead wider"]:
    """Zeros after the last axis, up to this width.

    >>> widened(jnp.ones((1, 2)), 3).tolist()
    [[1.0, 1.0, 0.0]]
    """
    return jnp.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, width - array.shape[-1])])


def precision_name(precision: Any) -> str | None:
    """How `jax.default_matmul_precision` calls a precision, or None if it does not know it.

    >>> precision_name(lax.Precision.HIGHEST), precision_name(("float32", "float32"))
    ('highest', 'highest')
    """
    if isinstance(precision, tuple):
        names = {precision_name(entry) for entry in precision}
        return names.pop() if len(names) == 1 else None
    if isinstance(precision, lax.DotAlgorithmPreset):
        return precision.name
    if precision is None:
        return "default"
    if isinstance(precision, str) and precision in lax.DotAlgorithmPreset.__members__:
        return precision
    try:
        return lax.Precision(precision).name.lower()
    except ValueError:
        return None


def work(
    layer: AttentionLayer,
    grid: TokenGrid,
    batch: int,
    features: int,
    options: AttentionOptions = DEFAULT_OPTIONS,
) -> Work:
    """Scores and mixing in products of the greater of both widths, and the maps."""
    content = _content_of(layer)
    count, keys, heads = math.prod(grid.queries), grid.number_of_keys, layer.heads
    key_features = content.query.shape[2]
    head_dim = features if layer.value is None else layer.value.shape[2]
    pairs = batch * heads * count * keys
    products = 2 * pairs * max(key_features, head_dim)
    maps = (layer.value, layer.output, content.query, content.key)
    products += batch * heads * relative_products(content.tables, grid)
    products += sum(batch * count * array.size for array in maps if array is not None)
    moved = 6 * pairs + 4 * batch * heads * keys * max(key_features, head_dim)
    return Work(float(products), float(moved), float(pairs), 12.0)


DOT_PRODUCT = BackEnd("dot_product", refusal, attend, work)
