"""Attention convolutions: convolutions whose basis a mechanism computes (A19, Definitions 3 and 4).

    y = Σ_k a(x', y'; Ξ_k)ᵀ x Θ_k                                                    (A19 eq. 7)

A mechanism takes x' `[batch, M, P']` and y' `[batch, N, Q']`, the keys and the queries, and returns
one influence matrix for each head: `[batch, heads, M, N]`, or `[heads, M, N]` where the batch
shares it. It is a plain function, with its parameters bound:

    mechanism = lambda keys, queries: column_softmax(bi_affine_scores(keys, queries, parameters))

The index-based bases of grids and graphs are the mechanisms that look at neither argument. The
convolution is linear in x for fixed x' and y'. In self-attention x' = y' = x, in cross-attention
x' = x, and then it is linear in x only if the mechanism ignores its input.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import Array
from jaxtyping import Bool, Num

from convattn.operators.arrays import as_array
from convattn_ledger.structures.basis import Basis, DenseBasis
from convattn_ledger.structures.masking import column_softmax
from convattn_ledger.structures.structured_convolution import structured_convolution

Mechanism = Callable[[Array, Array], Array]


def softmax_mechanism(
    scores: Mechanism,
    mask: Bool[Array | np.ndarray, "*#batch keys queries"] | None = None,
) -> Mechanism:
    """The mechanism followed by a mask and the column-wise softmax, over the keys.

    Args:
        mask: As in `column_softmax`.

    >>> import jax.numpy as jnp
    >>> equal = softmax_mechanism(lambda keys, queries: jnp.zeros((1, 4, 2)))
    >>> equal(jnp.zeros((1, 4, 3)), jnp.zeros((1, 2, 3)))[0, :, 0].tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    return lambda keys, queries: column_softmax(scores(keys, queries), mask)


def constant_mechanism(basis: Basis) -> Mechanism:
    """A basis as a mechanism whose output does not depend on its input.

    Source: A19, Section 3.1: grid and graph convolutions as the degenerate case.

    >>> import jax.numpy as jnp
    >>> from convattn_ledger.structures import dense_basis
    >>> mechanism = constant_mechanism(dense_basis([[0, 1], [0, 0]]))
    >>> mechanism(jnp.zeros((5, 2, 3)), jnp.ones((5, 2, 3))).tolist()
    [[[0, 1], [0, 0]]]
    """
    return lambda keys, queries: basis.matrices()


def attention_convolution(
    x: Any,
    keys: Any,
    queries: Any,
    mechanism: Mechanism,
    theta: Any,
) -> Num[Array, "batch queries out_channels"]:
    """y = Σ_k a(x', y'; Ξ_k)ᵀ x Θ_k.

    Args:
        x: The main input, `[batch, M, P]`.
        keys, queries: The auxiliary inputs x' `[batch, M, P']` and y' `[batch, N, Q']`.
        mechanism: (x', y') ↦ `[batch, K, M, N]`, or `[K, M, N]` where the batch shares it.
        theta: Θ, `[K, P, Q]`.

    Returns:
        `[batch, N, Q]` of dtype `result_type(x, A, theta)`.

    Source: A19 eq. 7.

    >>> import jax.numpy as jnp
    >>> swap = lambda keys, queries: jnp.array([[[0, 1], [1, 0]]])
    >>> x, theta = jnp.array([[[1], [2]]]), jnp.array([[[10]]])
    >>> attention_convolution(x, x, x, swap, theta)[0, :, 0].tolist()
    [20, 10]
    """
    x, theta = as_array(x, "x"), as_array(theta, "theta")
    keys, queries = as_array(keys, "keys"), as_array(queries, "queries")
    if any(array.ndim != 3 or array.shape[0] != x.shape[0] for array in (x, keys, queries)):
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
            f"expected {full} or {full[1:]}: (batch,) heads as in theta, entries of x, entries of "
            "queries; keys come first, so attention weights [heads, queries, keys] are to be "
            "transposed"
        )

    if matrices.ndim == 3:
        return structured_convolution(x, DenseBasis(matrices), theta)
    convolved = jax.vmap(lambda one, a: structured_convolution(one[None], DenseBasis(a), theta)[0])
    return convolved(x, matrices)


def self_attention_convolution(
    x: Any, mechanism: Mechanism, theta: Any
) -> Num[Array, "batch entries out_channels"]:
    """The attention convolution with x' = y' = x; requires M = N and P = P' = Q'.

    Source: A19 Definition 4.

    >>> import jax.numpy as jnp
    >>> products = lambda keys, queries: jnp.einsum("bmp,bnp->bmn", keys, queries)[:, None]
    >>> x, theta = jnp.array([[[1], [2]]]), jnp.ones((1, 1, 1), int)
    >>> self_attention_convolution(x, products, theta)[0, :, 0].tolist()
    [5, 10]
    """
    return attention_convolution(x, x, x, mechanism, theta)


def cross_attention_convolution(
    x: Any, queries: Any, mechanism: Mechanism, theta: Any
) -> Num[Array, "batch queries out_channels"]:
    """The attention convolution with x' = x; requires P' = P.

    Source: A19 Definition 4.

    >>> import jax.numpy as jnp
    >>> products = lambda keys, queries: jnp.einsum("bmp,bnp->bmn", keys, queries)[:, None]
    >>> x, y = jnp.array([[[1], [2]]]), jnp.array([[[3]]])
    >>> cross_attention_convolution(x, y, products, jnp.ones((1, 1, 1), int)).tolist()
    [[[15]]]
    """
    return attention_convolution(x, x, queries, mechanism, theta)
