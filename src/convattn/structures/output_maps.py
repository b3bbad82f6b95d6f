"""Θ_k as a product of a value map and a block of the output map (A19 eq. 10).

The Transformer concatenates its heads and maps them: with Θ_O `[Q, K·D]` cut into blocks `[Q, D]`,

    [h_1, …, h_K] Θ_Oᵀ = Σ_k h_k Θ_O,kᵀ = Σ_k A_kᵀ x (Θ_value,k Θ_O,kᵀ),

which is eq. 7 with Θ_k = Θ_value,k Θ_O,kᵀ: exactly the Θ_k of rank at most D, so that eq. 10
restricts nothing once D ≥ min(P, Q). Nothing in it is about attention; any convolution's parameter
may be factored so. Here `value` is Θ_value `[heads, P, D]`, and `output` holds the transposed
blocks `[heads, D, Q]`.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from convattn.operators.arrays import accumulation_dtype, promoted
from convattn.operators.attention import HIGHEST


class HeadMaps(NamedTuple):
    """Value and output maps of every head, and the norm of what they leave out of Θ_k."""

    value: Array
    output: Array
    residual: Array


def split_output_map(
    output: Num[Array, "out_channels heads_times_width"], heads: int
) -> Num[Array, "heads width out_channels"]:
    """Θ_O `[Q, K·D]` cut into the transposes of its K blocks `[Q, D]`.

    Raises:
        ValueError: Where the heads do not divide its columns.

    >>> split_output_map(jnp.array([[1, 2, 3, 4]]), 2).tolist()
    [[[1], [2]], [[3], [4]]]
    """
    if heads < 1 or output.shape[1] % heads:
        raise ValueError(
            f"output.shape={output.shape} has {output.shape[1]} columns, which {heads} heads do "
            "not divide; A19's output map has as many rows as output channels"
        )
    return output.reshape(output.shape[0], heads, -1).transpose(1, 2, 0)


def parameter_from_maps(
    value: Num[Array, "heads in_channels width"] | None,
    output: Num[Array, "heads width out_channels"] | None,
) -> Num[Array, "heads in_channels out_channels"]:
    """Θ_k = Θ_value,k Θ_O,kᵀ; a map that is None is the identity.

    Raises:
        ValueError: Where both are None, so that nothing says how many heads there are.

    Source: A19 eq. 10.

    >>> parameter_from_maps(jnp.array([[[1], [2]]]), jnp.array([[[10, 100]]])).tolist()
    [[[10, 100], [20, 200]]]
    """
    if value is None or output is None:
        single = output if value is None else value
        if single is None:
            raise ValueError(
                "value and output are both None; pass Θ_k = I explicitly, such as "
                "jnp.broadcast_to(jnp.eye(P), (heads, P, P))"
            )
        return single
    dtype = accumulation_dtype(value, output)
    return jnp.matmul(value.astype(dtype), output.astype(dtype), precision=HIGHEST)


def maps_from_parameter(
    theta: Num[Array, "heads in_channels out_channels"], width: int | None = None
) -> HeadMaps:
    """Θ_k as a product of a value and an output map of width D.

    Args:
        width: D. None takes min(P, Q), where one map is the identity and nothing is rounded. Below
            that the maps are the best ones in the Frobenius norm, from the singular value
            decomposition.

    Returns:
        The maps, and for each head the Frobenius norm of Θ_k - Θ_value,k Θ_O,kᵀ: zero, up to
        rounding, iff the rank of Θ_k is at most D.

    Raises:
        ValueError: For D < 1 or D > min(P, Q), which would only add zeros.

    Source: A19 eq. 10, read from right to left.

    >>> maps = maps_from_parameter(jnp.array([[[1.0, 2.0, 3.0]]]))
    >>> maps.value.tolist(), maps.output.tolist(), maps.residual.tolist()
    ([[[1.0]]], [[[1.0, 2.0, 3.0]]], [0.0])
    """
    heads, rows, columns = theta.shape
    narrow = min(rows, columns)
    width = narrow if width is None else width
    if not 1 <= width <= narrow:
        raise ValueError(
            f"width={width}, but expected a width from 1 to {narrow}, the smaller of the {rows} "
            f"input and {columns} output channels: no Θ_k has a larger rank"
        )
    working = promoted(accumulation_dtype(theta), jnp.float32)
    if width == narrow:
        same = jnp.broadcast_to(jnp.eye(narrow, dtype=theta.dtype), (heads, narrow, narrow))
        maps = (same, theta) if rows <= columns else (theta, same)
        return HeadMaps(*maps, jnp.zeros(heads, working))
    left, singular, right = jnp.linalg.svd(theta.astype(working), full_matrices=False)
    residual = jnp.sqrt(jnp.sum(singular[:, width:] ** 2, axis=1))
    value = left[:, :, :width] * singular[:, None, :width]
    return HeadMaps(value, right[:, :width], residual)
