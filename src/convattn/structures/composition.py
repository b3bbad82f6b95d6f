"""Two convolutions in a row are one: bases and parameters multiply (A19 Proposition 3).

**Claim.** The convolution of (A', Θ') followed by the one of (A'', Θ'') is the convolution with
A_k = A'_k' A''_k'' and Θ_k = Θ'_k' Θ''_k'', where k numbers the pairs (k', k'').

**Proof.** Put eq. 4 into itself:

    Σ_k'' A''_k''ᵀ (Σ_k' A'_k'ᵀ x Θ'_k') Θ''_k'' = Σ_k'k'' (A'_k' A''_k'')ᵀ x (Θ'_k' Θ''_k''). ∎

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
from convattn.structures.basis import Basis
from convattn.structures.dense_basis import DenseBasis
from convattn.structures.duplicates import EXACT_IN_64_BITS, narrowed
from convattn.structures.shift_basis import ShiftBasis
from convattn.structures.sliced_basis import SlicedBasis
from convattn.structures.sparse_basis import SparseBasis, basis_from_entries
from convattn.structures.structured_convolution import structured_convolution

PRODUCT_IS = "a product of two members has the entry"


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

    def __call__(self, x: Any, *, order: str = "auto") -> Num[Array, "batch outputs out_channels"]:
        """`structured_convolution` of x, `[batch, M, P]`."""
        return structured_convolution(x, self.basis, self.theta, order=order)


def compose(first: StructuredConvolution, second: StructuredConvolution) -> StructuredConvolution:
    """The convolution that applies `first`, then `second`.

    Pair (k', k'') has the number k'·K'' + k''. The basis is

    - a `ShiftBasis` if both are, on one grid, and every product is a shift;
    - a `SparseBasis` if both are sliced or sparse, and concrete;
    - a `DenseBasis` otherwise, so also where a sparse basis is traced.

    Raises:
        ValueError: Where `second` does not take what `first` gives.

    Source: A19 Proposition 3.

    >>> from convattn.structures import shift_basis
    >>> step = lambda d: StructuredConvolution(shift_basis(2, [d]), jnp.ones((1, 1, 1), int))
    >>> compose(step(1), step(-1)).basis.matrices().tolist()
    [[[1, 0], [0, 0]]]
    """
    theta, then = as_array(first.theta, "first.theta"), as_array(second.theta, "second.theta")
    given, taken = (first.basis.outputs, theta.shape[-1]), (second.basis.inputs, then.shape[-2])
    if given != taken:
        raise ValueError(
            f"the first convolution gives {given[0]} entries of {given[1]} channels, but the "
            f"second takes {taken[0]} of {taken[1]}"
        )
    result = jnp.result_type(theta, then)
    return StructuredConvolution(
        compose_bases(first.basis, second.basis), _family_product(theta, then, result)
    )


def compose_bases(first: Basis, second: Basis) -> Basis:
    """(A'_k' A''_k'')_(k'k''), of the type that `compose` says.

    Raises:
        ValueError: Where the outputs of `first` are not the inputs of `second`, and for products
            that the dtype of the result cannot hold, where they are concrete.

    >>> from convattn.structures import shift_basis
    >>> compose_bases(shift_basis(5, [0, 1]), shift_basis(5, [1, 2])).shifts
    ((1,), (2,), (2,), (3,))
    """
    if first.outputs != second.inputs:
        raise ValueError(
            f"the first basis has {first.outputs} outputs, but the second {second.inputs} inputs"
        )
    if (
        isinstance(first, ShiftBasis)
        and isinstance(second, ShiftBasis)
        and first.grid == second.grid
        and all(_is_shift(first.grid, d, e) for d in first.shifts for e in second.shifts)
    ):
        return ShiftBasis(
            first.grid,
            tuple(
                tuple(a + b for a, b in zip(d, e, strict=True))
                for d in first.shifts
                for e in second.shifts
            ),
        )
    left, right = _coordinates(first), _coordinates(second)
    if left is not None and right is not None:
        return _sparse_product(first, left, second, right)
    return DenseBasis(_family_product(first.matrices(), second.matrices(), _dtype(first, second)))


def _is_shift(grid: tuple[int, ...], d: tuple[int, ...], e: tuple[int, ...]) -> bool:
    """Whether A_d A_e = A_(d+e): no node m with m and m + d + e in the grid has m + d outside."""
    ranges = []
    for n, one, other in zip(grid, d, e, strict=True):
        low, high = max(0, -(one + other)), n - 1 - max(0, one + other)
        if low > high:
            return True  # A_(d+e) = 0, and so is the product
        ranges.append(low + one >= 0 and high + one < n)
    return all(ranges)


def _dtype(first: Basis, second: Basis) -> np.dtype:
    """That of the products: bases of zeros and ones leave the other's as it is."""
    result = promoted(first.dtype, second.dtype)
    return np.dtype(np.int32) if result == np.bool_ else result


def _family_product(
    first: Num[Array, "size rows inner"], second: Num[Array, "other inner columns"], dtype: np.dtype
) -> Num[Array, "pairs rows columns"]:
    """Every product of a member of one family with one of the other, in `dtype`.

    Concrete integers are multiplied in 64 bits and refused where they do not fit; traced ones wrap
    around, as all sums in JAX do.
    """
    traced = isinstance(first, jax.core.Tracer) or isinstance(second, jax.core.Tracer)
    shape = (first.shape[0] * second.shape[0], first.shape[1], second.shape[2])
    if jnp.issubdtype(dtype, jnp.integer) and not traced:
        left, right = np.asarray(first), np.asarray(second)
        _refuse_beyond_64_bits(np.tensordot(_magnitudes(left), _magnitudes(right), (2, 1)))
        exact = np.tensordot(left.astype(np.int64), right.astype(np.int64), (2, 1))
        exact = exact.transpose(0, 2, 1, 3)
        return jnp.asarray(narrowed(exact, dtype, PRODUCT_IS)).reshape(shape)
    wide = accumulation_dtype(dtype)
    factors = first.astype(wide), second.astype(wide)
    product = jnp.einsum("amr,brn->abmn", *factors, precision=HIGHEST)
    return product.reshape(shape).astype(dtype)


def _magnitudes(numbers: Any) -> Any:
    return abs(numbers.astype(np.float64))


def _refuse_beyond_64_bits(sums: np.ndarray) -> None:
    """Refuse sums of absolute values, in float64, that do not fit in int64."""
    if sums.size and sums.max() >= EXACT_IN_64_BITS:
        raise ValueError(
            f"sum of absolute values={sums.max():.3g}, but expected < 9.22e+18, where 64 bits "
            "end; scale the integers down, or make them floats"
        )


def _coordinates(basis: Basis) -> tuple[np.ndarray, ...] | None:
    """Values and the indices k, m, n, where they are known."""
    if isinstance(basis, SlicedBasis):
        entries = basis.entries()
        return (np.ones(len(entries[0]), np.int32), *entries)
    if not isinstance(basis, SparseBasis) or isinstance(basis.values, jax.core.Tracer):
        return None
    return tuple(
        np.asarray(part) for part in (basis.values, basis.bases, basis.keys, basis.queries)
    )


def _sparse_product(
    first: Basis, left: tuple[np.ndarray, ...], second: Basis, right: tuple[np.ndarray, ...]
) -> SparseBasis:
    """One product of the stacked matrices: rows (k', m), columns (k'', n).

    Integers are multiplied in 64 bits and floats in float64, rounded once at the end.
    """
    result = _dtype(first, second)
    wide = np.promote_types(
        np.int64 if jnp.issubdtype(result, jnp.integer) else np.float64,
        np.complex64 if jnp.issubdtype(result, jnp.complexfloating) else np.int8,
    )
    values, bases, keys, queries = left
    rows = scipy.sparse.coo_array(
        (values.astype(wide), (bases * first.inputs + keys, queries)),
        shape=(first.size * first.inputs, first.outputs),
    )
    values, bases, keys, queries = right
    columns = scipy.sparse.coo_array(
        (values.astype(wide), (keys, bases * second.outputs + queries)),
        shape=(second.inputs, second.size * second.outputs),
    )
    rows, columns = rows.tocsr(), columns.tocsr()
    if wide == np.int64:
        _refuse_beyond_64_bits((_magnitudes(rows) @ _magnitudes(columns)).data)
    product = (rows @ columns).tocoo()
    row, column = product.row.astype(np.int64), product.col.astype(np.int64)
    return basis_from_entries(
        narrowed(product.data, result, PRODUCT_IS),
        row // first.inputs * second.size + column // second.outputs,
        row % first.inputs,
        column % second.outputs,
        (first.size * second.size, first.inputs, second.outputs),
    )
