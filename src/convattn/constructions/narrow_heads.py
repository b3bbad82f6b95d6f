"""S.width: fewer heads of a given dimension, by a place in a head for each coordinate.

Let n be the coordinates of a token on the side that is taken apart (say its inputs j), D_j the
offsets δ ≠ 0 with M_δ[j, :] ≠ 0. A head is a row of attention, weights w_h over the offsets, and at
most d_H coordinates, each with a row W_h[j, :] of its map. As x M = Σ_j x_j M[j, :], the heads are
the convolution if and only if for each j, over the heads that hold j,

    Σ_h w_hδ W_h[j, :] = M_δ[j, :] for every δ.

**Exactly.** A head with the scores log(1 + N·w_δ) has the row (Σ_δ w_δ S_δ + J)/Z, Z = 1 + Σ_δ w_δ,
at each N (`encodings/mixture.py`), so that with maps Z_h W_h it is also asked that Σ_h W_h[j, :] =
0. Heads of group δ ≠ 0 have w = S_δ + x_h S_0, those of group 0 have w = x_h S_0. Let j take a
place in group δ, in a head k_δ, for each δ ∈ D_j, with the row M_δ[j, :]; and two places in group 0
if D_j is not empty, in any one group if it is, with heads a and b, x_a ≠ x_b, and rows that add up
to s = -Σ_(δ ∈ D_j) M_δ[j, :]. Then all rows of j add up to zero; at δ ∈ D_j there is M_δ[j, :]; at
another δ ≠ 0, where j has no place or two rows that add up to s = 0, there is nothing; and at 0,

    x_a W_a + (s - W_a) x_b + Σ_(δ ∈ D_j) x_(k_δ) M_δ[j, :] = M_0[j, :]

is solved by W_a. The x are 0, 1 and 2, so that all rows are combinations of the kernel's entries
with small coefficients: nothing is lost to rounding. The two places of a coordinate are neighbours
in a list that is dealt to the heads of a group in turn, and neighbours there differ in x.

**In the limit.** Heads of δ ≠ 0 have w = S_0 + ε S_δ, base heads w = S_0. For δ ∈ D_j let head k_δ
hold M_δ[j, :]/ε, and a base head M_0[j, :] - Σ M_δ[j, :]/ε. If D_j is empty let any head hold
M_0[j, :]; this puts ε M_0[j, :] at δ where it should put nothing, which is all that is wrong. With
weights L·w the uniform row has a share below 1/L, and L is so large that it is below the roundoff.
The maps grow like 1/ε: with κ = 1 + 2/ε the terms of a sum are at most κ times the largest pixel
times Σ|W|, so a roundoff u leaves an error of about κ·u of that, beside ε. ε = √(2u) makes both
alike; κ·u > 2⁻⁷ is refused.

How many heads that makes is `operators/head_places.py`.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Bool, Float, Int, Num

from convattn.encodings.base import score_dtype
from convattn.encodings.mixture import MixtureEncoding
from convattn.operators.head_places import exact_groups, exact_heads, limit_heads
from convattn.operators.integers import as_integer
from convattn.operators.shifts import Shift

NONE = -1  # a place that is not taken
MIN_LIMIT_WEIGHT = 2.0**20  # the largest weight of a limit form is more
Place = tuple[int, Any]  # a coordinate, and its coefficients by offset


@dataclass(frozen=True)
class NarrowHeads:
    """Rows of attention, and what each head does with which coordinates.

    Attributes:
        weights: w_h over the offsets.
        coordinates: The coordinate at each place of a head, or -1.
        coefficients: c with W_h[j, :] = Σ_δ c_δ M_δ[j, :] at the place of j.
    """

    weights: Float[np.ndarray, "heads offsets"]
    coordinates: Int[np.ndarray, "heads head_dim"]
    coefficients: Float[np.ndarray, "heads head_dim offsets"]


def counted(
    supports: Bool[np.ndarray, "offsets coordinates"], centre: int
) -> tuple[Counter[int], int, int]:
    """The widths of the offsets other than 0, the coordinates, and those that others read."""
    away = np.delete(supports, centre, axis=0)
    widths = Counter(int(width) for width in away.sum(axis=1) if width)
    return widths, int(supports.any(axis=0).sum()), int(away.any(axis=0).sum())


def exact_layout(
    supports: Bool[np.ndarray, "offsets coordinates"], centre: int, head_dim: int
) -> NarrowHeads:
    """The heads at finite scores.

    Args:
        supports: Whether M_δ[j, :] may differ from 0.
        centre: The offset 0 among them.

    Source: S.width of this project's ledger.

    >>> heads = exact_layout(np.array([[False, True], [True, True]]), 1, 2)
    >>> heads.weights.tolist()  # at the offsets -1 and 0
    [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    >>> heads.coordinates.tolist()
    [[1, -1], [1, 0], [1, 0]]
    """
    offsets, unit = range(len(supports)), np.eye(len(supports))
    widths, coordinates, read = counted(supports, centre)
    extra, at_token = exact_groups(widths, coordinates, read, head_dim)
    more = {width: [2] * two + [1] * one for width, (one, two) in extra.items()}
    others = {j: [o for o in offsets if supports[o, j] and o != centre] for j in used(supports)}
    alone = [j for j, away in others.items() if not away]
    owed = {j: unit[centre].copy() for j in others}  # what the two places still have to put at 0
    rows, places = [], []
    for offset in [*(o for o in offsets if o != centre and supports[o].any()), centre]:
        singles = [] if offset == centre else used(supports[[offset]])
        pairs = [j for j, away in others.items() if away] if offset == centre else []
        group = at_token if offset == centre else -(-len(singles) // head_dim)
        if offset != centre and more[len(singles)]:
            group += more[len(singles)].pop()
        room = (group * head_dim - len(singles)) // 2 - len(pairs) if group > 1 else 0
        pairs, alone = pairs + alone[:room], alone[room:]
        sharpness = [float(h % 2) for h in range(group)]
        if group > 1 and group % 2:
            sharpness[-1] = 2.0
        assigned: list[list[Place]] = [[] for _ in range(group)]
        for index, j in enumerate(singles, 2 * len(pairs)):
            assigned[index % group].append((j, unit[offset]))
            owed[j] -= sharpness[index % group] * unit[offset]
        for index, j in enumerate(pairs):
            a, b = 2 * index % group, (2 * index + 1) % group
            total = -unit[others[j]].sum(axis=0)
            first = (owed[j] - sharpness[b] * total) / (sharpness[a] - sharpness[b])
            assigned[a].append((j, first))
            assigned[b].append((j, total - first))
        own = unit[offset] * (offset != centre)
        rows += [own + x * unit[centre] for x in sharpness]
        places += assigned
    return _packed(rows, places, head_dim)


def limit_layout(
    supports: Bool[np.ndarray, "offsets coordinates"], centre: int, head_dim: int, epsilon: float
) -> NarrowHeads:
    """The heads whose maps grow like 1/ε.

    Source: S.width of this project's ledger.

    >>> heads = limit_layout(np.array([[False, True], [True, True]]), 1, 2, 0.25)
    >>> heads.weights.tolist(), heads.coordinates.tolist()
    ([[0.25, 1.0], [0.0, 1.0]], [[1, 0], [1, -1]])
    """
    offsets, unit = range(len(supports)), np.eye(len(supports))
    away = [o for o in offsets if o != centre]
    read = used(supports[away])
    alone = [j for j in used(supports) if j not in read]
    rows, places = [], []
    for offset in away:
        assigned: list[Place] = [(j, unit[offset] / epsilon) for j in used(supports[[offset]])]
        group = -(-len(assigned) // head_dim)
        room = group * head_dim - len(assigned)
        assigned += [(j, unit[centre]) for j in alone[:room]]
        alone = alone[room:]
        rows += [unit[centre] + epsilon * unit[offset]] * group
        places += [assigned[head::group] for head in range(group)]
    base: list[Place] = [
        (j, unit[centre] - unit[away].T @ supports[away, j] / epsilon) for j in read
    ]
    base += [(j, unit[centre]) for j in alone]
    group = -(-len(base) // head_dim)
    rows += [unit[centre]] * group
    places += [base[head::group] for head in range(group)]
    return _packed(rows, places, head_dim)


def used(supports: Bool[np.ndarray, "offsets coordinates"]) -> list[int]:
    """The coordinates that any offset uses."""
    return np.flatnonzero(supports.any(axis=0)).tolist()


def _packed(rows: list[Any], places: list[list[Place]], head_dim: int) -> NarrowHeads:
    coordinates = np.full((len(rows), head_dim), NONE)
    coefficients = np.zeros((len(rows), head_dim, len(rows[0])))
    for head, assigned in enumerate(places):
        for index, (j, numbers) in enumerate(assigned):
            coordinates[head, index], coefficients[head, index] = j, numbers
    return NarrowHeads(np.array(rows), coordinates, coefficients)


def fewest_narrow_heads(
    maps: Num[Array, "offsets patch_in patch_out"],
    offsets: tuple[Shift, ...],
    head_dim: int,
    exact: bool,
    epsilon: float | None = None,
    fewer_than: int | None = None,
) -> tuple[MixtureEncoding, Array, Array] | None:
    """Encoding, value maps and output maps; None for maps that are all zero.

    Args:
        maps: Concrete; the coordinates are those with an entry other than zero, on the side, input
            or output, that takes fewer heads.
        exact: At finite scores, or in the limit.
        epsilon: ε of the limit form; None for √(2u), u the unit roundoff of the maps' dtype.
        fewer_than: None is returned as well where this number of heads is not undercut.

    Raises:
        ValueError: For a head dimension that is no positive integer; for ε outside (0, 1), and
            where rounding in the maps' dtype would swallow the result.

    Source: S.width of this project's ledger.
    """
    head_dim = as_integer(head_dim, "head_dim")
    centre = offsets.index((0,) * len(offsets[0]))
    nonzero = np.asarray(maps) != 0
    count = exact_heads if exact else limit_heads
    sides = nonzero.any(axis=2), nonzero.any(axis=1)
    counts = [count(*counted(side, centre), head_dim) for side in sides]
    by_output = counts[1] < counts[0]
    if not nonzero.any() or (fewer_than is not None and min(counts) >= fewer_than):
        return None
    epsilon = 0.0 if exact else usable_epsilon(epsilon, maps.dtype)
    supports = sides[by_output]
    heads = (
        exact_layout(supports, centre, head_dim)
        if exact
        else limit_layout(supports, centre, head_dim, epsilon)
    )
    dtype = score_dtype(maps)
    unit = 1.0 if exact else float(jnp.finfo(dtype).tiny) ** -0.5
    weights = jnp.asarray(unit * heads.weights, dtype)
    picked, rows = head_maps(heads, maps.swapaxes(1, 2) if by_output else maps, unit)
    if by_output:
        picked, rows = rows.swapaxes(1, 2), picked.swapaxes(1, 2)
    return MixtureEncoding(weights, offsets), picked, rows


def head_maps(
    heads: NarrowHeads, maps: Num[Array, "offsets coordinates others"], unit: float = 1.0
) -> tuple[Array, Array]:
    """What picks each head's coordinates, and Z_h W_h on them, in the maps' dtype.

    Args:
        unit: L, for heads with the weights L·w_h: Z_h/L = 1/L + Σ_δ w_hδ.

    Returns:
        `[heads, coordinates, head_dim]` and `[heads, head_dim, others]`.
    """
    dtype = score_dtype(maps)
    factors = heads.coefficients * (1 / unit + heads.weights.sum(axis=1))[:, None, None]
    numbers = jnp.asarray(factors, dtype)
    rows = jnp.zeros((*heads.coordinates.shape, maps.shape[2]), dtype)
    for offset in np.flatnonzero(factors.any(axis=(0, 1))):
        rows = rows + numbers[..., offset, None] * maps[offset].astype(dtype)[heads.coordinates]
    picked = jnp.asarray(np.arange(maps.shape[1])[:, None] == heads.coordinates[:, None, :])
    return picked.astype(maps.dtype), rows.astype(maps.dtype)


def usable_epsilon(epsilon: float | None, dtype: DTypeLike) -> float:
    """ε, or √(2u) where none is given.

    Raises:
        ValueError: Outside (0, 1), and where κ·u > 2⁻⁷ with κ = 1 + 2/ε.

    >>> round(usable_epsilon(None, jnp.float32), 6)
    0.000345
    """
    roundoff = float(jnp.finfo(dtype).eps) / 2
    chosen = (2 * roundoff) ** 0.5 if epsilon is None else float(epsilon)
    if not 0 < chosen < 1:
        raise ValueError(f"epsilon={epsilon}, but expected a number strictly between 0 and 1")
    amplification = amplification_of(chosen)
    if amplification * roundoff > 2.0**-7:
        raise ValueError(
            f"epsilon={chosen:.1e} amplifies rounding by {amplification:.1e}, which leaves nothing "
            f"of the result in {jnp.dtype(dtype).name} (unit roundoff {roundoff:.1e}); take "
            "form='exact', whose maps do not grow, a larger epsilon, or a wider dtype"
        )
    return chosen


def amplification_of(epsilon: float) -> float:
    """κ = 1 + 2/ε: how much larger the terms of a limit form can be than max|X|·Σ|W|."""
    return 1 + 2 / epsilon


def price(encoding: MixtureEncoding, dtype: DTypeLike) -> str:
    """What a limit form loses (S.price); empty for other mixtures, whose weights are small.

    >>> price(MixtureEncoding(jnp.array([[0.0, 1.0], [1.0, 2.0]]), ((0,), (1,))), jnp.float32)
    ''
    """
    weights, roundoff = np.asarray(encoding.weights, np.float64), float(jnp.finfo(dtype).eps) / 2
    if weights.max() < MIN_LIMIT_WEIGHT:
        return ""
    rows = [row[row > 0] for row in weights]
    epsilon = min((row.min() / row.max() for row in rows if len(row)), default=1.0)
    if epsilon == 1:  # each head looks at one offset
        return ""
    return (
        f"this limit form with ε = {epsilon:.2g} is off by up to about ε + κu = "
        f"{epsilon + amplification_of(epsilon) * roundoff:.2g} of max|X|·Σ|W| (κ = 1 + 2/ε), the "
        f"exact form by a few u = {roundoff:.2g}; that no ε does better than about √u, in the "
        "worst case of rounding, is proved for one kernel of S.kernel, and open here (S.price)"
    )
