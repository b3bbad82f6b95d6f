"""Parameters with fewer numbers: grouped, depth-wise separable, controlled separable (A19, 1.3).

| form                 | Θ_kpq                            | numbers   | fewer than KPQ iff    |
|----------------------|----------------------------------|-----------|-----------------------|
| grouped              | ν diagonal blocks of P/ν × Q/ν   | KPQ/ν     | ν > 1                 |
| depth-wise separable | Θ⁽¹⁾_kp Θ⁽²⁾_pq                  | KP + PQ   | (K - 1)(Q - 1) > 1    |
| controlled separable | Σ_h Θ^(basis)_hk Θ^(channel)_hpq | H(K + PQ) | H < KPQ/(K + PQ)      |

KP + PQ < KPQ iff K + Q < KQ iff (K - 1)(Q - 1) > 1; and H(K + PQ) < KPQ by division. Since
KPQ/(K + PQ) < min(K, PQ), saving implies H < K, but not the other way round: every H < K saves iff
(K - 1)(K + PQ) < KPQ, that is PQ > K(K - 1).

Each form is built (`*_theta`) and applied (`*_convolution`) from its own parameters; applying does
not build Θ.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from convattn.operators.arrays import accumulation_dtype, as_array
from convattn.operators.attention import HIGHEST
from convattn.operators.integers import as_integer
from convattn.structures.basis import Basis
from convattn.structures.mixed_product import mixed_product


def grouped_theta(blocks: Any) -> Num[Array, "size in_channels out_channels"]:
    """Θ_k block diagonal with ν blocks.

    Args:
        blocks: `[K, ν, P/ν, Q/ν]`.

    Raises:
        ValueError: For another rank.

    Source: A19 Section 1.3.

    >>> grouped_theta([[[[1, 2]], [[3, 4]]]])[0].tolist()
    [[1, 2, 0, 0], [0, 0, 3, 4]]
    """
    array = _check(blocks, "blocks", 4, "(size, groups, in_channels/groups, out_channels/groups)")
    size, groups, rows, columns = array.shape
    theta = jnp.zeros((size, groups, rows, groups, columns), array.dtype)
    diagonal = jnp.arange(groups)
    theta = theta.at[:, diagonal, :, diagonal, :].set(jnp.swapaxes(array, 0, 1))
    return theta.reshape(size, groups * rows, groups * columns)


def separable_theta(depthwise: Any, pointwise: Any) -> Num[Array, "size in_channels out_channels"]:
    """Θ_kpq = Θ⁽¹⁾_kp Θ⁽²⁾_pq.

    Args:
        depthwise: `[K, P]`.
        pointwise: `[P, Q]`.

    Raises:
        ValueError: For shapes that do not fit together.

    Source: A19 Section 1.3.

    >>> separable_theta([[1, 10], [2, 20]], [[3], [4]])[:, :, 0].tolist()
    [[3, 40], [6, 80]]
    """
    first, second = _check_separable(depthwise, pointwise)
    return first[:, :, None] * second[None]


def controlled_theta(controls: Any, channel: Any) -> Num[Array, "size in_channels out_channels"]:
    """Θ = Θ^(basis)∘Θ^(channel).

    Args:
        controls: Θ^(basis), `[H, K]`.
        channel: Θ^(channel), `[H, P, Q]`, which may itself come from `grouped_theta` or
            `separable_theta`.

    Raises:
        ValueError: For shapes that do not fit together.

    Source: A19 eq. 5.

    >>> controlled_theta([[1, 2, 3]], [[[10]]])[:, 0, 0].tolist()
    [10, 20, 30]
    """
    first, second = _check_controlled(controls, channel)
    return jnp.asarray(mixed_product(first, second))


def grouped_convolution(
    x: Any, basis: Basis, blocks: Any
) -> Num[Array, "batch outputs out_channels"]:
    """Σ_k A_kᵀ x Θ_k with Θ = `grouped_theta(blocks)`, the groups side by side.

    Args:
        x: `[batch, M, P]`.
        blocks: `[K, ν, P/ν, Q/ν]`.

    Raises:
        ValueError: For shapes that do not fit together.

    >>> from convattn.structures import shift_basis
    >>> grouped_convolution([[[1, 10]]], shift_basis(1, [0]), [[[[2]], [[3]]]]).tolist()
    [[[2, 30]]]
    """
    array = _check(blocks, "blocks", 4, "(size, groups, in_channels/groups, out_channels/groups)")
    size, groups, rows, columns = array.shape
    x = _check_input(x, basis, size, groups * rows)
    result = jnp.result_type(x, basis.dtype, array)
    wide, weights = (part.astype(accumulation_dtype(result)) for part in (x, array))
    if basis.outputs * rows <= basis.inputs * columns:
        read = basis.gather(wide).reshape(x.shape[0], size, basis.outputs, groups, rows)
        y = jnp.einsum("bkngi,kgij->bngj", read, weights, precision=HIGHEST)
        return y.reshape(x.shape[0], basis.outputs, groups * columns).astype(result)
    split = wide.reshape(*x.shape[:2], groups, rows)
    mapped = jnp.einsum("bmgi,kgij->bkmgj", split, weights, precision=HIGHEST)
    side_by_side = mapped.reshape(*mapped.shape[:3], groups * columns)
    return basis.scatter_sum(side_by_side).astype(result)


def separable_convolution(
    x: Any, basis: Basis, depthwise: Any, pointwise: Any
) -> Num[Array, "batch outputs out_channels"]:
    """Σ_k A_kᵀ x Θ_k with Θ = `separable_theta(depthwise, pointwise)`, channel by channel first.

    Args:
        x: `[batch, M, P]`.
        depthwise: `[K, P]`.
        pointwise: `[P, Q]`.

    Raises:
        ValueError: For shapes that do not fit together.

    >>> from convattn.structures import shift_basis
    >>> separable_convolution([[[1], [2]]], shift_basis(2, [0, 1]), [[1], [10]], [[3]]).tolist()
    [[[3], [36]]]
    """
    first, second = _check_separable(depthwise, pointwise)
    x = _check_input(x, basis, *first.shape)
    result = jnp.result_type(x, basis.dtype, first, second)
    wide, depth, point = (p.astype(accumulation_dtype(result)) for p in (x, first, second))
    mixed = basis.scatter_sum(wide[:, None] * depth[None, :, None, :])
    return jnp.einsum("bnp,pq->bnq", mixed, point, precision=HIGHEST).astype(result)


def controlled_convolution(
    x: Any, basis: Basis, controls: Any, channel: Any
) -> Num[Array, "batch outputs out_channels"]:
    """Σ_hk Θ^(basis)_hk A_kᵀ x Θ^(channel)_h: H maps of the channels instead of K.

    Args:
        x: `[batch, M, P]`.
        controls: `[H, K]`.
        channel: `[H, P, Q]`.

    Raises:
        ValueError: For shapes that do not fit together.

    Source: A19 eq. 5 in eq. 4.

    >>> from convattn.structures import shift_basis
    >>> controlled_convolution([[[1], [2]]], shift_basis(2, [0, 1]), [[1, 10]], [[[3]]]).tolist()
    [[[3], [36]]]
    """
    first, second = _check_controlled(controls, channel)
    x = _check_input(x, basis, first.shape[1], second.shape[1])
    result = jnp.result_type(x, basis.dtype, first, second)
    wide, mix, maps = (p.astype(accumulation_dtype(result)) for p in (x, first, second))
    if basis.outputs * maps.shape[1] <= basis.inputs * maps.shape[2]:
        mixed = jnp.einsum("hk,bknp->bhnp", mix, basis.gather(wide), precision=HIGHEST)
        return jnp.einsum("bhnp,hpq->bnq", mixed, maps, precision=HIGHEST).astype(result)
    mapped = jnp.einsum("bmp,hpq->bhmq", wide, maps, precision=HIGHEST)
    spread = jnp.einsum("hk,bhmq->bkmq", mix, mapped, precision=HIGHEST)
    return basis.scatter_sum(spread).astype(result)


def parameter_count(
    size: int,
    in_channels: int,
    out_channels: int,
    *,
    groups: int | None = None,
    separable: bool = False,
    controls: int | None = None,
) -> int:
    """How many numbers a form of Θ has; none of the options means all KPQ.

    Args:
        size: K.
        in_channels: P.
        out_channels: Q.
        groups: ν, grouped.
        separable: depth-wise separable.
        controls: H, controlled separable.

    Raises:
        ValueError: For more than one form, ν that does not divide both P and Q, and sizes that are
            not integers ≥ 1.

    Source: A19 Section 1.3.

    >>> [parameter_count(9, 3, 3, controls=h) for h in (4, 5)], parameter_count(9, 3, 3)
    ([72, 90], 81)
    """
    size = as_integer(size, "size", 1)
    in_channels = as_integer(in_channels, "in_channels", 1)
    out_channels = as_integer(out_channels, "out_channels", 1)
    groups = None if groups is None else as_integer(groups, "groups", 1)
    controls = None if controls is None else as_integer(controls, "controls", 1)
    if (groups is not None) + separable + (controls is not None) > 1:
        raise ValueError(
            f"groups={groups}, separable={separable}, controls={controls}, but Θ has one form"
        )
    if groups is not None:
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"groups={groups}, but expected to divide both {in_channels} input and "
                f"{out_channels} output channels"
            )
        return size * in_channels * out_channels // groups
    if separable:
        return size * in_channels + in_channels * out_channels
    if controls is not None:
        return controls * (size + in_channels * out_channels)
    return size * in_channels * out_channels


def saves(size: int, in_channels: int, out_channels: int, **form: Any) -> bool:
    """Whether a form, one of the options of `parameter_count`, has fewer numbers than KPQ.

    >>> saves(9, 3, 3, controls=4), saves(9, 3, 3, controls=5)
    (True, False)
    """
    full = parameter_count(size, in_channels, out_channels)
    return full > parameter_count(size, in_channels, out_channels, **form)


def _check(value: Any, name: str, rank: int, wanted: str) -> Array:
    array = as_array(value, name)
    if array.ndim != rank or 0 in array.shape:
        raise ValueError(f"{name}.shape={array.shape}, but expected {wanted}, all at least 1")
    return array


def _check_separable(depthwise: Any, pointwise: Any) -> tuple[Array, Array]:
    first = _check(depthwise, "depthwise", 2, "(size, in_channels)")
    second = _check(pointwise, "pointwise", 2, "(in_channels, out_channels)")
    if first.shape[1] != second.shape[0]:
        raise ValueError(
            f"depthwise.shape={first.shape} has {first.shape[1]} input channels, but "
            f"pointwise.shape={second.shape} has {second.shape[0]}"
        )
    return first, second


def _check_controlled(controls: Any, channel: Any) -> tuple[Array, Array]:
    first = _check(controls, "controls", 2, "(controls, size)")
    second = _check(channel, "channel", 3, "(controls, in_channels, out_channels)")
    if first.shape[0] != second.shape[0]:
        raise ValueError(
            f"controls.shape={first.shape} and channel.shape={second.shape}, but both should begin "
            "with H, the number of controlled terms"
        )
    return first, second


def _check_input(x: Any, basis: Basis, size: int, in_channels: int) -> Array:
    array = as_array(x, "x")
    if size != basis.size:
        raise ValueError(
            f"the parameters are for a basis of size {size}, but the basis has size {basis.size}"
        )
    if array.ndim != 3 or array.shape[1:] != (basis.inputs, in_channels):
        raise ValueError(
            f"x.shape={array.shape}, but expected (batch, {basis.inputs}, {in_channels})"
        )
    return array
