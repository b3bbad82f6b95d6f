"""S.registers: one key of value zero replaces the ring, exactly, with two heads for each offset.

Claimed. One extra key of value zero replaces the zero tokens around the image: with it two heads
for each offset are exactly the zero-padded convolution at finite scores.
True. They are, at every image size; T + 1 heads for T offsets do if the key's score may depend on
the query, and otherwise do not if the maps are independent and the image is large enough.

Printed. Not from a paper: our own result. Let one more key, a register, stand beside the tokens of
the bare grid. Its value is zero, and each head gives it one score, the same at every query. T
offsets are read, 0 among them.
(a) 2T heads at finite relative scores are the zero-padded convolution, at every query of every
bare grid, of one token too. One set of value maps serves all sizes; only the scores know the number
N of tokens. Without such a key no layer whose rows sum to one does it on large grids, unless M_δ =
0 for all δ ≠ 0 (S.padding).
(b) T + 1 heads at finite relative scores never do it, if the M_δ are independent, every offset
joins two tokens, and some axis has several offsets and at least two tokens more.
(c) If the register's score may depend on the query, T + 1 heads do it.

Verified. The same, for pixels and patches. Under the hypotheses of (b) 2T heads are the fewest for
T = 2; so they are for T = 1 on several tokens if M_0 ≠ 0, where one head leaks. Whether fewer than
2T do under them for T ≥ 3 is open. In the limit T heads do (S.padding). `conv_to_attention(kernel,
border="register")` makes the layers of (a).

Nothing to repair.

Proof. *The idea:* two heads of one offset, with different scores of the register, cancel where
there is no target.

(a) Let r = 1/ε - 1 with 0 < ε < 1, and 0 < σ_0 < σ_1. Head (j, δ) gives its target q + δ, where
that is a token, the weight 1 + N(1 + σ_j)r, every other token 1, and the register σ_j N. Let J be
the mean of all tokens. The row is (1 - ε)X_(q+δ) + εJ/(1 + σ_j) with its target, and J/(1 + σ_j)
without it. The maps c_j M_δ/(1 - ε) with c_0 = -(1 + σ_0)/(σ_1 - σ_0) and c_1 = (1 + σ_1)/(σ_1 -
σ_0) have c_0 + c_1 = 1 and c_0/(1 + σ_0) + c_1/(1 + σ_1) = 0. So the two heads of δ add X_(q+δ) M_δ
with their target, and nothing without it.

(b) Let R_h(q, k) = e_h(k - q)/Z_h(q) > 0 be the weights of the tokens, Z_h(q) the sum of row q,
register included, and W_h the maps. Σ_h R_h(q, k) W_h is M_(k-q), and 0 at the *far* shifts k - q,
which are no offsets. So the T + 1 maps span T independent ones, and all their relations are
multiples of one; R(q, k) is one at each far shift. Let the axis have n tokens and offsets from -a
to b, b ≥ 1 (else turn it around), with gaps if the kernel is dilated, and let j be the least
positive one. Let p be the token n - j of the axis and q the one before, at one place on the other
axis.

*The sums Z_h(p) and Z_h(q) are equal.* Both have a token at a shift that is far: at 1 if j > 1,
else at the first of -1, -2, … that is no offset. So Z_h(p)/Z_h(q) is one number λ for all h, and
M_0 = Σ_h R_h(q, q) W_h = λΣ_h R_h(p, p) W_h = λM_0.

*A contradiction.* Row q has the shifts from 1 + j - n to j along the axis, row p those from j - n
to j - 1. So Σ e_h over the shifts of q at j is Σ e_h over those of p at j - n. Divided by Z_h,
times W_h and summed over h, the first is a sum of one or more of the M_δ at j, and the second of
those at j - n, or 0. They are independent, so that these are not equal.

(c) Give head δ the row (1 - ε)S_δ + εJ times 1 - η where its target is a token, and εJ(1 - η) where
it is not, the uniform head J(1 - η), and the register the rest. The maps of S.finite, divided by
1 - η, are exact: the leaks cancel as there, and a missing target gives nothing. ∎
"""

from fractions import Fraction
from itertools import product
from math import prod

import jax
import jax.numpy as jnp
import numpy as np

from convattn.bounds.majorant import majorant_of
from convattn.bounds.rounding import layer_error_bound
from convattn.constructions.register import SIGMAS
from convattn.fast.application import apply_attention
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import (
    DTYPES,
    EXP_AND_LOG1P,
    certified_identities,
    converted,
    equals_convolution,
    exact_convolution,
    integer_kernel,
    proved,
    whole_images,
)
from convattn_ledger.evidence.exact_tokens import cut_tokens
from convattn_ledger.evidence.layer_runs import within
from convattn_ledger.rational_matrices import rational_rank

GRIDS = ((1, 1), (1, 2), (2, 2), (3, 1), (4, 5), (5, 6))
KERNELS = ((1, 1), (3, 3), (5, 5), (2, 3), (4, 1))
LAYERS = (  # kernel size, patch size, sides in tokens
    ((3, 3), 1, ((1, 1), (2, 1), (4, 3))),
    ((5, 5), 1, ((2, 3),)),
    ((5, 5), 2, ((1, 1), (2, 3))),
    ((1, 1), 1, ((2, 2),)),
)
IMAGES = (((3, 3), 1, (1, 1)), ((5, 5), 1, (2, 3)), ((3, 3), 2, (16, 26)))
FEW = (((4,), (0, 1)), ((6,), (0, 1)), ((5,), (-1, 0, 1)), ((4, 2), ((0, 0), (1, 0))))


def shifts_between(grid: tuple[int, ...]) -> np.ndarray:
    """Key - query of all tokens: `[queries, keys, axes]`."""
    positions = np.stack(np.unravel_index(np.arange(prod(grid)), grid), axis=1)
    return positions[None] - positions[:, None]


def softmax_rows(targets: np.ndarray, weight: Fraction, register: Fraction) -> np.ndarray:
    """Rows over the tokens, with that weight at the targets, 1 elsewhere, and the register's."""
    weights = np.where(targets, weight, Fraction(1))
    return weights / (weights.sum(axis=1, keepdims=True) + register)


def pair_factors(shares: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    """c_0 and c_1 of the proof."""
    low, high = shares
    return -(1 + low) / (high - low), (1 + high) / (high - low)


def pairs_in_fractions(run: Run) -> str:
    """Each pair of heads is the matrix of its shift: so for all kernels and images; and (c)."""
    choices = ((Fraction(1, 2), (Fraction(1), Fraction(3))), (Fraction(2, 7), (Fraction(1, 3), 2)))
    count, grids = 0, GRIDS[: 4 if run.quick else None]
    for grid in grids:
        tokens, between = prod(grid), shifts_between(grid)
        for sizes, (epsilon, shares) in product(KERNELS[: 5 if tokens < 25 else 2], choices):
            for offset in product(*(range(-(k // 2), k - k // 2) for k in sizes)):
                targets = (between == np.array(offset)).all(axis=2)
                pair = 0
                for share, factor in zip(shares, pair_factors(shares), strict=True):
                    weight = 1 + tokens * (1 + share) * (1 / epsilon - 1)
                    row = softmax_rows(targets, weight, share * Fraction(tokens))
                    pair = pair + factor / (1 - epsilon) * row
                equal = (pair == targets).all()
                require(equal, f"{grid}, offset {offset}, ε = {epsilon}: not S_δ")
                weights = np.where(targets, 1 + tokens * (1 / epsilon - 1), Fraction(1))
                even = 1 - epsilon
                rest = 2 * tokens / epsilon - weights.sum(axis=1)  # (c), with η = 1/2
                knowing = weights / (weights.sum(axis=1) + rest)[:, None] - epsilon / (2 * tokens)
                require((rest > 0).all() and (knowing * 2 / even == targets).all(), "(c) fails")
                count += 1
    return f"{count} pairs on {len(grids)} grids from 1 × 1, K up to 5: each is S_δ exactly"


def layers_in_fractions(run: Run) -> str:
    """The stored numbers of real layers, in fractions, at every query; one layer for all sizes."""
    summary = []
    for sizes, patch, grids in LAYERS[1 if run.quick else 0 :]:
        kernel = run.rng(f"kernel {sizes}").integers(-3, 4, (*sizes, 2, 2))
        layer = converted(kernel, "float32", patch_size=patch, border="register")
        assert layer.register is not None
        maps = np.asarray(layer.output).astype(np.int64)
        shares = np.exp(np.asarray(layer.register.scores, np.float64))
        require((maps == np.asarray(layer.output)).all(), "the maps are no integers")
        offsets = layer.encoding.offsets
        require(
            layer.heads == 2 * len(offsets) and not np.any(layer.ring), "no 2T heads, or a ring"
        )
        for grid in grids:
            image = run.rng(f"image {grid}").integers(-9, 10, (1, *(n * patch for n in grid), 2))
            tokens = cut_tokens(image, patch).reshape(prod(grid), -1).astype(object)
            between, result = shifts_between(grid), 0
            for weights, share, block in zip(
                np.asarray(layer.encoding.weights), shares, maps.astype(object), strict=True
            ):
                exact = Fraction(min(SIGMAS, key=lambda near, share=share: abs(near - share)))
                require(abs(share - exact) < 1e-5, f"a register has σ = {share}, not {exact}")
                targets = (between == np.array(offsets[int(weights.argmax())])).all(axis=2)
                weight = 1 + prod(grid) * Fraction(float(weights.max()))
                result = result + softmax_rows(targets, weight, exact * prod(grid)) @ tokens @ block
            expected = cut_tokens(exact_convolution(image, kernel), patch).reshape(prod(grid), -1)
            require((result == expected).all(), f"K = {sizes}, P = {patch}, {grid}: not equal")
        summary.append(f"K = {sizes[0]}, P = {patch} on {len(grids)} grids")
    return "; ".join(summary) + ": equal at every query"


def relative_rows(scores: np.ndarray, grid: tuple[int, ...], register: int) -> np.ndarray:
    """Rows over the tokens of a head with a weight for each shift, and the register's."""
    between = shifts_between(grid) + np.array(grid) - 1
    weights = scores[tuple(np.moveaxis(between, 2, 0))]
    weights = np.vectorize(Fraction)(weights.astype(int))
    return weights / (weights.sum(axis=1, keepdims=True) + register)


def express(rows: list[np.ndarray], targets: list[np.ndarray]) -> bool:
    """Whether maps exist with which the heads are the convolution with independent M_δ."""
    left = [list(column) for column in zip(*(row.ravel() for row in rows), strict=True)]
    right = zip(*(target.ravel().astype(int) for target in targets), strict=True)
    both = [[*a, *map(Fraction, map(int, b))] for a, b in zip(left, right, strict=True)]
    return rational_rank(left) == rational_rank(both)


def too_few_heads(run: Run) -> str:
    """T + 1 relative heads of many kinds have no maps; the 2T heads of the proof have."""
    cases, sizes = 0, FEW[:3] if run.quick else FEW
    for grid, offsets in sizes:
        rng, tokens = run.rng(f"{grid} {offsets}"), prod(grid)
        shifts = [np.atleast_1d(offset) for offset in offsets]
        between = shifts_between(grid)
        targets = [(between == shift).all(axis=2) for shift in shifts]

        def biased(shift: np.ndarray, weight: int, grid: tuple[int, ...] = grid) -> np.ndarray:
            scores = np.ones([2 * n - 1 for n in grid], int)
            scores[tuple(shift + np.array(grid) - 1)] = weight
            return scores

        pairs = [
            relative_rows(biased(shift, 1 + tokens * (1 + share)), grid, share * tokens)
            for shift, share in product(shifts, (1, 3))
        ]
        require(express(pairs, targets), f"{grid}: the 2T heads of the proof have no maps")
        for case in range(4 if run.quick else 12):
            heads = list(pairs)
            rng.shuffle(heads)
            one_hot = [biased(shift, int(rng.integers(2, 40))) for shift in shifts]
            one_hot.append(biased(shifts[0], 1))
            drawn = [rng.integers(1, 9, [2 * n - 1 for n in grid]) for _ in one_hot]
            families = [heads[: len(shifts) + 1]]
            for scores in (one_hot, drawn, [a * b for a, b in zip(one_hot, drawn, strict=True)]):
                shares = rng.integers(0, 30, len(scores)).tolist()
                families.append(
                    [
                        relative_rows(*each)
                        for each in zip(scores, [grid] * len(scores), shares, strict=True)
                    ]
                )
            for number, rows in enumerate(families):
                if express(rows, targets):
                    raise EvidenceFailed(f"{grid}, case {case}: T + 1 heads, kind {number}, do it")
                cases += 1
    return f"{cases} sets of T + 1 heads on {len(sizes)} grids have no maps; 2T heads have"


def on_images(run: Run) -> str:
    """Crops of whole images, single pixels too, within the rounding bound; no ring."""
    attend = jax.jit(lambda layer, pixels: apply_attention(layer, pixels))
    images, comparisons = whole_images(run), []
    for number, (sizes, patch, (height, width)) in enumerate(IMAGES):
        kernel = integer_kernel(run.rng(f"kernel {number}"), sizes, 3, 4)
        crops = images[:, 8 : 8 + height, :width]
        expected = exact_convolution(crops, kernel)
        majorant = None
        for dtype in DTYPES if number == 1 else DTYPES[1:2]:
            layer = converted(kernel, dtype, patch_size=patch, border="register")
            typed = jnp.asarray(crops, dtype)
            if majorant is None:
                majorant = majorant_of(layer, kernel, None, crops)
            bound = layer_error_bound(layer, typed, majorant)
            line = within(dtype, attend(layer, typed), expected, bound)
            comparisons.append(f"{height} × {width}, P = {patch}, {line}")
    return f"{len(images)} images, no ring, one register; " + "; ".join(comparisons)


CLAIM = Claim(
    id="S.registers",
    source="this project, sharpening S.finite and S.padding at the border",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LAYER_EQUALITY, Kind.LOWER_BOUND),
    evidence=(
        proved(
            "sharpened/registers.v",
            covers="(a)'s 2T heads, for odd kernels on two axes without dilation, on pixels and "
            "patches, every size and leak, without a bias; not: that without such a key no layer "
            "does it (S.padding), (c)",
        ),
        proved(
            "sharpened/registers_few.v",
            covers="(b), for odd kernels without dilation and layers without a bias, where the "
            "first axis has several offsets, on m + 3 rows or more and on more columns than the "
            "kernel reaches",
        ),
        certified_identities(
            "S.registers", "the pairs on 3 × 3 pixels", "pairs", covers="(a) with ε = 1/3"
        ),
        Evidence("pairs in fractions", Level.TESTED, pairs_in_fractions),
        Evidence("layers in fractions", Level.TESTED, layers_in_fractions),
        Evidence("T + 1 heads are too few", Level.TESTED, too_few_heads),
        Evidence("on images of many sizes", Level.BOUNDED, on_images, EXP_AND_LOG1P, quick=False),
        equals_convolution(
            "3 × 3, P = 16, ε = 1/4",
            (3, 3),
            patch_size=16,
            form="exact",
            border="register",
            uniform_weight=0.25,
            dtypes=("float32",),
        ),
    ),
)
