"""Mixtures for a budget of heads: which nonnegative rows at the offsets to try for a kernel.

What N content-free heads at finite scores can come near is Σ_h V_h a_h with any rows a_h ≥ 0 over
the offsets and any maps V_h: a semi-nonnegative factorisation of F, over as small a leak of the
uniform row as one likes. For N = 1 the best row is the a ≥ 0 with |a| = 1 and the largest aGaᵀ, G =
FᵀF, a copositive programme; so here are rows to be tried, and none is claimed to be the best:

- the N taps that weigh most, one each;
- the first N singular directions, shifted by a common positive vector where there is one;
- rows improved in turn by least squares (Ding, Li and Jordan 2010 have the factorisation), from
  three starts that are functions of G alone.

All that is needed of F is G: with V_h = Σ_δ B_hδ M_δ the products ⟨V_h, M_δ⟩ are BG.
"""

import numpy as np
from jaxtyping import Float
from scipy.optimize import linprog

SWEEPS = 200
ROW_UPDATES = 3000  # of all heads together, so that many heads take no longer


def leaking_rows(
    rows: Float[np.ndarray, "heads offsets"], uniform_weight: float, roundoff: float
) -> tuple[np.ndarray, np.ndarray]:
    """The weights of heads with these rows over a small leak, and the best maps as mixtures B.

    Args:
        rows: Nonnegative, none of them zero.
        uniform_weight: The share of J against the largest entry.
        roundoff: Of the numbers that the maps are stored in. Rounding V_h adds up to u²|s_h|²|V_h|²
            to the squared distance, so the maps minimise |Σ_h s_h V_h - M|² + u² Σ_h |V_h|².

    >>> weights, mixtures = leaking_rows(np.array([[1.0, 1.0]]), 0.5, 0.0)
    >>> weights.tolist(), mixtures.round(6).tolist()  # the head has 2/5 of each, and 1/5 uniform
    ([[2.0, 2.0]], [[1.25, 1.25]])
    """
    weights = rows / (rows.max(axis=1, keepdims=True) * uniform_weight)
    attention = weights / (1 + weights.sum(axis=1, keepdims=True))
    count, width = attention.shape
    tall = np.concatenate([attention.T, roundoff * np.eye(count)])
    target = np.concatenate([np.eye(width), np.zeros((count, width))])
    return weights, np.linalg.lstsq(tall, target, rcond=None)[0]


def one_hot_rows(
    gram: Float[np.ndarray, "offsets offsets"], heads: int
) -> Float[np.ndarray, "heads offsets"]:
    """One offset a head, those with the largest |M_δ| first; offsets without a tap only for one.

    >>> one_hot_rows(np.diag([1.0, 9.0, 0.0]), 3).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    energy = np.diag(gram)
    order = np.argsort(-energy, kind="stable")[:heads]
    return np.eye(len(gram))[order[: max(1, np.count_nonzero(energy[order]))]]


def split_rows(
    directions: Float[np.ndarray, "directions offsets"],
    singular: Float[np.ndarray, " directions"],
    heads: int,
) -> Float[np.ndarray, "heads offsets"]:
    """The positive and the negative parts of σ_i v_i, the largest ones.

    >>> split_rows(np.array([[0.6, -0.8]]), np.array([1.0]), 1).tolist()
    [[0.0, 0.8]]
    """
    scaled = directions * singular[:, None]
    parts = np.concatenate([np.maximum(scaled, 0), np.maximum(-scaled, 0)])
    return parts[np.argsort(-np.linalg.norm(parts, axis=1), kind="stable")[:heads]]


def factored_rows(
    gram: Float[np.ndarray, "offsets offsets"], start: Float[np.ndarray, "heads offsets"]
) -> tuple[Float[np.ndarray, "heads offsets"], float]:
    """Nonnegative rows that fit G better than the start, and what share of |F|² they miss.

    The maps are refitted, then each row in turn: with the maps and the other rows fixed, a_hδ =
    max(0, ⟨M_δ - Σ_(g≠h) a_gδ V_g, V_h⟩/|V_h|²) is the best. So no step makes the distance larger.
    A row that vanishes starts anew at the offset that is farthest off. It ends where eight sweeps
    gain less than 10⁻⁷ of |F|².

    >>> gram = np.array([[1.0, 1.0], [1.0, 1.0]])  # two equal taps: one head does for both
    >>> rows, missed = factored_rows(gram, np.array([[1.0, 0.0]]))
    >>> rows.round(6).tolist(), missed < 1e-9
    ([[1.0, 1.0]], True)
    """
    gram = gram / np.trace(gram)
    rows = start / np.maximum(start.max(axis=1, keepdims=True), np.finfo(float).tiny)
    best, least, history = rows, np.inf, [np.inf]
    for _ in range(max(20, min(SWEEPS, ROW_UPDATES // len(rows)))):
        empty = ~rows.any(axis=1)
        maps = np.linalg.pinv(rows, rcond=2.0**-26).T
        products = maps @ gram
        squares = products @ maps.T
        missed = np.diag(gram) - 2 * (rows * products).sum(axis=0)
        missed += (rows * (squares @ rows)).sum(axis=0)
        if missed.sum() < least:
            best, least = rows.copy(), float(missed.sum())
        history.append(least)
        if len(history) > 9 and history[-9] - least < 1e-7:
            break
        for head in np.flatnonzero(empty):
            far = int(np.argmax(missed))
            rows[head, far], missed[far] = 1.0, -np.inf
        for head in np.flatnonzero(~empty & (np.diag(squares) > 0)):
            change = (products[head] - squares[head] @ rows) / squares[head, head]
            rows[head] = np.maximum(0.0, rows[head] + change)
        rows = rows / np.where(rows.any(axis=1), rows.max(axis=1), 1.0)[:, None]
    return best[best.any(axis=1)], least


def leaking_heads(
    directions: Float[np.ndarray, "directions offsets"], uniform_weight: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """As many heads as directions, y + κ_i v_i over a small leak; None where there is no such y.

    y > 0 (where the directions do not all vanish) with the largest least entry comes from linear
    programming in float64. Only whether the weights are nonnegative matters, which is checked.

    Returns:
        The weights, and the coefficients of the C_i in each head's map.
    """
    count = len(directions)
    live = np.abs(directions).max(axis=0) > 2.0**-40
    points = directions[:, live].T
    solved = linprog(
        np.r_[np.zeros(count), -1.0],
        A_ub=np.c_[-points, np.ones(len(points))],
        b_ub=np.zeros(len(points)),
        bounds=[(-1, 1)] * count + [(0, None)],
    )
    if solved.status != 0 or not -solved.fun > 2.0**-20:
        return None
    signs = np.where(solved.x[:-1] < 0, -1.0, 1.0)
    middle = np.abs(solved.x[:-1])
    turned = directions * signs[:, None]
    y = np.where(live, middle @ turned, 0.0)
    reach = np.where(live & (turned < 0), y / np.where(turned < 0, -turned, 1.0), np.inf)
    steps = np.minimum(reach.min(axis=1), 1 / 2.0**-10) / (1 + 2.0**-40)
    mixed = np.diag(steps) + middle  # row h: the coefficients of y + κ_h v_h
    rows = np.where(live, mixed @ turned, 0.0)
    if (rows < 0).any():
        return None
    scale = rows.max(axis=1, keepdims=True)
    weights = rows / (scale * uniform_weight)
    totals = 1 + weights.sum(axis=1, keepdims=True)
    coefficients = totals * uniform_weight * scale * np.linalg.inv(mixed).T * signs
    return weights, coefficients
