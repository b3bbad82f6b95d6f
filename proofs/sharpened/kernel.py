"""S.kernel: one given kernel takes exactly one head more than the rank of its F.

Claimed. A given convolution takes exactly one head more than the rank of its flattened kernel at
finite scores, and as many as the rank in the limit only under a condition on signs.
True. So it is for heads that attend by position, with zero tokens around the image, if some token
of the image or some offset is not read; if the values are to stay bounded, the limit asks for more.

Printed. Of matrices: Gillis and Kumar, SIAM J. Matrix Anal. Appl. 36 (2015), 1404-1424,
arXiv:1410.7220, factorise a matrix as U·V with V nonnegative. One of rank k has such factors of
rank k + 1 (Theorem 2.1); Theorem 3.1 says when those of rank k suffice; the best factors need not
exist (they call it ill-posed), and at rank one they are NP-hard to find. Ours is the translation to
attention, whose rows are positive, sum to one and serve every image size, the converse where a
token is read by no tap, and the evidence. Let F ≠ 0 be the flattened kernel, ρ its rank, R its row
space. On images of at least m + 1 tokens a side, with a ring of m zero tokens: where some query has
an image token outside its receptive field, or some M_δ = 0, content-free heads at finite scores
need, and suffice with, exactly ρ + 1. In the limit ρ heads suffice there if and only if R contains
a nonzero nonnegative vector. For example, a one-channel kernel of mixed sign needs 2 heads even in
the limit. The lower bounds hold without a ring too.

Verified. The same. One set of value maps and of the w_hδ serves every image size; the scores at the
offsets are log(1 + N·w_hδ) and so depend on the number N of keys. A bound in the limit means that
layers tend to the convolution, their values too. If the values are to stay bounded, so that it is
attention alone that has a limit, ρ heads suffice if and only if the nonnegative vectors of R span
R, which is more: for two output channels that read the centre, and the difference of the left and
the right neighbour, two heads suffice in the limit, and the values must grow without bound.

Nothing to repair.

Proof. *The idea:* heads factor F into maps and weights, and a weight that is positive where nothing
is read costs one head.

*Finite, upper.* Let b_1, …, b_ρ be a basis of R, F = Σ C_i b_i, d_δ = max(0, max_i -b_iδ), w_i =
b_i + d, w_0 = d. The softmax of log(1 + N·w_hδ) at the offsets, 0 elsewhere, is (Σ_δ w_hδ S_δ +
J)/Z_h with Z_h = 1 + Σ_δ w_hδ. With the maps Z_i C_i and -Z_0 Σ C_i the terms of d and J cancel,
and Σ_i Σ_δ b_iδ S_δ X C_i is left.

*Finite, lower.* vec(M_δ) = Σ_h a_h(δ) vec(W_h) for every δ that joins two tokens. If there are ρ
heads, the W_h are independent. At a shift σ with nothing to read, 0 = Σ_h a_h(σ) W_h gives a_h(σ) =
0, and softmax is positive.

*Limit, upper.* Let y ∈ R be nonnegative, not 0, and b_1 = y, b_2, … a basis. Take u > 0 with b_i +
u > 0 over all keys, the heads y + εu, y + ε(b_i + u), normalised, with C_1 - Σ C_i/ε and C_i/ε
before normalisation: the sum is F + ε C_1 u.

*Limit, lower.* If layers of ρ heads tend to F, then from some point on their attention, restricted
to the image's tokens, has rank ρ and its row space tends to R. Scale one of its rows to the sum
one: a limit point is nonnegative, has the sum one and lies in R. By Gordan, there is none if and
only if some z > 0 has F z = 0. With bounded values a subsequence of values and attention converges,
and ρ nonnegative rows span R. Fewer than ρ heads never do: matrices of rank below ρ are closed. ∎
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, Shaped

from convattn.bounds.kernel_heads import count_heads_of_kernel
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.given_kernel import given_kernel_layer, mixture_heads
from convattn.constructions.row_basis import distinct_rows, row_basis
from convattn.fast.application import apply_attention
from convattn.operators.roundoff import ASSUMPTION
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.bounds.mixture_error import given_kernel_majorant, mixture_error_bound
from convattn_ledger.certificates.given_kernel import named_kernel
from convattn_ledger.evidence import certified, exact_convolution, proved
from convattn_ledger.evidence.exact_tokens import cut_tokens, tokens_at
from convattn_ledger.evidence.layer_runs import DTYPES, within
from convattn_ledger.evidence.printed_output_map import (
    flattened_blocks,
    output_blocks,
    patch_offsets,
)
from convattn_ledger.evidence.real_images import whole_images


def exact_mixture_layer(
    images: Int[np.ndarray, "batch height width channels"],
    patch_size: int,
    weights: Shaped[np.ndarray, "heads offsets"],
    blocks: Shaped[np.ndarray, "heads patch_in patch_out"],
    offsets: tuple[tuple[int, int], ...],
    ring: int,
) -> Shaped[np.ndarray, "batch rows columns patch_out"]:
    """Σ_h A_h X V_h on tokens in fractions, A_h the softmax of log(1 + N·w_hδ) with a zero ring.

    A key at offset δ has 1 + N·w_hδ of the sum N + N·Σ w_h, every other key 1; N counts the ring.
    """
    tokens = cut_tokens(images, patch_size).astype(object)
    keys = (tokens.shape[1] + 2 * ring) * (tokens.shape[2] + 2 * ring)
    everything = tokens.sum(axis=(1, 2), keepdims=True)
    shifted = [tokens_at(tokens, offset) for offset in offsets]
    total: np.ndarray | int = 0
    for row, block in zip(weights, blocks, strict=True):
        mixed = everything + sum(
            (keys * w * array for w, array in zip(row, shifted, strict=True)), Fraction(0)
        )
        total = total + (mixed / (keys * (1 + sum(row, Fraction(0))))) @ block
    return np.asarray(total)


def given_kernel_on_images(
    name: str,
    kernel: Int[np.ndarray, "K1 K2 in out"],
    heads: int,
    *,
    patch_size: int = 1,
    dtypes: tuple[str, ...] = DTYPES,
    quick: bool = False,
) -> Evidence:
    """The layer of ρ + 1 heads against the exact convolution, dtype by dtype.

    Args:
        kernel: Integers, for three channels; |outputs| must stay below float16's range.
        heads: What ρ + 1 should be.
    """

    def check(run: Run) -> str:
        images = whole_images(run)
        bias = run.rng("bias").integers(-8, 9, kernel.shape[-1])
        expected = exact_convolution(images, kernel) + bias
        comparisons, majorant = [], None
        for dtype in dtypes:
            layer = given_kernel_layer(
                jnp.asarray(kernel, dtype), jnp.asarray(bias, dtype), patch_size=patch_size
            )
            require(layer.heads == heads, f"the layer has {layer.heads} heads, expected {heads}")
            typed = jnp.asarray(images, dtype)
            if majorant is None:
                majorant = given_kernel_majorant(layer, kernel, bias, images)
            bound = mixture_error_bound(layer, typed, majorant)
            result = jax.jit(apply_attention)(layer, typed)
            comparisons.append(within(dtype, result, expected, bound))
        return f"{len(images)} images, {heads} heads; " + "; ".join(comparisons)

    return Evidence(name, Level.BOUNDED, check, assumes=ASSUMPTION, quick=quick)


def random_kernel(rng: np.random.Generator, size: int, channels: tuple[int, int], rank: int):
    """A sum of so many products of a mask on the taps and a matrix on the channels."""
    masks = rng.integers(-2, 3, (rank, size, size))
    matrices = rng.integers(-2, 3, (rank, *channels))
    return np.einsum("rab,rij->abij", masks, matrices)


def layer_in_fractions(run: Run) -> str:
    """ρ + 1 heads in exact arithmetic, on images of several sizes, all with the same weights."""
    cases, shapes = 6 if run.quick else 18, set()
    for case in range(cases):
        rng = run.rng(case)
        size, patch = ((3, 1), (3, 2), (5, 2))[case % 3]
        kernel = random_kernel(rng, size, (1, 2) if case % 2 else (2, 1), int(rng.integers(1, 4)))
        if not kernel.any():
            continue
        blocks, offsets = output_blocks(kernel, patch), patch_offsets(size, patch)
        geometry = ConvolutionGeometry.of((size, size), patch)
        basis, pivots = row_basis(distinct_rows(kernel.astype(object), geometry)[0])
        rank = int(np.linalg.matrix_rank(flattened_blocks(blocks)))
        weights, coefficients = mixture_heads(basis)
        if len(weights) != rank + 1 or min(weights.min(), 0) < 0:
            raise EvidenceFailed(f"case {case}: {len(weights)} heads of rank {rank}: {weights}")
        maps = np.einsum("hi,ixy->hxy", coefficients, blocks[list(pivots)].astype(object))
        for sides in ((1, 2), (3, 2)):
            image = rng.integers(0, 256, (1, sides[0] * patch, sides[1] * patch, kernel.shape[2]))
            ring = offsets[-1][0]
            result = exact_mixture_layer(image, patch, weights, maps, offsets, ring)
            if (result != cut_tokens(exact_convolution(image, kernel), patch)).any():
                raise EvidenceFailed(f"case {case}: {len(weights)} heads miss the convolution")
        shapes.add((size, patch, rank))
    return f"{cases} kernels, (K, P, ρ) among {sorted(shapes)}: ρ + 1 heads are the convolution"


def alternatives(run: Run) -> str:
    """Random kernels: what decides about the limit, verified by multiplying out."""
    cases, with_y = 40 if run.quick else 150, 0
    for case in range(cases):
        rng = run.rng(case)
        size, patch = ((3, 1), (3, 2), (5, 1))[case % 3]
        kernel = random_kernel(rng, size, (2, 2), int(rng.integers(1, 4)))
        if not kernel.any():
            continue
        flattened = flattened_blocks(output_blocks(kernel, patch))
        heads, rank = count_heads_of_kernel(kernel, patch), int(np.linalg.matrix_rank(flattened))
        if (heads.rank, heads.exact) != (rank, rank + 1) or heads.limit > heads.bounded:
            raise EvidenceFailed(f"case {case}: {heads} for a kernel of rank {rank}")
        if heads.nonnegative is not None:
            y = np.array(heads.nonnegative)
            scale = int(np.lcm.reduce([entry.denominator for entry in y]))
            whole = np.array([[int(entry * scale) for entry in y]], float)
            together = np.linalg.matrix_rank(np.concatenate([flattened, whole]))
            if min(y) < 0 or not any(y) or together != rank or heads.limit != rank:
                raise EvidenceFailed(f"case {case}: {y} shows nothing")
            with_y += 1
        else:
            z = np.array(heads.positive)
            if min(z) <= 0 or (flattened.astype(object) @ z).any() or heads.limit != rank + 1:
                raise EvidenceFailed(f"case {case}: {z} shows nothing")
    if not 0 < with_y < cases:
        raise EvidenceFailed(f"{with_y} of {cases} have a nonnegative vector: one side is untested")
    return f"{cases} kernels: {with_y} with y ≥ 0 in the row space, the others with z > 0, F z = 0"


def towards_the_limit(run: Run) -> str:
    """Two heads for 'cross' in fractions: the rest shrinks like ε, and the values grow like 1/ε.

    R is spanned by y = e_0 and b = e_left - e_right. With all M_δ flattened to C_1 (centre) and
    C_2, the heads y + εu and y + ε(b + u), u = 2 at every one of N keys, leave εC_1u behind.
    """
    flattened = flattened_blocks(output_blocks(named_kernel("cross"), 1)).astype(object)
    keys = 20  # the nine offsets first
    y, b, u = (np.full(keys, Fraction(entry), object) for entry in (0, 0, 2))
    y[4], b[3], b[5] = Fraction(1), Fraction(1), Fraction(-1)
    targets = np.concatenate([flattened, np.zeros((2, keys - 9), int)], axis=1)
    rests, values = [], []
    for epsilon in (Fraction(1, 10**n) for n in range(1, 6)):
        rows = [y + epsilon * u, y + epsilon * (b + u)]
        attention = [row / row.sum() for row in rows]
        if min(min(row) for row in attention) <= 0:
            raise EvidenceFailed(f"ε = {epsilon}: a weight is not positive")
        maps = [flattened[:, 4] - flattened[:, 3] / epsilon, flattened[:, 3] / epsilon]
        maps = [value_map * row.sum() for value_map, row in zip(maps, rows, strict=True)]
        rest = sum(np.outer(m, a) for m, a in zip(maps, attention, strict=True)) - targets
        if (rest != epsilon * np.outer(flattened[:, 4], u)).any():
            raise EvidenceFailed(f"ε = {epsilon}: the rest is {rest}")
        rests.append(max(abs(entry) for entry in rest.ravel()))
        values.append(max(abs(entry) for value_map in maps for entry in value_map))
    if not (rests[-1] * 1000 < rests[0] and values[-1] > 1000 * values[0]):
        raise EvidenceFailed(f"the rests are {rests}, the values {values}")
    counts = {
        name: (heads.rank, heads.limit, heads.bounded, heads.exact)
        for name in ("box", "laplace", "sobel", "cross")
        for heads in [count_heads_of_kernel(named_kernel(name))]
    }
    expected = {
        "box": (1, 1, 1, 2),
        "laplace": (1, 2, 2, 2),
        "sobel": (2, 3, 3, 3),
        "cross": (2, 2, 3, 3),
    }
    require(counts == expected, f"(ρ, limit, bounded, exact) are {counts}, expected {expected}")
    return f"rest {rests[0]} to {rests[-1]}, values {values[0]} to {values[-1]}; {counts}"


LOW_RANK = np.einsum(
    "rab,rij->abij",
    np.array([[[1, 2, 1], [0, 0, 0], [-1, -2, -1]], [[1, 1, 1], [1, 1, 1], [1, 1, 1]]]),
    np.array(
        [[[1, 0, 1, 2], [0, 1, 1, 0], [0, 0, -1, 1]], [[0, 1, 0, 0], [1, 0, 0, 1], [1, 1, -1, 0]]]
    ),
)

CLAIM = Claim(
    id="S.kernel",
    source="this project, sharpening L21 Theorem 1 and S.finite for one kernel",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LAYER_EQUALITY, Kind.LOWER_BOUND),
    evidence=(
        proved(
            "sharpened/kernel.v",
            covers="exact layers free of content, with no weight zero, have at least ρ + 1 heads, "
            "ring or not: odd K, F ≠ 0, more than m tokens a side, where some query has an image "
            "token outside its field or some M_δ = 0; for content scores see S.content",
        ),
        proved(
            "sharpened/kernel_limit.v",
            covers="in the limit ρ heads suffice, given a nonzero nonnegative vector in R, for odd "
            "K: for each ε > 0 one set of w and of value maps is within ε at every size with a "
            "ring of m zero tokens, on images with pixels in [-1, 1]; not: values that stay "
            "bounded",
        ),
        proved(
            "sharpened/kernel_limit_necessary.v",
            covers="in the limit ρ heads do not suffice, given z > 0 with Fz = 0: odd K, F ≠ 0, "
            "nonnegative weights free of content, more than m tokens a side, ring or not",
        ),
        proved(
            "sharpened/kernel_limit_iff.v",
            covers="in the limit ρ heads suffice if and only if R contains a nonzero nonnegative "
            "vector, for odd K and F ≠ 0: with a ring at all sizes, uniformly on images with "
            "pixels in [-1, 1], or with any nonnegative weights free of content on some size of "
            "more than m tokens a side, on images of zeros and ones; not: the condition for values "
            "that stay bounded",
        ),
        proved(
            "sharpened/kernel_sufficient.v",
            covers="ρ + 1 heads at finite scores suffice, for odd K with a ring of m zero tokens, "
            "one set of w and of value maps for every image size",
        ),
        certified("S.kernel"),
        Evidence("layers in fractions", Level.TESTED, layer_in_fractions),
        Evidence("alternatives of the limit", Level.TESTED, alternatives),
        Evidence("towards the limit", Level.TESTED, towards_the_limit),
        given_kernel_on_images("rank 2, pixels: three heads", LOW_RANK, 3),
        given_kernel_on_images(
            "Laplacian, P = 4: six heads",
            named_kernel("laplace") * np.eye(3, dtype=int),
            6,
            patch_size=4,
            dtypes=("float64", "bfloat16"),
        ),
    ),
)
