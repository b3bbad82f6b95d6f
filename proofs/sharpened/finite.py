"""S.finite: one head more makes the constructions exact at finite parameters.

Printed. (Ours, not a paper's.) (2m+1)² + 1 relative-bias heads with finite parameters express
every K × K convolution exactly, for any leak ε in (0, 1); one set of weights serves every image
size.

Verified. The same, at every query whose offsets are all keys, hence zero-padded with a ring of
m zero tokens; on the bare grid the same layer is the convolution in which every missing token
is replaced by the mean of all. m = ⌈(K-1)/(2P)⌉ for odd K without dilation; in general as many
heads as there are token offsets, and one more.

Nothing to repair.

Proof. The softmax of M at one key and 0 at the N - 1 others is (1-ε)S_δ + εJ with ε = N/(e^M +
N - 1), J uniform, that is M = log(1 + N(1/ε - 1)). A head without bias is J. With the maps
M_δ/(1-ε) and, for the uniform head, -ε/(1-ε)·Σ_δ M_δ, the J terms cancel and Σ_δ S_δ X M_δ is
left. Where the key at q + δ is missing the row is J, and the same sum leaves J X M_δ in place
of S_δ X M_δ. ∎
"""

from convattn.evidence import SEVEN_SIZES, certified, equals_convolution
from convattn.ledger import Claim, Kind, Verdict

CLAIM = Claim(
    id="S.finite",
    source="this project, sharpening L21 Theorem 1 and C20 Theorem 1",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LAYER_EQUALITY,),
    evidence=(
        certified("S.finite", cases=SEVEN_SIZES),
        equals_convolution("3 × 3, pixels", (3, 3), exact=True, quick=True),
        equals_convolution("5 × 5, P = 4", (5, 5), patch_size=4, exact=True),
        equals_convolution("3 × 3, P = 16, ε = 1/4", (3, 3), patch_size=16, exact=True, leak=0.25),
    ),
)
