"""Eq. 19: five features give a Gaussian of any centre and covariance.

Claimed. Five features of a relative position are enough for heads that attend by a Gaussian of any
centre and any covariance.
True. They are, exactly: the scores formed from them differ from those of the Gaussian by a constant
alone, which softmax drops.

Printed. A_qk = -½(δ - Δ)ᵀΣ⁻¹(δ - Δ) = -½δᵀΣ⁻¹δ + δᵀΣ⁻¹Δ - ½ΔᵀΣ⁻¹Δ. "The last term can be
discarded because the softmax is shift invariant", and the rest is v·r_δ with v = ½(2(Σ⁻¹Δ)_1,
2(Σ⁻¹Δ)_2, -Σ⁻¹_11, -Σ⁻¹_22, -2Σ⁻¹_12)ᵀ and r_δ = (δ_1, δ_2, δ_1², δ_2², δ_1δ_2)ᵀ.

Verified. The same: v·r_δ = A_qk + ½ΔᵀΣ⁻¹Δ for every symmetric Σ⁻¹, every Δ and δ. If Σ⁻¹ = RᵀR it
is -½|R(δ - Δ)|² up to that constant, and R = √(2α)·I gives eq. 18.

Nothing to repair. Σ⁻¹ must be symmetric, which a covariance's is: otherwise Σ⁻¹_12 + Σ⁻¹_21
stands for 2Σ⁻¹_12, and (Σ⁻¹ + Σ⁻ᵀ)Δ/2 for Σ⁻¹Δ.

Proof. Expand: by symmetry the two mixed terms are equal, and -½δᵀΣ⁻¹δ = -½Σ⁻¹_11δ_1² -
½Σ⁻¹_22δ_2² - Σ⁻¹_12δ_1δ_2. And (δ - Δ)ᵀRᵀR(δ - Δ) = |R(δ - Δ)|². ∎
"""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np

from convattn.encodings import GaussianEncoding, QuadraticEncoding
from convattn.encodings.gaussian import gaussian_features, gaussian_target
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict
from convattn_ledger.evidence import DTYPES, EXP, proved, whole_images
from convattn_ledger.evidence.positional_heads import (
    bare_grid,
    heads_within,
    products_within,
    scores_by_shift,
)

CENTERS = ((0.0, 0.0), (1.5, -2.0), (-3.0, 0.5))
ROOTS = (((1.0, 0.5), (0.0, 0.75)), ((0.25, 0.0), (0.5, 1.0)), ((0.5, -0.25), (0.25, 0.5)))  # R


def five_features_exactly(run: Run) -> str:
    """v·r_δ of the library on dyadic numbers, against the centred form in fractions."""
    shifts = np.array([(row, column) for row in range(-7, 8) for column in range(-7, 8)])
    features = gaussian_features(shifts)
    cases = 10 if run.quick else 40
    for case in range(cases):
        rng = run.rng(case)
        first, second, mixed = (int(n) for n in rng.integers(-40, 41, 3))
        precision = np.array([[first, mixed], [mixed, second]]) / 8
        center = rng.integers(-20, 21, 2)
        target = gaussian_target(jnp.asarray(precision[None]), jnp.asarray(center[None] / 4))
        v = [Fraction(float(entry)) for entry in np.asarray(target)[0]]
        matrix = [[Fraction(float(entry)) for entry in row] for row in precision]
        middle = [Fraction(int(entry), 4) for entry in center]

        def form(x: list[Fraction], matrix: list[list[Fraction]] = matrix) -> Fraction:
            return sum(
                (x[i] * matrix[i][j] * x[j] for i in range(2) for j in range(2)), Fraction(0)
            )

        for shift, feature in zip(shifts.tolist(), features.tolist(), strict=True):
            product = sum((a * b for a, b in zip(v, feature, strict=True)), Fraction(0))
            away = [Fraction(a) - b for a, b in zip(shift, middle, strict=True)]
            if product != -form(away) / 2 + form(middle) / 2:
                raise EvidenceFailed(
                    f"case {case}, δ = {shift}: v·r_δ = {product}, expected "
                    f"{-form(away) / 2 + form(middle) / 2}"
                )
    return f"{cases} heads, {len(shifts)} shifts each, equal"


def root_form_exactly(run: Run) -> str:
    """The library's -½|R(δ - Δ)|² against v·r_δ with Σ⁻¹ = RᵀR, and R = 2I against α = 2."""
    shifts = np.array([(row, column) for row in range(-7, 8) for column in range(-7, 8)])
    centers, roots = np.array(CENTERS), np.array(ROOTS)
    precision = np.einsum("hij,hik->hjk", roots, roots)  # dyadic, exact
    scores = np.asarray(
        GaussianEncoding(jnp.asarray(centers), jnp.asarray(roots)).shift_scores(shifts, 0)
    )
    target = np.asarray(gaussian_target(jnp.asarray(precision), jnp.asarray(centers)))
    constant = np.einsum("hi,hij,hj->h", centers, precision, centers) / 2
    if (scores != target @ gaussian_features(shifts).T - constant[:, None]).any():
        raise EvidenceFailed("-½|R(δ - Δ)|² is not v·r_δ - ½ΔᵀΣ⁻¹Δ")
    isotropic = GaussianEncoding(jnp.asarray(centers), jnp.asarray(3 * [2 * np.eye(2)]))
    quadratic = QuadraticEncoding(jnp.full(3, 2.0), jnp.asarray(centers))
    if (isotropic.shift_scores(shifts, 0) != quadratic.shift_scores(shifts, 0)).any():
        raise EvidenceFailed("R = 2I does not give the quadratic scores of α = 2")
    return f"{len(centers)} heads, {len(shifts)} shifts each, equal"


def gaussian_on_images(run: Run) -> str:
    """The library's weights, and what it attends to, against the centred form in float64.

    R, Δ and δ are dyadic with few bits, so the scores are exact in float32 and above, as v·r_δ
    is. The error is that of softmax, bounded in `convattn_ledger.evidence.softmax_rounding`.
    """
    images = whole_images(run)
    grid = bare_grid(images)
    precision = np.einsum("hij,hik->hjk", np.array(ROOTS), np.array(ROOTS))
    exact = [
        scores_by_shift(grid, lambda s, m=matrix, c=center: -(((s - c) @ m) * (s - c)).sum(-1) / 2)
        for matrix, center in zip(precision, CENTERS, strict=True)
    ]
    shifts = (grid.key_positions[None] - grid.query_positions[:, None, :]).reshape(-1, 2)
    features = gaussian_features(shifts).reshape(*exact[0].shape, 5)
    summary = []
    for dtype in DTYPES:
        centers, roots = jnp.asarray(CENTERS, dtype), jnp.asarray(ROOTS, dtype)
        allowed = heads_within(dtype, GaussianEncoding(centers, roots), exact, images)
        working = jnp.promote_types(dtype, jnp.float32)
        targets = gaussian_target(jnp.asarray(precision, working), centers.astype(working))
        products_within(f"{dtype}, v·r as printed", features, targets, allowed)
        summary.append(f"{dtype} within {max(each.bound.max() for each in allowed):.2g}")
    return f"{len(images)} images, {len(CENTERS)} heads: " + ", ".join(summary)


CLAIM = Claim(
    id="C20.eq19",
    source="Cordonnier, Loukas, Jaggi 2020, eq. 19",
    verdict=Verdict.HOLDS,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "cordonnier2020/eq19.v",
            covers="all but a matrix for Σ⁻¹ that is not symmetric, and that R = √(2α)·I gives eq. "
            "18",
        ),
        Evidence("exact five features", Level.TESTED, five_features_exactly),
        Evidence("exact square root form", Level.TESTED, root_form_exactly),
        Evidence(
            "weights and pixels of images",
            Level.BOUNDED,
            gaussian_on_images,
            assumes=EXP,
            quick=False,
        ),
    ),
)
