"""C20 Theorem 1: K² heads with the quadratic encoding express any K × K convolution, in the limit.

**Claim.** Let N_h = K² heads have quadratic scores (D_p = 3) and D_h ≥ D_out. As α → ∞ the layer
tends to the convolution at every query whose offsets are all keys; with the zero ring, at every
query, to the zero-padded convolution.

**Lemma 1.** Let N_h heads attend with weight one to the key at f'(h) = -f(h) from the query, where
f' is a bijection onto Δ_K (the paper writes f(h) = q - k). If D_h ≥ min(D_in, D_out), some W_val
and W_out make MHSA = Conv for every kernel.

**Proof.** The output at q is Σ_h X_(q + f'(h)) W^(h) + b with W^(h) = W_val^(h) W_out^(h) (C20
eqs. 11 to 13). Put W^(h) = W_(f'(h)), the kernel's own matrix at that shift; as f' is a
bijection the sum runs once over Δ_K and is Conv(X)_q. Any D_in × D_out matrix is a product
through D_h dimensions if D_h ≥ min(D_in, D_out): take W_val = W and W_out = I, or the other way
round. ∎ The paper fixes W_out and lets only W_val vary; with a W_out that is not onto this fails,
so W_out must be free too. At a border query of a bare image the hypothesis cannot hold: the row
would be zero, while softmax rows sum to one. With the ring of `geometry` it holds everywhere.

**Lemma 2.** With the scores -α|δ - Δ|², softmax tends to one at k = q + Δ and to zero at every
other key, at every query q for which q + Δ is a key.

**Proof.** At δ = Δ the score is 0, and at every other key it is at most -α, as |δ - Δ|² is a
positive integer. So the target's weight is 1/(1 + Σ_(k ≠ q+Δ) e^(-α|δ-Δ|²)), and the sum tends
to zero. ∎ It is a limit, not an equality as printed: at finite α every weight is positive. How far
it is from one-hot is bounded in `convattn_ledger/bounds/saturation.py`. Where q + Δ is no key, the
head attends to the nearest key instead. In floating point the weights below the smallest number
vanish: from `one_hot_sharpness` on, the weights *are* one-hot.

**Proof of the theorem.** Lemma 2 gives one-hot attention at each shift of Δ_K, by one head each;
that is the hypothesis of Lemma 1, whose value maps give the convolution. The layer is a continuous
function of the weights, so the limits of the weights give the limit of the layer. ∎

The same words hold for patches as tokens, with the token offsets for Δ_K and the maps of
`li_output_map` for the kernel's matrices.
"""

from itertools import product

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Num

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.encodings.base import score_dtype
from convattn.encodings.quadratic_grid import QuadraticGridEncoding
from convattn.operators.roundoff import one_hot_sharpness


def quadratic_construction(
    maps: Num[Array, "offsets patch_in patch_out"],
    geometry: ConvolutionGeometry,
    alpha: Num[Array, ""] | float | None = None,
) -> tuple[QuadraticGridEncoding, Num[Array, "heads patch_in patch_out"]]:
    """One head for each offset, centred on it, and its map; the offsets are a grid, row-major.

    Args:
        alpha: α of every head; None takes one that makes attention one-hot in the maps' dtype.

    Source: C20 Theorem 1, eq. 9.

    >>> maps = jnp.ones((3, 1, 1))
    >>> heads, _ = quadratic_construction(maps, ConvolutionGeometry.of((3, 1)), 8.0)
    >>> heads.head_centers.tolist(), heads.pairs
    ([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]], ((0, 0), (1, 0), (2, 0)))
    """
    dtype = score_dtype(maps)
    sharpness = one_hot_sharpness(maps.dtype) if alpha is None else alpha
    encoding = QuadraticGridEncoding(
        tuple(jnp.full((len(axis),), sharpness, dtype) for axis in geometry.axis_offsets),
        tuple(jnp.asarray(np.array(axis), dtype) for axis in geometry.axis_offsets),
        tuple(product(*(range(len(axis)) for axis in geometry.axis_offsets))),
    )
    return encoding, maps
