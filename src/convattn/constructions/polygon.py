"""S.polygon: two positional features whose norm is the smallest, on any image.

**Claim.** For T ≥ 4 offsets, features in the plane of circumradius R and query vectors v: if each
offset's own v gives it a score ahead of every other shift's by γ, then max ‖v‖·R is at least
γ/(1 - cos 2π/T). The regular T-gon with all other shifts at its centre attains it.

**Proof.** Let x_1, …, x_T be the offsets' features, all in a disc of radius R, and
h = γ/max ‖v‖. Some unit vector u has u·(x_i - x_j) ≥ h for all j ≠ i, so each x_i is a corner of
their convex hull. Number them around it, a_i = |x_i - x_(i+1)|, exterior angles θ_i. At x_i the
directions to both neighbours are reversed within arccos(h/a_(i-1)) and arccos(h/a_i) of u, so the
inner angle π - θ_i is at most the sum of these, and θ_i ≥ arcsin(h/a_(i-1)) + arcsin(h/a_i). The
θ_i add up to 2π, whence Σ arcsin(h/a_i) ≤ π. As a ↦ arcsin(h/a) is convex, h ≤ a·sin(π/T) for a
the mean of the a_i. The hull's perimeter T·a is at most 2RT·sin(π/T): from a point inside it
project the x_i onto the circle; the hull of the images contains that of the x_i, so its perimeter
is no smaller, and chords over arcs ψ_i that add up to 2π are 2R·sin(ψ_i/2) long, which is concave.
So h ≤ 2R·sin²(π/T) = R(1 - cos 2π/T). With corners r_n on the unit circle and v = a·r_n the score
is a·cos(2π(m - n)/T) at corner m and 0 at the centre: for T ≥ 2 ahead by a·min(1, 1 - cos 2π/T),
where the second term is the smaller one exactly for T > 4; for T = 1 by a. ∎

The construction divides α by that lead at a = 1, so that α is the gap, as with S.dp2; for α → ∞
softmax tends to one at Δ and Lemma 1 of C20 does the rest.
"""

import math

import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.encodings.base import score_dtype
from convattn.encodings.polygon import PolygonEncoding, polygon_corners
from convattn.operators.roundoff import one_hot_sharpness, unit_roundoff


def polygon_gap(count: int) -> float:
    """min(1, 1 - cos 2π/T), 1 for T = 1: how far a corner's score is ahead with ‖v‖ = 1.

    >>> [round(polygon_gap(count), 3) for count in (1, 4, 9, 25)]
    [1.0, 1.0, 0.234, 0.031]
    """
    return 1.0 if count <= 4 else 2 * math.sin(math.pi / count) ** 2


def polygon_construction(
    maps: Num[Array, "offsets patch_in patch_out"],
    geometry: ConvolutionGeometry,
    alpha: Num[Array, ""] | float | None = None,
) -> tuple[PolygonEncoding, Num[Array, "heads patch_in patch_out"]]:
    """The query vectors and the map of each head.

    Raises:
        ValueError: Where rounding in the dtype of the scores takes more than an eighth of the gap.

    Source: S.polygon of this project's ledger.
    """
    count, dtype = geometry.heads, score_dtype(maps)
    refuse_small_gap(count, dtype)
    sharpness = one_hot_sharpness(maps.dtype) if alpha is None else alpha
    corners = jnp.asarray(polygon_corners(count), dtype)
    scale = jnp.asarray(sharpness, dtype) / polygon_gap(count)
    return PolygonEncoding(scale * corners, geometry.offsets), maps


def refuse_small_gap(count: int, dtype: jnp.dtype) -> None:
    """Refuse so many corners that rounding moves the gap by more than an eighth.

    A computed score is off by at most 32u·‖v‖: a corner's angle by 2π·2u, of which its coordinates
    inherit the error, once in r and once in v; four more roundings make v, two more the products
    and their sum, and |v_1 r_1| + |v_2 r_2| ≤ ‖v‖. A gap is the difference of two scores.
    """
    if 64 * unit_roundoff(dtype) > polygon_gap(count) / 8:
        raise ValueError(
            f"offsets={count} with encoding='polygon': neighbouring corners' scores differ by "
            f"{polygon_gap(count):.1e} of the largest, which rounding in {dtype.name} swallows; "
            "use encoding='bias', a float64 kernel, or a smaller one"
        )
