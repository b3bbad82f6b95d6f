"""N.gpsa: gated positional self-attention started as a convolution.

Claimed. ConViT's gated positional attention can express any convolution with one head for each
pixel of the kernel, and is initialized to start as one.
True. At odd sizes it can in the limit of sharp attention, with edges repeated, value maps free and
the gate set to position alone; at the start, content has 27 % of the weight.

Printed. d'Ascoli et al. 2021, Section 2: a positional layer "with N_h heads and learnable relative
positional encodings (Eq. 4) of dimension D_pos ≥ 3 can express any convolutional layer of filter
size √N_h × √N_h, by setting" v_h = -α_h(1, -2Δ_1, -2Δ_2), r_δ = (‖δ‖², δ_1, δ_2), W_qry = W_key :=
0, W_val := I (eq. 5). "Thus, the PSA layer can achieve a strictly convolutional attention map by
setting the centers of attention to each of the possible positional offsets of a √N_h × √N_h
convolutional kernel, and sending the locality strengths α_h to some large value." Section 3: the
layer is (1 - σ(λ_h))·softmax(content) + σ(λ_h)·softmax(position) (eq. 7), "we initialize λ_h = 1
for all layers and all heads", and "To mimic 2 × 2, 3 × 3 and 4 × 4 convolutional filters, we
consider three different ConViT models with 4, 9 and 16 attention heads". The released code has k =
⌊√N_h⌋, the centres h - (k-1)/2 on each axis, α = 1 by default, and leaves N_h - k² heads random.

Verified. Let N be the number of keys, g = σ(λ).
(1) For odd k and finite α no head is one-hot: at every query, border included, its distance (total
variation) to the row of the key nearest to q + Δ lies strictly between 0 and 1 - θ(α)^(-2), θ(α) =
Σ_n e^(-αn²) (S.saturation), and in the middle of a large grid it comes near that: the target has a
weight of about 0.16 at α = 1/2, 0.32 at α = 1 and 0.62 at α = 2. For α → ∞, with W_val free, the
bare layer tends to the k × k convolution with the edge repeated (S.boundary), not to the
zero-padded one.
(2) With the gate the distance is 1 - g·p - (1-g)·c, p and c the positional and the content weight
of the target, so at least (1-g)(1-c) however large α is. At λ = 1 the content's share 1 - g is 1/(1
+ e) = 0.2689…; if W_qry or W_key is zero, as in eq. 5, c = 1/N. Then one head more makes up for it:
N_h heads with the maps W_h/g and a uniform one with -(1-g)/g·ΣW_h tend to the convolution for α →
∞, at every λ.
(3) For even k these centres are half integers. As α → ∞ head h tends to the mean of the 2 × 2 keys
around q + Δ_h, and the k² heads together express, at interior queries, those kernels of (k+1) ×
(k+1) taps whose every row and every column has the alternating sum 0. Of the k × k kernels on any k
× k of these taps that leaves a space of dimension (k-1)² for each pair of channels, of k²: for k =
2 the multiples of the box alone.
(4) With W_val = I, head h reads the h-th slice of D_emb/N_h channels alone: tap δ_h is then zero on
all other channels, and a layer expresses a space of kernels of dimension D_emb·D_out, of
N_h·D_emb·D_out.

Repair. "Strictly convolutional" in the limit α → ∞ alone, for integer centres (for even k such as
0, …, k - 1), with λ → ∞ or a uniform head that takes the content's share back, a free W_val (with
the head dimension of S.headdim), and the edge repeated unless a ring of zero tokens is added.

Errata.
- ConViT, Section 2, eq. 5 | "can express any convolutional layer", by W_val := I | in the limit α →
∞, with a free W_val: with W_val = I a tap reads one slice of the channels | S.saturation, S.headdim
- ConViT, Section 3, and the code's centres | "To mimic 2 × 2 […] and 4 × 4 convolutional filters"
with 4 and 16 heads | centres at integers: at half integers a head tends to the mean of four keys
- ConViT, Section 3 | "we initialize λ_h = 1", to start as a convolution | a head then has at most
0.732 of its weight from its position | S.finite

Proof. *The idea:* a sharp head tends to the mean of the keys nearest to its centre, and the gate
adds a fixed share of another row.

(1) is S.saturation: v·r_δ = -α|δ - Δ|² + α|Δ|², whose constant softmax drops. The limit is
S.boundary.

(2) The distance of a row to a one-hot row is one minus the weight of the target, and that is linear
in the row; p ≤ 1. With c = 1/N everywhere and p → 1 the heads tend to g·S_h + (1-g)·J, S_h the row
of the nearest key and J the uniform one; W_h/g leaves S_h X W_h + (1-g)/g·J X W_h.

(3) On each axis the two integers next to a half integer are equally near, and nearer than any
other; so the softmax tends to equal weights on their product. On one axis the rows (e_i +
e_(i+1))/2, i = 1, …, k, are independent and orthogonal to the alternating vector of R^(k+1), so
they span its complement U, and k² heads span U ⊗ U. Vectors of U that vanish at one end are spanned
by k - 1 of these rows, and (U ⊗ U) ∩ (V ⊗ V') = (U ∩ V) ⊗ (U ∩ V') for subspaces.

(4) XW_val^h = X[:, slice h], so the map of head h is W_out[slice h] in its rows of that slice and 0
elsewhere; distinct heads have distinct taps, so no two entries of W_out reach the same entry of the
kernel. ∎
"""

from fractions import Fraction
from itertools import product

import jax.numpy as jnp
import numpy as np
from flint import arb, ctx, fmpq_mat

from convattn.encodings.quadratic import printed_features, printed_target
from convattn.operators.shifts import TokenGrid
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.bounds.saturation import quadratic_total_variation_bound, upper
from convattn_ledger.evidence.enclosures import ASSUMES, distance_to_one_hot
from convattn_ledger.evidence.unsaturated_layers import near_convolution

KEYS = (4, 5)


def released_centers(heads: int) -> list[tuple[Fraction, Fraction]]:
    """h - (k-1)/2 on both axes, k = ⌊√N_h⌋."""
    size = int(heads**0.5)
    axis = [Fraction(2 * h - size + 1, 2) for h in range(size)]
    return list(product(axis, axis))


def positional_scores(alpha: float, centers, keys: tuple[int, int]) -> np.ndarray:
    """v_h·r_δ of eq. 5, exact for dyadic α: heads, queries, keys."""
    grid = TokenGrid(keys, ((0, 0), (0, 0)))
    shifts = grid.key_positions[None] - grid.query_positions[:, None]
    target = printed_target(jnp.full(len(centers), alpha), jnp.array(centers, float))
    features = printed_features(shifts.reshape(-1, 2))
    scores = np.asarray(target, np.float64) @ features.T
    return scores.reshape(len(centers), *shifts.shape[:2])


def nearest_key(query, center, keys: tuple[int, int]) -> int:
    """The clipped target, row-major; for integer centres."""
    nearest = [min(max(q + int(c), 0), n - 1) for q, c, n in zip(query, center, keys, strict=True)]
    return int(np.ravel_multi_index(tuple(nearest), keys))


def positional_rows(run: Run) -> str:
    """Nine heads as printed: strictly between one-hot and S.saturation's bound at every query."""
    centers = released_centers(9)[:: 2 if run.quick else 1]
    summary = []
    for alpha in (0.5, 1.0, 2.0, 46.0):
        scores = positional_scores(alpha, centers, KEYS)
        bound, worst = quadratic_total_variation_bound(alpha), 0.0
        for head, center in enumerate(centers):
            for number, query in enumerate(np.ndindex(*KEYS)):
                row = scores[head, number]
                distance = distance_to_one_hot(row, nearest_key(query, center, KEYS))
                require(
                    bool(distance > 0 and distance < bound),
                    f"α = {alpha}, Δ = {center}, query {query}: {distance}, bound {bound}",
                )
                worst = max(worst, upper(distance))
        summary.append(f"α = {alpha:g}: {worst:.3g} < {upper(bound):.3g}")
    return f"{KEYS} keys, {len(centers)} heads, every query: " + ", ".join(summary)


def softmax_in_balls(scores: np.ndarray) -> list[arb]:
    """One row; the largest score is taken off first."""
    powers = [(arb(s) - arb(float(scores.max()))).exp() for s in scores.tolist()]
    total = sum(powers, arb())
    return [power / total for power in powers]


def gate(parameter: float) -> arb:
    """The share of position, σ(λ)."""
    return 1 / (1 + (-arb(parameter)).exp())


def gated_rows(run: Run) -> str:
    """Rows of eq. 7, summed entry by entry, with uniform and with random content."""
    rng = run.rng("content")
    count, least = KEYS[0] * KEYS[1], []
    uniform, random = np.zeros(count), rng.integers(-3, 4, count).astype(float)
    with ctx.workprec(256):
        for parameter, alpha, content in product((1.0, 4.0), (1.0, 1024.0), (uniform, random)):
            share, other = gate(parameter), softmax_in_balls(content)
            for center in released_centers(9)[::4]:
                scores = positional_scores(alpha, [center], KEYS)[0]
                for number, query in enumerate(np.ndindex(*KEYS)):
                    target = nearest_key(query, center, KEYS)
                    position = softmax_in_balls(scores[number])
                    row = [
                        share * p + (1 - share) * c for p, c in zip(position, other, strict=True)
                    ]
                    off = [abs(w - int(k == target)) for k, w in enumerate(row)]
                    distance = sum(off, arb()) / 2
                    formula = 1 - share * position[target] - (1 - share) * other[target]
                    floor = (1 - share) * (1 - other[target])
                    if not (abs(distance - formula) < arb(2) ** -200 and distance >= floor - 1e-60):
                        raise EvidenceFailed(f"λ = {parameter}, α = {alpha}: {distance}")
                    if parameter == 1 and not content.any():
                        least.append(distance)
        floor = (1 - arb(1) / count) / (1 + arb(1).exp())
        require(
            all(distance > floor * (1 - arb(2) ** -100) for distance in least),
            f"λ = 1, uniform content: a row comes nearer than {floor}",
        )
    return f"{len(least)} rows at λ = 1 stay at least {floor.str(6, radius=False)} from one-hot"


def share_taken_back(maps: np.ndarray, share: Fraction) -> list:
    """W_h/g and the uniform head's -(1-g)/g·ΣW_h."""
    return [*(value_map / share for value_map in maps), -(1 - share) / share * maps.sum(axis=0)]


def one_head_more(run: Run) -> str:
    """In fractions, at α = ∞: gated heads and a uniform one are the edge-replicated convolution."""
    rng, count = run.rng("maps"), KEYS[0] * KEYS[1]
    centers = released_centers(9)
    tokens = rng.integers(-9, 10, (count, 2)).astype(object)
    maps = rng.integers(-9, 10, (9, 2, 3)).astype(object)
    mean = tokens.sum(axis=0) * Fraction(1, count)
    for share in (Fraction(3, 4), Fraction(19, 26)):
        *blocks, uniform = share_taken_back(maps, share)
        for query in np.ndindex(*KEYS):
            attended = [tokens[nearest_key(query, center, KEYS)] for center in centers]
            expected = sum(x @ block for x, block in zip(attended, maps, strict=True))
            gated = [share * x + (1 - share) * mean for x in attended]
            result = sum(x @ block for x, block in zip(gated, blocks, strict=True)) + mean @ uniform
            require(
                (result == expected).all(), f"g = {share}, query {query}: {result}, not {expected}"
            )
    return f"{KEYS} keys, two shares of position: ten heads are the convolution at every query"


def limit_rows(heads: int) -> np.ndarray:
    """In the middle of a large grid: what each head tends to, by the keys of its largest score."""
    size = int(heads**0.5)
    side = 2 * size + 3
    scores = positional_scores(2.0, released_centers(heads), (side, side))[:, side**2 // 2]
    best = scores == scores.max(axis=1, keepdims=True)
    return np.array([[Fraction(int(b), int(row.sum())) for b in row] for row in best], object)


def rank(rows: np.ndarray) -> int:
    """Over the rationals."""
    return int(fmpq_mat([[str(entry) for entry in row] for row in rows.tolist()]).rank())


def even_kernels(run: Run) -> str:
    """The span of the limits of k² heads, in fractions, from the largest scores as printed."""
    summary = []
    for size in (2, 3, 4) if run.quick else (2, 3, 4, 5, 6):
        rows = limit_rows(size**2)
        side, even = 2 * size + 3, size % 2 == 0
        keys = [4 if even else 1] * size**2
        if [int((row != 0).sum()) for row in rows] != keys or rank(rows) != size**2:
            raise EvidenceFailed(f"k = {size}: {rows} are not means of {keys[0]} keys, independent")
        start = (side - size) // 2
        inside = np.zeros((side, side), int)
        inside[start : start + size, start : start + size] = 1
        units = np.diag(inside.ravel()).astype(object)[inside.ravel() == 1]
        together = rank(np.concatenate([rows, units]))
        common = 2 * size**2 - together
        expected = (size - 1) ** 2 if even else size**2
        require(
            common == expected, f"k = {size}: {common} dimensions of k × k kernels, not {expected}"
        )
        summary.append(f"k = {size}: {common} of {size**2}")
    return "dimensions of k × k kernels for each pair of channels: " + ", ".join(summary)


def value_slices(heads: int, width: int) -> np.ndarray:
    """W_val = I cut into the heads' columns: heads, channels, D_h."""
    return np.moveaxis(np.eye(width, dtype=int).reshape(width, heads, -1), 1, 0)


def reach_of_the_identity(run: Run) -> str:
    """The linear map from W_out to the kernel: its rank, and which entries it reaches."""
    summary = []
    for heads, head_dimension, out in ((4, 1, 2), (9, 1, 1), (4, 2, 3)):
        width = heads * head_dimension
        slices = value_slices(heads, width)
        rows = []
        for channel, feature in np.ndindex(width, out):
            output = np.zeros((heads, head_dimension, out), int)
            output.reshape(width, out)[channel, feature] = 1
            rows.append((slices @ output).ravel())
        dimension, whole = rank(np.array(rows)), heads * width * out
        reached = np.array(rows).any(axis=0).reshape(heads, width, out)
        own = np.repeat(np.eye(heads, dtype=bool), head_dimension, axis=1)
        if dimension != width * out or (reached != own[:, :, None]).any():
            raise EvidenceFailed(f"{heads} heads of {head_dimension}: rank {dimension} of {whole}")
        summary.append(f"{heads} heads of dimension {head_dimension}: {dimension} of {whole}")
    return "dimensions of the kernels with W_val = I: " + ", ".join(summary)


CLAIM = Claim(
    id="N.gpsa",
    source="d'Ascoli et al. 2021 (ConViT, arXiv:2103.10697), Sections 2 and 3, eqs. 5 to 7",
    verdict=Verdict.AMENDED,
    kinds=(Kind.LIMIT,),
    evidence=(
        Evidence("positional rows", Level.ENCLOSED, positional_rows, assumes=ASSUMES),
        Evidence("gated rows", Level.ENCLOSED, gated_rows, assumes=ASSUMES),
        Evidence("one head more", Level.TESTED, one_head_more),
        Evidence("even kernels", Level.TESTED, even_kernels),
        Evidence("values as printed", Level.TESTED, reach_of_the_identity),
        near_convolution("on the bare grid", "quadratic", sharpness=(1, 2, 40), bare=True),
    ),
)
