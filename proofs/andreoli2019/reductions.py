"""Parameters with fewer numbers: grouped, depth-wise separable, controlled separable.

Claimed. Grouped, depth-wise separable and controlled separable convolutions have fewer parameters,
the last only if it has fewer than K terms and K is far below the number of channel pairs.
True. The numbers are right, the condition is not: with K = 9 and nine channel pairs four terms save
parameters, and five, still fewer than K, do not; the exact condition is given.

Printed. Grouped convolutions have KPQ/ν numbers instead of KPQ; depth-wise separable ones,
Θ_kpq = Θ⁽¹⁾_kp Θ⁽²⁾_pq, have KP + PQ; controlled separability, Θ = Θ^(basis)∘Θ^(channel) (eq. 5),
has H(K + PQ), "which is useful only if H < K ≪ PQ". It can be combined with the other forms by
applying them to Θ^(channel).

Verified. The three forms and their numbers are as printed, and so is the combination. Controlled
separability has fewer numbers than KPQ iff H < KPQ/(K + PQ). That implies H < K, and H < PQ.

Repair. "Only if H < K ≪ PQ" is wrong in both directions. With K = PQ = 9, where K ≪ PQ is false,
H = 4 saves (72 < 81); and H < K is not enough, as H = 5 does not save (90 > 81). Every H < K saves
iff PQ > K(K - 1), which is what ≪ would have to mean. Depth-wise separability saves iff
(K - 1)(Q - 1) > 1, so not for K = 1, for Q = 1 or for K = Q = 2. The numbers are not all free: A
and A⁻¹ between the H factors cancel, and so does a scale of each channel between Θ⁽¹⁾ and Θ⁽²⁾.
Near a generic parameter the controlled forms make up a set of dimension H(K + PQ - H), below KPQ
for every H < min(K, PQ), and the depth-wise separable ones one of dimension KP + PQ - P.

Errata.
- Section 1.3 | useful only if H < K ≪ PQ | saves iff H < KPQ/(K + PQ)

Proof. *The idea:* the counts are those of the arrays, and the dimensions those of matrices of
bounded rank.

H(K + PQ) < KPQ divided by K + PQ is the condition, and KPQ/(K + PQ) = K/(1 + K/PQ) < K. H = K - 1
saves iff (K - 1)(K + PQ) < KPQ iff K(K - 1) < PQ, and fewer terms then save too.

KP + PQ < KPQ iff K + Q < KQ iff (K - 1)(Q - 1) > 1.

Flattened to K × PQ, the controlled Θ are the matrices of rank at most H, a variety of dimension
H(K + PQ - H), and KPQ - H(K + PQ - H) = (K - H)(PQ - H). For each p the depth-wise Θ are the
matrices of rank one, of dimension K + Q - 1. ∎
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from convattn.bounds.flattened_kernel import exact_rank
from convattn_ledger import (
    Claim,
    Evidence,
    EvidenceFailed,
    Kind,
    Level,
    Run,
    Verdict,
    require,
    structures,
)
from convattn_ledger.evidence import certified_identities, proved
from convattn_ledger.structures import (
    grouped_convolution,
    separable_convolution,
    shift_basis,
)


def eq4(x: np.ndarray, matrices: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Σ_k A_kᵀ x Θ_k."""
    return sum(a.T @ x @ t for a, t in zip(matrices, theta, strict=True))


def forms(run: Run) -> str:
    """Θ entry by entry, and applied without Θ, against eq. 4 in 64-bit integers."""
    applied_by = {
        "grouped": jax.jit(structures.grouped_convolution),
        "depth-wise": jax.jit(structures.separable_convolution),
        "controlled": jax.jit(structures.controlled_convolution),
    }
    built_by = {
        "grouped": jax.jit(structures.grouped_theta),
        "depth-wise": jax.jit(structures.separable_theta),
        "controlled": jax.jit(structures.controlled_theta),
    }
    rng = run.rng("forms")
    size, controls, inputs, outputs = 3, 2, 5, 4
    matrices = rng.integers(-9, 10, (size, inputs, outputs))
    basis = structures.dense_basis(matrices)
    for rows, columns in ((1, 3), (3, 1)):  # of a block: more columns than rows, and fewer
        groups, (p, q) = 2, (2 * rows, 2 * columns)
        x = rng.integers(-9, 10, (2, inputs, p))
        blocks = rng.integers(-9, 10, (size, groups, rows, columns))
        first, second = rng.integers(-9, 10, (size, p)), rng.integers(-9, 10, (p, q))
        mix = rng.integers(-9, 10, (controls, size))
        channel = rng.integers(-9, 10, (controls, p, q))
        grouped = np.zeros((size, p, q), np.int64)
        for g in range(groups):
            grouped[:, g * rows : (g + 1) * rows, g * columns : (g + 1) * columns] = blocks[:, g]
        separable = np.array([np.diag(row) @ second for row in first])
        controlled = sum(np.multiply.outer(mix[h], channel[h]) for h in range(controls))
        for name, theta, own in (
            ("grouped", grouped, (blocks,)),
            ("depth-wise", separable, (first, second)),
            ("controlled", controlled, (mix, channel)),
        ):
            built, applied = built_by[name](*own), applied_by[name](x, basis, *own)
            if (np.asarray(built) != theta).any():
                raise EvidenceFailed(f"{name}, P = {p}, Q = {q}: Θ is not as printed")
            if (np.asarray(applied) != eq4(x, matrices, theta)).any():
                raise EvidenceFailed(f"{name}, P = {p}, Q = {q}: applied, it is not eq. 4")
        inner = np.asarray(built_by["grouped"](blocks[:controls]))
        combined = sum(np.multiply.outer(mix[h], inner[h]) for h in range(controls))
        both = applied_by["controlled"](x, basis, mix, inner)
        if (np.asarray(both) != eq4(x, matrices, combined)).any():
            raise EvidenceFailed("controlled and grouped together are not eq. 4")
    return "three forms, and controlled with grouped, for two shapes: equal in integers"


def as_xla_has_them(run: Run) -> str:
    """Grouped and depth-wise convolution of a sequence against XLA's feature groups, exactly."""
    rng = run.rng("xla")
    x = rng.integers(-9, 10, (2, 7, 6))
    basis = shift_basis(7, [1, 0, -1])  # δ = -1, 0, 1

    def convolved(images: np.ndarray, kernel: np.ndarray, groups: int) -> np.ndarray:
        result = lax.conv_general_dilated(
            jnp.asarray(images, jnp.float64),
            jnp.asarray(kernel, jnp.float64),
            (1,),
            "SAME",
            dimension_numbers=("NWC", "WIO", "NWC"),
            feature_group_count=groups,
            precision=lax.Precision.HIGHEST,
        )
        return np.asarray(result)

    blocks = rng.integers(-9, 10, (3, 2, 3, 4))
    kernel = np.concatenate([blocks[:, 0], blocks[:, 1]], axis=-1)
    grouped = jax.jit(grouped_convolution)(x, basis, blocks)
    if (np.asarray(grouped) != convolved(x, kernel, 2)).any():
        raise EvidenceFailed("two groups are not XLA's two feature groups")
    first, second = rng.integers(-9, 10, (3, 6)), rng.integers(-9, 10, (6, 5))
    expected = convolved(x, first[:, None, :], 6) @ second
    separable = jax.jit(separable_convolution)(x, basis, first, second)
    if (np.asarray(separable) != expected).any():
        raise EvidenceFailed("depth-wise is not XLA's, followed by a 1 × 1 convolution")
    return "7 nodes, 6 channels: two feature groups; six feature groups and a 1 × 1 convolution"


def parameter_count(k: int, p: int, q: int, *, groups=None, separable=False, controls=None) -> int:
    """How many numbers a form of Θ has, as printed; without a form all KPQ."""
    if groups is not None:
        return k * p * q // groups
    if controls is not None:
        return controls * (k + p * q)
    return k * p + p * q if separable else k * p * q


def saves(k: int, p: int, q: int, **form) -> bool:
    """Whether a form has fewer numbers than KPQ."""
    return parameter_count(k, p, q, **form) < parameter_count(k, p, q)


def counts(run: Run) -> str:
    """The printed counts and when they save, for all K, P, Q ≤ 9 and every ν and H."""
    sizes = range(1, 10)
    cases = 0
    for k in sizes:
        for p in sizes:
            for q in sizes:
                full = np.zeros((k, p, q)).size
                separable = np.zeros((k, p)).size + np.zeros((p, q)).size
                counts = parameter_count(k, p, q), parameter_count(k, p, q, separable=True)
                require(counts == (full, separable), f"K, P, Q = {k, p, q}: counts {counts}")
                if saves(k, p, q, separable=True) != ((k - 1) * (q - 1) > 1):
                    raise EvidenceFailed(f"K, P, Q = {k, p, q}: depth-wise")
                for groups in (n for n in sizes if p % n == 0 == q % n):
                    blocks = k * groups * (p // groups) * (q // groups)
                    if parameter_count(k, p, q, groups=groups) != blocks:
                        raise EvidenceFailed(f"K, P, Q, ν = {k, p, q, groups}: not {blocks}")
                savings = []
                for h in range(1, k + 2):
                    if parameter_count(k, p, q, controls=h) != h * k + h * p * q:
                        raise EvidenceFailed(f"K, P, Q, H = {k, p, q, h}: the count")
                    savings.append(saves(k, p, q, controls=h))
                    if savings[-1] != (h * (k + p * q) < k * p * q) or (savings[-1] and h >= k):
                        raise EvidenceFailed(f"K, P, Q, H = {k, p, q, h}: saving {savings[-1]}")
                    cases += 1
                if k > 1 and all(savings[: k - 1]) != (p * q > k * (k - 1)):
                    raise EvidenceFailed(f"K, P, Q = {k, p, q}: every H < K saves or not")
    saved = [saves(9, 3, 3, controls=h) for h in (4, 5)]
    require(saved == [True, False], f"K = PQ = 9: H = 4 and 5 save: {saved}")
    return f"{cases} sizes; K = PQ = 9: H = 4 saves (72 < 81), H = 5 does not (90 > 81)"


def free_numbers(run: Run) -> str:
    """The exact rank of Θ's derivative at a drawn parameter: how many numbers are free."""
    summary = []
    for k, p, q, h in ((4, 2, 3, 2), (3, 2, 2, 3), (5, 3, 2, 1)):
        rng = run.rng(k, p, q, h)
        mix, channel = rng.integers(-9, 10, (h, k)), rng.integers(-9, 10, (h, p * q))
        by_mix = np.einsum("kl,hr->hlkr", np.eye(k, dtype=np.int64), channel)
        by_channel = np.einsum("hk,rs->hskr", mix, np.eye(p * q, dtype=np.int64))
        derivative = np.concatenate(
            [array.reshape(-1, k * p * q) for array in (by_mix, by_channel)]
        )
        free = exact_rank(derivative)
        if len(derivative) != h * (k + p * q) or free != h * (k + p * q - h):
            raise EvidenceFailed(f"K, PQ, H = {k, p * q, h}: {free} of {len(derivative)} are free")
        first, second = rng.integers(1, 10, (k, p)), rng.integers(1, 10, (p, q))
        one, two, three = (np.eye(n, dtype=np.int64) for n in (k, p, q))
        by_first = np.einsum("kl,ps,pq->lskpq", one, two, second)
        by_second = np.einsum("kp,ps,qr->srkpq", first, two, three)
        derivative = np.concatenate(
            [array.reshape(-1, k * p * q) for array in (by_first, by_second)]
        )
        depth = exact_rank(derivative)
        if len(derivative) != k * p + p * q or depth != k * p + p * q - p:
            raise EvidenceFailed(f"K, P, Q = {k, p, q}: {depth} of {len(derivative)} are free")
        summary.append(f"K = {k}, P = {p}, Q = {q}: {free} of {h * (k + p * q)} (H = {h})")
    return "controlled, free numbers at " + "; ".join(summary)


CLAIM = Claim(
    id="A19.reductions",
    source="Andreoli 2019, Section 1.3, eq. 5",
    verdict=Verdict.AMENDED,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "andreoli2019/reductions.v",
            covers="what the convolutions of the three forms are, with groups of one size, that "
            "the controlled separable Θ are those of rank at most H, and that a grouped "
            "Θ^(channel) gives a grouped Θ; not: a depth-wise separable Θ^(channel)",
        ),
        proved(
            "andreoli2019/reductions_counts.v",
            covers="the numbers of the three forms, and when depth-wise separable ones, for P > 0, "
            "and controlled separable ones save; not: combined forms, how many of the numbers are "
            "free",
        ),
        certified_identities(
            "A19.reductions",
            "grouped, depth-wise, controlled",
            "grouped",
            "depthwise",
            "controlled",
        ),
        Evidence("the three forms", Level.TESTED, forms, quick=False),
        Evidence("as XLA has them", Level.TESTED, as_xla_has_them),
        Evidence("counts and savings", Level.TESTED, counts),
        Evidence("free numbers", Level.TESTED, free_numbers),
    ),
)
