"""S.dp2: the constructions above with only two positional features, on any image.

**Claim.** D_p = 2 gives one-hot attention at each of T offsets in the limit α → ∞, in two
dimensions too.

**Proof.** Number the offsets n = 0, …, T - 1 and give every other shift the number T. With r_δ
= (n, n²) and v = α(2 n_Δ, -1) the score is -α(n - n_Δ)² + α n_Δ². At the offset Δ it exceeds
every other by at least α, because numbers differ by at least one and no other shift has the
number n_Δ. So softmax tends to one there, as in Lemma 2 of C20, and Lemma 1 does the rest. ∎

C20 asks for D_p ≥ 3 in two dimensions.
"""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.encodings.base import score_dtype
from convattn.encodings.enumerated import EnumeratedEncoding
from convattn.operators.roundoff import one_hot_sharpness


def enumerated_construction(
    maps: Num[Array, "offsets patch_in patch_out"],
    geometry: ConvolutionGeometry,
    alpha: Num[Array, ""] | float | None = None,
) -> tuple[EnumeratedEncoding, Num[Array, "heads patch_in patch_out"]]:
    """The numbering and the map of each head.

    Source: S.dp2 of this project's ledger.
    """
    count = geometry.heads
    sharpness = one_hot_sharpness(maps.dtype) if alpha is None else alpha
    dtype = score_dtype(maps)
    encoding = EnumeratedEncoding(
        jnp.full((count,), sharpness, dtype),
        jnp.arange(count, dtype=dtype),
        geometry.offsets,
        tuple(range(count)),
        count,
    )
    return encoding, maps
