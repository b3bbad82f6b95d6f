"""Eq. 18: softmax of the quadratic scores is an isotropic Gaussian over the pixels.

Claimed. The attention weights of the quadratic encoding are a Gaussian over the pixels, cut off at
the border of the image.
True. They are, at every sharpness and for every centre, also one between pixels or outside the
image; what is left inside the image is scaled to sum to one.

Printed. softmax(A_q)_k = e^(-α|(k-q)-Δ|²) / Σ_(k' ∈ [W]×[H]) e^(-α|(k'-q)-Δ|²): "isotropic
bivariate Gaussian distributions with bounded support".

Verified. The same, for the scores v·r_δ of eq. 9, every α, every Δ, also off the pixels, and
every rectangle of keys. It is the density of N(q + Δ, I/(2α)), restricted to the keys and
normalised there.

Nothing to repair.

Proof. v·r_δ = -α(|δ|² - 2⟨Δ, δ⟩) = -α|δ - Δ|² + α|Δ|². The last term is the same for all keys, so
it cancels in the quotient. The density of N(μ, I/(2α)) at x is (α/π)e^(-α|x-μ|²). ∎
"""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np

from convattn.encodings import QuadraticEncoding
from convattn.encodings.quadratic import printed_features, printed_target
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict
from convattn_ledger.evidence import DTYPES, EXP, proved, whole_images
from convattn_ledger.evidence.exact_attention import BASE, exact_softmax
from convattn_ledger.evidence.positional_heads import (
    bare_grid,
    heads_within,
    products_within,
    scores_by_shift,
)

HEADS = ((0.5, (0.0, 0.0)), (0.25, (1.5, -2.25)), (2.0, (-0.5, 4.0)))  # α, Δ


def gaussian_exactly(run: Run) -> str:
    """Eq. 9's products against eq. 18 with the base 3/2 for e, in fractions.

    α = 4n and Δ in halves make every exponent an integer.
    """
    cases = 4 if run.quick else 12
    for case in range(cases):
        rng = run.rng(case)
        alpha, twice = 4 * int(rng.integers(1, 3)), rng.integers(-5, 6, 2)
        height, width = (int(n) for n in rng.integers(2, 5, 2))
        positions = np.array([(row, column) for row in range(height) for column in range(width)])
        shifts = (positions[None] - positions[:, None]).reshape(-1, 2)
        target = np.asarray(printed_target(jnp.array([alpha]), jnp.asarray(twice[None] / 2)))[0]
        products = printed_features(shifts) @ target
        if (products != np.rint(products)).any():
            raise EvidenceFailed(f"case {case}: v·r_δ is no integer, as {products}")
        softmax = exact_softmax(products.astype(int).reshape(len(positions), -1))
        for q, query in enumerate(positions.tolist()):
            bells = []
            for key in positions.tolist():
                away = [
                    Fraction(k - a) - Fraction(int(c), 2)
                    for k, a, c in zip(key, query, twice, strict=True)
                ]
                bells.append(BASE ** int(-alpha * (away[0] ** 2 + away[1] ** 2)))
            if [bell / sum(bells) for bell in bells] != softmax[q].tolist():
                raise EvidenceFailed(f"case {case}: query {query} with α = {alpha}, 2Δ = {twice}")
    return f"{cases} heads on grids up to 4 × 4, every query and key equal"


def gaussian_on_images(run: Run) -> str:
    """The library's weights, and what it attends to, against eq. 18 in float64.

    α, Δ and δ are dyadic with few bits, so that α|δ - Δ|² is exact in float32 and above. So are
    v·r_δ and the sums in it. The error is that of softmax, bounded in
    `convattn_ledger.evidence.softmax_rounding`.
    """
    images = whole_images(run)
    grid = bare_grid(images)
    exact = [
        scores_by_shift(grid, lambda s, a=alpha, c=center: -a * ((s - c) ** 2).sum(-1))
        for alpha, center in HEADS
    ]
    shifts = (grid.key_positions[None] - grid.query_positions[:, None, :]).reshape(-1, 2)
    features = printed_features(shifts).reshape(*exact[0].shape, 3)
    summary = []
    for dtype in DTYPES:
        alphas = jnp.asarray([alpha for alpha, _ in HEADS], dtype)
        centers = jnp.asarray([center for _, center in HEADS], dtype)
        allowed = heads_within(dtype, QuadraticEncoding(alphas, centers), exact, images)
        working = jnp.promote_types(dtype, jnp.float32)
        targets = printed_target(alphas.astype(working), centers.astype(working))
        products_within(f"{dtype}, eq. 9 as printed", features, targets, allowed)
        summary.append(f"{dtype} within {max(each.bound.max() for each in allowed):.2g}")
    return f"{len(images)} images, {len(HEADS)} heads: " + ", ".join(summary)


CLAIM = Claim(
    id="C20.eq18",
    source="Cordonnier, Loukas, Jaggi 2020, eq. 18",
    verdict=Verdict.HOLDS,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "cordonnier2020/eq18.v",
            covers="all but that (α/π)e^(-α|x - μ|²) is the density of N(μ, I/2α)",
        ),
        Evidence("exact weights", Level.TESTED, gaussian_exactly),
        Evidence(
            "weights and pixels of images",
            Level.BOUNDED,
            gaussian_on_images,
            assumes=EXP,
            quick=False,
        ),
    ),
)
