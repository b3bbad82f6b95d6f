"""The reference back end: all weights of all heads, then the products. It serves every layer."""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Num

from convattn.encodings.layer import AttentionLayer
from convattn.fast.backend import BackEnd, Work
from convattn.fast.dropout import keep_scale
from convattn.fast.maps import scaled
from convattn.fast.options import DEFAULT_OPTIONS, AttentionOptions
from convattn.operators.arrays import promoted
from convattn.operators.attention import (
    attention_weights,
    contraction_lengths,
    multi_head_self_attention,
)
from convattn.operators.patches import add_zero_ring
from convattn.operators.relative_content import relative_products
from convattn.operators.shifts import TokenGrid


def refusal(layer: AttentionLayer, grid: TokenGrid, options: AttentionOptions) -> str | None:
    """None: it serves every layer."""
    return None


def attend(
    layer: AttentionLayer,
    grid: TokenGrid,
    tokens: Num[Array, "batch *grid features"],
    options: AttentionOptions,
) -> Num[Array, "batch *grid out_features"]:
    """Σ_h g_h A_h X W_val,h W_out,h with every A_h held at once."""
    batch = tokens.shape[0]
    keys = add_zero_ring(tokens, grid.ring).reshape(batch, grid.number_of_keys, tokens.shape[-1])
    weights = with_gains(layer, softmax_weights(layer, grid, keys), grid)
    if options.dropout is not None:
        pairs = jnp.arange(weights.shape[-2])[:, None], jnp.arange(weights.shape[-1])
        scale = keep_scale(options.dropout, batch, layer.heads, *pairs, weights.dtype)
        weights = jnp.broadcast_to(weights, scale.shape) * scale
    result = multi_head_self_attention(
        keys, weights, layer.value, layer.output, precision=options.precision
    )
    return result.reshape(batch, *grid.queries, result.shape[-1])


def work(
    layer: AttentionLayer,
    grid: TokenGrid,
    batch: int,
    features: int,
    options: AttentionOptions = DEFAULT_OPTIONS,
) -> Work:
    """N² scores for each head, N² products for each head and channel, and the maps."""
    queries, keys = int(np.prod(grid.queries)), grid.number_of_keys
    lengths = contraction_lengths(layer.value, layer.output, layer.heads, keys)
    pairs = layer.heads * queries * keys * (batch if layer.content is not None else 1)
    width = features if layer.value is None else layer.value.shape[2]
    products = batch * layer.heads * queries * keys * width
    for array in (layer.value, layer.output):
        products += 0 if array is None else batch * queries * array.size
    if layer.content is not None:
        products += batch * layer.heads * relative_products(layer.content.tables, grid)
    moved = 6 * pairs + batch * queries * layer.heads * width * len(lengths)
    return Work(float(products), float(moved), float(pairs), 8.0)


def softmax_weights(
    layer: AttentionLayer, grid: TokenGrid, keys: Num[Array, "batch keys features"] | None
) -> Float[Array, "heads queries keys"] | Float[Array, "batch heads queries keys"]:
    """The attention weights of a layer on a grid: every row sums to one, or to less by a register.

    They have a batch axis if the layer has content scores. `keys` None stands for an image of
    zeros.
    """
    scores = layer.encoding.positional_scores(grid)
    if layer.content is not None:
        if keys is None:
            keys = jnp.zeros((1, grid.number_of_keys, layer.content.query.shape[1]), scores.dtype)
        query_keys = np.ravel_multi_index(tuple(grid.query_positions.T), grid.keys)
        scores = scores[None] + layer.content.scores(keys[:, query_keys], keys, grid)
    return weights_beside_register(layer, grid, scores, grid.mask())


def weights_beside_register(
    layer: AttentionLayer,
    grid: TokenGrid,
    scores: Float[Array, "*batch heads queries keys"],
    mask: Bool[Array, "queries keys"] | None = None,
) -> Float[Array, "*batch heads queries keys"]:
    """Softmax over the keys and the register, if there is one, which has the rest of each row.

    A mask is for layers without a register.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention(jnp.ones((1, 1, 1)), border="register")
    >>> weights = weights_beside_register(layer, TokenGrid((3,), layer.ring), jnp.zeros((2, 1, 3)))
    >>> weights.sum(-1).round(3).tolist()  # the register has 1/2 and 3/4
    [[0.5], [0.25]]
    """
    if layer.register is None:
        return attention_weights(scores, mask)
    rest = layer.register.at(grid.number_of_keys)[:, None, None]
    rest = jnp.broadcast_to(rest, (*scores.shape[:-1], 1))
    return attention_weights(jnp.concatenate([scores, rest], axis=-1))[..., :-1]


def with_gains(
    layer: AttentionLayer, weights: Float[Array, "*batch heads queries keys"], grid: TokenGrid
) -> Float[Array, "*batch heads queries keys"]:
    """Each head's weights times its gain, where the encoding has gains."""
    gains = layer.encoding.head_gains(grid.number_of_keys)
    return weights if gains is None else scaled(weights, gains, promoted(weights, gains))


def layer_weights(
    layer: AttentionLayer, grid: TokenGrid, keys: Num[Array, "batch keys features"] | None
) -> Float[Array, "heads queries keys"] | Float[Array, "batch heads queries keys"]:
    """What the value maps of the heads are summed with: the weights times the gains."""
    return with_gains(layer, softmax_weights(layer, grid, keys), grid)


DENSE = BackEnd("dense", refusal, attend, work, serves_registers=True)
