"""How far attention with fixed weights is from the nearest convolution. Not in the papers.

A layer of positional attention on tokens is the linear map L = Σ_h A_h ⊗ W_h: token k of the input
adds X_k L[q, k] = X_k Σ_h A_h[q, k] W_h to token q of the output. For images of 256 tokens with 400
features it has 10¹⁰ entries. The distance to the K × K convolutions needs none of them.

*Claim.* Let P replace a matrix [q, k] by its mean over the pairs with the same shift k - q where
that shift is a tap, and by zero elsewhere. With D_h = A_h - P A_h,

    |L - C|² = Σ_gh ⟨D_g, D_h⟩ ⟨W_g, W_h⟩   for the nearest convolution C,

    |L|² = Σ_gh ⟨A_g, A_h⟩ ⟨W_g, W_h⟩,   |C|² = Σ_gh ⟨P A_g, P A_h⟩ ⟨W_g, W_h⟩.

*Proof.* A zero-padded convolution is a map with C[q, k] = Θ_(k-q) where the shift is a tap, and
zero elsewhere. These maps are a linear space; pairs of different shifts are different entries, so
the nearest C has for each tap the Θ that is nearest to all L[q, k] of its pairs in the sum of
squares: their mean. It is linear in L, and the mean of Σ_h A_h[q, k] W_h is Σ_h (P A_h)[q, k] W_h.
So C = Σ_h P A_h ⊗ W_h and L - C = Σ_h D_h ⊗ W_h. Last,

    ⟨A ⊗ W, B ⊗ V⟩ = Σ_qkio A[q, k] W[i, o] B[q, k] V[i, o] = ⟨A, B⟩⟨W, V⟩. ∎

P is an orthogonal projection, so ⟨D_g, D_h⟩ = ⟨A_g, A_h⟩ - ⟨P A_g, P A_h⟩; but that difference of
large numbers would lose a small distance to rounding, so D_h is formed. For shift matrices D_h = 0
exactly. What can still cancel are the signs of ⟨W_g, W_h⟩, when heads with the same D_h and
opposite maps take each other away; a sum that rounding makes negative is zero.

Borders are a part of the distance: a head whose centre lies outside the image attends elsewhere,
and a zero-padded convolution would find zeros there. With `queries="inside"` they are not: L and C
have only the rows of those q for which all taps q + δ lie in the image, and P takes its means over
these q. The proof is the same. A head that attends to one shift there has D_h = 0, whatever it does
at the border.

This is `residual.relative_frobenius` of `attention_to_conv` for layers with patches of one token
and without stride, whose ring is zeros.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from convattn.operators.integers import per_axis
from convattn.operators.shifts import axis_taps


@dataclass(frozen=True)
class ConvolutionDistance:
    """How far a layer, and each head's attention, is from a convolution.

    Attributes:
        relative: |L - C| / |L|, in [0, 1]; 0 if L vanishes.
        fraction: |C|² / |L|², how much of the layer the convolution is; 1 if L vanishes.
        heads: `[heads]`, |A_h - P A_h| / |A_h|.
    """

    relative: float
    fraction: float
    heads: np.ndarray


def convolution_distance(
    attention: Float[np.ndarray, "heads query_rows query_columns key_rows key_columns"],
    value_gram: Float[np.ndarray, "heads heads"],
    kernel_size: int | Sequence[int],
    *,
    dilation: int | Sequence[int] = 1,
    queries: Literal["all", "inside"] = "all",
) -> ConvolutionDistance:
    """The distance of L = Σ_h A_h ⊗ W_h to the K × K convolutions, K odd or even.

    Of the A_h the keys are the tokens that queries are: a ring of zeros gives nothing, so its
    columns are left out. The Gram matrix is that of the ⟨W_g, W_h⟩. Of the queries all count, or
    those whose whole neighbourhood lies in the image.

    >>> rows = np.eye(3)[:, None, :, None]  # three tokens in a column; each attends to itself
    >>> convolution_distance(rows[None], np.ones((1, 1)), 1)
    ConvolutionDistance(relative=0.0, fraction=1.0, heads=array([0.]))
    """
    heads, *sides = attention.shape
    if attention.ndim != 5 or sides[:2] != sides[2:] or value_gram.shape != (heads, heads):
        raise ValueError(
            f"attention.shape={attention.shape} and value_gram.shape={value_gram.shape}, but "
            "expected [heads, rows, columns, rows, columns] and [heads, heads]"
        )
    maps, taps = attention.astype(np.float64), per_axis(kernel_size, 2, "kernel_size")
    if queries == "inside":
        counted = np.zeros(sides[:2], bool)
        counted[np.ix_(*inside_queries(sides[:2], taps, dilation))] = True
        maps = np.where(counted[..., None, None], maps, 0)
    nearest = tap_means(maps, taps, dilation, queries)
    gap = maps - nearest
    size, distance, nearest_size = (
        squared_norm(array, value_gram.astype(np.float64)) for array in (maps, gap, nearest)
    )
    norms, gaps = (np.sqrt(np.sum(array**2, axis=(1, 2, 3, 4))) for array in (maps, gap))
    if not size:
        relative, fraction = 0.0, 1.0
    else:
        relative, fraction = float(np.sqrt(distance / size)), float(nearest_size / size)
    return ConvolutionDistance(relative, fraction, gaps / np.where(norms > 0, norms, 1))


def tap_means(
    attention: Float[np.ndarray, "heads query_rows query_columns key_rows key_columns"],
    kernel_size: Sequence[int],
    dilation: int | Sequence[int] = 1,
    queries: Literal["all", "inside"] = "all",
) -> Float[np.ndarray, "heads query_rows query_columns key_rows key_columns"]:
    """P A_h: for each tap the mean over the pairs that it joins, and zero elsewhere."""
    sides = attention.shape[1:3]
    steps = per_axis(dilation, 2, "dilation")
    common = inside_queries(sides, kernel_size, dilation) if queries == "inside" else None
    means = np.zeros_like(attention)
    for tap in product(*(axis_taps(size) for size in kernel_size)):
        shifts = tap[0] * steps[0], tap[1] * steps[1]
        rows, columns = common or (
            axis_queries(side, [shift]) for side, shift in zip(sides, shifts, strict=True)
        )
        if not (len(rows) and len(columns)):
            raise ValueError(
                f"an image of {sides[0]} × {sides[1]} tokens has no pair that tap {tap} of a "
                f"kernel of size {tuple(kernel_size)} joins; take a smaller kernel"
            )
        where = (
            slice(None),
            rows[:, None],
            columns[None, :],
            rows[:, None] + shifts[0],
            columns[None, :] + shifts[1],
        )
        means[where] = attention[where].mean(axis=(1, 2), keepdims=True)
    return means


def inside_queries(
    sides: Sequence[int], kernel_size: Sequence[int], dilation: int | Sequence[int] = 1
) -> tuple[Int[np.ndarray, " rows"], Int[np.ndarray, " columns"]]:
    """The rows and the columns of those tokens whose whole neighbourhood lies in the image.

    >>> [each.tolist() for each in inside_queries((3, 4), (3, 2))]
    [[1], [0, 1, 2]]
    """
    steps = per_axis(dilation, 2, "dilation")
    rows, columns = (
        axis_queries(side, [tap * step for tap in axis_taps(size)])
        for side, size, step in zip(sides, kernel_size, steps, strict=True)
    )
    return rows, columns


def axis_queries(side: int, shifts: Sequence[int]) -> Int[np.ndarray, " queries"]:
    """Those of 0 … side - 1 that stay there under all shifts."""
    return np.arange(max(0, -min(shifts)), min(side, side - max(shifts)))


def squared_norm(
    attention: Float[np.ndarray, " heads *pairs"], value_gram: Float[np.ndarray, " heads heads"]
) -> float:
    """|Σ_h A_h ⊗ W_h|² = Σ_gh ⟨A_g, A_h⟩ ⟨W_g, W_h⟩, and zero where rounding makes it negative.

    >>> squared_norm(np.ones((2, 3)), np.array([[1.0, -1.0], [-1.0, 1.0]]))
    0.0
    """
    flat = attention.reshape(len(attention), int(np.prod(attention.shape[1:])))
    return max(float(np.sum((flat @ flat.T) * value_gram)), 0.0)
