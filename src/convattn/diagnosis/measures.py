"""What a head does: how far, how sharply and where it looks, and whether positions alone decide.

Notation: A_m[q, k] is the attention that query q pays to key k in image m, Σ_k A_m[q, k] = 1 over
all keys, and 𝔼 is the mean over the images and the queries on the grid. The keys are the H × W
tokens of the grid and whatever else there is, such as a class token or a ring of zeros. With

    S(δ) = 𝔼 A_m[q, q + δ],   0 for a q + δ outside the grid,

the attention within the grid is the distribution S(δ) / Σ S of shifts δ = key - query, and
distance, centre and spread are its moments. What goes to the other keys, 1 - Σ S, is reported
apart. The mean attention distance is that of Dosovitskiy et al. 2021 ("An image is worth 16 × 16
words", Fig. 7 and D.7), the head's attention to the class token left out.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

MIN_QUERIES = 0.25


@dataclass(frozen=True)
class HeadMeasures:
    """The heads of one layer; an array of one number a head unless another shape is given.

    Distances are in tokens. NaN stands where nothing is defined: the moments of a head that pays
    the grid no attention, and `positions` of fewer than two images.

    Attributes:
        distance: Σ S(δ) |δ| / Σ S, the mean attention distance.
        entropy: 𝔼 (-Σ_k A log A) over all keys, in nats.
        relative_entropy: The same divided by the log of the number of keys, in [0, 1]; 0 if there
            is one key.
        center: `[heads, 2]`, μ = Σ S(δ) δ / Σ S, rows and columns.
        covariance: `[heads, 2, 2]`, Σ S(δ) (δ - μ)(δ - μ)ᵀ / Σ S.
        spread: The root of the trace of the covariance, the root mean square of |δ - μ|.
        positions: The fraction of the variance of attention that positions explain,

                1 - Σ_mqk (A_m[q, k] - Ā[q, k])² / Σ_mqk (A_m[q, k] - a)²

            over the pairs on the grid, Ā the mean over the images and a that over images and pairs.
            1 if the first sum vanishes, also if both do, as for uniform attention; a sum of at most
            (M·2⁻⁵²)² Σ A² counts as zero, which the rounding of a mean of M equal numbers leaves.
            Ā is of the same M images, so that maps that have nothing in common have about 1/M.
        shift: `[heads, 2]`, the δ of the largest mean of A_m[q, q + δ] over the images and those
            queries whose q + δ is on the grid. Only the δ count for which these are a quarter of
            the queries or more: the others say little of a head.
        one_shift: That mean, in [0, 1]; 1 for a head of a convolution.
        elsewhere: 1 - Σ S, the attention to keys that are not on the grid.
    """

    distance: Float[np.ndarray, " heads"]
    entropy: Float[np.ndarray, " heads"]
    relative_entropy: Float[np.ndarray, " heads"]
    center: Float[np.ndarray, "heads 2"]
    covariance: Float[np.ndarray, "heads 2 2"]
    spread: Float[np.ndarray, " heads"]
    positions: Float[np.ndarray, " heads"]
    shift: Int[np.ndarray, "heads 2"]
    one_shift: Float[np.ndarray, " heads"]
    elsewhere: Float[np.ndarray, " heads"]


def measure_heads(
    attention: Float[np.ndarray, "images heads queries keys"], grid: tuple[int, int]
) -> HeadMeasures:
    """The measures of each head, in float64.

    Args:
        attention: Rows sum to one. The last H·W queries and keys are the tokens of the grid, row by
            row; what comes before are other tokens. Queries among these are not looked at.
        grid: H, W.

    >>> uniform = np.full((1, 1, 4, 4), 0.25)  # one head on 2 × 2 tokens
    >>> measures = measure_heads(uniform, (2, 2))
    >>> measures.relative_entropy.tolist(), measures.distance.round(4).tolist()  # (2 + √2)/4
    ([1.0], [0.8536])
    """
    attention = require_probabilities(attention, grid)
    heads, keys = attention.shape[1], attention.shape[3]
    tokens = grid[0] * grid[1]
    rows = attention[:, :, -tokens:]
    pairs = rows[..., -tokens:]
    mean = pairs.mean(axis=0)
    shifts, sums, counts = shift_sums(mean, grid)

    within = sums.sum(axis=1) / tokens
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = sums / sums.sum(axis=1, keepdims=True)
    distance, center, covariance = moments(weights, shifts)
    entropy = np.maximum(entropies(rows).mean(axis=(0, 2)), 0)
    by_shift = np.where(counts >= MIN_QUERIES * tokens, sums / np.maximum(counts, 1), -1)
    best = by_shift.argmax(axis=1)
    return HeadMeasures(
        distance=distance,
        entropy=entropy,
        relative_entropy=entropy / np.log(keys) if keys > 1 else np.zeros(heads),
        center=center,
        covariance=covariance,
        spread=np.sqrt(np.trace(covariance, axis1=1, axis2=2)),
        positions=_explained_by_positions(pairs, mean),
        shift=shifts[best],
        one_shift=by_shift[np.arange(heads), best],
        elsewhere=np.maximum(1 - within, 0),
    )


def moments(
    weights: Float[np.ndarray, "heads shifts"], shifts: Int[np.ndarray, "shifts 2"]
) -> tuple[
    Float[np.ndarray, " heads"], Float[np.ndarray, "heads 2"], Float[np.ndarray, "heads 2 2"]
]:
    """Mean distance, centre and covariance of distributions of shifts.

    >>> result = moments(np.array([[0.5, 0.5]]), np.array([[0, 0], [0, 4]]))
    >>> [each.tolist() for each in result]
    [[2.0], [[0.0, 2.0]], [[[0.0, 0.0], [0.0, 4.0]]]]
    """
    center = weights @ shifts
    away = shifts[None] - center[:, None]
    covariance = np.einsum("hs,hsa,hsb->hab", weights, away, away)
    return weights @ np.linalg.norm(shifts, axis=1), center, covariance


def entropies(rows: Float[np.ndarray, "*queries keys"]) -> Float[np.ndarray, "*queries"]:
    """-Σ_k A log A of each row, in nats.

    >>> float(entropies(np.array([[0.5, 0.5, 0.0]]))[0] / np.log(2))
    1.0
    """
    return -np.sum(rows * np.log(np.where(rows > 0, rows, 1)), axis=-1)


def require_probabilities(
    attention: Float[np.ndarray, "images heads queries keys"], grid: tuple[int, int]
) -> Float[np.ndarray, "images heads queries keys"]:
    """The attention in float64, or a ValueError: see `measure_heads`."""
    tokens = grid[0] * grid[1]
    if attention.ndim != 4 or 0 in attention.shape or min(attention.shape[2:]) < max(tokens, 1):
        raise ValueError(
            f"attention.shape={attention.shape}, but expected [images, heads, queries, keys] with "
            f"at least one image and head, and the {grid[0]} × {grid[1]} tokens of the grid last "
            "among queries and keys"
        )
    attention = attention.astype(np.float64)
    if problem := wrong_row(attention):
        raise ValueError(f"{problem}; give the weights after the softmax, with all keys")
    return attention


def wrong_row(attention: Float[np.ndarray, "*queries keys"]) -> str | None:
    """What is wrong with the first row that is no probabilities, up to 1e-3; None if all are.

    >>> wrong_row(np.array([[0.5, 0.5], [0.5, 0.25]]))[:29]
    'attention[1] has the sum 0.75'
    """
    sums = attention.sum(axis=-1, dtype=np.float64)
    wrong = ~(np.abs(sums - 1) <= 1e-3) | ~(attention >= 0).all(axis=-1)
    if not wrong.any():
        return None
    row = tuple(int(index) for index in np.argwhere(wrong)[0])
    return (
        f"attention{list(row)} has the sum {sums[row]:.6g} and the least entry "
        f"{attention[row].min():.6g}, but every row should be probabilities with the sum 1"
    )


def shift_sums(
    mean: Float[np.ndarray, "heads tokens tokens"], grid: tuple[int, int]
) -> tuple[
    Int[np.ndarray, "shifts 2"], Float[np.ndarray, "heads shifts"], Int[np.ndarray, " shifts"]
]:
    """All shifts between tokens, Σ_q Ā[q, q + δ] of each, and how many queries have that key.

    >>> shifts, sums, counts = shift_sums(np.eye(2)[None], (1, 2))
    >>> shifts.tolist(), sums.tolist(), counts.tolist()
    ([[0, -1], [0, 0], [0, 1]], [[0.0, 2.0, 0.0]], [1, 2, 1])
    """
    height, width = grid
    places = np.stack(np.divmod(np.arange(height * width), width), axis=1)
    between = places[None] - places[:, None] + (height - 1, width - 1)
    number = (between[..., 0] * (2 * width - 1) + between[..., 1]).ravel()
    count = (2 * height - 1) * (2 * width - 1)
    shifts = np.stack(np.divmod(np.arange(count), 2 * width - 1), axis=1) - (height - 1, width - 1)
    sums = np.zeros((len(mean), count))
    for head, each in enumerate(mean):
        sums[head] = np.bincount(number, each.ravel(), count)
    return shifts, sums, np.bincount(number, minlength=count)


def _explained_by_positions(
    pairs: Float[np.ndarray, "images heads tokens tokens"],
    mean: Float[np.ndarray, "heads tokens tokens"],
) -> Float[np.ndarray, " heads"]:
    """`HeadMeasures.positions`."""
    images, axes = len(pairs), (0, 2, 3)
    if images < 2:
        return np.full(len(mean), np.nan)
    within = np.sum((pairs - mean) ** 2, axis=axes)
    total = np.sum((pairs - mean.mean(axis=(1, 2))[:, None, None]) ** 2, axis=axes)
    rounding = (images * np.finfo(np.float64).eps) ** 2 * np.sum(pairs**2, axis=axes)
    explained = 1 - within / np.where(total > 0, total, 1)
    return np.where(within <= rounding, 1.0, explained)
