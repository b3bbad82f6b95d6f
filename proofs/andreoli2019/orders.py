"""The three orders of contraction, and which to take.

Claimed. A convolution can be computed in three orders, and which one to take depends essentially on
the dimensions.
True. All three agree up to rounding, and by the number of products each is the cheapest for some
dimensions; for sparse matrices the number of nonzero entries counts as well.

Printed. "Figure 1 shows the three alternatives to compute Y [...] as a function of A, X, Θ [...],
according to the convolution formula of [...] Y_b = Σ_k A_kᵀ X_b Θ_k. Which of these alternatives
should be used essentially depends on the respective dimensions M, P, N, Q, B, K. In any case,
operations involving the basis tensor A may require a specific treatment, since it is usually very
sparse, and sometimes possesses a regularity which can be exploited".

Verified. The three orders give the same result: exactly on integers, and in floating point within
the rounding of two nested sums. For dense bases the number of products follows from the six
dimensions alone, and each order is the cheapest for some: with B = 1 and M = N = 64, the first for
Q ≫ P, the second for P ≫ Q, and the third for large B and large K on few entries. For other bases
the number of nonzeros counts in place of KMN; shifts take no product at all. A model of these
counts with fixed costs for each kind of step chooses the order without running any.

Nothing to repair.

Proof. A finite sum of products may be taken in any order: with R_bknp = Σ_m X_bmp A_kmn, R'_bkmq =
Σ_p X_bmp Θ_kpq and Φ_mnpq = Σ_k A_kmn Θ_kpq, each of Σ_kp R Θ, Σ_km R' A and Σ_mp X Φ is Σ_kmp X A
Θ. The products of the two steps are B·KMN·P + B·K·N·P·Q, B·K·M·P·Q + B·KMN·Q and KMN·P·Q +
B·M·N·P·Q; only those in which A is a factor shrink with its nonzeros. ∎
"""

import jax
import jax.numpy as jnp
import numpy as np

from convattn.operators.roundoff import gamma, unit_roundoff
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import certified_identities, proved
from convattn_ledger.structures import (
    cheapest_order,
    contraction_work,
    dense_basis,
    shift_basis,
    sparse_basis,
    structured_convolution,
)

ORDERS = ("basis_first", "parameter_first", "operator")
SIZES = (3, 7, 5, 2, 4)  # K, M, N, P, Q


def eq4(x: np.ndarray, matrices: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Σ_k A_kᵀ x Θ_k."""
    return sum(a.T @ x @ t for a, t in zip(matrices, theta, strict=True))


def exactly(run: Run) -> str:
    """Every order of every type of basis against eq. 4, in 64-bit integers."""
    convolve = jax.jit(structured_convolution, static_argnames="order")
    size, inputs, outputs, in_channels, out_channels = SIZES
    rng = run.rng("exactly")
    matrices = rng.integers(-99, 100, (size, inputs, outputs))
    matrices *= rng.random(matrices.shape) < 0.4
    shifts = (0, 2, -3)
    written = np.array([np.eye(inputs, k=d, dtype=np.int64) for d in shifts])
    theta = rng.integers(-99, 100, (size, in_channels, out_channels))
    x = rng.integers(-99, 100, (2, inputs, in_channels))
    for basis, dense in (
        (dense_basis(matrices), matrices),
        (sparse_basis(matrices), matrices),
        (shift_basis(inputs, shifts), written),
    ):
        for order in ORDERS:
            if (np.asarray(convolve(x, basis, theta, order=order)) != eq4(x, dense, theta)).any():
                raise EvidenceFailed(f"{type(basis).__name__}, {order}: not eq. 4")
    return "three orders of dense, sparse and shift bases: equal in integers"


def in_four_dtypes(run: Run) -> str:
    """Every order in floating point, against the exact result.

    Two nested sums of n_1 and n_2 products, in any order, and a cast: |ŷ - y| is at most
    ((1 + γ_n1)(1 + γ_n2)(1 + u) - 1)·Σ|A||x||Θ|, with γ in the dtype of the sums (at least float32)
    and u that of the result. The operands are integers that the dtype holds, so nothing underflows,
    and the result is an integer, so that the error is known exactly. All comparisons are in
    integers but for the factor, which is rounded up by 2⁻²⁰.
    """
    convolve = jax.jit(structured_convolution, static_argnames="order")
    size, inputs, outputs, in_channels, out_channels = SIZES
    lengths = {
        "basis_first": (inputs, size * in_channels),
        "parameter_first": (in_channels, size * inputs),
        "operator": (size, inputs * in_channels),
    }
    largest = {"float64": 2**30, "float32": 2**20, "bfloat16": 2**8, "float16": 2**4}
    inexact, summary = 0, []
    for dtype, bound in largest.items():
        rng = run.rng(dtype)
        matrices = rng.integers(-bound, bound + 1, (size, inputs, outputs))
        theta = rng.integers(-bound, bound + 1, (size, in_channels, out_channels))
        x = rng.integers(-bound, bound + 1, (2, inputs, in_channels))
        if dtype == "float16":  # at most 42·16·16·4 < 65504
            theta = theta % 5
        operands = [array.astype(object) for array in (x, matrices, theta)]
        exact = eq4(*operands)
        majorant = eq4(*(abs(array) for array in operands))
        working = unit_roundoff("float64" if dtype == "float64" else "float32")
        worst = 0.0
        for order, (first, second) in lengths.items():
            factor = (1 + gamma(first, working)) * (1 + gamma(second, working)) - 1
            factor = (factor + unit_roundoff(dtype) * (1 + factor)) * (1 + 2.0**-20)
            for make in (dense_basis, sparse_basis) if dtype == "float32" else (dense_basis,):
                basis = make(jnp.asarray(matrices, dtype))
                result = convolve(
                    jnp.asarray(x, dtype), basis, jnp.asarray(theta, dtype), order=order
                )
                computed = np.asarray(result).astype(np.float64)
                for index in np.ndindex(exact.shape):
                    error = abs(int(computed[index]) - exact[index])
                    if not error <= factor * majorant[index]:
                        raise EvidenceFailed(
                            f"{dtype}, {order}, {make.__name__}: {error} off, bound "
                            f"{factor * majorant[index]:.3g}"
                        )
                    inexact += error > 0
                    worst = max(worst, error / (factor * majorant[index]))
        summary.append(f"{dtype} {worst:.2f}")
    require(inexact, "nothing was rounded, so nothing was tested")
    return "largest error over its bound: " + ", ".join(summary)


def products(run: Run) -> str:
    """The model's products against XLA's own count, and nonzeros against the matrices."""
    size, inputs, outputs, in_channels, out_channels = SIZES
    rng = run.rng("products")
    matrices = rng.integers(-9, 10, (size, inputs, outputs))
    matrices *= rng.random(matrices.shape) < 0.4
    basis = dense_basis(matrices.astype(np.float32))
    x = jnp.ones((6, inputs, in_channels), jnp.float32)
    theta = jnp.ones((size, in_channels, out_channels), jnp.float32)
    sizes = (6, inputs, outputs, in_channels, out_channels)
    dense = contraction_work(*sizes, basis)
    for order in ORDERS:
        convolve = jax.jit(structured_convolution, static_argnames="order")
        counted = convolve.lower(x, basis, theta, order=order).cost_analysis()["flops"]
        if counted != 2 * dense[order].products:
            raise EvidenceFailed(f"{order}: {dense[order].products} products, XLA: {counted} flops")
    nonzeros = int(np.count_nonzero(matrices))
    sparse = contraction_work(*sizes, sparse_basis(matrices.astype(np.float32)))
    for order, channels in zip(ORDERS, (6 * in_channels, 6 * out_channels, 8), strict=True):
        full = size * inputs * outputs * channels
        if sparse[order].entries != nonzeros * channels:
            raise EvidenceFailed(f"{order}: {sparse[order].entries} entries of {nonzeros}")
        if sparse[order].products != dense[order].products - full:
            raise EvidenceFailed(f"{order}: {sparse[order].products} products beside the entries")
    shifts = contraction_work(6, 7, 7, 2, 4, shift_basis(7, [0, 1, -2]))
    if any(shifts[order].entries for order in ORDERS[:2]):
        raise EvidenceFailed("shifts are counted as entries, but are slices")
    return f"products of three orders as XLA counts them; {nonzeros} of 105 entries if sparse"


def choices(run: Run) -> str:
    """The model chooses each order where dimensions leave no doubt, and sparsity changes it."""
    square = dense_basis(np.ones((4, 64, 64), np.float32))
    small = dense_basis(np.ones((50, 3, 3), np.float32))
    many_shifts = shift_basis((16, 16), [(a, b) for a in range(-2, 3) for b in range(-2, 3)])
    cases = (
        ((1, 64, 64, 2, 128, square), "basis_first"),
        ((1, 64, 64, 128, 2, square), "parameter_first"),
        ((4096, 3, 3, 8, 8, small), "operator"),
        ((8, 256, 256, 3, 64, many_shifts), "basis_first"),
        ((8, 256, 256, 64, 3, many_shifts), "parameter_first"),
    )
    for sizes, order in cases:
        chosen = cheapest_order(*sizes)
        if chosen != order:
            raise EvidenceFailed(f"B, M, N, P, Q = {sizes[:5]}: {chosen} chosen, not {order}")
    return f"{len(cases)} clear cases, all three orders among them, with shifts too"


CLAIM = Claim(
    id="A19.orders",
    source="Andreoli 2019, Section 1.4, Figure 1",
    verdict=Verdict.HOLDS,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "andreoli2019/orders.v",
            covers="the three orders give the same result; not: their costs, nor rounding",
        ),
        certified_identities("A19.orders", "orders", "orders"),
        Evidence("three orders, exactly", Level.TESTED, exactly, quick=False),
        Evidence(
            "three orders in four dtypes",
            Level.BOUNDED,
            in_four_dtypes,
            assumes="matrix products are sums of products in the pinned precision",
            quick=False,
        ),
        Evidence("products as XLA counts them", Level.TESTED, products),
        Evidence("clear choices", Level.TESTED, choices),
    ),
)
