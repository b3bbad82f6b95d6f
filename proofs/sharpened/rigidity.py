"""S.rigidity: what exactness forces on the heads of a layer.

Claimed. If as many heads as the kernel's rank are exactly a convolution, their attention is
relative and zero outside the receptive field, and their value maps are independent.
True. So it is for heads that attend by position, if every offset joins two tokens; one head more
leaves one common term free, and with as many heads as offsets near exactness gives a bound.

Printed. Not from a paper: our own result. (That a factorisation through the rank is unique up to a
basis is linear algebra; here the basis is the value maps, and the other factor is attention.)

Verified. Let H heads whose attention does not depend on the image be exactly a zero-padded
convolution, of rank ρ = rank F, on images in which every offset joins two tokens. Of weights at
keys of a ring nothing is said: q and k are tokens of the image.

(i) H = ρ: the value maps W_h are linearly independent; A_h(q, k) = g_h(k - q) for tokens of the
image, so that attention is relative; and it is zero outside the receptive field.

(ii) H = ρ + 1, all weights positive, and some query with a token of the image outside its receptive
field: the relations Σc_hW_h = 0 are the multiples of one c > 0, and A_h(q, k) = g_h(k - q) +
c_h·t(q, k) for a single t.

(iii) H = ρ = T, about the convolution: at a query whose whole receptive field lies in the image let
E_k be what the layer's linear map has at token k beyond the convolution's, flattened, with the
Euclidean norm, and E those of the receptive field side by side, with the spectral norm. If ‖E‖ <
σ_min(F), every head's weight s_h on tokens of the image outside the receptive field has s_h/(1 -
s_h) ≤ Σ_(k outside)‖E_k‖ / (σ_min(F) - ‖E‖). The same holds if the keys of a ring are counted as
tokens, with E_k = Σ_h a_h(q, k) W_h there.

Nothing to repair. S.dp1 shows that exactness does not force attention to be near one-hot; (ii) is
what its heads and S.finite's have in common.

Proof. *The idea:* the weights at a key solve a linear system whose matrix is the value maps.

Let W be the matrix with the columns vec(W_h), and a(q, k) the vector of the heads' weights. For
tokens q, k of the image W·a(q, k) is vec(M_(k-q)), the column of F, or zero if k - q is no offset.
All offsets occur: the columns of F lie in the span of W's H columns.

(i) So W has rank ρ and full column rank, and a(q, k) is the only solution.

(ii) Let k be outside: a(q, k) > 0 and W·a(q, k) = 0, so W has rank ρ and a kernel of dimension one,
spanned by c = a(q, k); two solutions of W·a = vec(M_δ) differ by a multiple of c.

(iii) Let B have the columns a(q, q+δ), T × T, and s = Σ_(k outside) a(q, k). WB = F + E has
smallest singular value ≥ σ_min(F) - ‖E‖ > 0, so B is invertible; let y = B⁻¹s. (F + E)y = Ws = Σ
E_k, so ‖y‖ ≤ β, the bound above. Row h of s = By is s_h = Σ_δ a_h(q, q+δ) y_δ ≤ β·Σ_δ a_h(q, q+δ) ≤
β(1 - s_h), as a row sums to one at most. ∎
"""

from itertools import product

import numpy as np
from flint import fmpq, fmpq_mat

from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import proved
from convattn_ledger.evidence.printed_output_map import flattened_blocks, output_blocks


def exact(rows) -> fmpq_mat:
    """A matrix of rationals."""
    flat = [x if isinstance(x, fmpq) else fmpq(int(x)) for row in rows for x in row]
    return fmpq_mat(len(rows), len(rows[0]), flat)


def flattened_kernel(run: Run, size: int, patch: int, channels: int, rank: int) -> np.ndarray:
    """F of a random kernel; its columns from `rank` on repeat sums of the others."""
    kernel = run.rng(size, patch, channels, rank).integers(-9, 10, (size, size, channels, channels))
    columns = flattened_blocks(output_blocks(kernel, patch)).astype(object)
    for column in range(rank, columns.shape[1]):
        columns[:, column] = columns[:, column % rank] + columns[:, (column + 1) % rank]
    return columns


def maps_and_attention(columns: np.ndarray, rank: int, rng: np.random.Generator):
    """W [rows, H] and G [H, T] with WG = F, H = ρ: mixed columns, and the weights they force."""
    mixing = exact(rng.integers(0, 9, (rank, rank)) + 9 * rank * np.eye(rank, dtype=int))
    maps = exact(columns[:, :rank]) * mixing.inv()
    first = exact(columns[:, :rank])
    require(first.rank() == rank, f"{rank} columns of F have rank {first.rank()}")
    normal = (first.transpose() * first).inv() * first.transpose()
    return maps, mixing * (normal * exact(columns))


SIZES = ((3, 1, 3, 9), (3, 1, 2, 4), (3, 2, 1, 9), (3, 2, 2, 5))  # K, P, channels, ρ


def only_solution(run: Run) -> str:
    """(i) W has full column rank: weights are those of the offset, and zero where F has none."""
    summary = []
    for size, patch, channels, rank in SIZES:
        columns = flattened_kernel(run, size, patch, channels, rank)
        maps, attention = maps_and_attention(columns, rank, run.rng("mixing", size, patch))
        actual = maps.rank()
        require(actual == rank, f"ρ = {rank}, but the maps have rank {actual}")
        require(maps * attention == exact(columns), "the maps and the weights are not F")
        # The normal equations of W have one solution, for every column of F and for zero.
        gram = maps.transpose() * maps
        solved = gram.inv() * (maps.transpose() * exact(columns))
        require(solved == attention, f"ρ = {rank}: other weights solve the equations")
        summary.append(f"K = {size}, P = {patch}: ρ = {rank}")
    return "one solution each; " + "; ".join(summary)


def one_relation(run: Run) -> str:
    """(ii) One head more: the kernel of W is spanned by a positive c, S.finite's or any other."""
    summary = []
    for size, patch, channels, rank in SIZES:
        columns = flattened_kernel(run, size, patch, channels, rank)
        rng = run.rng("relation", size, patch)
        maps, attention = maps_and_attention(columns, rank, rng)
        gains = rng.integers(1, 9, rank + 1).tolist()
        # Maps W_h/c_h and a last one that makes Σ c_h W_h zero; weights may move along c.
        scaled = [
            [maps[row, head] / fmpq(gains[head]) for head in range(rank)]
            for row in range(maps.nrows())
        ]
        rest = [-sum(maps.table()[row], fmpq(0)) / fmpq(gains[-1]) for row in range(maps.nrows())]
        wider = [[*row, last] for row, last in zip(scaled, rest, strict=True)]
        matrix, offsets = exact(wider), columns.shape[1]
        reduced, actual = matrix.rref()
        require(actual == rank, f"ρ = {rank}: {rank + 1} maps of rank {actual}")
        relation = [*(-reduced[row, rank] for row in range(rank)), fmpq(1)]
        require(min(relation) > 0, f"the relation is {relation}, not positive")
        expected = [fmpq(g) / fmpq(gains[-1]) for g in gains]
        require(relation == expected, f"the relation is {relation}, planted was {expected}")
        for step in (-2, 5):
            moved = [
                [attention[h, d] * fmpq(gains[h]) + step * relation[h] for d in range(offsets)]
                for h in range(rank)
            ]
            moved.append([fmpq(step)] * offsets)
            again = matrix * exact(moved)
            require(again == exact(columns), "weights moved along c are no solution")
        summary.append(f"ρ = {rank}")
    return "one relation, positive; weights may move along it: " + ", ".join(summary)


def least_singular_value(matrix: np.ndarray) -> float:
    """From below: less 2⁻⁴⁰ of the largest one, which is far more than the rounding."""
    values = np.linalg.svd(matrix, compute_uv=False)
    return float(values[-1] - 2.0**-40 * values[0])


def robust(run: Run) -> str:
    """(iii) Leaking heads with nearly the best maps: the weight outside against the bound."""
    worst = 0.0
    cases = 20 if run.quick else 100
    for case in range(cases):
        rng = run.rng("robust", case)
        offsets, outside, rows = int(rng.integers(2, 7)), int(rng.integers(1, 9)), 40
        flat = rng.normal(size=(rows, offsets))
        uniform_weight = 10.0 ** rng.uniform(-6, -2, (offsets, outside))
        inside = np.eye(offsets) + rng.uniform(0, 0.3, (offsets, offsets))
        inside *= (1 - uniform_weight.sum(axis=1, keepdims=True)) / inside.sum(
            axis=1, keepdims=True
        )
        maps = flat @ np.linalg.inv(inside) + 1e-4 * rng.normal(size=(rows, offsets))
        error = maps @ inside - flat
        gap = least_singular_value(flat) - np.linalg.norm(error, 2) * (1 + 2.0**-40)
        if gap <= 0:
            continue
        bound = np.linalg.norm(maps @ uniform_weight, axis=0).sum() * (1 + 2.0**-40) / gap
        share = uniform_weight.sum(axis=1)
        ratio = (share / (1 - share)).max() / bound
        if ratio > 1:
            raise EvidenceFailed(f"case {case}: a head's weight outside is {ratio:.3g} × its bound")
        worst = max(worst, float(ratio))
    require(worst > 0, "no case had an error small enough")
    return f"{cases} cases: the weight outside is at most {worst:.3g} of the bound"


def positions(run: Run) -> str:
    """Tokens that stand alike to their queries have the same weights: all of 3 × 4, one layer."""
    columns = flattened_kernel(run, 3, 1, 3, 9)
    maps, attention = maps_and_attention(columns, 9, run.rng("positions"))
    gram = (maps.transpose() * maps).inv() * maps.transpose()
    offsets = list(product((-1, 0, 1), repeat=2))
    zero = [[fmpq(0)]] * columns.shape[0]
    tokens, pairs = list(product(range(3), range(4))), 0
    for query, key in product(tokens, repeat=2):
        shift = (key[0] - query[0], key[1] - query[1])
        at = offsets.index(shift) if shift in offsets else None
        selected = zero if at is None else [[x] for x in columns[:, at].tolist()]
        weights = gram * exact(selected)
        expected = [fmpq(0) if at is None else attention[h, at] for h in range(9)]
        require([weights[h, 0] for h in range(9)] == expected, f"{query}, {key}: other weights")
        pairs += 1
    return f"{pairs} pairs of tokens: relative, and zero outside"


CLAIM = Claim(
    id="S.rigidity",
    source="this project, a converse to S.finite and L21 Theorem 1",
    verdict=Verdict.HOLDS,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "sharpened/rigidity.v",
            covers="(i) and (ii), for odd kernels without dilation and weights of tokens of the "
            "image; not: (iii)",
        ),
        Evidence("one solution", Level.TESTED, only_solution),
        Evidence("relative attention", Level.TESTED, positions),
        Evidence("one positive relation", Level.TESTED, one_relation),
        Evidence("the weight outside", Level.TESTED, robust),
    ),
)
