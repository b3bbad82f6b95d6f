"""S.group: a lifting convolution of turns and reflections takes Σ d·min(m, n·d) heads and one more.

Claimed. A convolution whose filters are copied in all turns, or turns and reflections, takes one
head more than a number that the group's representations give.
True. It does for almost all filters, on pixels and at finite scores, if some token of the image is
out of reach of a query; in the limit it depends on the filters whether one head fewer will do.

Printed. Of layers: Romero and Cordonnier, ICLR 2021, arXiv:2010.00977 (read: the abstract and the
beginning), make self-attention equivariant to a group by positional encodings on which the group
acts; how many heads a group convolution takes they do not ask there. Of ranks: Schur and Burnside.
Ours is the number.

On pixels let G be p4, the four turns by 90°, or p4m, these and the four reflections. A filter on K
× K taps, odd or even, of one input channel is lifted to |G| output channels, its copies under G.
Let there be r filters of D_in channels, n = r·D_in, d and m the dimension of an irreducible
representation of G over the complex numbers and its multiplicity in the functions on the taps, and
ρ = Σ d·min(m, n·d). Generic filters take ρ + 1 heads at finite scores, where some query has an
image token outside its receptive field, and at least ρ in the limit.

Verified. Let the filters not all be 0. (1) The flattened kernel F of every such kernel has at most
the rank ρ, of generic filters exactly ρ. At finite scores the layer takes rank F + 1 heads, on
images in which every offset joins two tokens, if a query has an image token outside its receptive
field or some M_δ = 0 (S.kernel). For p4 ρ = min(4n, K²): K = 3: 4, 8, 9; K = 5: 4, 8, …, 24, 25.
For p4m K = 3: 7, 8, 9; K = 4: 8, 14, 16; K = 5: 8, 15, 22, 23, 24, 25.

(2) In the limit it takes rank F heads if some combination of the n filters' means over G is
nonnegative and not 0, and one more if none is. With n at least the number of G's orbits on the
taps, generic filters take ρ; with fewer an open set of filters takes ρ, and an open set ρ + 1. One
p4 filter of 3 × 3 with rank F = 4 takes four heads in the limit if the centre, the sum of the edges
and the sum of the corners are all ≥ 0 or all ≤ 0, and not all 0; else five.

(3) For odd K the layer is equivariant: it turns with the image, and with p4m mirrors with it, while
the copies change places. For even K it is so away from the border, up to a pixel on each axis: the
taps -(K-1)//2 to K//2 are not symmetric.

(4) Let a head be evaluated once for each g, its scores moved by g, its maps the same and written to
copy g. Without content such layers need, for generic filters, ρ_1 = min(n, K²) heads, and ρ_1 + 1
at finite scores as in (1), each evaluated |G| times: 16 times in all for one p4m filter of 3 × 3,
where (1) has 8 heads. What a symmetric head attends to recurs: there two heads, one with the
symmetry of an axis and one with that of a diagonal, have no more than 8 different attention maps.

Nothing to repair.

Proof. *The idea:* the rows of F span what the filters generate under G.

(1) The rows of F are the filters' orbits, and R, its row space, is the submodule that they
generate. Over C, where real matrices keep their ranks, the functions on the taps are a direct sum
of C^m ⊗ χ. In χ's part a filter is an m × d matrix A, and generates (columns of A) ⊗ χ, since G's
matrices span all d × d (Burnside). So n filters generate d·rank(A_1 … A_n) ≤ d·min(m, n·d)
dimensions, and different parts add up (Schur).

A minor of that order is a polynomial in the filters' entries that is not zero everywhere, as
complex filters with A_i at will exist; so it is not zero for real ones but a null set.

For p4 m_1 = (K² + 3)/4 and three times (K² - 1)/4 for odd K, four times K²/4 for even K. S.kernel
gives the heads.

(2) R holds a nonnegative y ≠ 0 if and only if its G-invariant part does: the mean of gy over G is
in R, nonnegative and not 0. That part is spanned by the filters' means. If n is at least the number
of orbits, the generic ones span all invariant functions, among them the constants.

If not, they span a generic subspace of R^orbits of dimension n; near one that is orthogonal to (1,
…, 1) none holds a nonnegative vector, near one that holds the ones all do, for a small change of
y > 0 leaves it positive. S.kernel gives the heads.

(3) Let T be a turn or reflection of the plane around a pixel. The zero-padded convolution of TX
with ψ is T(X * T⁻¹ψ), and T⁻¹ψ is another copy of the filter, if K is odd. For even K, T⁻¹ψ stands
one pixel beside it, and a border row of one output has no counterpart.

(4) Copy g of the output is a layer whose F is that of the filters moved by g: rank min(n, K²) for
generic ones; and S.kernel's heads for g = 1, moved by g, are such a layer.

*Symmetric heads:* the functions on 3 × 3 taps are the sums f_1 + f_2 of one with the first symmetry
and one with the second, as these are spaces of dimension 6 that share the 3 of all of p4m. For
large c the two heads have S.kernel's w = f_1 + c and c - f_2, and maps that cancel outside. ∎
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from convattn.bounds.flattened_kernel import exact_rank
from convattn.bounds.heads import count_heads
from convattn.bounds.kernel_heads import count_heads_of_kernel
from convattn.bounds.lifted_kernel import lifted_kernel, lifted_rank, multiplicities
from convattn.bounds.nonnegative_vector import nonnegative_vector
from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.given_kernel import mixture_heads
from convattn.constructions.row_basis import row_basis
from convattn.fast.application import apply_attention
from convattn.operators.roundoff import ASSUMPTION
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.bounds.mixture_error import given_kernel_majorant, mixture_error_bound
from convattn_ledger.evidence import certified, exact_convolution, proved, whole_images
from convattn_ledger.evidence.layer_runs import within

ORDERS = {"p4": 4, "p4m": 8}
LARGEST = 2**30


def draw(run: Run, *salt: int, shape: tuple[int, ...]) -> Int[np.ndarray, "K K in filters"]:
    """Filters of integers, so large that draws in the null set of (1) are not met."""
    return run.rng("filters", *salt).integers(-LARGEST, LARGEST, shape)


def orbits_of(size: int, group: str) -> int:
    """How many orbits the taps have: sums of the copies of filters of one tap, up to a factor."""
    taps = np.eye(size * size, dtype=int).reshape(size, size, 1, -1)
    copies = lifted_kernel(taps, group).reshape(size * size, size * size, -1)
    return len(np.unique((copies.sum(axis=2) > 0).T, axis=0))


def ranks(run: Run) -> str:
    """Ranks of F over the rationals: of drawn filters they are ρ, of sparse ones no more."""
    ranks_by_case: dict[str, list[int]] = {}
    for group in ORDERS:
        for size in range(1, 6 if run.quick else 8):
            parts = multiplicities(size, group)
            if sum(d * m for d, m in parts) != size**2 or parts[0][1] != orbits_of(size, group):
                raise EvidenceFailed(f"{group}: {parts} is not the space of {size} × {size} taps")
            numbers = ranks_by_case[f"{group}, K = {size}"] = []
            while not numbers or numbers[-1] < size**2:
                n = len(numbers) + 1
                filters = draw(run, len(ranks_by_case), n, shape=(size, size, 1, n))
                numbers.append(lifted_rank(size, group, n))
                for kernels in (filters, np.where(abs(filters) > LARGEST // 3 * 2, filters, 0)):
                    rank = exact_rank(lifted_kernel(kernels, group).reshape(size**2, -1))
                    if rank > numbers[-1] or (rank < numbers[-1] and kernels is filters):
                        raise EvidenceFailed(f"{group}, K = {size}, n = {n}: {rank}, ρ {numbers}")
    known = {"p4, K = 3": [4, 8, 9], "p4m, K = 3": [7, 8, 9], "p4m, K = 5": [8, 15, 22, 23, 24, 25]}
    for name, expected in known.items():
        require(
            ranks_by_case[name] == expected, f"{name}: {ranks_by_case[name]}, expected {expected}"
        )
    return "; ".join(f"{name}: {numbers}" for name, numbers in ranks_by_case.items())


def limits(run: Run) -> str:
    """Heads in the limit against the means over the group, and against `count_heads`."""
    cases = {False: 0, True: 0}
    for case in range(24 if run.quick else 80):
        group, size, count = list(ORDERS)[case % 2], 2 + case // 2 % 3, 1 + case // 6 % 3
        filters = draw(run, case, shape=(size, size, 1, count))
        if case % 4 == 3:
            filters[0, 0] -= filters.sum(axis=(0, 1))
        kernel = lifted_kernel(filters, group)
        means = kernel.reshape(size**2, count, -1).sum(axis=2).T
        basis = row_basis(means.astype(object))[0].tolist() if means.any() else []
        one_sign = bool(basis) and nonnegative_vector(basis)[0] is not None
        heads = count_heads_of_kernel(kernel)
        counts = count_heads(size, group=group, out_channels=count)
        if (heads.limit, heads.exact) != (heads.rank + (not one_sign), heads.rank + 1):
            raise EvidenceFailed(f"{group}, K = {size}: {heads}, the means are {means.tolist()}")
        if heads.limit > counts.limit.necessary or heads.exact > counts.exact.necessary:
            raise EvidenceFailed(f"{group}, K = {size}: {heads}, more than {counts}")
        cases[one_sign] += 1
    for group, size, count, expected in (("p4", 3, 1, (5, 5)), ("p4m", 5, 6, (25, 26))):
        counts = count_heads(size, group=group, out_channels=count)
        numbers = counts.limit.necessary, counts.exact.necessary
        require(numbers == expected, f"{group}, {count} filters: {numbers}, expected {expected}")
    require(min(cases.values()) > 0, f"{cases}: one side is untested")
    return f"rank F in the limit for {cases[True]} kernels, one more for {cases[False]}"


def heads_with_shared_maps(run: Run) -> str:
    """(4) in fractions: S.kernel's heads of one copy, moved by the group, are the lifted kernel."""
    for case, group in enumerate(ORDERS):
        filters = draw(run, case, shape=(3, 3, 1, 1 + case))
        flat = filters.reshape(9, -1).T.astype(object)
        basis, pivots = row_basis(flat)
        weights, coefficients = mixture_heads(basis)
        moved = lifted_kernel(weights.T.reshape(3, 3, 1, -1), group).reshape(9, len(weights), -1)
        totals = np.array([[1 + Fraction(sum(row))] for row in weights], object)
        maps = (coefficients / totals) @ flat[:, list(pivots)].T
        rest = np.einsum("thg,ho->tog", moved, maps)
        rest = rest - lifted_kernel(filters, group).reshape(9, len(flat), -1)
        if rest.any() or maps.sum(axis=0).any():
            raise EvidenceFailed(f"{group}: {len(weights)} moved heads miss it by {rest.tolist()}")
    kernel = draw(run, 2, shape=(3, 3))
    odd, first = kernel - kernel.T, np.zeros((3, 3), int)
    first[0], first[2, 1] = odd[0, [2, 1, 2]], -odd[1, 2]
    weights = np.stack([first, first - kernel]) + 4 * LARGEST  # f_1 + c and c - f_2
    moved = lifted_kernel(weights.transpose(1, 2, 0)[:, :, None], "p4m").reshape(9, 2, 8)
    expected = lifted_kernel(kernel[:, :, None, None], "p4m").reshape(9, 8)
    require((moved[:, 0] - moved[:, 1] == expected).all(), "symmetric heads miss the lifted kernel")
    maps = len(np.unique(moved.reshape(9, -1), axis=1).T)
    require(maps == 8 and weights.min() > 0, f"{maps} maps, the least weight is {weights.min()}")
    return (
        "2 heads for a p4 filter, 3 for two of p4m, each moved by the group: the lifted kernel; "
        f"2 symmetric heads for a p4m filter: {maps} maps"
    )


def moved_outputs(outputs: np.ndarray, order: int, mirror: bool) -> np.ndarray:
    """The outputs of an image, as they should be of the turned or the mirrored image."""
    moved = np.flip(outputs, 2) if mirror else np.rot90(outputs, axes=(1, 2))
    first = [-g % 4 + (4 - g // 4 * 4) for g in range(order)]
    copies = first if mirror else [(g - 1) % 4 + g // 4 * 4 for g in range(order)]
    return moved.reshape(*moved.shape[:3], -1, order)[..., copies].reshape(moved.shape)


def layer_on_images(group: str, size: int, filters: int, heads: int, channels: int = 1) -> Evidence:
    """`conv_to_attention(num_heads="min")` on whole images, on turned and on mirrored ones."""

    def check(run: Run) -> str:
        images = whole_images(run, 2 if run.quick else 6)[..., :channels]
        shape = (size, size, channels, filters)
        numbers = draw(run, shape=shape) // 2**12  # exact in float32
        kernel, order = lifted_kernel(numbers, group), ORDERS[group]
        known, apply, comparisons = exact_convolution(images, kernel), jax.jit(apply_attention), []
        turned = np.rot90(images, axes=(1, 2))
        views = [(images, known), (turned, moved_outputs(known, order, False))]
        if group == "p4m":
            views.append((np.flip(images, 2), moved_outputs(known, order, True)))
        for dtype in ("float64", "float32"):
            layer = conv_to_attention(jnp.asarray(kernel, dtype), num_heads="min")
            require(layer.heads == heads, f"the layer has {layer.heads} heads, expected {heads}")
            for view, expected in views:
                majorant = given_kernel_majorant(layer, kernel, None, view)
                typed = jnp.asarray(view, dtype)
                bound = mixture_error_bound(layer, typed, majorant)
                comparisons.append(within(dtype, apply(layer, typed), expected, bound))
        summary = f"{len(images)} images, {heads} heads, {len(views)} views each: "
        return summary + "; ".join(comparisons)

    name = f"{group}, {size} × {size}, {filters * channels} filters: {heads} heads"
    return Evidence(name, Level.BOUNDED, check, assumes=ASSUMPTION, quick=False)


CLAIM = Claim(
    id="S.group",
    source="this project, sharpening S.kernel for a group; beside Romero and Cordonnier 2021",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LAYER_EQUALITY, Kind.LOWER_BOUND),
    evidence=(
        proved(
            "sharpened/group.v",
            covers="(1) for p4 and odd K: rank F is at most min(4n, K²); some filters reach it, "
            "and exact layers of those, by position, on more than (K-1)/2 pixels a side, "
            "need so many heads, and one more if no weight is zero and a token of the "
            "image is out of reach; not: generic filters, limits, that rank F + 1 suffice, "
            "even K",
        ),
        proved(
            "sharpened/group_mirrored.v",
            covers="(1) for p4m and odd K, from above: at most so many heads and one more, with a "
            "ring, at finite scores, d·m the rank of χ's sum over the group; not: the values of m, "
            "filters that reach the number, even K",
        ),
        certified("S.group", covers="filters of one draw, K = 3, 4, 5"),
        Evidence("ranks", Level.TESTED, ranks),
        Evidence("limits", Level.TESTED, limits),
        Evidence("heads with shared maps", Level.TESTED, heads_with_shared_maps),
        layer_on_images("p4m", 3, 1, 8),
        layer_on_images("p4m", 5, 2, 16),
        layer_on_images("p4", 5, 1, 13, channels=3),
    ),
)
