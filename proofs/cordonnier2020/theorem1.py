"""Theorem 1: K² heads with the quadratic encoding express every K × K convolution.

Claimed. A self-attention layer with K² heads and the quadratic encoding can express every
convolution with a K × K kernel.
True. It can, for odd K and every image size, in the limit of ever sharper attention and if the
image is padded with zero tokens. No fixed number of such heads is exact at every size (S.barrier).

Printed. "A multi-head self-attention layer with N_h heads of dimension D_h, output dimension
D_out and a relative positional encoding of dimension D_p ≥ 3 can express any convolutional
layer of kernel size √N_h × √N_h and min(D_h, D_out) output channels."

Verified. Let K be odd, D_h ≥ min(D_in, D_out), and let a ring of (K-1)/2 zero tokens surround
the image. As α → ∞, the layer with N_h = K² heads, scores -α|δ - Δ_h|² and W^(h) = W_(Δ_h)
tends to the zero-padded convolution, for every kernel and every image size. In floating point,
with α so large that the off-target weights underflow, it is equal to it.

Repair. Five points. (1) It is a limit: at finite α every weight is positive, so for a kernel whose
K² matrices W_δ are linearly independent K² heads never are the convolution exactly, where some
query has a token of the image outside its receptive field; K² + 1 heads with relative biases are
(S.finite), and with quadratic scores no fixed number is at every image size (S.barrier). (2) The
border is part of the claim, as eq. 17 is the zero-padded convolution, and without padding it fails:
a softmax layer maps a constant image to a constant image, a zero-padded convolution in general does
not. (3) K is odd: for even K the shifts of eq. 5 are (K+1)² many. (4) D_p ≥ 3 is more than is
needed (S.dp2, S.dp1). (5) min(D_h, D_out) output channels: D_h ≥ min(D_in, D_out) already gives all
D_out.

Errata.
- Theorem 1 | equality | with a zero ring, in the limit; exactly with relative biases and one head
  more, and with quadratic scores by no fixed number of heads at every size | S.finite, S.barrier
- eq. 5 | Δ_K = {-⌊K/2⌋, …, ⌊K/2⌋}² | K odd; for even K these are (K+1)² shifts

Proof. *The idea:* each head comes to look at one pixel of the receptive field, and its maps apply
one tap.

At an interior query the target q + Δ_h is a key, and the other keys' scores are lower by α|δ -
Δ_h|² ≥ α, so the head's row tends to the one-hot row at q + Δ_h (Lemma 2).

The heads are in bijection with Δ_K, so Lemma 1 gives Σ_h X_(q+Δ_h) W_(Δ_h) = Conv(X)_q.

With the ring every query is interior, and ring tokens are the zeros of the zero padding.

For the border: on the bare grid rows sum to one over the image's tokens, so a constant image X = 1c
gives Σ_h c W^(h) at every query, while the convolution loses the taps that fall outside.
"""

from convattn_ledger import Claim, Kind, Verdict
from convattn_ledger.evidence import (
    certified,
    equals_convolution,
    proved,
    total_variation_enclosed,
)

CLAIM = Claim(
    id="C20.theorem1",
    source="Cordonnier, Loukas, Jaggi 2020, Theorem 1, eqs. 9 and 17",
    verdict=Verdict.AMENDED,
    kinds=(Kind.LAYER_EQUALITY, Kind.LIMIT),
    evidence=(
        proved(
            "cordonnier2020/theorem1.v",
            covers="the limit at each pixel of each image, with D_h ≥ min(D_in, D_out), without "
            "bias; not: W_qry, Ŵ_key and D_k, floating point, (1) to (4) of the repair",
        ),
        certified("C20.theorem1", "K*", name="every kernel of seven sizes"),
        certified("C20.theorem1", "border", name="fails on the bare grid"),
        total_variation_enclosed(
            "distance to hard attention", alphas=(1.0, 4.0, 16.0, 46.0, 104.0)
        ),
        equals_convolution("3 × 3 on images", (3, 3), encoding="quadratic", quick=True),
        equals_convolution("5 × 5 on images", (5, 5), encoding="quadratic"),
    ),
)
