"""Corollary 4: nine heads express every convolution with K < 2P; up to K = 2P + 1, in fact.

Claimed. On patches of P × P pixels, nine heads express every K × K convolution with K < 2P.
True. They express more, every odd K up to 2P + 1, in the limit of sharp attention, with zero
padding and if different patches have different embeddings.

Printed. "In the patch-input setting, assume K < 2P, d_H ≥ d and d_O ≥ P²D_out. Then a multi-head
self-attention layer with 9 heads and relative positional encoding can express any convolutional
layer of kernel size K × K and D_out output channels."

Verified. Under the hypotheses of Theorem 1 as amended (K odd, a ring of one zero patch, the limit M
→ ∞, an injective patch embedding): nine heads express every K × K convolution for every odd K ≤ 2P
+ 1. The range ends there: for K = 2P + 3 and 2P + 5 and P ≤ 4 (with D_in·D_out ≥ 2 for P = 2, ≥ 10
for P = 1) some kernel takes more than nine heads, whatever they attend to.

Repair. The hypotheses are those of Theorem 1 as amended: the limit, the ring, K odd, an injective
embedding. The range is sharpened from K < 2P to K ≤ 2P + 1, which for odd K is one more size,
2P + 1 (K = 2P is even). An even K stands for K + 1 under L21's Δ, which has K + 1 taps on each
axis.

Errata.
- Corollary 4 | the hypotheses | with those of Theorem 1 as amended: K odd, a ring of one zero
  patch, in the limit, an injective patch embedding | L21.theorem1
- Corollary 4 | K < 2P | Sharper: K ≤ 2P + 1

Proof. *The idea:* up to K = 2P + 1 a patch reads itself and its neighbours only.

On each axis pixel p of a patch, 0 ≤ p < P, reads the pixels p - r, …, p + r with r = (K-1)/2, hence
the patches from ⌊-r/P⌋ to ⌊(P-1+r)/P⌋, that is -⌈r/P⌉ to ⌈r/P⌉. For 1 ≤ r ≤ P these are -1, 0, 1:
nine offsets, nine heads, by Theorem 1. For r = 0 it is the centre alone, and eight heads may have
zero values.

For r > P there are at least 25 offsets, and N_H is at least the rank of the flattened kernel F
(Theorem 5's argument), which is found exactly for random integer kernels: it exceeds nine. It
cannot where F has no more than nine rows up to repetition, which is (2P-1)²·D_in·D_out ≤ 9. ∎
"""

from convattn.bounds.flattened_kernel import exact_rank
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import (
    bias_saturation_enclosed,
    certified,
    equals_convolution,
    proved,
)
from convattn_ledger.evidence.printed_output_map import flattened_blocks, output_blocks


def patches_read(kernel_size: int, patch_size: int) -> set[tuple[int, int]]:
    """The patches that a patch reads, found pixel by pixel."""
    reach = kernel_size // 2
    axis = {
        (pixel + tap) // patch_size
        for pixel in range(patch_size)
        for tap in range(-reach, reach + 1)
    }
    return {(down, right) for down in axis for right in axis}


def nine_offsets(run: Run) -> str:
    """At most nine offsets if and only if K ≤ 2P + 1, counted."""
    sizes = 0
    for patch in range(1, 20):
        for size in range(1, 6 * patch + 5, 2):
            count = len(patches_read(size, patch))
            if (count <= 9) != (size <= 2 * patch + 1):
                raise EvidenceFailed(f"K = {size}, P = {patch}: {count} patches are read")
            sizes += 1
    return f"{sizes} pairs (K, P), P < 20: at most nine patches are read iff K ≤ 2P + 1"


def nine_are_too_few_beyond(run: Run) -> str:
    """For K = 2P + 3 and K = 2P + 5 a generic kernel has a flattened rank above nine, exactly."""
    summary = []
    for patch, inputs, outputs in ((1, 5, 2), (2, 2, 1), (2, 1, 3), (3, 1, 1), (4, 1, 1)):
        ranks = []
        for size in (2 * patch + 1, 2 * patch + 3, 2 * patch + 5):
            rng = run.rng(patch, size, inputs, outputs)
            kernel = rng.integers(-99, 100, (size, size, inputs, outputs))
            ranks.append(exact_rank(flattened_blocks(output_blocks(kernel, patch))))
        require(ranks[0] <= 9 < min(ranks[1:]), f"P = {patch}, {inputs} → {outputs}: ranks {ranks}")
        summary.append(f"P = {patch}, {inputs} → {outputs}: {ranks}")
    return "ranks at K = 2P + 1, 2P + 3, 2P + 5: " + "; ".join(summary)


CLAIM = Claim(
    id="L21.cor4",
    source="Li et al. 2021, Corollary 4",
    verdict=Verdict.AMENDED,
    kinds=(Kind.LAYER_EQUALITY, Kind.LIMIT),
    evidence=(
        proved(
            "li2021/cor4.v",
            covers="hard attention with nine heads and the blocks of W^O for K ≤ 2P + 1, d_O = "
            "P²·D_out; not: the limit and d_H (Theorem 1), that some kernel takes more beyond, "
            "nor an injective embedding",
        ),
        certified("L21.cor4"),
        bias_saturation_enclosed("distance to hard attention", logits=(8.0, 40.0), keys=(16, 324)),
        Evidence("nine offsets iff K ≤ 2P + 1", Level.TESTED, nine_offsets),
        Evidence("beyond, nine are too few", Level.TESTED, nine_are_too_few_beyond),
        equals_convolution("5 × 5, P = 2", (5, 5), patch_size=2),
        equals_convolution("9 × 9, P = 4", (9, 9), patch_size=4),
    ),
)
