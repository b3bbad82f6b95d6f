"""Convolution over an arbitrary structure, in each of the three orders of A19's Figure 1.

    y_bnq = Σ_k Σ_m Σ_p A_kmn x_bmp Θ_kpq                                          (A19 eq. 4)

is a triangle of three tensors; two of them are contracted first, then the third:

| order             | first                | then                  | intermediate |
|-------------------|----------------------|-----------------------|--------------|
| `basis_first`     | bmp, kmn → bknp      | bknp, kpq → bnq       | B·K·N·P      |
| `parameter_first` | bmp, kpq → bkmq      | bkmq, kmn → bnq       | B·K·M·Q      |
| `operator`        | kmn, kpq → mnpq      | mnpq, bmp → bnq       | M·N·P·Q      |
"""

from typing import Any

import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from convattn.operators.arrays import accumulation_dtype, as_array
from convattn.operators.attention import HIGHEST
from convattn_ledger.structures.basis import Basis
from convattn_ledger.structures.contraction_order import ORDERS, cheapest_order


def structured_convolution(
    x: Any, basis: Basis, theta: Any, *, order: str = "auto"
) -> Num[Array, "batch outputs out_channels"]:
    """y = Σ_k A_kᵀ x Θ_k for every element of a batch.

    Args:
        x: `[batch, M, P]`.
        basis: K matrices `[M, N]`.
        theta: Θ, `[K, P, Q]`.
        order: A row of the table above, or "auto": the cheapest by `cheapest_order`, which looks
            at shapes and the type of basis only.

    Returns:
        `[batch, N, Q]` of dtype `result_type(x, basis, theta)`; sums run in at least float32.

    Source: A19 Proposition 2 and Section 1.4.

    >>> from convattn_ledger.structures import shift_basis
    >>> x, theta = jnp.array([[[1], [2], [4]]]), jnp.array([[[10]], [[1]]])
    >>> structured_convolution(x, shift_basis(3, [0, 1]), theta)[0, :, 0].tolist()
    [10, 21, 42]
    """
    x, theta = as_array(x, "x"), as_array(theta, "theta")
    if (
        x.ndim != 3
        or theta.ndim != 3
        or (x.shape[1], theta.shape[0]) != (basis.inputs, basis.size)
        or x.shape[2] != theta.shape[1]
    ):
        raise ValueError(
            f"x.shape={x.shape} and theta.shape={theta.shape}, but expected (batch, "
            f"{basis.inputs}, in_channels) and ({basis.size}, in_channels, out_channels) for this "
            "basis; flatten the structure's axes into one, add a batch axis with x[None]"
        )
    if order == "auto":
        sizes = basis.inputs, basis.outputs, theta.shape[1], theta.shape[2]
        order = cheapest_order(len(x), *sizes, basis)
    result = jnp.result_type(x, basis.dtype, theta)
    working = accumulation_dtype(result)
    wide, parameter = x.astype(working), theta.astype(working)
    if order == "basis_first":
        y = jnp.einsum("bknp,kpq->bnq", basis.gather(wide), parameter, precision=HIGHEST)
    elif order == "parameter_first":
        # As bmkq first: asked for bkmq, XLA makes Θ the left factor, up to three times slower.
        mapped = jnp.einsum("bmp,kpq->bmkq", wide, parameter, precision=HIGHEST)
        y = basis.scatter_sum(jnp.swapaxes(mapped, 1, 2))
    elif order == "operator":
        y = jnp.einsum("mnpq,bmp->bnq", basis.operator(parameter), wide, precision=HIGHEST)
    else:
        raise ValueError(f"order={order!r}, but expected 'auto' or one of {', '.join(ORDERS)}")
    return y.astype(result)
