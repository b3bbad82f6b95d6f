"""How far a layer of mixture heads is from a convolution, as linear maps, with certain bounds.

At a query whose offsets are all keys, one of N, head h has the row (Σ_δ w_hδ S_δ + J)/Z_h with Z_h
= 1 + Σ_δ w_hδ. So the layer puts D_δ + M_δ + R/N at the offset δ and R/N at every other key, where

    D_δ = Σ_h (w_hδ/Z_h) V_h - M_δ,      R = Σ_h V_h/Z_h,

and the squared Frobenius distance, summed over all keys, is

    Σ_δ |D_δ|² + g/N,      g = 2⟨Σ_δ D_δ, R⟩ + |R|².

w, V and M are the stored numbers, exact in float64; the layer's own arithmetic is left out. Each
entry of D and R is off by at most γ_n times the sum of the absolute terms, which encloses both
numbers, and with N ≥ T the distance for every image size at once.

γ_n leaves underflow out. A square or a product that underflows is off by 2⁻¹⁰⁷⁵, which is added for
each; in the entries themselves it is far below 2⁻²⁰ of the errors of the largest ones, which are
2⁻²⁰⁰ at least where the largest of M and V is 2⁻¹⁵⁰ or more.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from convattn.bounds.tail_energy import INFLATION, ROUNDOFF, require_range
from convattn.operators.roundoff import gamma

UNDERFLOW = 2.0**-1073  # for each product that is not zero: twice 2⁻¹⁰⁷⁵, and its sum


@dataclass(frozen=True)
class Enclosure:
    """A number that is certain to lie between `lower` and `upper`."""

    lower: float
    upper: float

    def __contains__(self, number: float) -> bool:
        return self.lower <= number <= self.upper


def squared_distance(
    weights: Float[np.ndarray, "heads offsets"],
    blocks: Float[np.ndarray, "heads patch_in patch_out"],
    maps: Float[np.ndarray, "offsets patch_in patch_out"],
) -> Enclosure:
    """Σ_δ |D_δ|² + g/N, enclosed for every number of keys N ≥ T.

    Args:
        The stored w_h, V_h and M_δ, as float64; the largest entry of the maps is zero or in [2⁻¹⁵⁰,
        2¹⁵⁰], and that of maps and blocks zero or in [2⁻¹⁵⁰, 2²⁰⁰].

    >>> one = squared_distance(np.zeros((1, 1)), np.zeros((1, 1, 1)), np.full((1, 1, 1), 2.0))
    >>> 4.0 in one, one.upper - one.lower < 1e-12
    (True, True)
    """
    heads, offsets = weights.shape
    largest, of_blocks = (float(np.abs(array).max(initial=0.0)) for array in (maps, blocks))
    require_range(largest)
    require_range(max(largest, of_blocks), 200, "kernel and of the layer's maps")
    totals = 1 + weights.sum(axis=1, keepdims=True)
    attention, uniform = weights / totals, 1 / totals[:, 0]
    count = heads + offsets + 6
    difference = np.tensordot(attention.T, blocks, 1) - maps
    size = np.tensordot(attention.T, np.abs(blocks), 1) + np.abs(maps)
    error = gamma(count, ROUNDOFF) * size * INFLATION
    spread = np.tensordot(uniform, blocks, 1)
    spread_error = gamma(count, ROUNDOFF) * np.tensordot(uniform, np.abs(blocks), 1) * INFLATION

    def total(values: np.ndarray, up: bool) -> float:
        slack = gamma(values.size + 3, ROUNDOFF)
        under = UNDERFLOW * int(np.count_nonzero(values))
        squares = float((values**2).sum())
        return squares * (1 + slack) + under if up else max(0.0, squares * (1 - slack) - under)

    high = total(np.abs(difference) + error, True)
    low = total(np.maximum(0.0, np.abs(difference) - error), False)
    summed, summed_error = (
        difference.sum(axis=0),
        error.sum(axis=0) + gamma(offsets, ROUNDOFF) * np.abs(difference).sum(axis=0),
    )
    products = (np.abs(summed) + summed_error) * (np.abs(spread) + spread_error)
    cross = 2 * float((summed * spread).sum())
    doubt = 2 * float((products - np.abs(summed * spread)).sum()) * INFLATION
    doubt += 4 * gamma(summed.size + 3, ROUNDOFF) * float(products.sum())
    doubt += 8 * UNDERFLOW * summed.size * float(blocks.any())
    most = cross + doubt + total(np.abs(spread) + spread_error, True)
    least = cross - doubt + total(np.maximum(0.0, np.abs(spread) - spread_error), False)
    slack = 2.0**-50 * (low + abs(least))
    return Enclosure(
        max(0.0, low + min(0.0, least) / offsets - slack),
        (high + max(0.0, most) / offsets) * (1 + 2.0**-50),
    )
