"""Inversion: in a basis, every tensor has its parameter, and the dual basis finds it (A19 Prop. 1).

Let (a_k) be a basis of the tensors of shape S, k = 1..|S̄|. For every Φ of shape ST there is
exactly one Θ of shape 〈K〉T with Φ = a∘Θ (claim A19.prop1), and

    Θ_kt = Σ_s a*_ks Φ_st,        a* = (Aᵀ)⁻¹,

where A is a flattened to the K × |S̄| matrix of its members: flattened, Φ = a∘Θ reads Φ = AᵀΘ. a*
is the dual basis, Σ_s a*_ks a_ls = [k = l]; the orthonormal case a* = a is the usual projection.

Integers and fractions are inverted exactly (python-flint) and give arrays of `Fraction`; floats are
inverted in floating point.
"""

import math
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Shaped

from convattn.operators.arrays import as_array
from convattn_ledger.rational_matrices import fractions, null_space, rational_matrix
from convattn_ledger.structures.mixed_product import Tensor, mixed_product

Fractions = Shaped[np.ndarray, "rows columns"]


def dual_basis(family: Any) -> Shaped[Tensor, " size *shape"]:
    """a* with Σ_s a*_ks a_ls = [k = l].

    Args:
        family: a, `[K, *S]` with K = |S̄|, concrete.

    Returns:
        `[K, *S]`: fractions for integers and fractions, floats for floats.

    Source: A19 Proposition 1.

    >>> dual_basis([[1, 1], [0, 2]]).astype(float).tolist()
    [[1.0, 0.0], [-0.5, 0.5]]
    >>> dual_basis([[1, 2], [2, 4]])
    Traceback (most recent call last):
        ...
    ValueError: the 2 members are dependent: 2·a_0 - 1·a_1 = 0; replace one of them
    """
    exact = _is_exact(family)
    members = _as_fractions(family) if exact else np.asarray(as_array(family, "family"))
    size, dimension = len(members), math.prod(members.shape[1:])
    if size != dimension:
        reason = "they cannot span it" if size < dimension else "they are dependent"
        raise ValueError(
            f"family.shape={members.shape} has {size} members, but the space of tensors of shape "
            f"{members.shape[1:]} has dimension {dimension}: {reason}"
        )
    flat = members.reshape(size, size)
    if exact:
        relation = linear_relation(flat)
        if relation is not None:
            terms = [f"{c:+d}·a_{k}" for k, c in enumerate(relation) if c]
            written = " ".join(f"{term[0]} {term[1:]}" for term in terms).removeprefix("+ ")
            raise ValueError(
                f"the {size} members are dependent: {written} = 0; replace one of them"
            )
        return transposed_inverse(flat).reshape(members.shape)
    wide = flat.astype(np.result_type(flat, np.float32))
    if np.linalg.matrix_rank(wide) < size:
        raise ValueError(
            f"the {size} members are dependent up to rounding; replace one of them, or give "
            "integers or fractions for an exact answer"
        )
    return jnp.linalg.inv(jnp.asarray(wide.T)).reshape(members.shape)


def invert_mixed_product(family: Any, phi: Any) -> Shaped[Tensor, " size *parameter_shape"]:
    """The one Θ with a∘Θ = Φ.

    Args:
        family: a, `[K, *S]`, a basis.
        phi: Φ, `[*S, *T]`; T may be empty.

    Returns:
        Θ, `[K, *T]`; fractions if both are exact, else floats.

    Source: A19 Proposition 1.

    >>> invert_mixed_product([[1, 1], [0, 2]], [[3, 0], [5, 8]]).astype(float).tolist()
    [[3.0, 0.0], [1.0, 4.0]]
    """
    if _is_exact(family) and _is_exact(phi):
        phi = _as_fractions(phi)
    else:
        family, phi = (
            jnp.asarray(np.asarray(array, float), float)
            if _is_exact(array)
            else as_array(array, name)
            for array, name in ((family, "family"), (phi, "phi"))
        )
    dual = dual_basis(family)
    axes = dual.ndim - 1
    if phi.shape[:axes] != dual.shape[1:]:
        raise ValueError(
            f"phi.shape={phi.shape}, but expected to begin with {dual.shape[1:]}, the shape of the "
            "basis's members"
        )
    rows = dual.reshape(len(dual), -1)
    return mixed_product(rows.T, phi.reshape(-1, *phi.shape[axes:]))


def transposed_inverse(matrix: Fractions) -> Fractions:
    """(Mᵀ)⁻¹ of an invertible matrix of integers or fractions, in fractions.

    >>> transposed_inverse(np.array([[1, 1], [0, 2]])).astype(float).tolist()
    [[1.0, 0.0], [-0.5, 0.5]]
    """
    return np.array(fractions(rational_matrix(matrix.T.tolist()).inv()), object)


def linear_relation(matrix: Fractions) -> list[int] | None:
    """Coprime integers c ≠ 0 with Σ_k c_k row_k = 0, or None if the rows are independent.

    >>> linear_relation(np.array([[1, 2], [2, 4], [0, 1]]))
    [2, -1, 0]
    """
    relation = next(iter(null_space(matrix.T.tolist())), None)
    if relation is None:
        return None
    solution = [-number for number in relation]
    scale = math.lcm(*(number.denominator for number in solution))
    numbers = [int(number * scale) for number in solution]
    return [number // math.gcd(*numbers) for number in numbers]


def _is_exact(value: Any) -> bool:
    """Whether the numbers are integers or fractions, to be inverted exactly."""
    return np.asarray(value).dtype.kind in "iuO"


def _as_fractions(value: Any) -> np.ndarray:
    array = np.asarray(value)
    return np.array([Fraction(x) for x in array.reshape(-1).tolist()], object).reshape(array.shape)
