"""Some queries at a time: every layer, without the matrix of all queries and keys.

The weights of a query depend on its own row of scores alone, so the queries can be taken in blocks,
each against all keys. A block's scores live until its result is there; on the way back they are
computed again (`jax.checkpoint`) rather than kept. So memory grows with the number of keys, not
with its square, while the products are those of the dense back end, and the scores' once more in
the backward pass.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int, Num

from convattn.encodings.base import PositionalEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.fast.backend import BackEnd, Work
from convattn.fast.content import content_factors, content_scale
from convattn.fast.dense import weights_beside_register
from convattn.fast.dense import work as dense_work
from convattn.fast.dropout import keep_scale
from convattn.fast.maps import HeadMaps, arrange_maps, scaled, sum_dtype
from convattn.fast.options import DEFAULT_OPTIONS, AttentionOptions
from convattn.fast.products import product
from convattn.operators.arrays import promoted
from convattn.operators.attention import HIGHEST
from convattn.operators.relative_content import relative_scores
from convattn.operators.shifts import TokenGrid

_BLOCK_BYTES = 2**24

Scorer = Callable[[Int[Array, " block"]], Float[Array, "heads block keys"]]


def refusal(layer: AttentionLayer, grid: TokenGrid, options: AttentionOptions) -> str | None:
    """None: it serves every layer."""
    return None


def attend(
    layer: AttentionLayer,
    grid: TokenGrid,
    tokens: Num[Array, "batch *grid features"],
    options: AttentionOptions,
) -> Num[Array, "batch *grid out_features"]:
    """Σ_h g_h A_h X W_val,h W_out,h, for `options.chunk` rows of the A_h at a time.

    The last block is filled up with the last query, whose repeated rows are dropped.
    """
    batch, count = tokens.shape[0], math.prod(grid.queries)
    scores, scores_dtype = _block_scores(layer, grid, tokens)
    dtype = promoted(sum_dtype(layer, tokens), scores_dtype)
    maps = arrange_maps(layer, grid, batch * count, float(count), dtype)
    flat = tokens.reshape(batch, count, tokens.shape[-1])
    precision = options.precision
    if maps.before is None:
        values = flat
    else:
        values = product("bkd,hde->bkhe", flat, maps.before, dtype=dtype, precision=precision)
    query_keys = np.ravel_multi_index(tuple(grid.query_positions.T), grid.keys).astype(np.int32)

    def block(queries: Int[Array, "block"]) -> Num[Array, "batch block out_features"]:
        mask = grid.mask(queries)
        weights = _without_ring(weights_beside_register(layer, grid, scores(queries), mask), grid)
        if options.dropout is not None:
            pairs = queries[:, None], jnp.asarray(query_keys)
            scale = keep_scale(options.dropout, batch, layer.heads, *pairs, weights.dtype)
            weights = jnp.broadcast_to(weights, scale.shape) * scale
        return mix(weights, values, maps, dtype, precision)

    size = options.chunk or default_chunk(layer, grid, batch, scores_dtype, options)
    size = min(size, count)
    blocks = np.minimum(np.arange(-(-count // size) * size), count - 1).reshape(-1, size)
    rows = lax.map(jax.checkpoint(block), jnp.asarray(blocks, jnp.int32))
    rows = jnp.moveaxis(rows, 0, 1).reshape(batch, -1, rows.shape[-1])
    return rows[:, :count].reshape(batch, *grid.queries, rows.shape[-1])


def _block_scores(
    layer: AttentionLayer, grid: TokenGrid, tokens: Num[Array, "batch *grid features"]
) -> tuple[Scorer, np.dtype]:
    """The scores of a block of queries, with a batch axis if there is content; and their dtype."""
    position = scorer(layer.encoding, grid)
    one = jax.ShapeDtypeStruct((1,), jnp.int32)
    dtype = jax.eval_shape(position, one).dtype
    content = layer.content
    if content is None:
        return position, dtype
    tables = content.tables
    stored_dtype = jnp.result_type(tokens, content.query, content.key, *(tables or ()))
    dtype = promoted(dtype, stored_dtype)
    left, right = content_factors(content, grid, tokens, dtype)
    scale = content_scale(content)

    def both(queries: Int[Array, " block"]) -> Float[Array, "batch heads block keys"]:
        own = left[:, :, queries]
        scores = jnp.einsum("bhqe,bhke->bhqk", own, right, precision=HIGHEST)
        if tables is not None:
            scores = scores + relative_scores(tables, own, grid, queries)
        return position(queries)[None] + scores / scale

    return both, dtype


def scorer(encoding: PositionalEncoding, grid: TokenGrid) -> Scorer:
    """The positional scores of a block of queries, given by their flat numbers.

    From the encoding's own `positional_scorer`, which all of ours have; else from the matrix of all
    of them.
    """
    own = getattr(encoding, "positional_scorer", None)
    if own is not None:
        return own(grid)
    every = encoding.positional_scores(grid)
    return lambda queries: every[:, queries]


def _without_ring(
    weights: Float[Array, "*lead keys"], grid: TokenGrid
) -> Float[Array, "*lead queries"]:
    """The columns of the image's own tokens: those of the ring are zeros, whose sum is zero."""
    lead = weights.shape[:-1]
    box = tuple(
        slice(before, before + n) for n, (before, _) in zip(grid.queries, grid.ring, strict=True)
    )
    return weights.reshape(*lead, *grid.keys)[(..., *box)].reshape(*lead, -1)


def mix(
    weights: Float[Array, "*batch heads block keys"],
    values: Num[Array, "batch keys features"] | Num[Array, "batch keys heads width"],
    maps: HeadMaps,
    dtype: np.dtype,
    precision: lax.PrecisionLike,
) -> Num[Array, "batch block out_features"]:
    """Σ_h g_h A_h V_h O_h for the rows of a block; the values of all heads are one if `ndim` is 3.

    Where no map comes after the weights, the heads are summed in the same product.
    """
    if maps.gains is not None:
        weights = scaled(weights, maps.gains, weights.dtype)
    lead = "b" if weights.ndim == 4 else ""
    keyed = "bkd" if values.ndim == 3 else "bkhd"
    if maps.after is None:
        formula = f"{lead}hqk,{keyed}->bqd"
        return product(formula, weights, values, dtype=dtype, precision=precision)
    formula = f"{lead}hqk,{keyed}->bqhd"
    mixed = product(formula, weights, values, dtype=dtype, precision=precision)
    return product("bqhd,hdo->bqo", mixed, maps.after, dtype=dtype, precision=precision)


def default_chunk(
    layer: AttentionLayer,
    grid: TokenGrid,
    batch: int,
    dtype: np.dtype,
    options: AttentionOptions,
) -> int:
    """So many queries that a block's scores take at most 16 MiB, in blocks of nearly one size.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention(jnp.ones((3, 3, 1, 1)), form="limit")
    >>> grid, dtype = TokenGrid((64, 64), layer.ring), np.dtype("float32")
    >>> default_chunk(layer, grid, 1, dtype, AttentionOptions())  # 9·66² numbers for each query
    106
    """
    is_per_image = layer.content is not None or options.dropout is not None
    row = (
        (max(batch, 1) if is_per_image else 1) * layer.heads * grid.number_of_keys * dtype.itemsize
    )
    count = math.prod(grid.queries)
    most = min(max(_BLOCK_BYTES // row, 1), count)
    return -(-count // -(-count // most))


def work(
    layer: AttentionLayer,
    grid: TokenGrid,
    batch: int,
    features: int,
    options: AttentionOptions = DEFAULT_OPTIONS,
) -> Work:
    """The dense back end's, in as many calls more as there are blocks."""
    total = dense_work(layer, grid, batch, features)
    size = options.chunk or default_chunk(layer, grid, batch, np.dtype("float32"), options)
    blocks = -(-math.prod(grid.queries) // size)
    return total._replace(calls=total.calls * blocks)


CHUNKED = BackEnd("chunked", refusal, attend, work, serves_registers=True)
