"""L21 Theorem 1: (2m+1)² heads express any K × K convolution of an image cut into patches.

**Claim.** m = ⌈(K-1)/(2P)⌉, d_H ≥ d, d_O ≥ P²·D_out, an injective patch embedding (here the
identity). As M → ∞ the layer with the biases of Lemma 2 tends to the convolution, at every query
with the zero ring of m patches, otherwise at interior ones.

**Lemma 2.** With b_δ0 = M and b_δ = 0 elsewhere, the weight of the key at δ0 is e^M/(e^M + N - 1),
and that of every other key 1/(e^M + N - 1), at every query for which the key at δ0 exists; the
first tends to one. Where it does not exist all scores are equal, and the row is uniform, 1/N.
(L21 eq. 10 is printed for every query.)

**Proof.** Softmax of one M and N - 1 zeros; of N zeros. ∎ The total variation to the one-hot row is
(N - 1)/(e^M + N - 1) exactly. M = 40 is "machine precision" in float32 for every practical N, not
in float64: if the sum is rounded once, the maximum stays below one from N = 28 on.

**Proof of the theorem.** With W_V = I head δ collects X_(q+δ) (L21 eq. 14; its δ is the key minus
the query, while Lemma 2 writes q - k = δ). Concatenated they hold all that the convolution reads,
and W^O, whose blocks are the maps M_δ of `li_output_map`, forms Σ_δ X_(q+δ) M_δ = conv(X)_q. ∎

For P = 1 this is Corollary 3 with K² heads. For 3 ≤ K ≤ 2P + 1 it is m = 1, nine heads: Corollary
4, which L21 states for K < 2P.
"""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.encodings.base import score_dtype
from convattn.encodings.bias import BiasEncoding
from convattn.operators.roundoff import one_hot_sharpness


def bias_construction(
    maps: Num[Array, "offsets patch_in patch_out"],
    geometry: ConvolutionGeometry,
    logit: Num[Array, ""] | float | None = None,
) -> tuple[BiasEncoding, Num[Array, "heads patch_in patch_out"]]:
    """One head for each offset, with bias M there and zero elsewhere, and its block of W^O.

    Args:
        logit: M of every head; None takes one that makes attention one-hot in the maps' dtype.

    Source: L21 Theorem 1 and Lemma 2.

    >>> bias_construction(jnp.ones((3, 1, 1)), ConvolutionGeometry.of((3,)), 40.0)[0].values[0]
    Array([40.,  0.,  0.], dtype=float32)
    """
    dtype = score_dtype(maps)
    height = jnp.asarray(one_hot_sharpness(maps.dtype) if logit is None else logit, dtype)
    table = jnp.eye(geometry.heads, dtype=dtype) * height
    return BiasEncoding(table, None, geometry.offsets), maps
