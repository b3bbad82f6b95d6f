"""§3, sequences: in one dimension K heads and D_p = 2 are enough.

Claimed. On sequences, K heads with two features of the relative position can express every
one-dimensional convolution with a kernel of size K.
True. They can, for odd K and every length and number of channels, in the limit of ever sharper
attention and if the sequence is padded with zeros.

Printed. "Multi-head self-attention with N_h heads can also simulate a 1D convolutional layer with
a kernel of size K = N_h with min(D_h, D_out) output channels using a positional encoding of
dimension D_p ≥ 2."

Verified. K odd, with a ring of (K-1)/2 zero tokens, in the limit: r_δ = (δ², δ) and v = -α(1,
-2Δ) give K heads that are the zero-padded convolution, for every kernel, every length and any
channels.

Repair. The hypotheses are those of Theorem 1 as amended: the limit, the ring, K odd. That a single
layer needs no more than D_p = 2 is right; one dimension is enough by another construction (S.dp1).

Proof. v·r_δ = -α(δ - Δ)² + αΔ². The proofs of Lemmas 1 and 2 read the same with the second
coordinate left out. ∎
"""

import jax.numpy as jnp
import numpy as np

from convattn.encodings.quadratic import printed_features, printed_target
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict
from convattn_ledger.evidence import certified, equals_convolution, proved, total_variation_enclosed


def two_features(run: Run) -> str:
    """v·r_δ from the library's printed features, in integers, against -α(δ - Δ)² + αΔ²."""
    shifts, cases = np.arange(-40, 41)[:, None], 0
    for alpha in (1, 3, 46):
        for center in (-3, 0, 2):
            features = printed_features(shifts)
            target = np.asarray(printed_target(jnp.array([alpha]), jnp.array([[center]])))[0]
            expected = -alpha * (shifts[:, 0] - center) ** 2 + alpha * center**2
            if features.shape != (81, 2) or (features @ target != expected).any():
                raise EvidenceFailed(
                    f"α = {alpha}, Δ = {center}: v = {target.tolist()} and {features.shape[1]} "
                    "features do not give -α(δ - Δ)² + αΔ²"
                )
            cases += 1
    return f"{cases} heads, 81 shifts each, D_p = 2, equal"


CLAIM = Claim(
    id="C20.sequence",
    source="Cordonnier, Loukas, Jaggi 2020, §3, remark for the 1D case",
    verdict=Verdict.AMENDED,
    kinds=(Kind.LAYER_EQUALITY, Kind.LIMIT),
    evidence=(
        proved(
            "cordonnier2020/sequence.v",
            covers="hard attention with the maps W_Δ, and the scores of two features",
        ),
        proved(
            "cordonnier2020/sequence_limit.v",
            covers="the limit, with the maps W_Δ; with sequence.v all of Verified; not: W_qry, "
            "Ŵ_key, D_k and D_h",
        ),
        total_variation_enclosed(
            "distance to hard attention",
            alphas=(1.0, 16.0, 104.0),
            keys=(9,),
            centers=((0,), (-1,), (3,)),
        ),
        certified("C20.sequence"),
        Evidence("two features", Level.TESTED, two_features),
        equals_convolution("K = 3 on rows of images", (3,), encoding="quadratic"),
        equals_convolution("K = 7 on rows of images", (7,), encoding="quadratic"),
    ),
)
