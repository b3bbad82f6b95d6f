"""Scores, attention weights and multi-head self-attention, as pure functions.

Tokens stand in rows: X is T × D. Two slips of the sources are mended here, and the ledger says so:
C20 eq. 7 leaves out the transposes of X_k and P_k, and the transposes of C20 eq. 8 do not fit the
shapes that C20 eq. 2 gives its matrices. The forms below are the ones whose shapes work with
W_qry, W_key of shape D × D_k.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Num

from convattn.arrays import accumulation_dtype

HIGHEST = lax.Precision.HIGHEST


def content_scores(
    tokens: Num[Array, "*batch tokens features"],
    query: Num[Array, "features key_features"],
    key: Num[Array, "features key_features"],
    *,
    scale: bool = False,
) -> Num[Array, "*batch tokens tokens"]:
    """Scores from content alone: A = X W_qry W_keyᵀ Xᵀ, over √D_k if `scale`.

    **Source:** C20 eq. 2; the scale is L21 §2.2's.

    >>> content_scores(jnp.eye(2), jnp.eye(2), 3 * jnp.eye(2)).tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """
    scores = jnp.einsum(
        "...qd,...kd->...qk",
        jnp.matmul(tokens, query, precision=HIGHEST),
        jnp.matmul(tokens, key, precision=HIGHEST),
        precision=HIGHEST,
    )
    return scores / math.sqrt(query.shape[-1]) if scale else scores


def position_added_scores(
    tokens: Num[Array, "*batch tokens features"],
    positions: Num[Array, "tokens features"],
    query: Num[Array, "features key_features"],
    key: Num[Array, "features key_features"],
) -> Num[Array, "*batch tokens tokens"]:
    """Scores with positions added to the tokens: A = (X + P) W_qry W_keyᵀ (X + P)ᵀ.

    The positions enter the scores; whether they enter the values as well is the caller's to say
    (C20's text adds them to the representation, its eq. 3 to the scores only).

    **Source:** C20 eq. 3.
    """
    return content_scores(tokens + positions, query, key)


class AbsoluteTerms(NamedTuple):
    """The four summands of C20 eq. 7, each `[*batch, query, key]`."""

    content_content: Array
    content_position: Array
    position_content: Array
    position_position: Array


def absolute_score_terms(
    tokens: Num[Array, "*batch tokens features"],
    positions: Num[Array, "tokens features"],
    query: Num[Array, "features key_features"],
    key: Num[Array, "features key_features"],
) -> AbsoluteTerms:
    """The score of C20 eq. 3 split by bilinearity, with the transposes that eq. 7 leaves out.

    A_qk = X_q W X_kᵀ + X_q W P_kᵀ + P_q W X_kᵀ + P_q W P_kᵀ, where W = W_qry W_keyᵀ.

    **Source:** C20 eq. 7.
    """

    def pair(left: Array, right: Array) -> Array:
        left = jnp.matmul(left, query, precision=HIGHEST)
        right = jnp.matmul(right, key, precision=HIGHEST)
        return jnp.einsum("...qd,...kd->...qk", left, right, precision=HIGHEST)

    return AbsoluteTerms(
        pair(tokens, tokens),
        pair(tokens, positions),
        pair(positions, tokens),
        pair(positions, positions),
    )


class RelativeTerms(NamedTuple):
    """The four summands of C20 eq. 8: two of them, both with content, vanish at X = 0."""

    content_content: Array
    content_position: Array
    bias_content: Array
    bias_position: Array


def relative_score_terms(
    tokens: Num[Array, "*batch tokens features"],
    relative: Num[Array, "tokens tokens position_features"],
    query: Num[Array, "features key_features"],
    key: Num[Array, "features key_features"],
    position_key: Num[Array, "position_features key_features"],
    content_bias: Num[Array, "key_features"],
    position_bias: Num[Array, "key_features"],
) -> RelativeTerms:
    """The relative score, in shapes that work: with r_δ in row k - q of `relative`,

    A_qk = X_q W_qry W_keyᵀ X_kᵀ + X_q W_qry Ŵ_keyᵀ r_δᵀ + u W_keyᵀ X_kᵀ + v Ŵ_keyᵀ r_δᵀ.

    Position enters only through δ = k - q; content enters the first three terms, so the printed
    "the attention scores only depend on δ" is true of the last one alone.

    **Arguments:**

    - `relative`: r_δ for every (query, key).
    - `position_key`: Ŵ_key, D_p × D_k. `content_bias`, `position_bias`: u and v, of length D_k.

    **Source:** C20 eq. 8, after Dai et al. 2019.
    """
    queries = jnp.matmul(tokens, query, precision=HIGHEST)
    keys = jnp.matmul(tokens, key, precision=HIGHEST)
    shifts = jnp.matmul(relative, position_key, precision=HIGHEST)
    square = (*queries.shape[:-1], keys.shape[-2])
    from_content = jnp.einsum("...qd,qkd->...qk", queries, shifts, precision=HIGHEST)
    from_keys = jnp.einsum("d,...kd->...k", content_bias, keys, precision=HIGHEST)
    from_shift = jnp.einsum("d,qkd->qk", position_bias, shifts, precision=HIGHEST)
    return RelativeTerms(
        jnp.einsum("...qd,...kd->...qk", queries, keys, precision=HIGHEST),
        from_content,
        jnp.broadcast_to(from_keys[..., None, :], square),
        jnp.broadcast_to(from_shift, square),
    )


def biased_scores(
    tokens: Num[Array, "*batch tokens features"],
    query: Num[Array, "features key_features"],
    key: Num[Array, "features key_features"],
    bias: Num[Array, "tokens tokens"],
) -> Num[Array, "*batch tokens tokens"]:
    """Scaled dot products plus a position bias: A = X W_qry (X W_key)ᵀ / √d + B.

    **Source:** L21 eq. 4.
    """
    return content_scores(tokens, query, key, scale=True) + bias


def attention_weights(
    scores: Num[Array, "*batch queries keys"],
    mask: Bool[Array, "*#batch queries keys"] | None = None,
) -> Float[Array, "*batch queries keys"]:
    """Softmax over the keys, in at least float32; each row is positive and sums to one.

    **Arguments:**

    - `mask`: True where a key may be attended to. A row without any such key gets weight zero
      everywhere, rather than NaN.

    **Source:** C20 eq. 1 and its footnote 3.

    >>> attention_weights(jnp.zeros((1, 4))).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    scores = scores.astype(jnp.promote_types(scores.dtype, jnp.float32))
    if mask is None:
        return jax.nn.softmax(scores, axis=-1)
    weights = jax.nn.softmax(scores, axis=-1, where=mask)
    return jnp.where(mask.any(-1, keepdims=True) & mask, weights, 0)


def multi_head_self_attention(
    tokens: Num[Array, "batch keys features"],
    weights: Float[Array, "heads queries keys"] | Float[Array, "batch heads queries keys"],
    value: Num[Array, "heads features head_features"] | None = None,
    output: Num[Array, "heads head_features out_features"] | None = None,
    bias: Num[Array, "out_features"] | None = None,
    *,
    precision: lax.PrecisionLike = HIGHEST,
) -> Num[Array, "batch queries out_features"]:
    """MHSA(X) = Σ_h A_h X W_val,h W_out,h + b.

    Concatenating the heads and multiplying by W_out is the same as summing them with W_out cut
    into blocks, `output[h]` (C20 eq. 11, L21 eq. 2).

    **Arguments:**

    - `tokens`: X, every key's features.
    - `weights`: A_h, row-stochastic; shared by the batch (positions only) or one for each image.
    - `value`, `output`: the maps of each head. None is the identity and costs nothing.
    - `precision`: of the products; pinned to the highest unless the caller says otherwise.

    **Returns:** sums in at least float32; the caller casts them.

    **Source:** C20 eqs. 1, 4, 6; L21 eqs. 2, 3.
    """
    operands = [part for part in (tokens, weights, value, output, bias) if part is not None]
    dtype = accumulation_dtype(*operands)
    tokens, weights = tokens.astype(dtype), weights.astype(dtype)
    lead = "b" if weights.ndim == 4 else ""

    def product(formula: str, *factors: Array) -> Array:
        return jnp.einsum(
            formula, *(factor.astype(dtype) for factor in factors), precision=precision
        )

    value, output = place_single_map(value, output)
    if value is None and output is None:
        result = product(f"{lead}hqk,bkd->bqd", weights, tokens)
    elif value is None:
        mixed = product(f"{lead}hqk,bkd->bqhd", weights, tokens)
        result = product("bqhd,hdo->bqo", mixed, output)  # type: ignore[arg-type]
    else:
        values = product("bkd,hde->bkhe", tokens, value)
        if output is None:
            result = product(f"{lead}hqk,bkhe->bqe", weights, values)
        else:
            mixed = product(f"{lead}hqk,bkhe->bqhe", weights, values)
            result = product("bqhe,heo->bqo", mixed, output)
    return result if bias is None else result + bias.astype(dtype)


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
