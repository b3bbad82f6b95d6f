"""S.heads: how many heads a generic kernel needs.

Claimed. Almost every convolution needs at least as many heads as it has token offsets, or as its
flattened kernel has different rows if they are fewer.
True. It does for odd K, no dilation, equal axes and heads that attend by position, in the limit
too: proved on pixels, in one dimension and for most patch sizes; in the rest it is only checked
size by size.

Printed. Not from a paper: our own result. (Ghodsi 2025, arXiv:2512.15115, has a head count of the
same sort for linear state space models: in a class of heads with factored weights, as many as the
lag operators span dimensions, necessary and enough; only its abstract was read. Other lower bounds
on heads are for targets that depend on content: Amsel et al. 2024, arXiv:2407.16153; Yu et al.
2025, arXiv:2510.06662; and Bhojanapalli et al. 2020, arXiv:2002.07028, for heads narrower than the
number of tokens.) For a generic kernel and at least m+1 tokens a side with a ring (2m+1 if only
interior queries count), N_H ≥ min((2m+1)², (2P-1)²·D_in·D_out), in the limit too; m = ⌈(K-1)/(2P)⌉.
It contains L21's Theorems 5 and 6 and meets the upper bound of its Theorem 1 wherever the first
term is the smaller.

Verified. N_H is at least the rank of F, on one axis and on two, for content-free attention of any
sort (for content scores see S.content), and the printed minimum is this rank at the sizes below.
Write D = D_in·D_out. The rank of F is the same for all kernels but a null set, and that it is the
printed minimum is proved

- on one axis, for all P, K and D;
- on two axes for P = 1; for m ≤ P - 1; for D = 1; and for m ≥ P ≥ 2 wherever
  D ≤ ⌊(2m+1)/(2P-1)⌋² or D ≥ ⌈(2m+1)/(2P-1)⌉².

S.tiles adds K = 2Pm + 1 for every D ≥ 2. In what is left, such as K = 7, P = 2 with two or three
channel pairs, it is checked size by size: the exact
rank of one fixed kernel is a proof for that size. No size was found where it fails.

For even kernels, unlike axes and dilations too N_H is at least the rank of F for all kernels but a
null set, with one token a side more than the furthest offset. This rank is the sum of those of F's
blocks, one for each residue class of offsets. A block of c columns and n rows for each pair has
the rank min(c, nD)

- for D ≥ c; and for n = 1, as where P = 1;
- where on each axis of more than one offset P is a multiple of the dilation, for one such axis, for
  D ≤ ∏⌊T/(2P'-1)⌋ and for D ≥ ∏⌈T/(2P'-1)⌉, with the T offsets of these axes and P' = P/d.

In what is left it is checked size by size, and is at most the term rank of the block's zeros.

One attention pattern that serves every kernel has at least as many heads as there are offsets, in
the limit too, and one more at finite scores if a query has a token of the image outside its
receptive field.

Repair. The printed minimum is proved for the sizes above, and is neither proved nor refuted for all
others. It is for odd K and sizes alike on both axes. With a dilation the rank of F can be less: K =
3, P = d = 2 has nine offsets, and rank D for D < 9. With unlike sizes on the axes too: K = 21 × 3,
P = 1 × 16 with 50 channel pairs has rank 63, but with 15 pairs 51, where the count of nonzero rows
allows 63.

Proof. *The idea:* F factors through the heads, and one kernel whose F has a given rank shows that
almost all have at least that.

*The bound.* Let Σ A_h X W_h + b be the convolution. The map from token q + δ to token q is M_δ =
Σ_h a_h(q, q+δ) W_h for all q and δ with q + δ in the image, and with m+1 tokens a side each δ
occurs. So F, with the columns vec(M_δ), factors through N_H dimensions. Limits: matrices of rank at
most N_H are a closed set. With 2m+1 tokens a side all δ occur at one interior query.

*The rank.* F has T = 2m+1 columns and 2P-1 rows for each pair on an axis, s = q - p, and the entry
W_(Pδ+s).

*One axis, one pair:* weigh tap t by z^(t²). A minor on columns δ and rows s(δ) that fall as δ grows
has the diagonal product z^Σ(Pδ+s(δ))², and Σ(Pδ+s)² = Σ P²δ² + Σ s² + 2PΣ δs(δ) is smaller there
than for any other matching: the determinant has this one lowest monomial and is not zero. If T ≤
2P-1 take all columns, s(δ) = -(P-1) + m - δ for δ > 0, s(0) = 0, s(-δ) = -s(δ); if T ≥ 2P-1 all
rows, δ = -s. These entries are taps of the kernel.

*Windows:* in the second case the kernel z^(t²) on |t| ≤ (P-1)² alone has nonzero columns |δ| ≤ P-1
only, a nonsingular square; shifted by P·c it stands on any window of 2P-1 offsets.

*Two axes:* products of windows are windows, the square being the Kronecker product. Give each pair
a window. Disjoint ones give rank (2P-1)²·D. Windows that cover all offsets give rank (2m+1)², as
each need only answer for what no earlier one covers, and F is then block triangular. For m ≤ P-1
one pair does it with the kernel w ⊗ w.

*Other sizes.* With g = gcd(P, d), P = gP', d = gd' the tap t stands at Pδ + s = t·d only for s =
gs', δ ≡ -s'/P' mod d': rows and columns of other residues do not meet, and a block is an undilated
F on patches of P' pixels with some of its rows, all of them if d' = 1.

If D ≥ c, let pair k be the one-tap kernel of a tap in column k. If n = 1 no tap occurs twice.

If d' = 1 let the taps be -a to b, the offsets -m to n, m = ⌈a/P'⌉, n = ⌈b/P'⌉. For T ≤ 2P'-1 the
minor above has the rows s(0) = 0, s(δ) = n - δ - (P'-1) for δ > 0, s(δ) = (P'-1) - m - δ for δ < 0;
they fall, and are taps, as 0 ≤ P'δ + s(δ) ≤ P'(n-1) + 1 ≤ b for δ > 0, likewise for δ < 0.

For T ≥ 2P'-1 windows start at P'c - (P'-1)² = -P'm + P'-1 ≥ -a, and (P'-1)² ≤ a, b. One axis:
disjoint windows from the left, a last one at the right end. Several: as above.

A nonzero minor has a nonzero term, so the rank is at most the term rank.

*One pattern.* Stack the F of all one-tap kernels with the same attention: every offset has a
one-hot row, the rank T, and it factors through N_H dimensions; such a set is closed. With T heads
at finite scores the stacked W_h are independent; at a token of the image outside (one of the ring
gives no condition) Σ a_h W_h = 0 would make the softmax weights a_h zero. ∎
"""

from dataclasses import replace
from itertools import product

import jax.numpy as jnp
import numpy as np
from flint import fmpz_mat, nmod_mat

from convattn.bounds.generic_rank import generic_rank
from convattn.bounds.term_rank import term_rank
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import (
    DTYPES,
    applied,
    certified,
    converted,
    exact_convolution,
    proved,
    whole_images,
)
from convattn_ledger.evidence.head_floor import floor_below, least_squares_maps
from convattn_ledger.evidence.layer_runs import equal

PRIME = 2**61 - 1


def reach(size: int, patch: int) -> int:
    """m = ⌈(K-1)/(2P)⌉."""
    return -((1 - size) // (2 * patch))


def flattened(kernels: np.ndarray, patch: int) -> list[list[int]]:
    """F from its definition: rows (pair, s), columns δ, for kernels [pairs, K] or [pairs, K, K]."""
    pairs, size, axes = kernels.shape[0], kernels.shape[1], kernels.ndim - 1
    m = reach(size, patch)
    rows = []
    for pair, difference in product(range(pairs), product(range(1 - patch, patch), repeat=axes)):
        row = []
        for offset in product(range(-m, m + 1), repeat=axes):
            taps = [patch * d + s + size // 2 for d, s in zip(offset, difference, strict=True)]
            inside = all(0 <= tap < size for tap in taps)
            row.append(int(kernels[(pair, *taps)]) if inside else 0)
        rows.append(row)
    return rows


def rank(matrix: list[list[int]]) -> int:
    """Modulo a prime, so at most the rank over the rationals."""
    flat = [entry for row in matrix for entry in row]
    return int(nmod_mat(len(matrix), len(matrix[0]), flat, PRIME).rank())


def predicted(size: int, patch: int, pairs: int, axes: int) -> int:
    """min((2m+1)^axes, (2P-1)^axes·D)."""
    return min((2 * reach(size, patch) + 1) ** axes, (2 * patch - 1) ** axes * pairs)


def generic_ranks(run: Run) -> str:
    """Random kernels have the rank predicted, over P, K and D; either term is the smaller one."""
    counts = {"offsets": 0, "rows": 0}
    largest = 11 if run.quick else 21
    for axes, patch, pairs in product((1, 2), (1, 2, 3, 4), (1, 2, 3, 5, 9)):
        for size in range(1, largest + 1, 2):
            rng = run.rng(axes, patch, pairs, size)
            if (2 * patch - 1) ** axes * pairs > 150:
                continue
            kernels = rng.integers(1, 10**6, (pairs, *(size,) * axes))
            actual = rank(flattened(kernels, patch))
            if actual != predicted(size, patch, pairs, axes):
                raise EvidenceFailed(
                    f"{axes} axes, K = {size}, P = {patch}, D = {pairs}: rank {actual}, predicted "
                    f"{predicted(size, patch, pairs, axes)}"
                )
            full = actual == (2 * reach(size, patch) + 1) ** axes
            counts["offsets" if full else "rows"] += 1
    require(all(counts.values()), f"one term of the minimum was never the smaller: {counts}")
    return (
        f"K ≤ {largest}, P ≤ 4, D ≤ 9: {counts['offsets']} sizes with the rank (2m+1)^axes, "
        f"{counts['rows']} with (2P-1)^axes·D below it"
    )


def chosen_minor(size: int, patch: int) -> list[tuple[int, int]]:
    """The pairs (s, δ) of the proof, on one axis."""
    m = reach(size, patch)
    if m <= patch - 1:
        falling = {d: m - d - (patch - 1) for d in range(1, m + 1)}
        return [(-falling[-d] if d < 0 else falling.get(d, 0), d) for d in range(-m, m + 1)]
    return [(-d, d) for d in range(1 - patch, patch)]


def lowest_monomial(run: Run) -> str:
    """With z = 2 the minor's power of two is the exponent of the lowest monomial, if it is alone.

    Its coefficient is ±1, so det / 2^(lowest exponent) is odd.
    """
    sizes = 0
    for patch, size in product(range(1, 6), range(1, 24, 2)):
        pairs = chosen_minor(size, patch)
        if len(pairs) != predicted(size, patch, 1, 1):
            raise EvidenceFailed(f"K = {size}, P = {patch}: a minor of {len(pairs)} rows")
        half = size // 2

        def entry(s: int, d: int, patch: int = patch, half: int = half) -> int:
            tap = patch * d + s
            return 2 ** (tap * tap) if abs(tap) <= half else 0

        determinant = int(fmpz_mat([[entry(s, d) for _, d in pairs] for s, _ in pairs]).det())
        lowest = sum((patch * d + s) ** 2 for s, d in pairs)
        if determinant % 2**lowest or determinant // 2**lowest % 2 == 0:
            raise EvidenceFailed(f"K = {size}, P = {patch}: {determinant} is not odd·2^{lowest}")
        sizes += 1
    return f"{sizes} sizes on one axis: the minor is odd times 2^Σ(Pδ+s)²"


def window_kernel(size: int, patch: int, centre: int) -> np.ndarray:
    """2^(x²) at the taps Pc + x, |x| ≤ (P-1)²."""
    taps = np.arange(-(size // 2), size // 2 + 1) - patch * centre
    return np.array(
        [2 ** int(x * x) if abs(x) <= (patch - 1) ** 2 else 0 for x in taps.tolist()], object
    )


def window_centres(size: int, patch: int, pairs: int) -> list[int]:
    """From the left, without gaps; the last one ends where the offsets end."""
    m = reach(size, patch)
    count = min(pairs, -(-(2 * m + 1) // (2 * patch - 1)))
    left = [-m + (patch - 1) + n * (2 * patch - 1) for n in range(count)]
    return [min(centre, m - (patch - 1)) for centre in left]


def windows(run: Run) -> str:
    """The kernels of the proof for m ≥ P: their ranks on one axis, packed and covering on two."""
    lines = 0
    for patch, size, pairs in product((1, 2, 3), range(3, 22, 2), (1, 2, 3, 4, 9)):
        if reach(size, patch) < patch:
            continue
        line = [window_kernel(size, patch, c) for c in window_centres(size, patch, pairs)]
        actual = rank(flattened(np.stack(line), patch))
        if actual != predicted(size, patch, pairs, 1):
            raise EvidenceFailed(f"one axis, K = {size}, P = {patch}, D = {pairs}: rank {actual}")
        lines += 1
    squares = 0
    for patch, size in ((1, 3), (2, 5), (2, 9), (2, 13), (3, 13), (3, 19)):
        m = reach(size, patch)
        if m < patch:
            continue
        for number in {(2 * m + 1) // (2 * patch - 1), -(-(2 * m + 1) // (2 * patch - 1))}:
            line = [window_kernel(size, patch, c) for c in window_centres(size, patch, number)]
            grid = np.stack([np.multiply.outer(a, b) for a in line for b in line])
            actual = rank([[x % PRIME for x in row] for row in flattened(grid, patch)])
            if actual != predicted(size, patch, number**2, 2):
                raise EvidenceFailed(f"K = {size}, P = {patch}, D = {number**2}: rank {actual}")
            squares += 1
    return f"{lines} sizes on one axis, {squares} packings and covers of two"


def offsets_of(side: int, m: int) -> set[tuple[int, int]]:
    """Key minus query, up to m on each axis, over the tokens of a side × side image."""
    tokens = list(product(range(side), repeat=2))
    shifts = {(a - c, b - d) for (a, b), (c, d) in product(tokens, tokens)}
    return {shift for shift in shifts if max(map(abs, shift)) <= m}


def tokens_a_side(run: Run) -> str:
    """All (2m+1)² offsets join two tokens iff there are m+1 a side; one query has all from 2m+1."""
    for m in range(4):
        for side in range(1, 2 * m + 3):
            every = len(offsets_of(side, m)) == (2 * m + 1) ** 2
            centre = side // 2
            around = sum(
                max(abs(a - centre), abs(b - centre)) <= m
                for a, b in product(range(side), repeat=2)
            )
            if every != (side >= m + 1) or (around == (2 * m + 1) ** 2) != (side >= 2 * m + 1):
                raise EvidenceFailed(f"m = {m}, {side} tokens a side: {every}, {around}")
    return "m ≤ 3: all offsets occur from m+1 tokens a side, at one query from 2m+1"


def unlike_axes(run: Run) -> str:
    """With a dilation, or unlike axes, the rank of F can be below the minimum."""
    dilated = generic_rank((3, 3), (2, 2), (2, 2), 2)
    unlike = generic_rank((21, 3), (1, 16), (1, 1), 15)
    most = min(unlike.offsets, 5 * 15)
    if (dilated.offsets, dilated.least) != (9, 2) or (unlike.least, most) != (51, 63):
        raise EvidenceFailed(f"dilated: {dilated}; unlike axes: {unlike}, {most}")
    return f"K = 3, P = d = 2, D = 2: rank 2 of 9; K = 21 × 3, P = 1 × 16, D = 15: {unlike.least}"


def flattened_axes(
    kernels: np.ndarray, patches: tuple[int, ...], dilations: tuple[int, ...]
) -> list[list[int]]:
    """F from its definition for kernels [pairs, K_1, ..] of any size: t = (Pδ + s)/d, if a tap."""
    sizes = kernels.shape[1:]
    before = [(size - 1) // 2 for size in sizes]
    reach_of = [size * d // p + 1 for size, p, d in zip(sizes, patches, dilations, strict=True)]
    columns = list(product(*(range(-m, m + 1) for m in reach_of)))
    rows = []
    differences = list(product(*(range(1 - patch, patch) for patch in patches)))
    for pair, difference in product(range(len(kernels)), differences):
        row = []
        for offset in columns:
            positions = [p * o + s for p, o, s in zip(patches, offset, difference, strict=True)]
            taps = [x // d + b for x, d, b in zip(positions, dilations, before, strict=True)]
            exact = all(x % d == 0 for x, d in zip(positions, dilations, strict=True))
            inside = exact and all(0 <= tap < k for tap, k in zip(taps, sizes, strict=True))
            row.append(int(kernels[(pair, *taps)]) if inside else 0)
        rows.append(row)
    return rows


OTHER_SIZES = (  # kernel, patch, dilation, channel pairs
    ((2, 2), (3, 3), (1, 1), 1),
    ((4, 4), (3, 3), (1, 1), 1),
    ((8,), (3,), (1,), 1),
    ((8,), (2,), (1,), 2),
    ((4, 7), (1, 2), (1, 1), 2),
    ((2, 3), (1, 4), (1, 1), 6),
    ((10, 10), (2, 2), (1, 1), 1),
    ((10, 10), (2, 2), (1, 1), 4),
    ((5, 5), (4, 4), (2, 2), 1),
    ((5,), (3,), (2,), 2),
    ((3, 3), (2, 2), (2, 2), 3),
    ((6, 3), (2, 1), (3, 4), 2),
)


def other_sizes(run: Run) -> str:
    """Even, rectangular and dilated: random kernels have the rank that is said to be proved."""
    proved = 0
    for number, (size, patch, dilation, pairs) in enumerate(OTHER_SIZES):
        kernels = run.rng(number).integers(1, 10**6, (pairs, *size))
        actual = rank(flattened_axes(kernels, patch, dilation))
        said = generic_rank(size, patch, dilation, pairs)
        if not actual == said.least == said.most:
            raise EvidenceFailed(f"K = {size}, P = {patch}, d = {dilation}: rank {actual}, {said}")
        proved += said.proved
    return f"{len(OTHER_SIZES)} sizes, {proved} of them by the proof"


def zeros_keep_it_down(run: Run) -> str:
    """K = 2 × 3, P = 1 × 4: four of six columns can be matched, and four is the rank."""
    kernels = run.rng("zeros").integers(1, 10**6, (1, 2, 3))
    table = flattened_axes(kernels, (1, 4), (1, 1))
    columns = [
        [index for index, entry in enumerate(column) if entry]
        for column in zip(*table, strict=True)
        if any(column)
    ]
    actual, most = rank(table), term_rank(columns)
    if (len(columns), actual, most) != (6, 4, 4):
        raise EvidenceFailed(f"{len(columns)} offsets, rank {actual}, term rank {most}")
    return "K = 2 × 3, P = 1 × 4: six offsets, rank and term rank four"


def one_tap_kernels(size: int) -> np.ndarray:
    """Kernel k has its one at tap k: `[K², K, K]`."""
    return np.eye(size**2, dtype=np.int64).reshape(size**2, size, size)


def one_pattern(run: Run) -> str:
    """The one-tap kernels, stacked, have a one-hot row for every offset."""
    summary = []
    for size, patch in ((3, 1), (3, 4), (5, 2), (7, 2)):
        table = flattened(one_tap_kernels(size), patch)
        offsets = (2 * reach(size, patch) + 1) ** 2
        single = {row.index(1) for row in table if sum(row) == 1}
        if len(single) != offsets or rank(table) != offsets:
            raise EvidenceFailed(f"K = {size}, P = {patch}: {len(single)} of {offsets} offsets")
        summary.append(f"K = {size}, P = {patch}: {offsets}")
    return "one-hot rows for all offsets; " + ", ".join(summary)


def copying_line(size: int) -> np.ndarray:
    """Output channel t is the pixel at tap t: `[K, 1, K]`."""
    return np.eye(size, dtype=np.int64)[:, None, :]


def fewer_heads_on_rows(run: Run) -> str:
    """K = 9, P = 2, m = 2 ≥ P: five heads copy rows of images exactly, four stay above the floor.

    The floor is that of `convattn_ledger.evidence.head_floor`, on one axis: the receptive fields
    of the
    rows' interior tokens have a spread, F has five independent columns, and no content-free layer
    of four heads has a smaller mean squared error on them.
    """
    size, patch = 9, 2
    m = reach(size, patch)
    needed = 2 * m + 1
    images = whole_images(run)
    rows = images[..., :1].reshape(-1, images.shape[2], 1)
    kernel = copying_line(size)
    exact = exact_convolution(rows, kernel)
    tokens = rows.reshape(len(rows), -1, patch)
    fields = np.lib.stride_tricks.sliding_window_view(tokens, needed, axis=1)
    fields = fields.transpose(0, 1, 3, 2).reshape(-1, needed, patch)
    columns = np.array(flattened(kernel[:, 0].T, patch))
    floor = floor_below(fields, columns, needed - 1)

    def interior(result: np.ndarray) -> np.ndarray:
        interior_tokens = np.asarray(result).reshape(len(rows), -1, patch * size)
        return interior_tokens[:, m:-m].reshape(len(fields), -1)

    remaining = list(range(needed - 1))
    best = least_squares_maps(fields, interior(exact), remaining)
    comparisons, errors = [], []
    for dtype in DTYPES:
        full = converted(kernel, dtype, patch_size=patch, encoding="bias", form="limit")
        require(full.heads == needed, f"the layer has {full.heads} heads, expected {needed}")
        comparisons.append(equal(dtype, applied(full, rows, dtype), exact))
        fewer = replace(
            full, encoding=full.encoding.take_heads(remaining), output=jnp.asarray(best, dtype)
        )
        result = applied(fewer, rows, dtype)
        error = interior(np.asarray(result, np.float64)) - interior(exact)
        squared = float((error**2).sum(axis=1).mean())
        if not squared > floor > 0:
            raise EvidenceFailed(
                f"{dtype}: {needed - 1} heads reach a mean squared error of {squared:.3g}, below "
                f"the floor {floor:.3g}"
            )
        errors.append(squared)
    return (
        f"{len(rows)} rows, {len(fields)} receptive fields; {needed} heads: "
        + ", ".join(comparisons)
        + f"; any {needed - 1} heads: mean squared error > {floor:.2g}; one-hot ones at the first "
        f"{needed - 1} offsets: {min(errors):.4g} to {max(errors):.4g}"
    )


CLAIM = Claim(
    id="S.heads",
    source="this project, sharpening L21 Theorems 5 and 6",
    verdict=Verdict.AMENDED,
    kinds=(Kind.LOWER_BOUND,),
    evidence=(
        proved(
            "sharpened/heads.v",
            covers="for exact layers free of content, some kernel takes at least nine heads: P ≥ "
            "2, odd K with 3 ≤ K ≤ 2P + 1 on two axes, any channels, two patches a side or more; "
            "not: limits, layers that are the convolution at interior queries only",
        ),
        proved(
            "sharpened/heads_generic.v",
            covers="for odd K on two axes, from one kernel with ρ = rank F: on every line in its "
            "direction all but at most ρ kernels take at least ρ heads, for exact layers free of "
            "content on more than m tokens a side; not: a null set as such, limits, dilation, "
            "layers that are the convolution at interior queries only",
        ),
        proved(
            "sharpened/heads_limit.v",
            covers="for every odd kernel on two axes and every patch size there is an ε > 0 such "
            "that layers with fewer heads than rank F, free of content and on more than m "
            "tokens a side, are off by more than ε at some output of some image; not: one "
            "ε for all kernels, dilation, layers near the convolution at interior queries "
            "only",
        ),
        proved(
            "sharpened/heads_patches.v",
            covers="some kernel takes at least the printed number of heads, for exact layers free "
            "of content on more than m tokens a side: two axes, odd K, for m ≤ P - 1 or D_in·D_out "
            "= 1; not: m ≥ P ≥ 2 with more channel pairs, even or unlike kernels, dilation, layers "
            "that are the convolution at interior queries only",
        ),
        proved(
            "sharpened/heads_pixels.v",
            covers="some kernel takes at least min(K², D_in·D_out) heads, for exact layers free of "
            "content on more than m pixels a side: two axes, odd K, P = 1, any channels; not: one "
            "pattern for every kernel, dilation, layers that are the convolution at interior "
            "queries only",
        ),
        certified("S.heads"),
        Evidence("ranks of generic kernels", Level.TESTED, generic_ranks),
        Evidence("the lowest monomial", Level.TESTED, lowest_monomial),
        Evidence("windows", Level.TESTED, windows),
        Evidence("tokens a side", Level.TESTED, tokens_a_side),
        Evidence("dilation and unlike axes", Level.TESTED, unlike_axes),
        Evidence("even, rectangular and dilated sizes", Level.TESTED, other_sizes),
        Evidence("zeros that keep the rank down", Level.TESTED, zeros_keep_it_down),
        Evidence("one pattern for all kernels", Level.TESTED, one_pattern),
        Evidence(
            "four of five heads on rows of images, K = 9, P = 2",
            Level.BOUNDED,
            fewer_heads_on_rows,
            assumes="exp underflows to zero; ball arithmetic (python-flint) for the least "
            "eigenvalues; the floor is for heads without content",
            quick=False,
        ),
    ),
)
