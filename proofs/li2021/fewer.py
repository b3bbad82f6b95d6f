"""Discussion of Section 3.2.2: patches are said to take fewer heads than pixels.

Claimed. Patches take fewer heads than pixels: for 5 × 5 kernels pixels need at least 25 heads, and
patches only 9.
True. Up to K = 2P + 1, patches need fewer if K ≥ 5 and there are ten or more pairs of input and
output channels; otherwise as many, or more where there are eight pairs or less.

Printed. "Patch input makes self-attention require less heads to perform convolution compared to
pixel input, especially when K is large. For example, according to Theorem 5, MHSA layers with pixel
input need at least 25 heads to perform 5×5 convolution, while those with patch input only need 9
heads."

Verified. Let P ≥ 2 and 3 ≤ K ≤ 2P + 1. Patches take nine heads for some kernel, whatever the
channels (Theorem 6, S.heads). Pixels take min(K², D_in·D_out) for some kernel. So patches take
fewer heads where K ≥ 5 and D_in·D_out ≥ 10, as many where K = 3 and D_in·D_out ≥ 9 or D_in·D_out =
9, and more where D_in·D_out ≤ 8 - for one channel in and out two heads compute every convolution of
pixels exactly, at finite scores, and nine are needed for patches.

Repair. K ≥ 5 and D_in·D_out ≥ 10 are added. At K = 3 the two numbers are equal; with few channels
it is the other way round. "At least 25 heads" for 5 × 5 follows from Theorem 5 only if
min{K², d} = 25, d ≥ 25 channels; with an RGB image, D_in = 3, it gives three (and the sharpened
bound 25, if there are nine filters or more).

Errata.
- discussion of 3.2.2 | patches take fewer heads | for K ≥ 5 and D_in·D_out ≥ 10; the same or more
  otherwise

Proof. *The idea:* with one channel, a biased head less a uniform one is the convolution.

Pixels, one channel: the flattened kernel F is one row w. Let u be the uniform row over the N keys
and a the row with the weights 1 + ε w_δ at the shifts δ and 1 elsewhere, over Z = N + ε Σ w, where
ε is so small that all weights are positive: a is the softmax of log(1 + ε w_δ) and zeros, a
relative bias. At a query whose shifts are all keys Z a - N u = ε w, so the values Z/ε and -N/ε make
the layer the convolution; with the ring that is every query.

Patches: the box of ones in one channel pair has a flattened form of rank nine (Theorem 6).

In general the ranks are at most the number of rows with distinct entries, (2P-1)²·D_in·D_out, which
is D_in·D_out for P = 1. ∎
"""

from fractions import Fraction

from convattn.bounds.flattened_kernel import exact_rank
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict
from convattn_ledger.evidence import exact_convolution
from convattn_ledger.evidence.printed_output_map import flattened_blocks, output_blocks


def two_heads_on_pixels(run: Run) -> str:
    """One channel, exactly: a biased head and the uniform one, on rings of zeros."""
    sizes = ((3, 4), (5, 6), (7, 5))
    for size, side in sizes:
        rng = run.rng(size)
        kernel = rng.integers(-9, 10, (size, size, 1, 1))
        image = rng.integers(0, 256, (1, side, side + 1, 1))
        reach = size // 2
        ringed = [[0] * (side + 1 + 2 * reach) for _ in range(side + 2 * reach)]
        for row in range(side):
            for column in range(side + 1):
                ringed[row + reach][column + reach] = int(image[0, row, column, 0])
        keys = len(ringed) * len(ringed[0])
        step = Fraction(1, 1 + 2 * int(abs(kernel).max()))
        total = keys + step * int(kernel.sum())
        everything = Fraction(sum(map(sum, ringed)))
        expected = exact_convolution(image, kernel)
        for row in range(side):
            for column in range(side + 1):
                tilted = everything + step * sum(
                    int(kernel[i, j, 0, 0]) * ringed[row + i][column + j]
                    for i in range(size)
                    for j in range(size)
                )
                heads = (total / step) * (tilted / total) - (keys / step) * (everything / keys)
                if heads != int(expected[0, row, column, 0]):
                    raise EvidenceFailed(f"K = {size}: {heads} at ({row}, {column})")
    return f"{len(sizes)} one-channel kernels, K = 3, 5, 7: two heads are the convolution"


def comparison(run: Run) -> str:
    """Ranks of random kernels, modulo a prime: pixels min(K², D_in·D_out), patches nine."""
    summary = []
    for size, inputs, outputs in ((3, 3, 3), (5, 1, 1), (5, 2, 4), (5, 3, 3), (5, 3, 4), (5, 5, 5)):
        kernel = run.rng(size, inputs, outputs).integers(-99, 100, (size, size, inputs, outputs))
        ranks = [exact_rank(flattened_blocks(output_blocks(kernel, patch))) for patch in (1, 2)]
        if ranks != [min(size**2, inputs * outputs), 9]:
            raise EvidenceFailed(f"K = {size}, {inputs} to {outputs} channels: ranks {ranks}")
        summary.append(f"K = {size}, {inputs}·{outputs}: {ranks[0]} and {ranks[1]}")
    return "pixels and patches, " + "; ".join(summary)


CLAIM = Claim(
    id="L21.fewer",
    source="Li et al. 2021, Section 3.2.2, discussions on the theoretical findings",
    verdict=Verdict.AMENDED,
    kinds=(Kind.IDENTITY,),
    evidence=(
        Evidence("two heads on pixels", Level.TESTED, two_heads_on_pixels),
        Evidence("pixels against patches", Level.TESTED, comparison),
    ),
)
