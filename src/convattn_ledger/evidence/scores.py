"""Scores of queries against keys, from content and from positions, as pure functions.

Tokens stand in rows: X is T × D. Two slips of the sources are mended here, and the ledger says so:
C20 eq. 7 leaves out the transposes of X_k and P_k, and the transposes of C20 eq. 8 do not fit the
shapes that C20 eq. 2 gives its matrices. The forms below are the ones whose shapes work with
W_qry, W_key of shape D × D_k.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from convattn.operators.attention import HIGHEST


def content_scores(
    tokens: Num[Array, "*batch tokens features"],
    query: Num[Array, "features key_features"],
    key: Num[Array, "features key_features"],
    *,
    scale: bool = False,
) -> Num[Array, "*batch tokens tokens"]:
    """Scores from content alone: A = X W_qry W_keyᵀ Xᵀ, over √D_k if `scale`.

    Source: C20 eq. 2; the scale is L21 §2.2's.

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

    Source: C20 eq. 3.
    """
    return content_scores(tokens + jnp.broadcast_to(positions, tokens.shape), query, key)


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

    Source: C20 eq. 7.
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
    content_bias: Num[Array, " key_features"],
    position_bias: Num[Array, " key_features"],
) -> RelativeTerms:
    """The relative score, in shapes that work: with r_δ in row k - q of `relative`,

    A_qk = X_q W_qry W_keyᵀ X_kᵀ + X_q W_qry Ŵ_keyᵀ r_δᵀ + u W_keyᵀ X_kᵀ + v Ŵ_keyᵀ r_δᵀ.

    Position enters only through δ = k - q; content enters the first three terms, so the printed
    "the attention scores only depend on δ" is true of the last one alone.

    Args:
        relative: r_δ for every (query, key).
        position_key: Ŵ_key, D_p × D_k.
        content_bias, position_bias: u and v, of length D_k.

    Source: C20 eq. 8, after Dai et al. 2019.
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

    Source: L21 eq. 4.
    """
    scores = content_scores(tokens, query, key, scale=True)
    return scores + jnp.broadcast_to(bias, scores.shape)
