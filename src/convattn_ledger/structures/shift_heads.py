"""Index-based heads beside attention heads, in place of positional encodings (A19, Section 3.3).

The bases of two convolutions of the same inputs stand one after the other, and so do their
parameters: ([A, A′], [Θ, Θ′]) is the sum of the two convolutions. With shift matrices for A′ the
tokens' order is known to the layer without being coded into the content (claim A19.shiftheads).

A mask on the attention heads does not mask the shift heads: where tokens must not influence their
predecessors, take shifts d ≥ 0 only (d = query - key). A shift head costs P·Q parameters and no
M × N matrix: `attention_with_shifts` reads slices.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from convattn_ledger.structures.attention_convolution import Mechanism, attention_convolution
from convattn_ledger.structures.basis import Basis
from convattn_ledger.structures.shift_basis import shift_basis
from convattn_ledger.structures.structured_convolution import structured_convolution


def with_shift_heads(
    mechanism: Mechanism, grid: int | Sequence[int], shifts: Sequence[int] | Sequence[Sequence[int]]
) -> Mechanism:
    """The mechanism's heads, followed by one shift matrix for each shift, written out.

    Args:
        mechanism: Its influence matrices have a batch axis.
        grid, shifts: As in `shift_basis`, d = query - key.

    Source: A19, Section 3.3.

    >>> one = lambda keys, queries: jnp.ones((1, 1, 2, 2), int)
    >>> tokens = jnp.zeros((1, 2, 3))
    >>> with_shift_heads(one, 2, [1])(tokens, tokens)[0].tolist()
    [[[1, 1], [1, 1]], [[0, 1], [0, 0]]]
    """
    matrices = shift_basis(grid, shifts).matrices()

    def both(keys: Array, queries: Array) -> Array:
        heads = mechanism(keys, queries)
        written = jnp.broadcast_to(matrices, (len(heads), *matrices.shape))
        return jnp.concatenate([heads, written.astype(heads.dtype)], axis=1)

    return both


def attention_with_shifts(
    x: Any,
    keys: Any,
    queries: Any,
    mechanism: Mechanism,
    theta: Any,
    basis: Basis,
    basis_theta: Any,
) -> Num[Array, "batch queries out_channels"]:
    """Attention heads and index-based heads summed, without writing the latter's matrices.

    Args:
        x, keys, queries, mechanism, theta: As in `attention_convolution`.
        basis: Any basis from M inputs to N outputs, such as `shift_basis(M, shifts)`.
        basis_theta: Its parameter, `[basis.size, P, Q]`.

    Returns:
        The same as `attention_convolution` with the bases and the parameters concatenated.

    Source: A19, Section 3.3.

    >>> x, theta = jnp.array([[[1], [2]]]), jnp.array([[[10]]])
    >>> total = lambda keys, queries: jnp.ones((1, 2, 2), int)
    >>> attention_with_shifts(x, x, x, total, theta, shift_basis(2, [1]), theta)[0, :, 0].tolist()
    [30, 40]
    """
    attended = attention_convolution(x, keys, queries, mechanism, theta)
    if basis.outputs != attended.shape[1]:
        raise ValueError(
            f"basis.outputs={basis.outputs}, but the attention heads have {attended.shape[1]} "
            "queries; shift heads need as many queries as keys"
        )
    return jnp.add(attended, structured_convolution(x, basis, basis_theta))
