"""N.mimetic: how far W_Q W_Kᵀ ≈ I and W_V W_O ≈ -I are from a convolution.

Claimed. If query times key weights start near the identity and value times projection weights near
its negative, attention layers look more like trained ones.
True. Not judged, as little more than the abstract was read; heads of this kind, on sinusoidal
positions alone, treat opposite shifts alike, so kernels such as Sobel's are out of their reach.

Printed. Trockman and Kolter 2023, abstract: "we set the product of the query and key weights to be
approximately the identity, and the product of the value and projection weights to approximately the
negative identity", so that self-attention layers "look more like their pre-trained counterparts".
Section 1 sets this beside "components that promote convolution-like inductive biases". Only
the abstract and the beginning of Section 1 were read, so which positions the paper adds is open.

Verified. Of the idealised layer, with W_Q W_Kᵀ = cI, c > 0, and W_V W_O = -I, N tokens X:
(1) Without positions, f(X) = -softmax(c XXᵀ)X commutes with every permutation of the tokens, and
its derivative at X = 0 is -J, J the mean over all tokens. So f is no convolution that leaves out a
token; for each query and channel, -J is at the squared distance (1 - T/N)/N from the nearest map
that reads T tokens, that is the part 1 - T/N of its own square. As c → ∞, for distinct tokens of
one norm, f tends to -X, the 1 × 1 convolution with the weight -I: a row is within (N - 1)/(e^(cγ) +
N - 1) of its own one-hot row, γ = min |x_q|² - x_q·x_k. With the skip connection, X + f(X) is 0 for
a constant image, whatever c is.
(2) With positions p of one norm and zero content, a query's largest score is its own. So every
other key has a weight of at most 1/2, and the row is at least 1/2 (total variation) from a one-hot
row elsewhere: no such head is a shift, for any c.
(3) With sinusoids on each axis, p = (cos ω_i q, sin ω_i q), the scores are c Σ cos ω_i(k - q),
relative and even on each axis. So any number of such heads, with any value maps, on zero content
treat the keys q + δ and q - δ alike: the row of one head is at least 2/3 from a shift's where both
exist, and
at such a query a convolution with the taps W_δ is at a squared distance of at least ½ Σ‖W_δ -
W_(-δ)‖², the sum over the pairs ±δ. For a kernel that is odd, such as Sobel's, no such layer is
nearer than zero.

Repair. Not judged: the paper's text could not be read. The layer is like a convolution as far as
this goes: with its largest weight at the query, even on each axis, of one sign, the same on all
channels. For all kernels W_Q W_Kᵀ must turn the features of a position into those of its neighbour;
a rotation by ω_i·Δ in the plane of each frequency does.

Proof. *The idea:* such scores are inner products of tokens, and those of positions are largest at
the query itself.

(1) softmax(ΠSΠᵀ) = Π softmax(S) Πᵀ. The scores are quadratic in X, so to first order the weights
stay 1/N. A map that reads T tokens misses N - T entries of -1/N, and may have the others. The score
of another key is at least cγ below the own. Rows sum to one, so attention fixes constants.

(2) p_q·p_k ≤ |p_q||p_k| = |p_q|²; a weight that is not the largest is at most 1/2.

(3) cos a cos b + sin a sin b = cos(a - b), which is even in the shift, and greatest at 0. So the
weights at δ and -δ are equal and at most that at 0: at most 1/3 where both exist. A head
contributes a_h(δ)W_h at both δ and -δ, so the layer's taps satisfy V_δ = V_(-δ), and ‖W_δ - V‖² +
‖W_(-δ) - V‖² ≥ ½‖W_δ - W_(-δ)‖², with equality at the mean. If W_(-δ) = -W_δ that is ‖W_δ‖² +
‖W_(-δ)‖².

The rotation: turning p_q by ω_iΔ gives p_(q+Δ), so the score is greatest at δ = Δ. ∎
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb, ctx

from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence.enclosures import ASSUMES
from convattn_ledger.evidence.exact_attention import exact_self_attention, exact_softmax

SOBEL = ((1, 2, 1), (0, 0, 0), (-1, -2, -1))
ROTATIONS = ((Fraction(24, 25), Fraction(7, 25)), (Fraction(4, 5), Fraction(3, 5)))


def content_scores(tokens: np.ndarray) -> np.ndarray:
    """XXᵀ: W_Q W_Kᵀ = I."""
    return tokens @ tokens.T


def equivariance(run: Run) -> str:
    """f(ΠX) = Πf(X) in fractions, 3/2 for e."""
    cases = 10 if run.quick else 60
    for case in range(cases):
        rng = run.rng(case)
        tokens, order = rng.integers(-3, 4, (6, 3)), rng.permutation(6)
        negative = -np.eye(3, dtype=int)
        permuted = exact_self_attention(
            tokens[order], content_scores(tokens[order]), negative, Fraction(3, 2)
        )
        original = exact_self_attention(tokens, content_scores(tokens), negative, Fraction(3, 2))
        require((permuted == original[order]).all(), f"case {case}: f(ΠX) is not Πf(X)")
    return f"{cases} permutations of 6 tokens"


def mimetic_layer(tokens, positions, sharpness: float):
    """-softmax(c(X + P)(X + P)ᵀ)X."""
    features = tokens + positions
    return -jax.nn.softmax(sharpness * features @ features.T, axis=-1) @ tokens


def zero_content(run: Run) -> str:
    """The derivative at X = 0 for 16 and 64 tokens: 1/N is a float, so it must be -J exactly."""
    summary = []
    for keys, inside in ((16, 9), (64, 25)):
        zero = jnp.zeros((keys, 2))
        jacobian = np.asarray(jax.jacfwd(mimetic_layer)(zero, zero, 8.0))
        expected = -np.einsum("qk,xy->qxky", np.full((keys, keys), 1 / keys), np.eye(2))
        require((jacobian == expected).all(), f"N = {keys}: the derivative at 0 is not -J")
        row = np.full(keys, Fraction(1, keys), object)
        missed, whole = (row[inside:] ** 2).sum(), (row**2).sum()
        require(missed / whole == 1 - Fraction(inside, keys), f"N = {keys}: {missed} of {whole}")
        summary.append(f"N = {keys}, T = {inside}: {missed / whole} is out of reach")
    return "the derivative is -J; " + ", ".join(summary)


def sharp_content(run: Run) -> str:
    """Distinct tokens of one norm: the distance to the own one-hot row, with 2 for e and c = 1…."""
    tokens = np.array([[s * 3, t * 4] for s in (1, -1) for t in (1, -1)] + [[5, 0], [0, -5]])
    scores = content_scores(tokens)
    gap = int((25 - scores)[~np.eye(6, dtype=bool)].min())
    summary = []
    for sharpness in (1, 2, 8):
        weights = exact_softmax(sharpness * scores, Fraction(2))
        distance = 1 - np.diag(weights).min()
        bound = Fraction(5, 2 ** (sharpness * gap) + 5)
        require(0 < distance <= bound, f"c = {sharpness}: {distance}, bound {bound}")
        summary.append(f"c = {sharpness}: {float(distance):.2g} ≤ {float(bound):.2g}")
    return f"6 tokens, γ = {gap}: " + ", ".join(summary)


def turned(rotation: tuple[Fraction, Fraction], steps: int) -> tuple[Fraction, Fraction]:
    """(cos ωq, sin ωq) for a rational rotation."""
    cosine, sine = Fraction(1), Fraction(0)
    for _ in range(steps):
        cosine, sine = (
            cosine * rotation[0] - sine * rotation[1],
            sine * rotation[0] + cosine * rotation[1],
        )
    return cosine, sine


def sinusoids(count: int) -> np.ndarray:
    """The positions 0, …, count - 1 on one axis, in fractions."""
    rows = [[part for r in ROTATIONS for part in turned(r, q)] for q in range(count)]
    return np.array(rows, object)


def positional_rows(run: Run) -> str:
    """Rational sinusoids: scores relative, even and greatest at 0; the weights in balls."""
    count, summary = 7, []
    features = sinusoids(count)
    scores = features @ features.T
    shifts = np.arange(count)[None] - np.arange(count)[:, None]
    for shift in range(count):
        values = set(scores[np.abs(shifts) == shift])
        if len(values) != 1 or (shift and max(values) >= scores[0, 0]):
            raise EvidenceFailed(f"the scores at ±{shift} are {values}, at 0 {scores[0, 0]}")
    for sharpness in (1, 100, 10**6):
        nearest = []
        with ctx.workprec(256):
            for row in scores:
                logits = [
                    arb(int((s - row.max()).numerator)) / int((s - row.max()).denominator)
                    for s in row
                ]
                powers = [(sharpness * logit).exp() for logit in logits]
                nearest.append([power / sum(powers, arb()) for power in powers])
            for query, weights in enumerate(nearest):
                for key, weight in enumerate(weights):
                    both = 0 <= 2 * query - key < count
                    limit = arb(1) / 3 if both else arb(1) / 2
                    if key != query and not weight < limit:
                        raise EvidenceFailed(f"c = {sharpness}: {query} reads {key} with {weight}")
            middle = nearest[3]
            summary.append(f"c = {sharpness}: {middle[2].str(3, radius=False)} at a neighbour")
    return f"{count} positions; " + ", ".join(summary)


def even_scores(rng: np.random.Generator) -> np.ndarray:
    """On a 5 × 5 grid around the query: a sum of even scores of the axes."""
    rows, columns = rng.integers(-4, 1, (2, 3))
    distance = np.abs(np.arange(5) - 2)
    return rows[distance][:, None] + columns[distance][None]


def squared(taps: np.ndarray) -> Fraction:
    """The sum of all entries' squares."""
    return (taps * taps).sum()


def odd_kernels(run: Run) -> str:
    """Random layers of even heads, in fractions, against random kernels and Sobel's."""
    cases, sobel = 20 if run.quick else 100, np.zeros((5, 5, 1, 1), object)
    sobel[1:4, 1:4, 0, 0] = np.asarray(SOBEL, int)
    require(bool((sobel == -sobel[::-1, ::-1]).all()), "Sobel's kernel is not odd")
    for case in range(cases):
        rng = run.rng(case)
        layer = np.zeros((5, 5, 1, 1), object)
        for _ in range(3):
            weights = exact_softmax(even_scores(rng).reshape(1, 25), Fraction(3, 2))
            along = (weights * sobel.reshape(1, 25)).sum()
            require(along == 0, f"case {case}: a head is {along} along Sobel's kernel, not 0")
            value = int(rng.integers(-9, 10))
            layer = layer + value * weights.reshape(5, 5, 1, 1)
        for kernel in (rng.integers(-9, 10, (5, 5, 1, 1)).astype(object), sobel):
            turned_over = kernel[::-1, ::-1]
            floor = squared(kernel - turned_over) * Fraction(1, 4)  # each pair is counted twice
            mean = (kernel + turned_over) * Fraction(1, 2)
            reached = squared(kernel - mean)
            if squared(kernel - layer) < floor or reached != floor:
                raise EvidenceFailed(f"case {case}: {squared(kernel - layer)} is below {floor}")
        require(squared(sobel - layer) >= squared(sobel), f"case {case}: nearer to Sobel than zero")
    return f"{cases} layers of three heads: never nearer than the odd part; zero is best for Sobel"


CLAIM = Claim(
    id="N.mimetic",
    source="Trockman and Kolter 2023 (arXiv:2305.09828), abstract and Section 1",
    verdict=Verdict.NOT_JUDGED,
    kinds=(Kind.IDENTITY,),
    evidence=(
        Evidence("equivariance", Level.TESTED, equivariance),
        Evidence("zero content", Level.TESTED, zero_content),
        Evidence("sharp content", Level.TESTED, sharp_content),
        Evidence("positional rows", Level.ENCLOSED, positional_rows, assumes=ASSUMES),
        Evidence("odd kernels", Level.TESTED, odd_kernels),
    ),
)
