"""Two convolutions in a row are one: bases and parameters multiply (A19 Proposition 3).

Eq. 4 put into itself is the convolution with A_k = A'_k' A''_k'' and Θ_k = Θ'_k' Θ''_k'', where k
numbers the pairs (k', k''):

    Σ_k'' A''_k''ᵀ (Σ_k' A'_k'ᵀ x Θ'_k') Θ''_k'' = Σ_k'k'' (A'_k' A''_k'')ᵀ x (Θ'_k' Θ''_k'').

Shifts. (A_d A_e)_mn = 1 iff n = m + d + e and m + d is in the grid. On a bare grid that is A_(d+e)
only if no node in between is lost, e.g. if d and e point the same way on every axis; A_1 A_-1 on
two nodes is diag(1, 0), which is not a shift matrix. So `compose` returns a `ShiftBasis` only where
all its products are shifts, and a `SparseBasis` otherwise.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax import Array
from jaxtyping import Num

from convattn.operators.arrays import accumulation_dtype, as_array, promoted
from convattn.operators.attention import HIGHEST
from convattn_ledger.structures.basis import Basis, DenseBasis
from convattn_ledger.structures.shift_basis import ShiftBasis
from convattn_ledger.structures.sparse_basis import SparseBasis, sparse_basis
from convattn_ledger.structures.structured_convolution import structured_convolution


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class StructuredConvolution:
    """A convolution as data: a basis and a parameter.

    Attributes:
        basis: K matrices `[M, N]`.
        theta: Θ, `[K, P, Q]`.

    Source: A19 Proposition 2.
    """

    basis: Basis
    theta: Num[Array, "size in_channels out_channels"]

    def __call__(self, x: Any) -> Num[Array, "batch outputs out_channels"]:
        """`structured_convolution` of x, `[batch, M, P]`."""
        return structured_convolution(x, self.basis, self.theta)


def compose(first: StructuredConvolution, second: StructuredConvolution) -> StructuredConvolution:
    """The convolution that applies `first`, then `second`.

    Pair (k', k'') has the number k'·K'' + k''. The basis is that of `compose_bases`.

    Source: A19 Proposition 3.

    >>> from convattn_ledger.structures import shift_basis
    >>> step = lambda d: StructuredConvolution(shift_basis(2, [d]), jnp.ones((1, 1, 1), int))
    >>> compose(step(1), step(-1)).basis.matrices().tolist()
    [[[1, 0], [0, 0]]]
    """
    left, right = as_array(first.theta, "first.theta"), as_array(second.theta, "second.theta")
    if left.shape[2] != right.shape[1]:
        raise ValueError(
            f"second.theta.shape={right.shape}, but expected {left.shape[2]} input channels, the "
            f"output channels of first.theta of shape {left.shape}"
        )
    return StructuredConvolution(
        compose_bases(first.basis, second.basis), _every_product(left, right)
    )


def compose_bases(first: Basis, second: Basis) -> Basis:
    """(A'_k' A''_k'')_(k'k'').

    Products of integers wrap around beyond 64 bits, and where they are cast to a narrower dtype of
    the two bases.

    Returns:
        A `ShiftBasis` if both are, on one grid, and every product is a shift; a `DenseBasis` if
        either is; a `SparseBasis` otherwise, of concrete bases only.

    >>> from convattn_ledger.structures import shift_basis
    >>> compose_bases(shift_basis(5, [0, 1]), shift_basis(5, [1, 2])).shifts
    ((1,), (2,), (2,), (3,))
    """
    if first.outputs != second.inputs:
        raise ValueError(
            f"second.inputs={second.inputs}, but expected {first.outputs}, the outputs of the first"
        )
    if (
        isinstance(first, ShiftBasis)
        and isinstance(second, ShiftBasis)
        and first.grid == second.grid
        and all(_is_shift(first.grid, d, e) for d in first.shifts for e in second.shifts)
    ):
        sums = [
            tuple(a + b for a, b in zip(d, e, strict=True))
            for d in first.shifts
            for e in second.shifts
        ]
        return ShiftBasis(first.grid, tuple(sums))
    left, right = (
        basis.sparse() if isinstance(basis, ShiftBasis) else basis for basis in (first, second)
    )
    if isinstance(left, SparseBasis) and isinstance(right, SparseBasis):
        products = [a @ b for a in _members(left) for b in _members(right)]
        return sparse_basis(products, promoted(left.dtype, right.dtype))
    return DenseBasis(_every_product(left.matrices(), right.matrices()))


def _is_shift(grid: tuple[int, ...], d: tuple[int, ...], e: tuple[int, ...]) -> bool:
    """Whether A_d A_e = A_(d+e): no node m with m and m + d + e in the grid has m + d outside."""
    ranges = []
    for n, one, other in zip(grid, d, e, strict=True):
        low, high = max(0, -(one + other)), n - 1 - max(0, one + other)
        if low > high:
            return True  # A_(d+e) = 0, and so is the product
        ranges.append(low + one >= 0 and high + one < n)
    return all(ranges)


def _every_product(
    first: Num[Array, "size rows inner"], second: Num[Array, "other inner columns"]
) -> Num[Array, "pairs rows columns"]:
    """Every product of a member of one family with one of the other."""
    dtype = promoted(first, second)
    wide = accumulation_dtype(dtype)
    factors = first.astype(wide), second.astype(wide)
    product = jnp.einsum("amr,brn->abmn", *factors, precision=HIGHEST)
    return product.reshape(-1, first.shape[1], second.shape[2]).astype(dtype)


def _members(basis: SparseBasis) -> list[scipy.sparse.csr_array]:
    """The matrices in SciPy's compressed rows, in 64 bits."""
    values, *indices = (
        np.asarray(array) for array in (basis.values, basis.bases, basis.keys, basis.queries)
    )
    wide = values.astype(np.int64 if values.dtype.kind in "iu" else np.float64)
    own = [indices[0] == k for k in range(basis.size)]
    return [
        scipy.sparse.csr_array((wide[k], (indices[1][k], indices[2][k])), basis.shape[1:])
        for k in own
    ]
