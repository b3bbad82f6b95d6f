"""Attention convolutions: convolutions whose basis a mechanism computes (A19, Definition 4).

    y = Σ_k a(x', y'; Ξ_k)ᵀ x Θ_k                                                    (A19 eq. 7)

Linear in x for fixed x' and y'. In self-attention x' = y' = x, in cross-attention x' = x, and then
it is linear in x only if the mechanism ignores its input, as the index-based ones do.
"""

from typing import Any

import jax
from jax import Array, lax
from jaxtyping import Num

from convattn.operators.arrays import as_array
from convattn.operators.attention import HIGHEST
from convattn.structures.attention_mechanism import Mechanism
from convattn.structures.dense_basis import DenseBasis
from convattn.structures.structured_convolution import structured_convolution


def attention_convolution(
    x: Any,
    keys: Any,
    queries: Any,
    mechanism: Mechanism,
    theta: Any,
    *,
    order: str = "auto",
    precision: lax.Precision = HIGHEST,
) -> Num[Array, "batch queries out_channels"]:
    """y = Σ_k a(x', y'; Ξ_k)ᵀ x Θ_k.

    Args:
        x: The main input, `[batch, M, P]`.
        keys, queries: The auxiliary inputs x' `[batch, M, P']` and y' `[batch, N, Q']`.
        mechanism: (x', y') ↦ `[batch, K, M, N]`, or `[K, M, N]` where the batch shares it.
        theta: Θ, `[K, P, Q]`.
        order, precision: As in `structured_convolution`, which takes the products.

    Returns:
        `[batch, N, Q]` of dtype `result_type(x, A, theta)`.

    Raises:
        ValueError: For a mechanism whose output does not fit the inputs, and as
            `structured_convolution`.

    Source: A19 eq. 7.

    >>> import jax.numpy as jnp
    >>> swap = lambda keys, queries: jnp.array([[[0, 1], [1, 0]]])
    >>> x, theta = jnp.array([[[1], [2]]]), jnp.array([[[10]]])
    >>> attention_convolution(x, x, x, swap, theta)[0, :, 0].tolist()
    [20, 10]
    """
    x, theta = as_array(x, "x"), as_array(theta, "theta")
    keys, queries = as_array(keys, "keys"), as_array(queries, "queries")
    if any(part.ndim != 3 or part.shape[0] != x.shape[0] for part in (x, keys, queries)):
        raise ValueError(
            f"x.shape={x.shape}, keys.shape={keys.shape}, queries.shape={queries.shape}, but each "
            "should be (batch, entries, features) with the same batch; add a batch axis with "
            "x[None]"
        )
    matrices = mechanism(keys, queries)
    full = (x.shape[0], theta.shape[0], x.shape[1], queries.shape[1])
    if matrices.shape not in (full, full[1:]) or keys.shape[1] != x.shape[1]:
        raise ValueError(
            f"the mechanism's output has shape {matrices.shape} for keys.shape={keys.shape}, but "
            f"should be {full} or {full[1:]}: (batch,) heads as in theta, entries of x, entries of "
            "queries; keys come first, so attention weights [heads, queries, keys] are to be "
            "transposed"
        )

    def convolved(one: Array, basis: Array) -> Array:
        dense = DenseBasis(basis)
        return structured_convolution(one, dense, theta, order=order, precision=precision)

    if matrices.ndim == 3:
        return convolved(x, matrices)
    return jax.vmap(lambda one, basis: convolved(one[None], basis)[0])(x, matrices)


def self_attention_convolution(
    x: Any,
    mechanism: Mechanism,
    theta: Any,
    *,
    order: str = "auto",
    precision: lax.Precision = HIGHEST,
) -> Num[Array, "batch entries out_channels"]:
    """The attention convolution with x' = y' = x; requires M = N and P = P' = Q'.

    Source: A19 Definition 4.

    >>> import jax.numpy as jnp
    >>> products = lambda keys, queries: jnp.einsum("bmp,bnp->bmn", keys, queries)[:, None]
    >>> x, theta = jnp.array([[[1], [2]]]), jnp.ones((1, 1, 1), int)
    >>> self_attention_convolution(x, products, theta)[0, :, 0].tolist()
    [5, 10]
    """
    return attention_convolution(x, x, x, mechanism, theta, order=order, precision=precision)


def cross_attention_convolution(
    x: Any,
    queries: Any,
    mechanism: Mechanism,
    theta: Any,
    *,
    order: str = "auto",
    precision: lax.Precision = HIGHEST,
) -> Num[Array, "batch queries out_channels"]:
    """The attention convolution with x' = x; requires P' = P.

    Source: A19 Definition 4.

    >>> import jax.numpy as jnp
    >>> products = lambda keys, queries: jnp.einsum("bmp,bnp->bmn", keys, queries)[:, None]
    >>> x, y = jnp.array([[[1], [2]]]), jnp.array([[[3]]])
    >>> cross_attention_convolution(x, y, products, jnp.ones((1, 1, 1), int)).tolist()
    [[[15]]]
    """
    return attention_convolution(x, x, queries, mechanism, theta, order=order, precision=precision)
