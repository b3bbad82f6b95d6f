"""Attention weights and multi-head self-attention, as pure functions; the scores: `scores.py`."""

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Num

from convattn.operators.arrays import accumulation_dtype, promoted

HIGHEST = lax.Precision.HIGHEST


def attention_weights(
    scores: Num[Array, "*batch queries keys"],
    mask: Bool[Array, "*#batch queries keys"] | None = None,
) -> Float[Array, "*batch queries keys"]:
    """Softmax over the keys, in at least float32; each row is nonnegative and sums to one.

    Args:
        scores: Finite, or -∞ for a key that gets no weight. Of a row whose keys, those that the
            mask lets through, all have -∞ the softmax is 0/0: it is NaN.
        mask: True where a key may be attended to; the scores elsewhere have no influence, NaN and
            infinities included. A row without any such key gets weight zero everywhere, and so does
            not sum to one.

    Source: C20 eq. 1 and its footnote 3.

    >>> attention_weights(jnp.zeros((1, 4))).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    >>> attention_weights(jnp.zeros((2, 2)), jnp.array([[True, False], [False, False]])).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    >>> attention_weights(jnp.full((1, 2), -jnp.inf)).tolist()
    [[nan, nan]]
    """
    scores = scores.astype(promoted(scores.dtype, jnp.float32))
    if mask is None:
        return jax.nn.softmax(scores, axis=-1)
    weights = jax.nn.softmax(scores, axis=-1, where=mask)
    return jnp.where(mask.any(-1, keepdims=True) & mask, weights, 0)


def multi_head_self_attention(
    tokens: Num[Array, "batch keys features"],
    weights: Float[Array, "heads queries keys"] | Float[Array, "batch heads queries keys"],
    value: Num[Array, "heads features head_features"] | None = None,
    output: Num[Array, "heads head_features out_features"] | None = None,
    bias: Num[Array, " out_features"] | None = None,
    *,
    precision: lax.PrecisionLike = HIGHEST,
) -> Num[Array, "batch queries out_features"]:
    """MHSA(X) = Σ_h A_h X W_val,h W_out,h + b.

    Concatenating the heads and multiplying by W_out is the same as summing them with W_out cut
    into blocks, `output[h]` (C20 eq. 11, L21 eq. 2).

    Args:
        tokens: X, every key's features.
        weights: A_h, row-stochastic; shared by the batch (positions only) or one for each image.
        value, output: The maps of each head. None is the identity and costs nothing.
        precision: Of the products; pinned to the highest unless the caller says otherwise.

    Returns:
        Sums in at least float32; the caller casts them.

    Source: C20 eqs. 1, 4, 6; L21 eqs. 2, 3.
    """
    operands = [part for part in (tokens, weights, value, output, bias) if part is not None]
    dtype = accumulation_dtype(*operands)
    tokens, weights = tokens.astype(dtype), weights.astype(dtype)
    lead = "b" if weights.ndim == 4 else ""

    def product(formula: str, *factors: Array) -> Array:
        return jnp.einsum(
            formula, *(factor.astype(dtype) for factor in factors), precision=precision
        )

    def mix_tokens(weights: Array, tokens: Array) -> Array:
        """What each head sees, as one product of two matrices: its derivative is one, too."""
        (heads, queries, keys), (batch, _, width) = weights.shape, tokens.shape
        columns = tokens.transpose(1, 0, 2).reshape(keys, batch * width)
        mixed = product("xk,ky->xy", weights.reshape(heads * queries, keys), columns)
        return mixed.reshape(heads, queries, batch, width).transpose(2, 1, 0, 3)

    def map_heads(mixed: Array, output: Array) -> Array:
        """The concatenation of the heads times the maps one below the other."""
        batch, queries, heads, width = mixed.shape
        rows = mixed.reshape(batch * queries, heads * width)
        result = product("xd,do->xo", rows, output.reshape(heads * width, output.shape[2]))
        return result.reshape(batch, queries, output.shape[2])

    value, output = place_single_map(value, output)
    if value is None and output is None:
        result = product(f"{lead}hqk,bkd->bqd", weights, tokens)
    elif value is None:
        mixed = product("bhqk,bkd->bqhd", weights, tokens) if lead else mix_tokens(weights, tokens)
        result = map_heads(mixed, output)  # type: ignore[arg-type]
    else:
        values = product("bkd,hde->bkhe", tokens, value)
        if output is None:
            result = product(f"{lead}hqk,bkhe->bqe", weights, values)
        else:
            mixed = product(f"{lead}hqk,bkhe->bqhe", weights, values)
            result = map_heads(mixed, output)
    return result if bias is None else result + bias.astype(dtype)[None, None]


def place_single_map(
    value: Array | None, output: Array | None
) -> tuple[Array | None, Array | None]:
    """Where a head has one map only, apply it before or after the weights, where it is narrower."""
    if value is not None and output is None and value.shape[1] <= value.shape[2]:
        return None, value
    if value is None and output is not None and output.shape[2] < output.shape[1]:
        return output, None
    return value, output


def contraction_lengths(
    value: Array | None, output: Array | None, heads: int, keys: int
) -> tuple[int, ...]:
    """How many products each sum of `multi_head_self_attention` has, one sum after the other.

    >>> contraction_lengths(None, jnp.zeros((9, 3, 4)), 9, 100)  # mix the keys, then map all heads
    (100, 27)
    """
    value, output = place_single_map(value, output)
    lengths = () if value is None else (value.shape[1],)
    if output is None:
        return (*lengths, heads * keys)
    return (*lengths, keys, heads * output.shape[1])
