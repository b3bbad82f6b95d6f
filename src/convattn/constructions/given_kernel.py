"""S.kernel: one given kernel takes one head more than the rank of its F, at finite scores.

**Claim.** Let F have rank ρ, and let b_1, …, b_ρ be a basis of its row space, F = Σ_i C_i b_i. Then
ρ + 1 heads at finite relative biases, with value maps that do not depend on the image size, are the
convolution at every query whose offsets are all keys, so with the zero ring everywhere.

**Proof.** Let d_δ = max(0, max_i -b_iδ), so that w_i = b_i + d ≥ 0 and w_0 = d ≥ 0. A head with the
scores log(1 + N·w_hδ) at the offsets has the row (Σ_δ w_hδ S_δ + J)/Z_h with Z_h = 1 + Σ_δ w_hδ,
whatever N is (`encodings/mixture.py`). Give head i the map Z_i C_i and head 0 the map -Z_0 Σ_i C_i:

    Σ_i (Σ_δ (b_iδ + d_δ) S_δ + J) X C_i - (Σ_δ d_δ S_δ + J) X Σ_i C_i = Σ_δ S_δ X Σ_i b_iδ C_i,

and Σ_i b_iδ C_i = M_δ. ∎

The heads "u + ε·b_i normalised" with u uniform over the keys would do for one N: as weights must be
positive, ε shrinks like 1/N, and the value maps grow. Here u is the mixture of d and J, whose share
at an offset stays.

With b_i the unit rows, d = 0 and this is S.finite. The basis taken is reduced at ρ independent
columns of F, so that the C_i are maps M_δ of the kernel itself; each b_i is scaled to the largest
entry 1. Which columns is decided by a pivoted QR decomposition (`row_basis.py`): the first
independent ones may be nearly dependent, b_i then has large entries, and rounding what cancels.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Shaped

from convattn.constructions.convolution import SourceConvolution, packed_layer
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.row_basis import (
    distinct_rows,
    exact_entries,
    row_basis,
    well_conditioned_order,
)
from convattn.encodings.base import score_dtype
from convattn.encodings.layer import AttentionLayer
from convattn.encodings.mixture import MixtureEncoding
from convattn.operators.attention import HIGHEST
from convattn.operators.padding import Padding


def mixture_heads(
    basis: Shaped[np.ndarray, "rank offsets"],
) -> tuple[Shaped[np.ndarray, "heads offsets"], Shaped[np.ndarray, "heads rank"]]:
    """w_h, and the coefficients of the C_i in each head's map, in the arithmetic of the basis.

    >>> weights, coefficients = mixture_heads(np.array([[2.0, -1.0]]))
    >>> weights.tolist(), coefficients.tolist()  # the basis row is scaled to (1, -1/2)
    ([[1.0, 0.0], [0.0, 0.5]], [[4.0], [-3.0]])
    """
    scales = np.array([max(abs(entry) for entry in row) for row in basis], basis.dtype)
    signs = np.array([-1 if sum(row) < 0 else 1 for row in basis], int)
    rows = basis * (signs / scales)[:, None]
    zero = np.zeros((1, basis.shape[1]), int).astype(basis.dtype)
    shift = np.concatenate([zero, -rows]).max(axis=0)
    weights = np.concatenate([rows + shift, shift[None]])
    totals = 1 + weights.sum(axis=1)
    factors = signs * scales
    own = np.zeros((len(basis) + 1, len(basis)), int).astype(basis.dtype)
    for head, factor in enumerate(factors):
        own[head, head] = totals[head] * factor
        own[-1, head] = -totals[-1] * factor
    return weights, own


def given_kernel_layer(kernel: Any, bias: Any = None, **sizes: Any) -> AttentionLayer:
    """The layer with ρ + 1 heads at finite scores that computes this kernel's convolution.

    Args:
        kernel: `[K_1, K_2, in, out]` or `[K, in, out]`, concrete; its floats count as the exact
            numbers that they are, so a kernel that is only nearly of low rank takes all T + 1 heads
            (`approximate_conv` takes fewer).
        bias: `[out]` or none.
        sizes: patch_size, stride, dilation and padding, as `conv_to_attention` takes them.

    Returns:
        An `AttentionLayer` of dtype `kernel.dtype` (integers become float32) that equals `conv` in
        exact arithmetic, at every image size that P divides. A kernel of zeros keeps one head,
        which does nothing.

    Raises:
        ValueError: For what `conv` refuses of a kernel, for a traced or complex one, and where the
            maps overflow the kernel's dtype.

    Source: S.kernel of this project's ledger.

    >>> import convattn as ca
    >>> box = given_kernel_layer(jnp.ones((3, 3, 1, 1)))
    >>> box.heads, ca.apply_attention(box, jnp.ones((1, 2, 2, 1))).ravel().round(4).tolist()
    (2, [4.0, 4.0, 4.0, 4.0])
    """
    entries = exact_entries(kernel)
    convolution = SourceConvolution.of(kernel, bias, **sizes)
    encoding, maps = rank_heads(convolution, entries)
    return convolution.layer(encoding, None, maps)


def rank_heads(
    convolution: SourceConvolution, entries: Shaped[np.ndarray, "*taps in out"]
) -> tuple[MixtureEncoding, Array]:
    """ρ + 1 heads, and their maps.

    Args:
        entries: The kernel in fractions.

    Raises:
        ValueError: Where the maps overflow the kernel's dtype.
    """
    rows = distinct_rows(entries, convolution.geometry)[0]
    basis, pivots = row_basis(rows, well_conditioned_order(rows))
    weights, coefficients = mixture_heads(basis)
    maps = convolution.maps[np.array(pivots, np.int32)]
    return _packed_mixture(weights, coefficients, maps, convolution.geometry)


def _packed_mixture(
    weights: Shaped[np.ndarray, "heads offsets"],
    coefficients: Shaped[np.ndarray, "heads rank"],
    maps: Array,
    geometry: ConvolutionGeometry,
) -> tuple[MixtureEncoding, Array]:
    """Heads with the mixtures w_h and the maps Σ_i coefficients_hi C_i, in the maps' dtype."""
    dtype = score_dtype(maps)
    numbers = jnp.asarray(coefficients.astype(np.float64), dtype)
    blocks = jnp.einsum("hi,ixy->hxy", numbers, maps.astype(dtype), precision=HIGHEST)
    blocks = blocks.astype(maps.dtype)
    if not bool(jnp.isfinite(blocks).all()):
        raise ValueError(
            f"the layer's maps overflow {blocks.dtype.name}, in which the kernel is stored: they "
            "are multiples of the kernel's entries and sums of them; cast it to a wider dtype, or "
            "scale it down"
        )
    return MixtureEncoding(jnp.asarray(weights.astype(np.float64), dtype), geometry.offsets), blocks


def mixture_layer(
    weights: Shaped[np.ndarray, "heads offsets"],
    coefficients: Shaped[np.ndarray, "heads rank"],
    maps: Array,
    geometry: ConvolutionGeometry,
    bias: Array | None = None,
    padding: Padding | None = None,
) -> AttentionLayer:
    """The layer of `_packed_mixture`.

    Raises:
        ValueError: Where the maps overflow their dtype.
    """
    encoding, blocks = _packed_mixture(weights, coefficients, maps, geometry)
    return packed_layer(geometry, encoding, None, blocks, bias, padding)
