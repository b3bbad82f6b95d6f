"""§3, stride: a fixed pooling after the layer gives every stride.

Claimed. A self-attention layer followed by a fixed pooling can express convolutions with any
stride.
True. It can, for kernels of odd size, in the limit of sharp attention and with zero padding, if the
pooling only drops the pixels in between and averages nothing.

Printed. "A strided convolution can be seen as a convolution followed by a fixed pooling operation
[…] a fixed pooling layer could be appended to the Self-Attention layer to simulate any stride."

Verified. K odd, with a ring of (K-1)/2 zeros, in the limit: keeping every s-th pixel of the layer
of Theorem 1, on both axes, is the zero-padded convolution of stride s, for every s ≥ 1 and every
kernel.

Repair. The hypotheses are those of Theorem 1 as amended: the limit, the ring, K odd. The pooling is
a subsampling: it keeps the pixels 0, s, 2s, … and averages nothing.

Proof. Conv_s(X)_i = Σ_δ X_(s·i+δ) W_δ = Conv_1(X)_(s·i), by definition. ∎
"""

from convattn_ledger import Claim, Kind, Verdict
from convattn_ledger.evidence import certified, equals_convolution, proved, total_variation_enclosed

CLAIM = Claim(
    id="C20.stride",
    source="Cordonnier, Loukas, Jaggi 2020, §3, remark on stride",
    verdict=Verdict.AMENDED,
    kinds=(Kind.LAYER_EQUALITY, Kind.LIMIT),
    evidence=(
        proved(
            "cordonnier2020/stride.v",
            covers="hard attention with the maps W_δ; not: the limit (theorem1.v)",
        ),
        total_variation_enclosed("distance to hard attention", alphas=(1.0, 16.0, 104.0)),
        certified("C20.stride"),
        equals_convolution("3 × 3, stride 2", (3, 3), encoding="quadratic", stride=2),
        equals_convolution("3 × 3, stride 3", (3, 3), encoding="quadratic", stride=3),
    ),
)
