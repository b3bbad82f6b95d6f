"""S.approx: a layer under a head budget, for a given kernel, within one head of the optimum.

**Claim.** Let σ_1 ≥ σ_2 ≥ … be the singular values of F with all its P⁴·D_in·D_out rows. At a query
whose offsets are all tokens of the image, N content-free heads differ from the convolution, as
linear maps in the squared Frobenius norm, by at least Σ_(i>N) σ_i², in the limit too; and
Σ_(i≥N) σ_i² is reached at finite scores. So N + 1 heads reach what N heads cannot beat.

**Proof.** The columns of what the layer puts at the offsets lie in the span of vec(W_1), …,
vec(W_N), so it is a matrix of rank at most N, and Eckart and Young bound its distance from F; what
it puts at other keys only adds. The truncated decomposition Σ_(i<N) σ_i u_i v_iᵀ is the flattened
kernel of *some* map on tokens of rank N - 1, and the construction of S.kernel, which asks for
nothing else, computes it with N heads. ∎

*Between the two bounds.* Neither need be the optimum, which is the nearest Σ_h V_h a_h with rows
a_h ≥ 0. For the taps 1, 0, -1 and one head the bounds are 0 and 2, and one tap alone has the
distance 1, which is the least. So further rows are tried (`mixture_candidates.py`), each layer's
distance is certified, and the smallest is returned; that it is the optimum is not claimed.

*All N directions.* Let the span of v_1, …, v_N hold some y that is positive where it does not
vanish altogether. Then the heads y + κ_i v_i ≥ 0 need no uniform head: as the leak λ of each tends
to 0 the distance tends to Σ_(i>N) σ_i², which is the bound. It is Σ_(i>N) σ_i² + |λΣC|²/N exactly,
for the rest F - F_N is orthogonal to the values. Where y has further zeros the values would have to
grow without bound (S.kernel), and N - 1 directions are used.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from convattn.bounds.layer_distance import Enclosure, squared_distance
from convattn.bounds.mixture_candidates import (
    factored_rows,
    leaking_heads,
    leaking_rows,
    one_hot_rows,
    split_rows,
)
from convattn.bounds.tail_energy import tail_energy_bounds
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.given_kernel import mixture_heads, mixture_layer
from convattn.constructions.li_output_map import token_maps
from convattn.constructions.row_basis import concrete_kernel, distinct_rows
from convattn.encodings.base import score_dtype
from convattn.encodings.layer import AttentionLayer
from convattn.encodings.mixture import MixtureEncoding
from convattn.operators.arrays import as_floats, promoted
from convattn.operators.convolution import check_kernel
from convattn.operators.integers import as_integer
from convattn.operators.padding import read_padding


@dataclass(frozen=True)
class Approximation:
    """A layer, how far it is from the convolution, and how near any layer could come.

    Attributes:
        layer: content-free, finite scores, at most as many heads as allowed.
        method: Where its attention rows come from: "singular vectors" (N - 1 of them), "all
            singular directions" (N), "one-hot heads" or "nonnegative factors".
        error: Encloses its squared Frobenius distance from the convolution at a query whose offsets
            are all keys, for every image size; of the layer as stored, in exact arithmetic.
        lower_bound: Certain not to exceed Σ_(i>N) σ_i², what N heads cannot go below.
        next_bound: The same for N - 1 heads: what is reached at least, but for rounding.
    """

    layer: AttentionLayer
    method: str
    error: Enclosure
    lower_bound: float
    next_bound: float


def approximate_conv(
    kernel: Any,
    heads: Any,
    *,
    bias: Any = None,
    patch_size: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
) -> Approximation:
    """A layer with at most so many content-free heads that is near to a given convolution.

    It is within one head of the optimum: what it reaches is beyond N - 1 heads, but for rounding.
    Of several candidates it is the one with the smallest certified error; no better layer of N
    heads is ruled out, unless `error.upper` meets `lower_bound`.

    Args:
        kernel: `[K_1, K_2, in, out]` or `[K, in, out]`, concrete, real; its largest entry is zero
            or between 2⁻¹⁵⁰ and 2¹⁵⁰ in absolute value.
        heads: The budget N, an integer ≥ 1. More than T + 1 are never used.
        bias: `[out]` or none.
        patch_size: P.
        dilation: d.

    Returns:
        An `Approximation`; its layer has the kernel's dtype (integers become float32).

    Raises:
        ValueError: For what `conv` refuses of a kernel, a traced or complex one, one out of range,
            a budget that is no integer ≥ 1, and where the maps overflow the kernel's dtype.

    Source: S.approx of this project's ledger; Eckart and Young 1936.

    >>> approximation = approximate_conv([[[1.0]], [[2.0]], [[1.0]]], 1)  # nonnegative, rank one
    >>> approximation.layer.heads, approximation.error.upper < 1e-6, approximation.lower_bound
    (1, True, 0.0)
    >>> approximation = approximate_conv([[[1.0]], [[0.0]], [[-1.0]]], 1)  # of both signs
    >>> approximation.method, round(approximation.error.upper, 6), approximate_conv(
    ...     [[[1.0]], [[0.0]], [[-1.0]]], 2).error.upper < 1e-6
    ('one-hot heads', 1.0, True)
    """
    heads = as_integer(heads, "heads", 1)
    concrete_kernel(kernel)  # refuses what has no concrete real entries
    array, bias = check_kernel(kernel, bias, 1)
    array = as_floats(array, "kernel")
    geometry = ConvolutionGeometry.of(array.shape[:-2], patch_size, 1, dilation)
    same = read_padding("SAME", array.shape[:-2], geometry.dilation, geometry.stride)
    padding = None if same.is_zero_ring else same
    rows, counts = distinct_rows(np.asarray(array, np.float64), geometry)
    bounds = tail_energy_bounds(rows, counts)
    maps = np.asarray(token_maps(array, geometry), np.float64)
    stored = promoted(array.dtype, jnp.float32)
    uniform_weight = float(jnp.finfo(score_dtype(array)).eps)
    roundoff = float(jnp.finfo(array.dtype).eps) / 2
    best: tuple[AttentionLayer, str, Enclosure] | None = None
    refused: ValueError | None = None
    for method, weights, mixtures in candidates(rows, counts, heads, uniform_weight, roundoff):
        own = jnp.asarray(np.tensordot(mixtures, maps, 1), stored).astype(array.dtype)
        try:
            layer = mixture_layer(weights, np.eye(len(weights)), own, geometry, bias, padding)
        except ValueError as error:  # its maps overflow; those of another may not
            refused = error
            continue
        distance = squared_distance(*stored_numbers(layer), maps)
        if best is None or distance.upper < best[2].upper:
            best = layer, method, distance
    if best is None:
        raise ValueError(str(refused)) from refused
    most = len(bounds) - 1
    return Approximation(
        *best, float(bounds[min(heads, most)]), float(bounds[min(heads - 1, most)])
    )


def candidates(
    rows: Float[np.ndarray, "rows offsets"],
    counts: np.ndarray,
    heads: int,
    uniform_weight: float,
    roundoff: float,
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, weights w_hδ and B of each candidate; head h has the map Σ_δ B_hδ M_δ."""
    weighted = rows * np.sqrt(counts)[:, None]
    gram = weighted.T @ weighted
    _, singular, right = np.linalg.svd(weighted, full_matrices=False)
    live = singular > max(rows.shape) * 2.0**-52 * singular[0]
    right, singular = right[live], singular[live]
    weights, coefficients = mixture_heads(right[: heads - 1])
    yield "singular vectors", weights, coefficients @ right[: heads - 1]
    one_hot = one_hot_rows(gram, heads)
    yield "one-hot heads", *leaking_rows(one_hot, uniform_weight, roundoff)
    if len(right) < heads:
        return  # nothing but rounding is left
    parts = leaking_heads(right[:heads], uniform_weight)
    if parts is not None:
        yield "all singular directions", parts[0], parts[1] @ right[:heads]
    starts = (one_hot, weights[weights.any(axis=1)], split_rows(right, singular, heads))
    factorisations = [factored_rows(gram, start) for start in starts if len(start)]
    factors = min(factorisations, key=lambda pair: pair[1])[0]
    yield "nonnegative factors", *leaking_rows(factors, uniform_weight, roundoff)


def stored_numbers(layer: AttentionLayer) -> tuple[np.ndarray, np.ndarray]:
    """The weights and the maps of a layer of mixture heads, exactly, as float64."""
    if not isinstance(layer.encoding, MixtureEncoding) or layer.output is None:
        raise ValueError("the layer has no mixture heads with maps of their own")
    return np.asarray(layer.encoding.weights, np.float64), np.asarray(layer.output, np.float64)
