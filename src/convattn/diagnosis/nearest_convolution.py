"""How near a layer is to a convolution, and how many heads would come as near.

The layer is the linear map L = Σ_h A_h ⊗ W_h on the tokens of a grid, with fixed attention A_h and
the maps W_h = V_h O_h of values and output; C = Σ_h (P A_h) ⊗ W_h is the K × K convolution nearest
to it (`convolution_distance.py`), and |L - C| their distance. The kernel of C is
Θ_t = Σ_h p_h(t) W_h, p_h(t) the mean of A_h over the n_t pairs that the tap t joins.

*Claim.* Let σ_1 ≥ σ_2 ≥ … be the singular values of the matrix with the rows √n_t vec(Θ_t), and r
the least number with Σ_(i > r) σ_i² ≤ |L - C|². No layer of fewer than r heads without content, of
whatever width, is as near to C as L is; and the kernel C_r that keeps the first r terms of the
singular value decomposition is.

*Proof.* As a matrix from the pairs (q, k) to the entries (i, o), a map Σ_(h ≤ r') A_h ⊗ W_h has a
rank of at most r', and C has the row vec(Θ_t) for each of the n_t pairs of tap t and zeros
elsewhere: its Gram matrix Σ_t n_t vec(Θ_t)ᵀ vec(Θ_t) is that of the weighted rows, and so are its
singular values. The distance from C to rank r' is at least √(Σ_(i > r') σ_i²) (Eckart, Young,
Mirsky), and C_r attains it within the convolutions. ∎

So r is at most the number of heads of L. C_r itself takes r or r + 1 heads in the limit and r + 1
at finite scores: S.kernel, which `count_heads_of_kernel` decides. For every kernel K² are enough in
the limit and K² + 1 at finite scores (S.finite).

To find all this no kernel of K² · in · out numbers is formed: with the triangular factor R of the
heads' maps, RᵀR = (⟨W_g, W_h⟩), the weighted rows are √n_t p(t) Rᵀ up to an isometry.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Float

from convattn.bounds.kernel_heads import KernelHeads, count_heads_of_kernel
from convattn.diagnosis.convolution_distance import (
    convolution_distance,
    squared_norm,
    tap_means,
)
from convattn.operators.integers import per_axis
from convattn.operators.shifts import axis_taps

MAPS_AT_ONCE = 2**26  # numbers of W that are held together


@dataclass(frozen=True)
class KernelCount:
    """How many heads without content a kernel takes, on images that are larger than it.

    Attributes:
        rank: Of the kernel, its entries in a row for each tap; no fewer heads come as near.
        limit: The heads that it takes as scores tend to infinity.
        exact: The heads that it takes at finite scores.
        claim: The row of the ledger that proves both.
    """

    rank: int
    limit: int
    exact: int
    claim: str = "S.kernel"


@dataclass(frozen=True)
class NearestConvolution:
    """The K × K convolution nearest to a layer, with zeros around the image.

    Attributes:
        kernel_size: K on each axis, in tokens.
        relative: |L - C| / |L|, in [0, 1]; 0 if L vanishes. None if the maps are not known.
        heads: `[heads]`, |A_h - P A_h| / |A_h|, the distance of each head's attention.
        taps: `[heads, K, K]`, p_h(t): the convolution nearest to the attention of each head.
        norms: `[K, K]`, |Θ_t| of each tap of the kernel; None if the maps are not known.
        whole: The heads that C takes; None likewise.
        as_near: Those that C_r takes, the kernel of least rank with |C - C_r| ≤ |L - C|.
    """

    kernel_size: tuple[int, int]
    relative: float | None
    heads: Float[np.ndarray, " heads"]
    taps: Float[np.ndarray, "heads rows columns"]
    norms: Float[np.ndarray, "rows columns"] | None
    whole: KernelCount | None
    as_near: KernelCount | None


def nearest_convolution(
    attention: Float[np.ndarray, "heads query_rows query_columns key_rows key_columns"],
    maps: Float[np.ndarray, " heads in out"] | None,
    kernel_size: int | Sequence[int] = 3,
) -> NearestConvolution:
    """The nearest convolution of Σ_h A_h ⊗ W_h, its distance, and the heads that it takes.

    Args:
        attention: A_h among the tokens of the grid; attention to other keys is left out, so rows
            may sum to less than one.
        maps: W_h, in float64 for distances near zero; None leaves the distances of the heads.
        kernel_size: K in tokens, or one for each axis; odd or even.

    Singular values of at most 2⁻⁵² max(K², heads) √(Σ σ²) count as zero: they are rounding.

    >>> eye = np.eye(9).reshape(1, 3, 3, 3, 3)  # one head that looks at the query itself
    >>> nearest = nearest_convolution(eye, np.ones((1, 2, 2)))
    >>> nearest.relative, nearest.whole
    (0.0, KernelCount(rank=1, limit=1, exact=2, claim='S.kernel'))
    >>> nearest.taps[0].tolist(), nearest.norms[1].tolist()  # of four ones
    ([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], [0.0, 2.0, 0.0])
    """
    rows_size, columns_size = per_axis(kernel_size, 2, "kernel_size")
    sizes = (rows_size, columns_size)
    known = maps is not None
    if maps is not None and (maps.ndim != 3 or len(maps) != len(attention)):
        raise ValueError(
            f"maps.shape={maps.shape}, but expected [heads, in, out] for {len(attention)} heads"
        )
    factor = np.eye(len(attention)) if maps is None else triangular_factor(maps)
    gram = factor.T @ factor
    distance = convolution_distance(attention, gram, sizes)
    rows, counts = weighted_taps(attention, sizes)
    heads = (rows / np.sqrt(counts)).reshape(-1, *sizes)
    if not known:
        return NearestConvolution(sizes, None, distance.heads, heads, None, None, None)
    size = math.sqrt(squared_norm(attention.astype(np.float64), gram))
    norms = (np.linalg.norm(factor @ rows, axis=0) / np.sqrt(counts)).reshape(sizes)
    _, singular, right = np.linalg.svd(factor @ rows, full_matrices=False)
    tails = np.sqrt(np.append(np.cumsum(singular[::-1] ** 2)[::-1], 0))  # of r = 0, 1, …
    rounding = np.finfo(np.float64).eps * max(rows.shape) * tails[0]
    taps = right * singular[:, None] / np.sqrt(counts)
    limits = (0.0, size * distance.relative)
    ranks = [int(np.argmax(tails <= max(limit, rounding))) for limit in limits]
    whole, near = (_kernel_count(taps[:rank].reshape(rank, *sizes)) for rank in ranks)
    return NearestConvolution(sizes, distance.relative, distance.heads, heads, norms, whole, near)


def triangular_factor(maps: Float[np.ndarray, " heads in out"]) -> Float[np.ndarray, " rank heads"]:
    """R with RᵀR = (⟨W_g, W_h⟩), without the rounding that forming this product would cost.

    >>> abs(triangular_factor(np.array([[[3.0, 4.0]], [[0.0, 0.0]]]))).round(12).tolist()
    [[5.0, 0.0], [0.0, 0.0]]
    """
    heads, rows, columns = maps.shape
    factor = np.zeros((0, heads))
    step = max(1, MAPS_AT_ONCE // max(1, heads * columns))
    for start in range(0, rows, step):
        block = maps[:, start : start + step].astype(np.float64).reshape(heads, -1).T
        factor = np.asarray(np.linalg.qr(np.concatenate([factor, block]), mode="r"))
    return factor


def weighted_taps(
    attention: Float[np.ndarray, "heads query_rows query_columns key_rows key_columns"],
    kernel_size: tuple[int, int],
) -> tuple[Float[np.ndarray, "heads taps"], Float[np.ndarray, " taps"]]:
    """√n_t p_h(t) for each head and tap, and n_t: how many pairs a tap joins."""
    sides = attention.shape[1:3]
    means = tap_means(attention.astype(np.float64), kernel_size)
    rows, counts = [], []
    for tap in product(*(axis_taps(size) for size in kernel_size)):
        row, column = (max(0, -shift) for shift in tap)
        pairs = math.prod(side - abs(shift) for side, shift in zip(sides, tap, strict=True))
        rows.append(means[:, row, column, row + tap[0], column + tap[1]] * math.sqrt(pairs))
        counts.append(pairs)
    return np.stack(rows, axis=1), np.array(counts, float)


def _kernel_count(taps: Float[np.ndarray, " rank *kernel_size"]) -> KernelCount:
    """What S.kernel says of a kernel with this many independent rows of taps.

    >>> _kernel_count(np.array([[[1.0, 0.0, -1.0]]]))  # mixed sign: no nonnegative combination
    KernelCount(rank=1, limit=2, exact=2, claim='S.kernel')
    """
    if not len(taps):
        return KernelCount(0, 0, 0)
    counts: KernelHeads = count_heads_of_kernel(np.moveaxis(taps, 0, -1)[..., None, :])
    return KernelCount(counts.rank, counts.limit, counts.exact, counts.claim)
