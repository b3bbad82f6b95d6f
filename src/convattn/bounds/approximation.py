"""S.approx: the best layer under a head budget, for a given kernel.

**Claim.** Let σ_1 ≥ σ_2 ≥ … be the singular values of F with all its P⁴·D_in·D_out rows. At a query
whose offsets are all keys, N content-free heads differ from the convolution, as linear maps in the
squared Frobenius norm, by at least Σ_(i>N) σ_i², in the limit too; and Σ_(i≥N) σ_i² is reached at
finite scores. So N + 1 heads reach what N heads cannot beat.

**Proof.** The columns of what the layer puts at the offsets lie in the span of vec(W_1), …,
vec(W_N), so it is a matrix of rank at most N, and Eckart and Young bound its distance from F; what
it puts at other keys only adds. The truncated decomposition Σ_(i<N) σ_i u_i v_iᵀ is the flattened
kernel of *some* map on tokens of rank N - 1, and the construction of S.kernel, which asks for
nothing else, computes it with N heads. ∎

*All N directions.* Let the span of v_1, …, v_N hold some y that is positive where it does not
vanish altogether. Then the heads y + κ_i v_i ≥ 0 need no uniform head: as the leak λ of each tends
to 0 the distance tends to Σ_(i>N) σ_i², which is the bound. It is Σ_(i>N) σ_i² + |λΣC|²/N exactly,
for the rest F - F_N is orthogonal to the values. Where y has further zeros the values would have to
grow without bound (S.kernel), and N - 1 directions are used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.optimize import linprog

from convattn.bounds.layer_distance import Enclosure, squared_distance
from convattn.bounds.tail_energy import tail_energy_bounds
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.given_kernel import mixture_heads, mixture_layer
from convattn.constructions.li_output_map import token_maps
from convattn.constructions.row_basis import distinct_rows, exact_entries
from convattn.convolution import check_kernel
from convattn.encodings.base import score_dtype
from convattn.encodings.mixture import MixtureEncoding
from convattn.layer import AttentionLayer


@dataclass(frozen=True)
class Approximation:
    """A layer, how far it is from the convolution, and how near any layer could come.

    **Fields:**

    - `layer`: content-free, finite scores, at most as many heads as allowed.
    - `directions`: how many singular directions it has.
    - `error`: encloses its squared Frobenius distance from the convolution at a query whose offsets
      are all keys, for every image size; of the layer as stored, in exact arithmetic.
    - `lower_bound`: certain not to exceed Σ_(i>N) σ_i², what N heads cannot go below.
    - `next_bound`: the same for N - 1 heads: what this claim says is reached, but for rounding.
    """

    layer: AttentionLayer
    directions: int
    error: Enclosure
    lower_bound: float
    next_bound: float


def approximate_convolution(
    kernel: Any,
    heads: int,
    *,
    bias: Any = None,
    patch_size: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
) -> Approximation:
    """The layer with at most so many content-free heads that comes nearest to a convolution.

    **Arguments:**

    - `kernel`: `[K_1, K_2, in, out]` or `[K, in, out]`, concrete, real.
    - `heads`: the budget N ≥ 1. More than T + 1 are never used.
    - `bias`: `[out]` or none. `patch_size`: P. `dilation`: d.

    **Returns:** an `Approximation`; its layer has the kernel's dtype (integers become float32).

    **Raises:** `ValueError` for what `conv` refuses of a kernel, a traced or complex one, and a
    budget that is no integer ≥ 1.

    **Source:** S.approx of this project's ledger; Eckart and Young 1936.

    >>> found = approximate_convolution([[[1.0]], [[2.0]], [[1.0]]], 1)  # nonnegative, rank one
    >>> found.layer.heads, found.directions, found.error.upper < 1e-6, found.lower_bound
    (1, 1, True, 0.0)
    >>> found = approximate_convolution([[[1.0]], [[0.0]], [[-1.0]]], 1)  # no nonnegative direction
    >>> found.directions, round(found.error.upper, 6), approximate_convolution(
    ...     [[[1.0]], [[0.0]], [[-1.0]]], 2).error.upper < 1e-6
    (0, 2.0, True)
    """
    if isinstance(heads, bool) or not isinstance(heads, int) or heads < 1:
        raise ValueError(f"heads={heads!r}, but should be an integer ≥ 1: a layer has some head")
    exact_entries(kernel)  # refuses what has no concrete real entries
    array, bias = check_kernel(kernel, bias, 1)
    if not jnp.issubdtype(array.dtype, jnp.inexact):
        array = array.astype(jnp.result_type(array, jnp.float32))
    geometry = ConvolutionGeometry.of(array.shape[:-2], patch_size, 1, dilation)
    rows, counts = distinct_rows(np.asarray(array, np.float64), geometry)
    bounds = tail_energy_bounds(rows, counts)
    _, singular, right = np.linalg.svd(rows * np.sqrt(counts)[:, None], full_matrices=False)
    threshold = max(len(rows), geometry.heads) * 2.0**-52 * singular[0]
    right = right[singular > threshold]
    maps = np.asarray(token_maps(array, geometry), np.float64)

    def packed(weights: np.ndarray, coefficients: np.ndarray, directions: np.ndarray) -> Any:
        stored = jnp.promote_types(array.dtype, jnp.float32)
        own = jnp.asarray(np.tensordot(coefficients @ directions, maps, 1), stored)
        own = own.astype(array.dtype)
        layer = mixture_layer(weights, np.eye(len(weights)), own, geometry, bias)
        return layer, squared_distance(*stored_numbers(layer), maps)

    kept = right[: heads - 1]
    best = (*packed(*mixture_heads(kept), kept), len(kept))
    if len(right) >= heads:
        leak = float(jnp.finfo(score_dtype(array)).eps)
        parts = leaking_heads(right[:heads], leak)
        if parts is not None:
            other = (*packed(*parts, right[:heads]), heads)
            best = min(best, other, key=lambda candidate: candidate[1].upper)
    layer, error, directions = best
    most = len(bounds) - 1
    return Approximation(
        layer,
        directions,
        error,
        float(bounds[min(heads, most)]),
        float(bounds[min(heads - 1, most)]),
    )


def leaking_heads(
    directions: Float[np.ndarray, "directions offsets"], leak: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """As many heads as directions, y + κ_i v_i over a small leak; None where there is no such y.

    y > 0 (where the directions do not all vanish) with the largest least entry comes from linear
    programming in float64. Only whether the weights are nonnegative matters, which is checked.
    """
    count = len(directions)
    live = np.abs(directions).max(axis=0) > 2.0**-40
    shown = directions[:, live].T
    solved = linprog(
        np.r_[np.zeros(count), -1.0],
        A_ub=np.c_[-shown, np.ones(len(shown))],
        b_ub=np.zeros(len(shown)),
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
    weights = rows / (scale * leak)
    totals = 1 + weights.sum(axis=1, keepdims=True)
    coefficients = totals * leak * scale * np.linalg.inv(mixed).T * signs
    return weights, coefficients


def stored_numbers(layer: AttentionLayer) -> tuple[np.ndarray, np.ndarray]:
    """The weights and the maps of a layer of mixture heads, exactly, as float64."""
    if not isinstance(layer.encoding, MixtureEncoding) or layer.output is None:
        raise ValueError("the layer has no mixture heads with maps of their own")
    return np.asarray(layer.encoding.weights, np.float64), np.asarray(layer.output, np.float64)
