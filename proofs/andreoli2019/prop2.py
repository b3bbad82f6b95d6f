"""Proposition 2: the rule of convolution over a structure, and its two extremes.

Claimed. A convolution is a sum over K fixed matrices, each with a parameter; a basis of all
matrices gives every linear map, and the identity alone gives the 1 × 1 convolutions.
True. Both extremes hold as printed, for all sizes and for any basis, and with a basis every linear
map comes from exactly one parameter.

Printed. "A convolution of basis A, a tensor of shape 〈K, M, N〉, and parameter Θ, a tensor of
shape 〈K, P, Q〉, is a linear transform which maps a bundle of inputs x [...] into a bundle of
outputs y [...] according to the rule y = Σ_k A_kᵀ x Θ_k" (eq. 4). If (A_k) is a basis of the whole
space of matrices, "the resulting class of convolutions is the class of arbitrary linear
transforms"; if K = 1 and A_1 is the identity, "convolutions also known in the image domain as 1×1
convolutions".

Verified. As printed. Eq. 4 is eq. 2, y_nq = Σ_mp x_mp Φ_mnpq, with Φ = A∘Θ. With K = MN and any
basis of the matrices, every Φ occurs, for exactly one Θ. With K = 1 and A_1 = I each entry is
mapped by Θ_1, whatever the others are.

Nothing to repair.

Proof. Σ_mp x_mp Σ_k A_kmn Θ_kpq = Σ_k Σ_m A_kmn Σ_p x_mp Θ_kpq = (Σ_k A_kᵀ x Θ_k)_nq. The first
extreme is Proposition 1 for S = 〈M, N〉, T = 〈P, Q〉; the second is eq. 4 read for A_1 = I. ∎
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict
from convattn_ledger.evidence import certified_identities, proved
from convattn_ledger.structures import dense_basis, mixed_product, shift_basis, sparse_basis
from convattn_ledger.structures import structured_convolution as convolve
from convattn_ledger.structures.inversion import invert_mixed_product

SIZES = ((3, 7, 5, 2, 4), (1, 2, 6, 3, 1), (6, 4, 3, 1, 2))  # K, M, N, P, Q


def general_map(x: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Eq. 2, written out: Σ_mp x_mp Φ_mnpq."""
    batch, (inputs, outputs, in_channels, out_channels) = len(x), phi.shape
    y = np.zeros((batch, outputs, out_channels), np.int64)
    for m in range(inputs):
        for p in range(in_channels):
            y += x[:, m, p, None, None] * phi[None, m, :, p, :]
    return y


def the_rule(run: Run) -> str:
    """Eq. 4 and the library against eq. 2 with Φ = A∘Θ, in 64-bit integers; and linearity."""
    for sizes in SIZES:
        size, inputs, outputs, in_channels, out_channels = sizes
        rng = run.rng(*sizes)
        matrices = rng.integers(-9, 10, (size, inputs, outputs))
        matrices *= rng.random(matrices.shape) < 0.6
        theta = rng.integers(-9, 10, (size, in_channels, out_channels))
        x, other = rng.integers(-9, 10, (2, 3, inputs, in_channels))
        phi = np.asarray(mixed_product(matrices, theta))
        expected = general_map(x, phi)
        rule = sum(a.T @ x @ t for a, t in zip(matrices, theta, strict=True))
        if (rule != expected).any():
            raise EvidenceFailed(f"K, M, N, P, Q = {sizes}: eq. 4 is not eq. 2 with Φ = A∘Θ")
        for basis in (dense_basis(matrices), sparse_basis(matrices)):
            if (np.asarray(convolve(x, basis, theta)) != expected).any():
                raise EvidenceFailed(f"{sizes}: {type(basis).__name__} differs from eq. 2")
        mixed = np.asarray(convolve(3 * x - 2 * other, dense_basis(matrices), theta))
        if (mixed != 3 * expected - 2 * general_map(other, phi)).any():
            raise EvidenceFailed(f"K, M, N, P, Q = {sizes}: not linear")
    return f"{len(SIZES)} sizes: the rule, dense and sparse bases and linearity, equal in integers"


def every_linear_map(run: Run) -> str:
    """K = MN: the Θ of a drawn Φ, through the units and through a drawn basis of fractions."""
    inputs, outputs, in_channels, out_channels = 3, 2, 2, 4
    size = inputs * outputs
    rng = run.rng("every map")
    phi = rng.integers(-9, 10, (inputs, outputs, in_channels, out_channels))
    x = rng.integers(-9, 10, (5, inputs, in_channels))
    units = np.eye(size, dtype=np.int64).reshape(size, inputs, outputs)
    drawn = units.reshape(size, size) + np.triu(rng.integers(-3, 4, (size, size)), 1)
    drawn[0] *= 7  # its dual is no longer of integers
    for family in (units, drawn.reshape(units.shape)):
        theta = np.asarray(invert_mixed_product(family, phi))
        y = sum(a.T.astype(object) @ x @ t for a, t in zip(family, theta, strict=True))
        if (y != general_map(x, phi)).any():
            raise EvidenceFailed("a linear map is not the convolution with the parameter found")
    return "K = MN = 6: a drawn Φ of 48 entries, through the units and through a drawn basis"


def one_by_one(run: Run) -> str:
    """K = 1, A_1 = I against XLA's 1 × 1 convolution, exactly; entries do not mix."""
    rng = run.rng("1x1")
    images = rng.integers(-99, 100, (2, 4, 5, 3))
    theta = rng.integers(-99, 100, (1, 3, 2))
    expected = lax.conv_general_dilated(
        jnp.asarray(images, jnp.float64),
        jnp.asarray(theta[None], jnp.float64),
        (1, 1),
        "VALID",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        precision=lax.Precision.HIGHEST,
    )
    expected = np.asarray(expected).reshape(2, 20, 2)
    unit = np.eye(20, dtype=np.int64)[None]
    x = images.reshape(2, 20, 3)
    changed = x.copy()
    changed[:, 7] += 1
    for basis in (dense_basis(unit), sparse_basis(unit), shift_basis((4, 5), [(0, 0)])):
        result = np.asarray(convolve(x, basis, theta))
        if (result != expected).any():
            raise EvidenceFailed(f"{type(basis).__name__}: not XLA's 1 × 1 convolution")
        moved = (np.asarray(convolve(changed, basis, theta)) != result).any(axis=(0, 2))
        if np.flatnonzero(moved).tolist() != [7]:
            raise EvidenceFailed(f"changing entry 7 changes {np.flatnonzero(moved).tolist()}")
    return (
        "dense, sparse and shift identity on 4 × 5: XLA's 1 × 1 convolution; entries are separate"
    )


CLAIM = Claim(
    id="A19.prop2",
    source="Andreoli 2019, Proposition 2, eqs. 2 to 4",
    verdict=Verdict.HOLDS,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved("andreoli2019/prop2.v", covers="eq. 4 is eq. 2; the extreme K = 1"),
        proved("andreoli2019/prop2_full.v", covers="the extreme K = MN"),
        certified_identities(
            "A19.prop2",
            "linear map, every map, one by one",
            "linear_map",
            "every_map",
            "one_by_one",
        ),
        Evidence("the rule", Level.TESTED, the_rule, quick=False),
        Evidence("every linear map", Level.TESTED, every_linear_map),
        Evidence("1 × 1", Level.TESTED, one_by_one),
    ),
)
