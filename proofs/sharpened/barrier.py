"""S.barrier: no fixed number of quadratic heads is exact at every image size.

Claimed. No fixed number of heads with the isotropic quadratic scores of Cordonnier et al., at
finite sharpness, is exactly a convolution at every image size.
True. None is, for any kernel but zero and any value maps: it takes at least about as many heads as
the image has tokens on a side if all are equally sharp, and half as many otherwise.

Printed. Not from a paper: our own result. C20 takes the limit α → ∞ and does not ask whether finite
α could be exact, as S.finite's and S.dp1's heads are. (That n Gaussians of one width, combined,
have at most n - 1 zeros, and of different widths 2n - 2, is known: Hummel and Gidas 1984; Kalai,
Moitra and Valiant 2010, Proposition 7.)

Verified. Let H heads with the scores -α_h|k - q - Δ_h|², 0 < α_h < ∞, any centres Δ_h and any value
maps be exactly the zero-padded convolution with a kernel that is not zero, on images with more
tokens than its reach on every axis, N of them on one, with a ring or without; r is the reach there.

(1) If all α_h are equal, H ≥ N - r.
(2) In any case H ≥ (N - r + 1)/2.

So no fixed number of quadratic heads serves every image size, even for a kernel of one pixel.

Nothing to repair. In one dimension generic centres of one sharpness succeed first at H = N² - N + 1
for K = 1, and at N² for K = 3 with a ring, as tested for N ≤ 4. What is needed there lies between
these numbers and N - r, or (N - r + 1)/2 if sharpness may differ; where is open. Nothing is shown
of the Gaussians of eq. 19 that are not isotropic.

Proof. *The idea:* along an axis the layer is a combination of H Gaussians, and such a combination
has few zeros.

Let M_δ ≠ 0 have a nonzero entry, w_h be that entry of head h's map, and (by a mirror) δ ≥ 0 on the
axis.

Look from a query q at the first token of the axis: q + δ is a token, as |δ| ≤ r < N and likewise on
the other axis, and the keys r + 1, …, N - 1 are out of reach. Along the row of keys that holds q +
δ, with k on the axis, head h gives key k the weight C_h·e^(-α_h(k - Δ'_h)²), C_h > 0: the share of
the other axis and the normaliser do not depend on k. So

    f(k) = Σ_h C_h w_h e^(-α_h(k - Δ'_h)²)

is zero at the N - 1 - r integers from r + 1 to N - 1, and not at the key δ.

(1) f(k) = e^(-αk²) Σ_h b_h x_h^k with x_h = e^(2αΔ'_h) > 0. Take heads of equal x_h together; a
combination of H' distinct exponentials that is zero at H' consecutive integers has coefficients
zero, by Vandermonde's determinant. So N - 1 - r < H' ≤ H.

(2) A combination f ≠ 0 of n Gaussians has at most 2n - 2 real zeros.

*By induction:* let the narrowest have the width s. f is what the heat equation makes in the time
that belongs to s of a combination g of point masses, one for each head of this width, and of
Gaussians that were wider and are now narrower. Heat does not increase the number of sign changes
(Karlin 1968); off the masses g is a combination of the n - n_s other Gaussians, with at most 2(n -
n_s) - 2 of them, and each point mass adds at most two. If all have one width there are at most
n - 1.

*Zeros of even order:* add ±η times one of the Gaussians; each such zero becomes two sign changes
for one of the two signs, so half of them or more do for one sign, and the number of zeros is at
most that of the sign changes then. So N - 1 - r ≤ 2H - 2. ∎
"""

from itertools import pairwise
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
from flint import fmpz_mat, nmod_mat

from convattn.encodings.layer import AttentionLayer
from convattn.encodings.quadratic import QuadraticEncoding
from convattn.fast.application import apply_attention
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import EXP, certified, proved

PRIME = 2**61 - 1
LINE = {"patch_size": (1,), "stride": (1,), "dilation": (1,), "ring": ((0, 0),)}


def weights(bases: list[int], sharpness: int, query: int, keys: range) -> list[list[int]]:
    """Row k, head h: t^(k-q)²·x_h^(k-q) up to a factor of the head, modulo the prime; t = e^-α."""
    shifts = [key - query for key in keys]
    return [
        [pow(sharpness, s * s, PRIME) * pow(x, s, PRIME) % PRIME for x in bases] for s in shifts
    ]


def is_expressed(bases: list[int], sharpness: int, tokens: int, reach: int) -> bool:
    """Whether some maps make the heads a line convolution, with a ring as wide as its reach.

    One equation for each query and token; a head's row is divided by its sum over all keys.
    """
    rows, targets = [], []
    for query in range(tokens):
        keys = range(-reach, tokens + reach)
        table = weights(bases, sharpness, query, keys)
        norms = [pow(sum(row[h] for row in table) % PRIME, -1, PRIME) for h in range(len(bases))]
        for key, row in zip(keys, table, strict=True):
            if key not in range(tokens):
                continue
            rows.append([a * n % PRIME for a, n in zip(row, norms, strict=True)])
            targets.append(int(abs(key - query) <= reach) * (2 + key - query))
    flat = [x for row in rows for x in row]
    both = [x for row, w in zip(rows, targets, strict=True) for x in (*row, w)]
    left = nmod_mat(len(rows), len(bases), flat, PRIME).rank()
    return int(left) == int(nmod_mat(len(rows), len(bases) + 1, both, PRIME).rank())


def draw(run: Run, *salt: int, count: int) -> tuple[list[int], int]:
    """Distinct bases and a sharpness, as numbers modulo the prime."""
    draws = run.rng(*salt).integers(2, 2**60, count + 1).tolist()
    return draws[:-1], draws[-1]


def first_that_is_exact(run: Run) -> str:
    """The first H at which generic centres of one sharpness are exact, far above N - r."""
    summary = []
    for tokens, reach in ((2, 0), (3, 0), (4, 0), (3, 1), (4, 1)):
        first = next(
            (
                count
                for count in range(1, tokens**2 + 1)
                if is_expressed(*draw(run, tokens, reach, count, count=count), tokens, reach)
            ),
            0,
        )
        require(first >= tokens - reach, f"N = {tokens}, r = {reach}: {first} heads are exact")
        expected = tokens**2 - (0 if reach else tokens - 1)
        require(first == expected, f"N = {tokens}, r = {reach}: {first}, not {expected} heads")
        summary.append(f"N = {tokens}, r = {reach}: {first}")
    return "generic centres are exact first at H heads: " + "; ".join(summary)


def combination(bases: list[int], widths: list[int], zeros: list[int]) -> list[int]:
    """c_h, not all zero, so that Σ_h c_h·x_h^k·y_h^(k²) vanishes at these n - 1 places k ≥ 0."""
    rows = [x**k * y ** (k * k) for k in zeros for x, y in zip(bases, widths, strict=True)]
    nullspace, _ = fmpz_mat(len(zeros), len(bases), rows).nullspace()
    return [int(nullspace[row, 0]) for row in range(len(bases))]


def sign_changes(run: Run) -> str:
    """n exponentials of quadratics that vanish at n - 1 places change sign 2n - 2 times at most."""
    most: dict[int, int] = {}
    cases = 100 if run.quick else 1000
    for case in range(cases):
        rng = run.rng("signs", case)
        count = int(rng.integers(2, 6))
        random_pairs = (rng.integers(1, high, count).tolist() for high in (60, 4))
        pairs = sorted({*zip(*random_pairs, strict=True)})
        bases, widths = [x for x, _ in pairs], [y for _, y in pairs]
        zeros = sorted(rng.choice(9, len(pairs) - 1, replace=False).tolist())
        signs = combination(bases, widths, zeros)
        values = [
            sum(c * x**k * y ** (k * k) for c, x, y in zip(signs, bases, widths, strict=True))
            for k in range(14)
        ]
        require(any(signs) and not any(values[k] for k in zeros), f"case {case}: no combination")
        nonzero = [value for value in values if value]
        changes = sum((a > 0) != (b > 0) for a, b in pairwise(nonzero))
        if changes > 2 * len(pairs) - 2 or len(nonzero) < 14 - (2 * len(pairs) - 2):
            raise EvidenceFailed(
                f"{len(pairs)} exponentials of quadratics: {changes} sign changes, "
                f"{14 - len(nonzero)} zeros"
            )
        most[len(pairs)] = max(most.get(len(pairs), 0), changes)
    return "most sign changes seen: " + ", ".join(f"n = {n}: {most[n]}" for n in sorted(most))


def least_error(alpha: float, centres: tuple[float, ...]) -> float:
    """|μ_0|/Σ|μ_k/v_k|."""
    annihilator = np.poly(np.exp(2 * alpha * np.array(centres)))[::-1]
    shares = np.exp(-alpha * np.arange(len(annihilator)) ** 2)
    return float(abs(annihilator[0]) / np.abs(annihilator / shares).sum())


def best_layers(run: Run) -> str:
    """K = 1 on lines: with the best maps, quadratic heads stay as far off as the proof says.

    With μ the coefficients of Π(X - x_h), the H + 1 keys from the query on have
    Σ_k (μ_k/v_k) a_h(k) = 0 for every head; so some entry of the layer's linear map from the first
    query is off by at least |μ_0|/Σ|μ_k/v_k|. The maps are those of least squares; the layer is
    applied to one-hot images in float64, which rounds by far less than this floor.
    """
    summary = []
    for alpha, centres, tokens in (
        (1.0, (0.0,), 4), (0.5, (0.0, 1.0), 6), (0.25, (-1.0, 0.0, 1.0), 8), (1.0, (0.0, 0.5), 5),
    ):  # fmt: skip
        floor = least_error(alpha, centres)
        encoding = QuadraticEncoding(jnp.full((len(centres),), alpha), jnp.array(centres)[:, None])
        images = jnp.eye(tokens)[..., None]
        single = jnp.eye(len(centres))[:, :, None]
        each = jax.jit(apply_attention)
        heads = np.stack(
            [
                np.asarray(each(AttentionLayer(encoding, None, one[:, None], **LINE), images))[
                    ..., 0
                ]
                for one in single
            ],
            axis=-1,
        )
        identity = np.eye(tokens).ravel()
        best, *_ = np.linalg.lstsq(heads.reshape(-1, len(centres)), identity, rcond=None)
        layer = AttentionLayer(encoding, None, jnp.asarray(best)[:, None, None], **LINE)
        error = float(np.abs(np.asarray(each(layer, images))[..., 0] - np.eye(tokens)).max())
        if not error >= floor > tokens * 2.0**-40 * (1 + np.abs(best).sum()):
            raise EvidenceFailed(f"α = {alpha}, {centres}: error {error:.3g}, floor {floor:.3g}")
        summary.append(
            f"{len(centres)} heads, α = {alpha}, N = {tokens}: {error:.2g} ≥ {floor:.2g}"
        )
    return "; ".join(summary)


def vandermonde(run: Run) -> str:
    """Integers: the determinant of x_h^(s+i) is the product that the proof takes it to be."""
    for count in range(1, 7):
        bases, _ = draw(run, count, count=count)
        matrix = [[pow(x, 3 + i, PRIME) for i in range(count)] for x in bases]
        determinant = int(nmod_mat(count, count, [x for row in matrix for x in row], PRIME).det())
        pairs = [bases[b] - bases[a] for b in range(count) for a in range(b)]
        expected = prod(pow(x, 3, PRIME) for x in bases) * prod(pairs) % PRIME
        require(
            determinant == expected and determinant != 0,
            f"{count} bases: {determinant}, expected {expected}",
        )
    return "up to 6 bases"


CLAIM = Claim(
    id="S.barrier",
    source="this project, on the encoding of C20 eq. 9",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LOWER_BOUND,),
    evidence=(
        proved(
            "sharpened/barrier.v",
            covers="(1), on the second axis of an image, for weights share·x_h^k·rest_h, as heads "
            "of one α have; not: that they have this form, (2), different sharpness",
        ),
        certified("S.barrier"),
        Evidence("Vandermonde's determinant", Level.TESTED, vandermonde),
        Evidence("the first number that is exact", Level.TESTED, first_that_is_exact),
        Evidence("sign changes", Level.TESTED, sign_changes),
        Evidence("the best maps", Level.BOUNDED, best_layers, assumes=EXP),
    ),
)
