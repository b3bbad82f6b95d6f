"""Index-based heads beside attention heads, in place of positional encodings (A19, Section 3.3).

The bases of two convolutions of the same inputs stand one after the other, and so do their
parameters: ([A, A′], [Θ, Θ′]) is the sum of the two convolutions. With shift matrices for A′ the
tokens' order is known to the layer without being coded into the content.

Three things the text leaves open.

- A mask on the attention heads does not mask the shift heads. Where tokens must not influence their
  predecessors, take shifts d ≥ 0 only (d = query - key).
- No softmax head is a shift matrix A_d, d ≠ 0: that has zero columns at the border, and columns of
  a softmax sum to one. With finite scores, and two keys or more, none of its columns is one-hot
  either, as every weight is positive. Trained heads that "play the role of shift matrices" do so
  approximately, and away from the border.
- A shift head costs P·Q parameters and no M × N matrix: `attention_with_shifts` reads slices.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Num

from convattn.operators.attention import HIGHEST
from convattn.structures.attention_convolution import (
    Mechanism,
    attention_convolution,
    concatenated,
    constant_mechanism,
)
from convattn.structures.basis import Basis
from convattn.structures.shift_basis import shift_basis
from convattn.structures.structured_convolution import structured_convolution


def with_shift_heads(
    mechanism: Mechanism, grid: int | Sequence[int], shifts: Sequence[int] | Sequence[Sequence[int]]
) -> Mechanism:
    """The mechanism's heads, followed by one shift matrix for each shift, written out.

    Args:
        grid, shifts: As in `shift_basis`, d = query - key.

    Source: A19, Section 3.3.

    >>> one = lambda keys, queries: jnp.ones((1, 2, 2), int)
    >>> tokens = jnp.zeros((1, 2, 3))
    >>> with_shift_heads(one, 2, [1])(tokens, tokens).tolist()
    [[[1, 1], [1, 1]], [[0, 1], [0, 0]]]
    """
    return concatenated(mechanism, constant_mechanism(shift_basis(grid, shifts)))


def attention_with_shifts(
    x: Any,
    keys: Any,
    queries: Any,
    mechanism: Mechanism,
    theta: Any,
    basis: Basis,
    basis_theta: Any,
    *,
    precision: lax.Precision = HIGHEST,
) -> Num[Array, "batch queries out_channels"]:
    """Attention heads and index-based heads summed, without writing the latter's matrices.

    Args:
        x, keys, queries, mechanism, theta: As in `attention_convolution`.
        basis: Any basis from M inputs to N outputs, such as `shift_basis(M, shifts)`.
        basis_theta: Its parameter, `[basis.size, P, Q]`.

    Returns:
        The same as `attention_convolution` with the concatenated mechanism and parameter.

    Raises:
        ValueError: Where the two have different numbers of outputs.

    Source: A19, Section 3.3.

    >>> from convattn.structures import shift_basis
    >>> x, theta = jnp.array([[[1], [2]]]), jnp.array([[[10]]])
    >>> total = lambda keys, queries: jnp.ones((1, 2, 2), int)
    >>> attention_with_shifts(x, x, x, total, theta, shift_basis(2, [1]), theta)[0, :, 0].tolist()
    [30, 40]
    """
    attended = attention_convolution(x, keys, queries, mechanism, theta, precision=precision)
    if basis.outputs != attended.shape[1]:
        raise ValueError(
            f"basis.outputs={basis.outputs}, but the attention heads have {attended.shape[1]} "
            "queries; shift heads need as many queries as keys"
        )
    shifted = structured_convolution(x, basis, basis_theta, precision=precision)
    return jnp.add(attended, shifted)
