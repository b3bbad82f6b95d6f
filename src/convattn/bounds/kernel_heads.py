"""S.kernel: how many heads one given kernel takes.

Let ρ > 0 be the rank of F, R its row space, and let the image have a query with a token of it
outside its receptive field, or one δ have M_δ = 0: a shift σ where the convolution puts nothing.

*At finite scores exactly ρ + 1.* If Σ_h A_h X W_h + b is the convolution, vec(M_δ) = Σ_h a_h(δ)
vec(W_h). With ρ heads the W_h are independent, as they span the ρ-dimensional column space of F,
and 0 = Σ_h a_h(σ) W_h makes every a_h(σ) zero, which no softmax is. ρ + 1 heads do
(`constructions/given_kernel.py`).

*In the limit ρ if R holds a nonnegative vector y ≠ 0, else ρ + 1.* If: let b_1 = y, b_2, …, b_ρ be
a basis, F = Σ C_i b_i, u > 0 a row over all keys with b_i + u > 0, and take the heads y + εu and y
+ ε(b_i + u), normalised, with the values C_1 - Σ C_i/ε and C_i/ε: the sum is F + εC_1u. Only if:
where layers of ρ heads tend to F, their products V A tend to a matrix of rank ρ, so the row spaces
of the A tend to R. Scale a row of each to the sum one over the image's tokens; they have a limit
point, which is nonnegative and in R.

*With bounded values* the attention itself has a limit, with ρ nonnegative rows that span R. So the
nonnegative vectors of R must span it, and that suffices: `bounded`. R = span{(1, 0, 0), (0, 1, -1)}
holds (1, 0, 0), and its nonnegative vectors are multiples of that: two heads reach it in the limit,
with values that grow without bound.

Without a σ (the image is the one receptive field, and no M_δ is 0) ρ heads do at finite scores iff
R holds a vector without zeros, y > 0, by the heads y + εb_i.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from convattn.bounds.nonnegative_vector import Vector, first_phase, nonnegative_vector
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.row_basis import distinct_rows, exact_entries, row_basis


@dataclass(frozen=True)
class KernelHeads:
    """How many heads without content a given kernel takes.

    Attributes:
        rank: ρ, of F; exact where `tolerance` is 0.
        limit: The least number of heads whose layers tend to the convolution.
        bounded: The same with values that stay bounded, so that attention itself has a limit.
        exact: The least number at finite scores, where an image token lies outside some query's
            receptive field, or some M_δ is zero.
        nonnegative: y ≥ 0, y ≠ 0 in the row space, over the token offsets, or None.
        positive: z > 0 with F z = 0, which proves that there is no y, or None.
        tolerance: Singular values up to here counted as zero.
        claim: The row of the ledger that proves the numbers.
    """

    rank: int
    limit: int
    bounded: int
    exact: int
    nonnegative: Vector | None
    positive: Vector | None
    tolerance: float = 0.0
    claim: str = "S.kernel"


def count_heads_of_kernel(
    kernel: Any,
    patch_size: int | Sequence[int] = 1,
    *,
    dilation: int | Sequence[int] = 1,
    tolerance: float = 0.0,
) -> KernelHeads:
    """The number of heads that this kernel takes, in the limit and at finite scores.

    Args:
        kernel: HWIO or WIO, concrete: integers, fractions or floats, which all are rational
            numbers.
        patch_size: P.
        dilation: d. The first tap is d⌊(K-1)/2⌋ pixels before the query. Where "SAME" has
            ⌊d(K-1)/2⌋ (K even, d > 1), `conv_to_attention` moves the patches by the difference, and
            this is the number of its heads; patches from the image's corner on may take more.
        tolerance: 0 decides everything exactly, for the entries as they are. A tolerance > 0 counts
            singular values of F (all its P⁴·in·out rows) up to it as zero, takes the numerical
            rank, and asks for y in the space of the other right singular vectors as computed in
            float64.

    Returns:
        `KernelHeads`. A kernel of zeros takes none.

    Raises:
        ValueError: For what is no kernel, and for a negative tolerance.

    Source: S.kernel of this project's ledger.

    >>> heads = count_heads_of_kernel([[[1]], [[0]], [[-1]]])  # one channel, mixed sign
    >>> heads.rank, heads.limit, heads.exact, [int(entry) for entry in heads.positive]
    (1, 2, 2, [1, 1, 1])
    >>> count_heads_of_kernel([[[1]], [[2]], [[1]]]).limit
    1
    """
    if not isinstance(tolerance, int | float) or not 0 <= tolerance < float("inf"):
        raise ValueError(f"tolerance={tolerance!r}, but expected a finite number ≥ 0")
    entries = exact_entries(kernel)
    geometry = ConvolutionGeometry.of(entries.shape[:-2], patch_size, 1, dilation)
    rows, counts = distinct_rows(entries, geometry)
    if tolerance:
        weighted = rows.astype(np.float64) * np.sqrt(counts)[:, None]
        _, singular, right = np.linalg.svd(weighted, full_matrices=False)
        directions = right[singular > tolerance]
        basis = [[Fraction(float(entry)) for entry in row] for row in directions]
    else:
        basis = row_basis(rows)[0].tolist()
    rank = len(basis)
    if not rank:
        return KernelHeads(0, 0, 0, 0, None, None, float(tolerance))
    coefficients, positive = nonnegative_vector(basis)
    if coefficients is None:
        return KernelHeads(rank, rank + 1, rank + 1, rank + 1, None, positive, float(tolerance))
    nonnegative = combination(coefficients, basis)
    bounded = rank if nonnegative_vectors_span(basis) else rank + 1
    return KernelHeads(rank, rank, bounded, rank + 1, nonnegative, None, float(tolerance))


def combination(coefficients: Sequence[Fraction], basis: Sequence[Sequence[Fraction]]) -> Vector:
    """cB."""
    columns = zip(*basis, strict=True)
    return tuple(
        sum((c * b for c, b in zip(coefficients, column, strict=True)), Fraction(0))
        for column in columns
    )


def nonnegative_vectors_span(basis: Sequence[Sequence[Fraction]]) -> bool:
    """Whether the nonnegative vectors of the row space span it.

    They do iff some y > 0 at all offsets where not the whole space vanishes: then y + εb is
    nonnegative for every b. Stiemke: there is such a y, or z ≥ 0, z ≠ 0 with B z = 0 there.

    >>> nonnegative_vectors_span([[Fraction(1), Fraction(0), Fraction(0)]])
    True
    >>> rows = [[Fraction(1), Fraction(0), Fraction(0)], [Fraction(0), Fraction(1), Fraction(-1)]]
    >>> nonnegative_vectors_span(rows)
    False
    """
    columns = [column for column in zip(*basis, strict=True) if any(column)]
    rows = [*zip(*columns, strict=True), (Fraction(1),) * len(columns)]
    point, _ = first_phase(rows, [Fraction(0)] * len(basis) + [Fraction(1)])
    return point is None
