"""N.impulse: how many random impulse filters suffice, with the mixing of channels learned.

Claimed. Random filters that read a single pixel each do almost as well in a CNN as learned filters.
True. Not judged, as only the abstracts were read; they express every 3 × 3 kernel of one input
channel only if all nine taps are drawn, which 44 draws do with a probability of 95 %.

Printed. Zheng, Li and Lucey 2024 and Zheng et al. 2025, abstracts: "random impulse filters can
achieve almost comparable performance to learned filters in CNNs" (2401.12511), "comparable
performance to learned filters within CNNs" (2404.01139), "commensurate performance to learned
filters within a CNN" (2505.19985). Of these papers only the abstracts were read, and the authors'
code. Reviews of 2404.01139 report a rank argument for it: D ≥ k·f² channels suffice, for f × f
filters that stay fixed, if the mixing of channels is learned. The code draws the D impulses
independently, `torch.randint(0, kernel_size*kernel_size, (C,1))`; in the later code head i of a
transformer looks at the i-th of a fixed order of the nine offsets.

Verified. Let T be the number of taps, c input channels; A (c × D) mixes channels, filter f_d in R^T
acts on channel d, B (D × c') mixes again: the kernel is W_δ = Σ_d f_d(δ) a_d b_d, with a_d the
columns of A and b_d the rows of B. (1) For fixed A and f, some B gives each kernel if and only if
the D vectors f_d ⊗ a_d span R^(T·c); so D ≥ T·c is needed. It suffices for almost all f and a. (2)
For impulses the vectors span if and only if for each tap δ the a_d of the channels that read δ span
R^c: each tap must be drawn c times, and that suffices for almost all A. D = T·c independent draws
do so with a probability of 9.4·10⁻⁴ for K = 3 and c = 1, and of 8.3·10⁻⁵ for c = 2; for c = 1 it
takes 25.46 draws on average, and 44 for a probability of 0.95. (3) With A learned too, D impulses
give one kernel if and only if each tap is drawn at least rank(W_δ) times: Σ_δ rank(W_δ) well chosen
channels, as S.headdim has it for heads of dimension 1. (4) As attention heads on pixels with free
value maps: impulse heads express every kernel if and only if all T taps are among them, so K² are
needed and suffice in the limit, and one given kernel if and only if its nonzero taps are. At finite
scores, with a bias at the taps, one uniform head more suffices (S.finite), and is needed unless
Σt_δW_δ = 0 for some t_δ > 0. The rank ρ of a kernel (S.kernel) is the number for heads that are
fitted to it. Three heads, as a ViT-T has, reach three taps.

Repair. Not judged: the text of these papers could not be read. A count D ≥ k·f², with k for our c,
is right for random filters with a density; for random impulses it is necessary and far from
sufficient: give each tap c channels, or draw more of them.

Proof. *The idea:* the kernel is B applied to the D vectors: for each output channel a combination
Σ_d b_dj f_d ⊗ a_d.

(1) The determinant of T·c of them is a polynomial in the entries, and not zero where f and a are
the products of unit vectors.

(2) Where f_d is the unit vector of its tap, the vectors fall into the T blocks, and must span each.
Generic vectors span R^c once there are c of them. The probability is the number of words of length
T·c in which each of T letters occurs c times, over that of all words. For c = 1, once j taps are
seen a new one takes T/(T - j) draws on average, and after n draws all are seen with the probability
Σ_j (-1)^j·C(T, j)·(1 - j/T)^n.

(3) The terms of tap δ sum to a matrix of rank at most their number, and any matrix of rank r is a
sum of r products.

(4) is (1) with W_h for a_h b_h: the row space of the impulses is spanned by unit vectors. Finite
heads have rows (1-ε_δ)S_δ + ε_δJ, so a token outside the receptive field gets Σ_δ t_δW_δ/N from all
of them together, t_δ = ε_δ/(1-ε_δ) > 0. ∎
"""

from fractions import Fraction
from itertools import product
from math import comb, factorial

import numpy as np
from flint import fmpz_mat

from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence.exact_tokens import tokens_at


def rank(rows: np.ndarray) -> int:
    """Over the rationals."""
    return int(fmpz_mat(np.asarray(rows).tolist()).rank())


def all_drawn(taps: int, draws: int, times: int) -> Fraction:
    """The probability that each tap is drawn at least so many times."""
    # ways[s]: the words of length s over the taps so far, each of them at least `times` times.
    ways = [1] + [0] * draws
    for _ in range(taps):
        ways = [
            sum(comb(s, own) * ways[s - own] for own in range(times, s + 1))
            for s in range(draws + 1)
        ]
    return Fraction(ways[draws], taps**draws)


def impulses(positions: np.ndarray, taps: int) -> np.ndarray:
    """One unit vector a channel."""
    return np.eye(taps, dtype=int)[positions]


def products(filters: np.ndarray, mixing: np.ndarray) -> np.ndarray:
    """f_d ⊗ a_d, one row a channel."""
    return np.einsum("dt,dc->dtc", filters, mixing).reshape(len(filters), -1)


def spans(run: Run) -> str:
    """Ranks of f ⊗ a: dense filters reach T·c with T·c channels, impulses by their counts."""
    cases, failed = 40 if run.quick else 200, 0
    for case in range(cases):
        rng = run.rng(case)
        taps, inputs = ((9, 1), (9, 2), (4, 3), (25, 1))[case % 4]
        enough = taps * inputs
        channels = enough * (1 + case % 3)
        mixing = rng.integers(1, 10**6, (channels, inputs))
        dense = products(rng.integers(-(10**6), 10**6, (channels, taps)), mixing)
        if (rank(dense), rank(dense[: enough - 1])) != (enough, enough - 1):
            raise EvidenceFailed(f"case {case}: {channels} dense filters have rank {rank(dense)}")
        positions = rng.integers(0, taps, channels)
        counts = np.bincount(positions, minlength=taps)
        expected = int(np.minimum(counts, inputs).sum())
        impulse_rank = rank(products(impulses(positions, taps), mixing))
        require(
            impulse_rank == expected,
            f"case {case}: impulses {counts} have rank {impulse_rank}, not {expected}",
        )
        failed += impulse_rank < enough
    require(0 < failed < cases, f"{failed} of {cases} draws fail: one side was not seen")
    return f"{cases} draws of at least T·c channels: dense filters all span, impulses fail {failed}"


def probabilities(run: Run) -> str:
    """The count of words against enumeration, the formulas, and the numbers of the claim."""
    for taps, draws, times in ((3, 5, 1), (4, 5, 1), (2, 6, 2), (3, 7, 2)):
        complete = sum(
            all(word.count(tap) >= times for tap in range(taps))
            for word in product(range(taps), repeat=draws)
        )
        probability = all_drawn(taps, draws, times)
        require(
            probability == Fraction(complete, taps**draws),
            f"T = {taps}, n = {draws}: {probability}",
        )
    taps = 9
    for draws in (9, 20, 44):
        signed = sum(
            (-1) ** j * comb(taps, j) * Fraction(taps - j, taps) ** draws for j in range(taps + 1)
        )
        require(all_drawn(taps, draws, 1) == signed, f"n = {draws}: not the signed sum {signed}")
    once, twice = all_drawn(9, 9, 1), all_drawn(9, 18, 2)
    exact = [Fraction(factorial(9 * c), factorial(c) ** 9 * 9 ** (9 * c)) for c in (1, 2)]
    mean = 9 * sum(Fraction(1, j) for j in range(1, 10))
    enough = next(n for n in range(9, 100) if all_drawn(9, n, 1) >= Fraction(19, 20))
    if [once, twice] != exact or twice > Fraction(1, 10**4) or enough != 44:
        raise EvidenceFailed(f"{float(once)}, {float(twice)}, {enough} draws")
    require(round(float(mean), 2) == 25.46, f"{float(mean)} draws on average")
    return (
        f"K = 3: all taps in 9 draws {float(once):.2g}, twice in 18 draws {float(twice):.2g}; "
        f"{float(mean):.2f} draws on average, {enough} for 0.95"
    )


def factors(kernel: np.ndarray) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """(δ, a, b) with W_δ = Σ a b, as many as ranks: W = (columns at pivots)(reduced rows)."""
    rank_one_terms = []
    for tap, block in enumerate(kernel):
        reduced, denominator, size = fmpz_mat(block.tolist()).rref()
        rows = np.array(reduced.tolist(), object)[:size]
        for row in rows:
            pivot = int(np.flatnonzero(row)[0])
            exact = np.array([Fraction(int(entry), int(denominator)) for entry in row], object)
            rank_one_terms.append((tap, block[:, pivot].astype(object), exact))
    return rank_one_terms


def learned_mixing(run: Run) -> str:
    """Σ rank(W_δ) channels with an impulse each are the convolution, in fractions."""
    counts = []
    for case in range(4 if run.quick else 12):
        rng = run.rng(case)
        left, right = rng.integers(-2, 3, (9, 3, 2)), rng.integers(-2, 3, (9, 2, 4))
        kernel = left @ right
        kernel[case % 9] = 0
        image = rng.integers(-9, 10, (1, 4, 5, 3)).astype(object)
        channels = factors(kernel)
        ranks = sum(rank(block) for block in kernel)
        total, expected = 0, 0
        for tap, into, out in channels:
            shifted = tokens_at((image @ into)[..., None], (tap // 3 - 1, tap % 3 - 1))
            total = total + shifted * out
        for tap, block in enumerate(kernel):
            expected = expected + tokens_at(image, (tap // 3 - 1, tap % 3 - 1)) @ block.astype(
                object
            )
        if len(channels) != ranks or (total != expected).any():
            raise EvidenceFailed(f"case {case}: {len(channels)} channels, ranks {ranks}")
        counts.append(ranks)
    return f"Σ rank(W_δ) = {', '.join(map(str, counts))} channels are the convolution"


CLAIM = Claim(
    id="N.impulse",
    source="Zheng et al. 2024 and 2025 (arXiv:2401.12511, 2404.01139, 2505.19985), abstracts; code",
    verdict=Verdict.NOT_JUDGED,
    kinds=(Kind.IDENTITY,),
    evidence=(
        Evidence("spans", Level.TESTED, spans),
        Evidence("probabilities", Level.TESTED, probabilities),
        Evidence("learned mixing", Level.TESTED, learned_mixing),
    ),
)
