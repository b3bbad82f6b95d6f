"""S.overlap: where several offsets read a coordinate, narrow heads share its place in the limit.

Claimed. Where several offsets read the same coordinate of a patch, narrow heads can share it in the
limit, and fewer are needed than S.width has.
True. They can: for K = 3, P = 16, three channels and width 64, 15 heads do in place of 16, with
value maps that grow, so it is no recipe for floating point; whether 14 do is open.

Printed. Not from a paper: our own result. S.width has 16 heads in the limit for K = 3, P = 16,
three channels, d_H = 64, some kernel takes 14, and whether 14 or 15 do was open there.

Verified. Let M_0 be an invertible n × n map, r_δ the rank of M_δ for δ ≠ 0, Σ the sum of the r_δ,
M_δ = P_δ Q_δ with r_δ inner columns, P the P_δ side by side and Q the Q_δ one below the other, and
S = Q M_0⁻¹ P, a Σ × Σ matrix. Let a, b, c be the ranks of P, Q and S, k = min(Σ - c, n - a - b +
c), G = Σ_(δ≠0) ⌈r_δ/d⌉ and s = min(G·d - Σ, n - a - b + c - k). Then G + ⌈(n - k - s)/d⌉ heads of
width d are the convolution in the limit, with a ring or at interior queries, with maps that grow;
the rows of attention depend on the kernel by the number of heads of each offset alone.

S.width (3) has n - s' in place of n - k - s, s' = min(G·d - Σ, n - rank Σ_(δ≠0) M_δ). At odd K
without dilation r_δ is, for all kernels but a null set, the number of coordinates that are read at
δ, and a = b = c = R the number of those that are read at some δ ≠ 0; with a dilation r_δ can be
less. At K = 3 and P ≥ 2 the corners of a patch are read from two sides and across, so that Σ - R =
8·D for D channels. For K = 3, P = 16, three channels and d = 64,
n = 768, Σ = 204, R = 180: 8 + ⌈(768 - 24 - 308)/64⌉ = 15 heads, for every kernel, as limits of
limits are limits. Some kernel takes 14 (S.width (4)); whether 14 do is open. For K = 9 there it is
25 heads in place of 27. On pixels R = n for K > 1, and nothing is gained.

Nothing to repair. It is no recipe for floating point: U and V below are off by √ε, where maps are
of the order 1/ε.

Proof. Write p = M_0⁻¹P, and ε = t² > 0. *The main point:* let U → p and V → Q as t → 0, n × Σ and
Σ × n. For each δ let heads with weights in the ratio 1 : ε at 0 and δ (times 1 + ε in the maps)
share the map M_0 U_δ V_δ/ε, of rank r_δ at most, and let heads that look at 0 share B =
M_0(1 - UV/ε). Together they put M_0 at 0 and M_0 U_δ V_δ → M_0 p_δ Q_δ = M_δ at δ. And rank B =
n - Σ + rank(ε - VU), as both 1 - UV/ε and 1 - VU/ε complete 1 (Sylvester). With U = p, V = Q that
is n in general, for S has no reason to have the eigenvalue ε.

*Perturb it.* Let S G' S = S, so that X = 1 - S G' is a projection of rank Σ - c. The solutions z of
Q z = 0 and y of yp = 0 are spaces of dimension n - b and n - a, and the rank of (y, z) ↦ yz is
n - a - b + c: a z orthogonal to all y is px with Qpx = Sx = 0, and these px have the dimension
a - c. Take k dual pairs, y_i z_j = 1 if i = j, else 0, a projection X' of rank k with X X' = X' X =
X', and U_1 and V_1 made of the z_i and y_i such that Q U_1 = 0, V_1 p = 0, V_1 U_1 = X'. With U =
p + tU_1 and V = Q + tV_1, VU = S + εX', and ε - VU = -S(1 - εG') + ε(X - X') has the rank c + (Σ -
c - k) = Σ - k at most.

*Spare places.* n - a - b + c - k dual pairs are left. Each has V z = 0 and yU = 0. The heads of δ
have G·d - Σ places to spare in all. Let them take s of the maps M_0 z y, which are wrong by ε M_0
z y at δ, and take them from B: the rank falls by s, as B z = M_0 z and y M_0⁻¹ B = y. Softmax comes
as near to these rows as one likes.

*Almost all kernels:* where r_δ is the number of rows of M_δ that are not zero, P's columns span the
coordinates that are read, Q's rows, for odd K, the same ones. With M_0 near 1 S is near QP, of rank
R, but for a factor. One such kernel makes it so for all but a null set. ∎
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import fmpq, fmpq_mat, nmod_mat

from convattn.bounds.heads import count_heads
from convattn_ledger import Claim, Evidence, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence.printed_output_map import output_blocks, patch_offsets

PRIME = 2**31 - 1
# Kernel size, patch size, channels, width; the third has Σ > n.
SIZES = ((3, 6, 1, 6), (3, 6, 1, 4), (3, 4, 1, 1), (3, 7, 1, 4), (3, 5, 2, 5), (5, 5, 1, 2))


def matrix(rows: Sequence[Sequence[object]]) -> fmpq_mat:
    """Of fractions."""
    return fmpq_mat(len(rows), len(rows[0]), [entry for row in rows for entry in row])


def columns(entries: fmpq_mat, chosen: Sequence[int]) -> fmpq_mat:
    """Some of its columns."""
    return matrix([[row[j] for j in chosen] for row in entries.tolist()])


def rows(entries: fmpq_mat, chosen: Sequence[int]) -> fmpq_mat:
    """Some of its rows."""
    table = entries.tolist()
    return matrix([table[i] for i in chosen])


def pivots(entries: fmpq_mat) -> tuple[fmpq_mat, list[int]]:
    """The rows of its reduced echelon form that are not zero, and the columns of its pivots."""
    form, rank = entries.rref()
    table = form.tolist()[:rank]
    return matrix(table), [next(j for j, entry in enumerate(row) if entry) for row in table]


def null_space(entries: fmpq_mat) -> fmpq_mat:
    """A basis of the z with given · z = 0, as columns."""
    form, leading = pivots(entries)
    free = [j for j in range(entries.ncols()) if j not in leading]
    basis = [[fmpq(0)] * len(free) for _ in range(entries.ncols())]
    for at, j in enumerate(free):
        basis[j][at] = fmpq(1)
        for i, row in zip(leading, form.tolist(), strict=True):
            basis[i][at] = -row[j]
    return matrix(basis)


def identity(size: int) -> fmpq_mat:
    """1."""
    return matrix([[fmpq(int(i == j)) for j in range(size)] for i in range(size)])


class Pieces:
    """What the proof takes from the maps: P, Q, U_1, V_1 and the dual pairs that are left."""

    def __init__(self, centre: fmpq_mat, away: Sequence[fmpq_mat]) -> None:
        self.centre, inverse = centre, centre.inv()
        factors = [pivots(m) for m in away]
        self.ranks = [len(leading) for _, leading in factors]
        left = [columns(m, leading) for m, (_, leading) in zip(away, factors, strict=True)]
        self.q = matrix([row for form, _ in factors for row in form.tolist()])
        n = centre.nrows()
        wide = matrix([[e for block in left for e in block.tolist()[i]] for i in range(n)])
        self.p = inverse * wide
        s = self.q * self.p
        self.total, self.rank = s.nrows(), s.rank()
        self.sides = wide.rank(), self.q.rank()
        at, of = pivots(s.transpose())[1], pivots(s)[1]
        block = rows(columns(s, of), at).inv().tolist()
        back = [[fmpq(0)] * self.total for _ in range(self.total)]
        for i, row in zip(of, block, strict=True):
            for j, entry in zip(at, row, strict=True):
                back[i][j] = entry
        lacking = identity(self.total) - s * matrix(back)  # X, a projection
        form, leading = pivots(lacking)
        z, y = null_space(self.q), null_space(self.p.transpose()).transpose()
        met = y * z
        at, of = pivots(met.transpose())[1], pivots(met)[1]
        y = rows(y, at)
        z = columns(z, of) * rows(columns(met, of), at).inv()  # y z = 1: dual pairs
        shared = range(min(len(leading), z.ncols()))
        left, right = columns(lacking, leading), form  # X = left right, and right left = 1
        self.u1 = columns(z, shared) * rows(right, shared)
        self.v1 = columns(left, shared) * rows(y, shared)
        self.z, self.y = z, y
        self.spare = range(len(shared), z.ncols())


def head_maps(pieces: Pieces, width: int, t: Fraction) -> list[tuple[int | None, fmpq_mat]]:
    """The heads: the offset that each looks at beside its own token, or none; and its map."""
    step = fmpq(t.numerator, t.denominator)
    u, v = pieces.p + step * pieces.u1, pieces.q + step * pieces.v1
    scale = 1 / (step * step)
    heads: list[tuple[int | None, fmpq_mat]] = []
    rest, start, spare = identity(u.nrows()) - scale * (u * v), 0, list(pieces.spare)
    for offset, rank in enumerate(pieces.ranks):
        for first in range(start, start + rank, width):
            own = range(first, min(first + width, start + rank))
            share = scale * (columns(u, own) * rows(v, own))
            taken, spare = spare[: width - len(own)], spare[width - len(own) :]
            if taken:
                pair = columns(pieces.z, taken) * rows(pieces.y, taken)
                share, rest = share + pair, rest - pair
            heads.append((offset, pieces.centre * share))
        start += rank
    form, leading = pivots(rest)
    left = columns(rest, leading)
    for first in range(0, len(leading), width):
        own = range(first, min(first + width, len(leading)))
        heads.append((None, pieces.centre * (columns(left, own) * rows(form, own))))
    return heads


def number_of_heads(ranks: Sequence[int], n: int, sides: Sequence[int], width: int) -> int:
    """As the claim has it; `sides` are the ranks of P, Q and S."""
    total, looking = sum(ranks), sum(-(-r // width) for r in ranks)
    pairs = n - sides[0] - sides[1] + sides[2]
    shared = min(total - sides[2], pairs)
    spare = min(looking * width - total, pairs - shared)
    return looking + -(-(n - shared - spare) // width)


def random_maps(run: Run, size: int, patch: int, channels: int) -> tuple[np.ndarray, int]:
    """The maps of a random kernel of integers, and the place of M_0."""
    kernel = run.rng(size, patch, channels).integers(-9, 10, (size, size, channels, channels))
    kernel += (kernel == 0).astype(int)
    return output_blocks(kernel, patch), patch_offsets(size, patch).index((0, 0))


def exact_heads(run: Run) -> str:
    """In fractions: M_0 exactly at 0, M_δ up to a multiple of t at δ, and ranks of d at most."""
    summary = []
    for size, patch, channels, width in SIZES[:1] if run.quick else SIZES:
        blocks, centre = random_maps(run, size, patch, channels)
        maps = [matrix([[fmpq(int(e)) for e in row] for row in block]) for block in blocks]
        middle = maps.pop(centre)
        pieces, n = Pieces(middle, maps), middle.nrows()
        errors = []
        for t in (Fraction(1, 2**10), Fraction(1, 2**20)):
            heads = head_maps(pieces, width, t)
            sides = (*pieces.sides, pieces.rank)
            expected = number_of_heads(pieces.ranks, n, sides, width)
            require(len(heads) == expected, f"P = {patch}: {len(heads)} heads, not {expected}")
            widest = max(value_map.rank() for _, value_map in heads)
            require(widest <= width, f"P = {patch}: a map has rank {widest} > {width}")
            zero = 0 * middle
            total = sum((value_map for _, value_map in heads), start=zero)
            require(total == middle, f"P = {patch}, t = {t}: M_0 is not met")
            ratio = fmpq(t.numerator**2, t.denominator**2)
            off = fmpq(0)
            for offset, target in enumerate(maps):
                put = sum(
                    (ratio * value_map for at, value_map in heads if at == offset), start=zero
                )
                off = max([off, *(abs(e) for row in (put - target).tolist() for e in row)])
            errors.append(off)
        require(errors[0] > 0 and 1000 * errors[1] <= errors[0], f"P = {patch}: errors {errors}")
        summary.append(f"K = {size}, P = {patch}, {channels} channels, d_H = {width}: {len(heads)}")
    return f"heads {'; '.join(summary)}; errors fall with √ε"


def rank_modulo(entries: np.ndarray) -> int:
    """Modulo a prime, so at most that over the rationals."""
    return int(nmod_mat(*entries.shape, [int(e) for e in entries.ravel()], PRIME).rank())


def at_width_of_a_transformer(run: Run) -> str:
    """The ranks at P = 16, three channels, of one kernel and so of almost all."""
    summary = []
    for size, expected in ((3, 15),) if run.quick else ((3, 15), (9, 25)):
        blocks, centre = random_maps(run, size, 16, 3)
        middle, away = blocks[centre], np.delete(blocks, centre, axis=0)
        ranks = [rank_modulo(block) for block in away]
        first, last = np.flatnonzero(away.any((0, 2))), np.flatnonzero(away.any((0, 1)))
        n = len(middle)
        inverse = nmod_mat(n, n, [int(e) for e in middle.ravel()], PRIME).inv().tolist()
        met = np.array([[int(inverse[i][j]) for j in first] for i in last])
        # P and Q have the columns and rows of the coordinates that are read; S is between them.
        sides = rank_modulo(np.hstack(list(away))), rank_modulo(np.vstack(list(away)))
        require(sides == (len(first), len(last)), f"P and Q have the ranks {sides}")
        sides = (*sides, rank_modulo(met))
        heads = number_of_heads(ranks, n, sides, 64)
        options = {"patch_size": 16, "in_channels": 3, "out_channels": 3, "head_dim": 64}
        known = count_heads(size, **options).limit.sufficient
        case = f"K = {size}: n = {n}, Σ = {sum(ranks)}, ranks {sides}: {heads} heads"
        require(heads == expected < known, f"{case}, expected {expected}; S.width has {known}")
        summary.append(f"{case}, where S.width has {known}")
    return "; ".join(summary)


CLAIM = Claim(
    id="S.overlap",
    source="this project, sharpening S.width",
    verdict=Verdict.HOLDS,
    kinds=(Kind.IDENTITY,),
    evidence=(
        Evidence("exact heads", Level.TESTED, exact_heads),
        Evidence("heads of width 64", Level.TESTED, at_width_of_a_transformer),
    ),
)
