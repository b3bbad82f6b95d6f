"""Parameters with fewer numbers: grouped, depth-wise separable, controlled separable (A19, 1.3).

| form                 | Θ_kpq                            | numbers   | fewer than KPQ iff    |
|----------------------|----------------------------------|-----------|-----------------------|
| grouped              | ν diagonal blocks of P/ν × Q/ν   | KPQ/ν     | ν > 1                 |
| depth-wise separable | Θ⁽¹⁾_kp Θ⁽²⁾_pq                  | KP + PQ   | (K - 1)(Q - 1) > 1    |
| controlled separable | Σ_h Θ^(basis)_hk Θ^(channel)_hpq | H(K + PQ) | H < KPQ/(K + PQ)      |

Claim A19.reductions proves the last two columns.

Each form is built (`*_theta`) and applied (`*_convolution`) from its own parameters: blocks
`[K, ν, P/ν, Q/ν]`; Θ⁽¹⁾ `[K, P]` and Θ⁽²⁾ `[P, Q]`; Θ^(basis) `[H, K]` and Θ^(channel) `[H, P, Q]`,
which may itself be built by one of the other two. Applying does not build Θ; x is `[batch, M, P]`,
and sums run in at least float32.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from convattn.operators.arrays import accumulation_dtype, as_array
from convattn.operators.attention import HIGHEST
from convattn_ledger.structures.basis import Basis, Outputs, Theta


def grouped_theta(blocks: Any) -> Theta:
    """Θ_k block diagonal with ν blocks.

    Source: A19 Section 1.3.

    >>> grouped_theta([[[[1, 2]], [[3, 4]]]])[0].tolist()
    [[1, 2, 0, 0], [0, 0, 3, 4]]
    """
    (array,) = _arrays(("kvpq", blocks))
    size, groups, rows, columns = array.shape
    diagonal = jnp.arange(groups)
    theta = jnp.zeros((size, groups, rows, groups, columns), array.dtype)
    theta = theta.at[:, diagonal, :, diagonal, :].set(jnp.swapaxes(array, 0, 1))
    return theta.reshape(size, groups * rows, groups * columns)


def separable_theta(depthwise: Any, pointwise: Any) -> Theta:
    """Θ_kpq = Θ⁽¹⁾_kp Θ⁽²⁾_pq.

    Source: A19 Section 1.3.

    >>> separable_theta([[1, 10], [2, 20]], [[3], [4]])[:, :, 0].tolist()
    [[3, 40], [6, 80]]
    """
    return _einsum("kp,pq->kpq", *_arrays(("kp", depthwise), ("pq", pointwise)))


def controlled_theta(controls: Any, channel: Any) -> Theta:
    """Θ = Θ^(basis)∘Θ^(channel).

    Source: A19 eq. 5.

    >>> controlled_theta([[1, 2, 3]], [[[10]]])[:, 0, 0].tolist()
    [10, 20, 30]
    """
    return _einsum("hk,hpq->kpq", *_arrays(("hk", controls), ("hpq", channel)))


def grouped_convolution(x: Any, basis: Basis, blocks: Any) -> Outputs:
    """Σ_k A_kᵀ x Θ_k with Θ = `grouped_theta(blocks)`, the groups side by side.

    >>> from convattn_ledger.structures import shift_basis
    >>> grouped_convolution([[[1, 10]]], shift_basis(1, [0]), [[[[2]], [[3]]]]).tolist()
    [[[2, 30]]]
    """
    (array,) = _arrays(("kvpq", blocks), k=basis.size)
    channels = array.shape[1] * array.shape[2]
    (x,) = _arrays(("bmc", x), m=basis.inputs, c=channels)
    read = basis.gather(x)
    split = read.reshape(*read.shape[:3], *array.shape[1:3])
    y = _einsum("bknvp,kvpq->bnvq", split, array)
    result = jnp.result_type(x, basis.dtype, array)
    return y.reshape(*y.shape[:2], -1).astype(result)


def separable_convolution(x: Any, basis: Basis, depthwise: Any, pointwise: Any) -> Outputs:
    """Σ_k A_kᵀ x Θ_k with Θ = `separable_theta(depthwise, pointwise)`, channel by channel first.

    >>> from convattn_ledger.structures import shift_basis
    >>> separable_convolution([[[1], [2]]], shift_basis(2, [0, 1]), [[1], [10]], [[3]]).tolist()
    [[[3], [36]]]
    """
    operands = ("bmp", x), ("kp", depthwise), ("pq", pointwise)
    x, first, second = _arrays(*operands, m=basis.inputs, k=basis.size)
    mixed = basis.scatter_sum(_einsum("bmp,kp->bkmp", x, first))
    result = jnp.result_type(x, basis.dtype, first, second)
    return _einsum("bnp,pq->bnq", mixed, second).astype(result)


def controlled_convolution(x: Any, basis: Basis, controls: Any, channel: Any) -> Outputs:
    """Σ_hk Θ^(basis)_hk A_kᵀ x Θ^(channel)_h: H maps of the channels instead of K.

    Source: A19 eq. 5 in eq. 4.

    >>> from convattn_ledger.structures import shift_basis
    >>> controlled_convolution([[[1], [2]]], shift_basis(2, [0, 1]), [[1, 10]], [[[3]]]).tolist()
    [[[3], [36]]]
    """
    operands = ("bmp", x), ("hk", controls), ("hpq", channel)
    x, mix, maps = _arrays(*operands, m=basis.inputs, k=basis.size)
    mixed = _einsum("hk,bknp->bhnp", mix, basis.gather(x))
    result = jnp.result_type(x, basis.dtype, mix, maps)
    return _einsum("bhnp,hpq->bnq", mixed, maps).astype(result)


def _arrays(*operands: tuple[str, Any], **sizes: int) -> list[Array]:
    """The operands as arrays, one letter for each axis; axes of one letter must have one size."""
    arrays = {letters: as_array(value, "operand") for letters, value in operands}
    for letters, array in arrays.items():
        if array.ndim != len(letters) or any(
            sizes.setdefault(letter, size) != size
            for letter, size in zip(letters, array.shape, strict=True)
        ):
            raise ValueError(
                f"operand.shape={array.shape}, but expected axes {letters} with "
                f"{ {letter: sizes.get(letter, 'any') for letter in letters} }: b batch, m inputs, "
                "k size of the basis, v groups, h controls, p and q channels, c all channels"
            )
    return list(arrays.values())


def _einsum(formula: str, *operands: Array) -> Num[Array, "..."]:
    """The contraction, summed in at least float32."""
    dtype = accumulation_dtype(*operands)
    return jnp.einsum(formula, *(array.astype(dtype) for array in operands), precision=HIGHEST)
