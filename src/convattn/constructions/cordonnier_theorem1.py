"""C20 Theorem 1: K² heads with the quadratic encoding express any K × K convolution, in the limit.

**Claim.** Let N_h = K² heads have quadratic scores (D_p = 3) and D_h ≥ D_out. As α → ∞ the layer
tends to the convolution at every query whose offsets are all keys; with the zero ring, at every
query, to the zero-padded convolution.

**Proof.** Lemma 2 gives one-hot attention at each shift of Δ_K, by one head each; that is the
hypothesis of Lemma 1, whose value maps give the convolution. The layer is a continuous function
of the weights, so the limits of the weights give the limit of the layer. ∎

The same words hold for patches as tokens, with the token offsets for Δ_K and the maps of
`li_output_map` for the kernel's matrices.
"""

from jax import Array
from jaxtyping import Num

from convattn.constructions.cordonnier_lemma1 import value_maps_for_bijection
from convattn.constructions.cordonnier_lemma2 import quadratic_heads
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.encodings.quadratic_grid import QuadraticGridEncoding


def quadratic_construction(
    maps: Num[Array, "offsets patch_in patch_out"],
    geometry: ConvolutionGeometry,
    alpha: Num[Array, ""] | float | None = None,
) -> tuple[QuadraticGridEncoding, Num[Array, "heads patch_in patch_out"]]:
    """The encoding and the map W^(h) of each head.

    Source: C20 Theorem 1, by Lemmas 1 and 2.
    """
    encoding = quadratic_heads(geometry, alpha, maps.dtype)
    return encoding, value_maps_for_bijection(maps, geometry.offsets, geometry.offsets)
