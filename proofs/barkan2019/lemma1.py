"""Lemma 1: multiplying the tokens by a matrix is a 1 × 1 convolution.

Claimed. Multiplying all tokens by a matrix is equivalent to a 1 × 1 convolution of reshaped arrays.
True. It is, for all matrices, if the tokens are transposed rather than reshaped and the bracket in
the definition of a convolution rounds up.

Printed. Definition 1: c_ij = Σ_k Σ_l x_(i-[n/2]+k, j-[m/2]+l) h_klᵀ, k = 1 … n, l = 1 … m, x zero
outside. Definition 2: x ⋆ H, for H with indices F_1 × … × F_L × n × m × d "consisting of L
filters", has the entries (x ⋆ H_(f_1 … f_L))_ij. Lemma 1: "WX is equivalent to x ⋆ H, where H ∈
R^(d'×1×1×d) and x ∈ R^(1×n×d) are reshaped versions of W and X".

Verified. With [·] the ceiling, for all W and X: (x ⋆ H)_1jf = (WX)_fj, where x_1j is column j of X
and H_f11 is row f of W. With the ceiling, Definition 1 has the taps -⌊(n-1)/2⌋, …, ⌊n/2⌋ for odd
and even n, those of this library's `conv`.

Repair. (1) [n/2] must be ⌈n/2⌉; with the floor, n = m = 1 reads x_(i+1, j+1), and every odd filter
stands one pixel too far. (The printed bracket may be a ceiling whose upper corners were lost in the
extraction of the text.) In the proof of the lemma, [1/2] = 1 is used. (2) x is the transpose of X,
not a reshape: reshaping X ∈ R^(d×n) to 1 × n × d cuts its rows, not its columns, into tokens, and
the lemma fails; and WX is equal to x ⋆ H up to the transpose. (3) Definition 2 has Π F_l filters,
not L of them: L counts the indices. Its right-hand side, and the middle of the lemma's proof,
should have the ∗ of Definition 1, as H_(f_1 … f_L) is one filter; φ = ψ ∗ H_φ of §4 should have ⋆.

Errata.
- Definition 1 | [n/2] | Remark: the ceiling (which the text at hand may have lost)
- Lemma 1 | "reshaped versions of W and X" | x is the transpose of X, and WX that of x ⋆ H
- Definition 2 | "consisting of L filters" | of Π F_l filters

Proof. For n = m = 1 the sum has one term, x_(1-⌈1/2⌉+1, j-⌈1/2⌉+1) = x_1j, so (x ⋆ H)_1jf = x_1j
H_f11ᵀ = Σ_d W_fd X_dj. In general k - ⌈n/2⌉ runs from 1 - ⌈n/2⌉ = -⌊(n-1)/2⌋ to n - ⌈n/2⌉ = ⌊n/2⌋.
For odd n the floor is ⌈n/2⌉ - 1, for even n the two agree. ∎
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from convattn.sac import filter_bank
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import certified_identities, exact_convolution, proved
from convattn_ledger.evidence.printed_filters import printed_convolution

SIZES = [(n, m) for n in range(1, 6) for m in range(1, 6)]


def the_ceiling(run: Run) -> str:
    """Definition 1, with either bracket, against the convolution with centred taps."""
    for n, m in SIZES:
        rng = run.rng(n, m)
        image = rng.integers(1, 9, (6, 7, 2))
        weights = rng.integers(1, 9, (n, m, 2))
        expected = exact_convolution(image[None], weights[..., None])[0, ..., 0]
        for bracket, holds in ((math.ceil, True), (math.floor, n % 2 == 0 and m % 2 == 0)):
            equal = bool((printed_convolution(image, weights, bracket) == expected).all())
            require(equal == holds, f"{n} × {m} with the {bracket.__name__}: equal is {equal}")
    return f"{len(SIZES)} sizes: the ceiling always, the floor for even n and m only"


def the_floor_reads_the_next_pixel(run: Run) -> str:
    """One tap of weight one, n = m = 1: with the floor x_(i+1, j+1), so not even 1 × 1 is WX."""
    image, one = run.rng("image").integers(1, 9, (4, 5, 1)), np.ones((1, 1, 1), np.int64)
    ceiling, floor = (printed_convolution(image, one, each) for each in (math.ceil, math.floor))
    moved = np.pad(image[1:, 1:, 0], ((0, 1), (0, 1)))
    if (ceiling != image[..., 0]).any() or (floor != moved).any():
        raise EvidenceFailed(f"of {image[..., 0].tolist()} the floor makes {floor.tolist()}")
    return "n = m = 1: the ceiling leaves the image, the floor moves it by (1, 1)"


def tokens_are_columns(run: Run) -> str:
    """(x ⋆ H)_1jf = (WX)_fj by the library's filters if x is X transposed, not reshaped."""
    apply = jax.jit(filter_bank, static_argnames=("stride", "dilation"))
    cases = 2 if run.quick else 20
    for case in range(cases):
        rng = run.rng(case)
        weights, tokens = rng.integers(1, 9, (4, 3)), rng.integers(1, 9, (3, 5))
        filters = jnp.asarray(weights.T[None, None, None])
        for image, holds in ((tokens.T, True), (tokens.reshape(5, 3), False)):
            bank = apply(jnp.asarray(image[None, None]), filters, stride=(1, 1), dilation=(1, 1))
            equal = bool((weights @ tokens == np.asarray(bank)[0, 0, :, 0].T).all())
            require(equal == holds, f"case {case}, x = {image.tolist()}: equal is {equal}")
    return f"{cases} cases of W (4 × 3) and X (3 × 5): the transpose, not the reshape"


CLAIM = Claim(
    id="B19.lemma1",
    source="Barkan 2019, §1, Definitions 1 and 2 and Lemma 1",
    verdict=Verdict.AMENDED,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "barkan2019/lemma1.v",
            covers="the lemma with the ceiling, bounds on the taps with it, and that with the "
            "floor a 1 × 1 filter makes zeros of an image of one row; not: the floor for larger "
            "filters or images, this library's conv, (2) and (3)",
        ),
        certified_identities("B19.lemma1", "1 × 1, the ceiling and the floor", "one_by_one"),
        Evidence("the ceiling", Level.TESTED, the_ceiling),
        Evidence("the floor reads the next pixel", Level.TESTED, the_floor_reads_the_next_pixel),
        Evidence("tokens are columns", Level.TESTED, tokens_are_columns),
    ),
)
