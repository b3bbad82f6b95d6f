"""L21 Theorem 1: (2m+1)² heads express any K × K convolution of an image cut into patches.

**Claim.** m = ⌈(K-1)/(2P)⌉, d_H ≥ d, d_O ≥ P²·D_out, an injective patch embedding (here the
identity). As M → ∞ the layer with the biases of Lemma 2 tends to the convolution, at every query
with the zero ring of m patches, otherwise at interior ones.

**Proof.** With W_V = I head δ collects X_(q+δ) (L21 eq. 14; its δ is the key minus the query,
while Lemma 2 writes q - k = δ). Concatenated they hold all that the convolution reads, and W^O,
whose blocks are the maps M_δ of `li_output_map`, forms Σ_δ X_(q+δ) M_δ = conv(X)_q. ∎

For P = 1 this is Corollary 3 with K² heads. For 3 ≤ K ≤ 2P + 1 it is m = 1, nine heads: Corollary
4, which L21 states for K < 2P.
"""

from jax import Array
from jaxtyping import Num

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_lemma2 import one_hot_bias_heads
from convattn.encodings.bias import BiasEncoding


def bias_construction(
    maps: Num[Array, "offsets patch_in patch_out"],
    geometry: ConvolutionGeometry,
    logit: Num[Array, ""] | float | None = None,
) -> tuple[BiasEncoding, Num[Array, "heads patch_in patch_out"]]:
    """The encoding and the block of W^O of each head.

    Source: L21 Theorem 1.
    """
    return one_hot_bias_heads(geometry, logit, maps.dtype), maps
