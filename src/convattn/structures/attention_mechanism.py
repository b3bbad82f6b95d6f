"""Attention mechanisms: maps from two bundles of entries to an influence matrix (A19, Def. 3).

A mechanism takes x' `[batch, M, P']` and y' `[batch, N, Q']`, the keys and the queries, and returns
one matrix for each head: `[batch, heads, M, N]`, or `[heads, M, N]` where the batch shares it. It
is a plain function here, with its parameters bound:

    mechanism = lambda keys, queries: column_softmax(bi_affine_scores(keys, queries, parameters))

The index-based bases of grids and graphs are the mechanisms that look at neither argument.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Num

from convattn.structures.basis import Basis
from convattn.structures.masking import Blank, column_softmax

Mechanism = Callable[[Array, Array], Array]


def softmax_mechanism(
    scores: Mechanism,
    mask: Bool[Array | np.ndarray, "*#batch keys queries"] | None = None,
    *,
    blank: Blank = "refuse",
) -> Mechanism:
    """The mechanism followed by a mask and the column-wise softmax, over the keys.

    Args:
        mask, blank: As in `column_softmax`.

    >>> equal = softmax_mechanism(lambda keys, queries: jnp.zeros((1, 4, 2)))
    >>> equal(jnp.zeros((1, 4, 3)), jnp.zeros((1, 2, 3)))[0, :, 0].tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    return lambda keys, queries: column_softmax(scores(keys, queries), mask, blank=blank)


def constant_mechanism(basis: Basis) -> Mechanism:
    """A basis as a mechanism whose output does not depend on its input.

    Source: A19, Section 3.1: grid and graph convolutions as the degenerate case.

    >>> from convattn.structures import dense_basis
    >>> mechanism = constant_mechanism(dense_basis([[0, 1], [0, 0]]))
    >>> mechanism(jnp.zeros((5, 2, 3)), jnp.ones((5, 2, 3))).tolist()
    [[[0, 1], [0, 0]]]
    """
    return lambda keys, queries: basis.matrices()


def concatenated(*mechanisms: Mechanism) -> Mechanism:
    """One mechanism with the heads of all, in this order.

    >>> one = lambda keys, queries: jnp.ones((1, 2, 2))
    >>> concatenated(one, one, one)(jnp.zeros((4, 2, 1)), jnp.zeros((4, 2, 1))).shape
    (3, 2, 2)
    """

    def mechanism(
        keys: Num[Array, "batch keys key_features"],
        queries: Num[Array, "batch queries query_features"],
    ) -> Array:
        parts = [each(keys, queries) for each in mechanisms]
        if any(part.ndim == 4 for part in parts):
            batch = keys.shape[0]
            parts = [
                part if part.ndim == 4 else jnp.broadcast_to(part, (batch, *part.shape))
                for part in parts
            ]
        return jnp.concatenate(parts, axis=-3)

    return mechanism
