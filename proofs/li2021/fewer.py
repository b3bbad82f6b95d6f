"""Discussion of Section 3.2.2: patches are said to take fewer heads than pixels.

Claimed. Patches take fewer heads than pixels: for 5 × 5 kernels pixels need at least 25 heads, and
patches only 9.
True. Up to K = 2P + 1 patches need fewer if K ≥ 5 and there are ten or more pairs of input and
output channels, nine in the limit; otherwise as many, or more where there are few pairs.

Printed. "Patch input makes self-attention require less heads to perform convolution compared to
pixel input, especially when K is large. For example, according to Theorem 5, MHSA layers with pixel
input need at least 25 heads to perform 5×5 convolution, while those with patch input only need 9
heads."

Verified. Let P ≥ 2, 3 ≤ K ≤ 2P + 1 odd, D = D_in·D_out, and count heads that attend by position
and are enough for every kernel. The counts are for images with zero tokens around them on which
some query has a token of the image outside its receptive field.

In the limit patches take nine (L21.theorem1, Theorem 6). Pixels take K² if D ≥ K², and D + 1
otherwise: a kernel of rank D whose taps add up to zero has no nonnegative vector in the row space
of F (S.kernel). So patches take fewer where K ≥ 5 and D ≥ 9, as many where D = 8 or K = 3 and D ≥
9, and more where D ≤ 7.

At finite scores patches take ten, and pixels min(K², D) + 1 (S.kernel). So patches take fewer where
K ≥ 5 and D ≥ 10, as many where D = 9 or K = 3 and D ≥ 10, and more where D ≤ 8: for one channel in
and out two heads compute every convolution of pixels exactly, and ten are needed for patches.

Repair. K ≤ 2P + 1, K ≥ 5 and D_in·D_out ≥ 10 are added (9 in the limit). At K = 3 with enough
channels the two numbers are equal; with few channels it is the other way round. For larger K
patches take more than nine: at K = 7, P = 2, D = 10 they take 25 in the limit, and pixels 11. "At
least 25 heads" for 5 × 5 follows from Theorem 5 only if min{K², d} = 25, d ≥ 25 channels; with an
RGB image, D_in = 3, it gives three (and the sharpened bound 25, if there are nine filters or more).

Errata.
- discussion of 3.2.2 | patches take fewer heads | for 5 ≤ K ≤ 2P + 1 and D_in·D_out ≥ 10 (9 in the
  limit); at other K ≤ 2P + 1 the same or more | S.kernel

Proof. *The idea:* with one channel, a biased head less a uniform one is the convolution.

Pixels, one channel: the flattened kernel F is one row w. Let u be the uniform row over the N keys
and a the row with the weights 1 + ε w_δ at the shifts δ and 1 elsewhere, over Z = N + ε Σ w, where
ε is so small that all weights are positive: a is the softmax of log(1 + ε w_δ) and zeros, a
relative bias. At a query whose shifts are all keys Z a - N u = ε w, so the values Z/ε and -N/ε make
the layer the convolution; with the ring that is every query.

Patches: the box of ones in one channel pair has a flattened form of rank nine (Theorem 6), so nine
heads are necessary in the limit, ten at finite scores, and these are enough for every kernel.

Pixels: F has D rows and K² columns, so ρ ≤ min(K², D), which is reached. At finite scores ρ + 1
heads are necessary and enough. In the limit K² are enough. If D < K², take D independent rows of
sum zero: then a nonnegative vector of the row space has the sum zero and is zero, so D heads are
not enough, while D + 1 are, exactly. ∎
"""

from fractions import Fraction
from itertools import product

from convattn.bounds.flattened_kernel import exact_rank
from convattn.bounds.heads import count_heads
from convattn.bounds.kernel_heads import count_heads_of_kernel
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
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


def said(size: int, pairs: int, least: int) -> str:
    """What the row says of patches against pixels, which take as many at `least` channel pairs."""
    if pairs < least:
        return "more"
    return "as many" if pairs == least or size == 3 else "fewer"


def counts(run: Run) -> str:
    """In both regimes, by `convattn.heads` and, on pixels, by a kernel that takes the most."""
    rows = []
    for size, channels in product((3, 5, 7), ((1, 1), (1, 7), (2, 4), (3, 3), (2, 5), (5, 10))):
        taps, pairs = size**2, channels[0] * channels[1]
        kernel = run.rng(size, *channels).integers(-99, 100, (size, size, *channels))
        if pairs < taps:  # rows of sum zero
            kernel[0, 0] -= kernel.sum(axis=(0, 1))
        worst = count_heads_of_kernel(kernel)
        patch = max(2, size // 2)
        numbers = [
            count_heads(size, patch_size=side, in_channels=channels[0], out_channels=channels[1])
            for side in (1, patch)
        ]
        for regime, pixels, patches, least in (
            ("limit", min(taps, pairs + 1), 9, 8),
            ("exact", min(taps, pairs) + 1, 10, 9),
        ):
            counted = [getattr(one, regime) for one in numbers]
            found = [int(one.necessary) for one in counted] + [
                int(one.sufficient) for one in counted
            ]
            name = f"K = {size}, {pairs} pairs, P = {patch}, {regime}"
            require(found == [pixels, patches] * 2, f"{name}: {found}, not {pixels} and {patches}")
            require(getattr(worst, regime) == pixels, f"{name}: the kernel takes {worst}")
            sign = "fewer" if patches < pixels else "more" if patches > pixels else "as many"
            require(sign == said(size, pairs, least), f"{name}: patches take {sign}")
            rows.append(name)
    wide = count_heads(7, patch_size=2, in_channels=2, out_channels=5)
    require(wide.limit.necessary == 25, f"K = 7, P = 2: {wide.limit}")
    return f"{len(rows)} cases as the row says; K = 7, P = 2, 10 pairs: 25 on patches"


CLAIM = Claim(
    id="L21.fewer",
    source="Li et al. 2021, Section 3.2.2, discussions on the theoretical findings",
    verdict=Verdict.AMENDED,
    kinds=(Kind.IDENTITY,),
    evidence=(
        Evidence("two heads on pixels", Level.TESTED, two_heads_on_pixels),
        Evidence("pixels against patches", Level.TESTED, comparison),
        Evidence("heads in both regimes", Level.TESTED, counts),
    ),
)
