"""Inversion: in a basis, every tensor has its parameter, and the dual basis finds it (A19 Prop. 1).

**Claim.** Let (a_k) be a basis of the tensors of shape S, k = 1..|S̄|. For every Φ of shape ST
there is exactly one Θ of shape 〈K〉T with Φ = a∘Θ, and

    Θ_kt = Σ_s a*_ks Φ_st,        a* = (Aᵀ)⁻¹,

where A is a flattened to the K × |S̄| matrix of its members.

**Proof.** Flatten S and T. Φ = a∘Θ reads Φ = AᵀΘ. A is square with independent rows, so invertible,
and Θ = (Aᵀ)⁻¹Φ is the one solution. Un-flatten; the bijections used do not matter. ∎

a* is the dual basis: Σ_s a*_ks a_ls = [k = l]. The orthonormal case a* = a is the usual projection.

Integers and fractions are inverted exactly (python-flint) and give arrays of `Fraction`; floats are
inverted in floating point.
"""

import math
from fractions import Fraction
from numbers import Rational
from typing import Any

import flint
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Shaped

from convattn.operators.arrays import as_array, require_finite
from convattn.structures.mixed_product import Tensor, mixed_product


def dual_basis(family: Any) -> Shaped[Tensor, "size *shape"]:
    """a* with Σ_s a*_ks a_ls = [k = l].

    Args:
        family: a, `[K, *S]` with K = |S̄|.

    Returns:
        `[K, *S]`: fractions for integers and fractions (which must be concrete), floats for floats.

    Raises:
        ValueError: For a family that is not a basis: it says that there are too few or too many
            members, or gives a relation between them. Floats that are traced cannot be looked at; a
            dependent family then gives infinities or NaN.

    Source: A19 Proposition 1.

    >>> dual_basis([[1, 1], [0, 2]]).astype(float).tolist()
    [[1.0, 0.0], [-0.5, 0.5]]
    >>> dual_basis([[1, 2], [2, 4]])
    Traceback (most recent call last):
        ...
    ValueError: the 2 members are dependent: 2·a_0 - 1·a_1 = 0; replace one of them
    """
    if _is_exact(family):
        exact = as_fractions(family, "family")
        flat = exact.reshape(_check_count(exact.shape))
        relation = linear_relation(flat)
        if relation is not None:
            raise ValueError(
                f"the {len(flat)} members are dependent: {_written(relation)} = 0; replace one of "
                "them"
            )
        return transposed_inverse(flat).reshape(exact.shape)
    members = as_array(family, "family")
    shape = _check_count(members.shape)
    require_finite(members, "family")
    wide = members.astype(jnp.result_type(members, jnp.float32)).reshape(shape)
    _refuse_dependent(wide)
    return jnp.linalg.inv(wide.T).reshape(members.shape)


def invert_mixed_product(family: Any, phi: Any) -> Shaped[Tensor, "size *parameter_shape"]:
    """The one Θ with a∘Θ = Φ.

    Args:
        family: a, `[K, *S]`, a basis.
        phi: Φ, `[*S, *T]`; T may be empty.

    Returns:
        Θ, `[K, *T]`; fractions if both are exact, else floats.

    Raises:
        ValueError: As `dual_basis`, and for a Φ whose shape does not begin with S.

    Source: A19 Proposition 1.

    >>> invert_mixed_product([[1, 1], [0, 2]], [[3, 0], [5, 8]]).astype(float).tolist()
    [[3.0, 0.0], [1.0, 4.0]]
    """
    exact = _is_exact(family) and _is_exact(phi)
    operator = as_fractions(phi, "phi") if exact else as_array(_floats(phi), "phi")
    dual = dual_basis(family if exact else _floats(family))
    if operator.shape[: dual.ndim - 1] != dual.shape[1:]:
        raise ValueError(
            f"phi.shape={operator.shape}, but expected to begin with {dual.shape[1:]}, the "
            "shape of the basis's members"
        )
    rest = operator.shape[dual.ndim - 1 :]
    rows = dual.reshape(dual.shape[0], -1)
    return mixed_product(rows.T, operator.reshape(-1, *rest))


def _is_exact(value: Any) -> bool:
    """Whether the numbers are integers or fractions, to be inverted exactly."""
    if isinstance(value, jax.core.Tracer):
        return False
    try:
        return np.asarray(value).dtype.kind in "iuO"
    except ValueError as error:
        raise ValueError(
            f"a {type(value).__name__} of rows of different lengths (ragged) was given, but "
            "expected nested lists of numbers of one shape; look for a row that lost an entry"
        ) from error


def _floats(value: Any) -> Any:
    """Concrete integers and fractions as floats of the default width; all else as it is."""
    if not _is_exact(value):
        return value
    return jnp.asarray(np.asarray(value).astype(np.float64), jnp.result_type(float))


def _check_count(shape: tuple[int, ...]) -> tuple[int, int]:
    """(K, |S̄|), which must be equal."""
    if not shape or 0 in shape:
        raise ValueError(f"family.shape={shape}, but expected (K, *S), all at least 1")
    dimension = math.prod(shape[1:])
    if shape[0] != dimension:
        fault = "they cannot span it" if shape[0] < dimension else "they are dependent"
        raise ValueError(
            f"family.shape={shape} has {shape[0]} members, but the space of tensors of shape "
            f"{shape[1:]} has dimension {dimension}: {fault}"
        )
    return shape[0], dimension


def _written(relation: list[int]) -> str:
    """The nonzero terms of Σ_k c_k a_k."""
    terms = [f"{c:+d}·a_{k}" for k, c in enumerate(relation) if c]
    return " ".join(f"{term[0]} {term[1:]}" for term in terms).removeprefix("+ ")


def _refuse_dependent(matrix: Array) -> None:
    """Refuse concrete floats with a singular value that rounding alone could leave."""
    if isinstance(matrix, jax.core.Tracer):
        return
    left, singular, _ = np.linalg.svd(np.asarray(matrix))
    threshold = len(singular) * np.finfo(singular.dtype).eps * singular[0]
    if singular[-1] <= threshold:
        weights = left[:, -1] / np.abs(left[:, -1]).max()
        terms = [f"{w:+.3g}·a_{k}" for k, w in enumerate(weights) if abs(w) > 1e-3]
        raise ValueError(
            f"the {len(singular)} members are dependent up to rounding: {' '.join(terms)} has norm "
            f"{singular[-1] / np.abs(left[:, -1]).max():.1e}; replace one of them, or give "
            "integers or fractions for an exact answer"
        )


def as_fractions(value: Any, name: str) -> Shaped[np.ndarray, "..."]:
    """Integers and fractions as an object array of `Fraction`.

    Raises:
        ValueError: For anything else; a float stands for no rational in particular.

    >>> as_fractions([1, Fraction(1, 2)], "row").tolist()
    [Fraction(1, 1), Fraction(1, 2)]
    """
    array = np.asarray(value, object)
    result = np.empty(array.shape, object)
    for index in np.ndindex(array.shape):
        entry = array[index]
        number = entry.item() if isinstance(entry, np.generic) else entry
        if not isinstance(number, Rational) or isinstance(number, bool):
            raise ValueError(
                f"{name}{list(index)}={number!r}, but expected an integer or a Fraction; the "
                "floating-point variant takes floats"
            )
        result[index] = Fraction(number)
    return result


def transposed_inverse(
    matrix: Shaped[np.ndarray, "rows columns"],
) -> Shaped[np.ndarray, "rows columns"]:
    """(Mᵀ)⁻¹ of an invertible matrix of fractions.

    Raises:
        ZeroDivisionError: For a singular one.

    >>> transposed_inverse(as_fractions([[1, 1], [0, 2]], "m")).astype(float).tolist()
    [[1.0, 0.0], [-0.5, 0.5]]
    """
    return _from_flint(_to_flint(matrix.T).inv(), matrix.shape)


def linear_relation(matrix: Shaped[np.ndarray, "rows columns"]) -> list[int] | None:
    """Coprime integers c ≠ 0 with Σ_k c_k row_k = 0, or None if the rows are independent.

    >>> linear_relation(as_fractions([[1, 2], [2, 4], [0, 1]], "m"))
    [2, -1, 0]
    """
    reduced, rank = _to_flint(matrix.T).rref()
    rows = matrix.shape[0]
    if rank == rows:
        return None
    pivots = [next(c for c in range(rows) if reduced[r, c] != 0) for r in range(rank)]
    free = next(column for column in range(rows) if column not in pivots)
    solution = [Fraction(0)] * rows
    solution[free] = Fraction(-1)
    for row, pivot in enumerate(pivots):
        entry = reduced[row, free]
        solution[pivot] = Fraction(int(entry.p), int(entry.q))
    scale = int(np.lcm.reduce([number.denominator for number in solution]))
    numbers = [int(number * scale) for number in solution]
    return [number // int(np.gcd.reduce(numbers)) for number in numbers]


def _to_flint(matrix: Shaped[np.ndarray, "rows columns"]) -> flint.fmpq_mat:
    rows, columns = matrix.shape
    return flint.fmpq_mat(
        rows, columns, [flint.fmpq(f.numerator, f.denominator) for f in matrix.reshape(-1)]
    )


def _from_flint(matrix: flint.fmpq_mat, shape: tuple[int, ...]) -> np.ndarray:
    result = np.empty(shape, object)
    for row, column in np.ndindex(shape):
        entry = matrix[row, column]
        result[row, column] = Fraction(int(entry.p), int(entry.q))
    return result
