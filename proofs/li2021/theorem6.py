"""Theorem 6: on patches, eight heads cannot express some kernel.

Claimed. On patches that are at least as large as the kernel, P ≥ K, eight heads cannot express some
K × K convolution.
True. They cannot for odd K from 3 to 2P + 1, if P ≥ 2 and the image has two patches a side or more;
for K = 1, or on one patch, two heads are enough.

Printed. "In the patch-input setting, suppose P ≥ K and N_H ≤ 8. There exists a convolutional kernel
weight W^C ∈ R^(K×K×D_in×D_out), such that any MHSA layer with N_H heads and relative positional
encoding cannot express conv(·; W^C)."

Verified. Let K be odd, P ≥ 2 and 3 ≤ K ≤ 2P + 1, and let the image have at least two patches a
side, with a ring of zero patches or without. For some kernel, with any D_in and D_out, eight heads
differ from the convolution, whatever the attention, provided it does not depend on the content, in
the limit too; and with content scores if the weights are continuous in the image at zero. With nine
heads it is expressed in the limit (Corollary 4). For K = 1 one head does it in the limit and two do
exactly, and on an image of one patch one head does it exactly, for every kernel.

Repair. The print is false for K = 1, where conv(X)_q = X_q M_0 takes one head in the limit, and for
one patch a side; both are excluded now. Sharpened from P ≥ K to the whole range 3 ≤ K ≤ 2P + 1 of
Corollary 4 (S.heads). Five points of the proof. (1) In its last step rows and columns are exchanged
throughout: as P ≥ K, every row of W̃^C (P⁴ × 9) is one-hot or zero, its nine columns are not zero,
and nine rows are selected. (2) "a_δ^k(γ) > 0 only for δ ∈ Δ" is unjustified, as values of several
heads may cancel, and unneeded. (3) It looks at one query γ with all nine neighbours, three patches
a side; since the values are shared, two suffice. (4) "As long as all the entries in the
convolutional kernel is non-zero" it is true that nine are needed, for K ≥ 3 and P ≥ K; for K > P it
need not be (a positive 5 × 5 kernel at P = 2 takes four). (5) Eq. 17 writes q both for the output
pixel and for the index that is summed; on its left it should be p.

Errata.
- Theorem 6 | any K, any image, any content scores | odd K ≥ 3, two patches a side or more, and
  attention without content or continuous in the image at zero | S.content
- Theorem 6 | P ≥ K | Sharper: P ≥ 2 and K ≤ 2P + 1 | S.heads
- eq. 17 | q twice | Misprint: p on the left
- last step of A.3 | rows and columns | Misprint: exchanged throughout

Proof. *The idea:* one kernel has nine blocks that are independent.

As in Theorem 5, every block M_δ whose δ joins two patches of the image lies in the span of the W_h,
so N_H is at least the rank of F, whose columns are the flattened M_δ; with two patches a side all
nine offsets occur.

F holds W_(Pδ+s)[i, j] in the rows s = q - p ∈ {-(P-1), …, P-1}².

Take the box of 3 × 3 ones in the middle of the kernel, in one channel pair. In one dimension, on
the rows s = P-1, 0, -(P-1) and the columns -1, 0, 1, it has the minor [[1, b, 0], [0, 1, 0], [0, b,
1]] with b = 1 if P = 2, else 0: determinant one. The box is a product, so in two dimensions the
minor on the nine pairs is the Kronecker square, with determinant one.

K = 1: M_0 alone is not zero, one head attends to its own patch in the limit; at finite M a uniform
head takes the leak back (S.finite).

One patch: conv(X) = X M_0; on the bare grid its row is 1, with the ring 1/N, which the value N·M_0
undoes. ∎
"""

from fractions import Fraction

import numpy as np

from convattn.bounds.flattened_kernel import exact_rank
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import certified, equals_convolution, exact_convolution, proved
from convattn_ledger.evidence.exact_tokens import cut_tokens, join_tokens
from convattn_ledger.evidence.head_floor import fewer_heads_fail
from convattn_ledger.evidence.printed_output_map import flattened_blocks, output_blocks


def embedded_box(size: int) -> np.ndarray:
    """Ones in the middle 3 × 3 of a K × K kernel of one channel pair."""
    kernel = np.zeros((size, size, 1, 1), np.int64)
    middle = slice(size // 2 - 1, size // 2 + 2)
    kernel[middle, middle] = 1
    return kernel


def ranks_over_sizes(run: Run) -> str:
    """The box, and a random kernel without zeros, over P ≤ 5 and 3 ≤ K ≤ 2P + 1, exactly."""
    sizes = 0
    for patch in range(2, 6):
        for size in range(3, 2 * patch + 2, 2):
            rng = run.rng(patch, size)
            nonzero = rng.choice([-1, 1], (size, size, 1, 1)) * rng.integers(
                1, 99, (size, size, 1, 1)
            )
            kernels = {"box": embedded_box(size), "generic": nonzero}
            for name, kernel in kernels.items():
                rank = exact_rank(flattened_blocks(output_blocks(kernel, patch)))
                require(rank == 9, f"P = {patch}, K = {size}, {name}: rank {rank}")
            sizes += 1
        one = exact_rank(flattened_blocks(output_blocks(np.full((1, 1, 1, 1), 7), patch)))
        require(one == 1, f"P = {patch}, K = 1: rank {one}")
    return f"{sizes} pairs (K, P) with 3 ≤ K ≤ 2P + 1: rank nine, box and generic; K = 1: rank one"


def last_step(run: Run) -> str:
    """For P ≥ K the rows of W̃^C, not its columns, are one-hot or zero; for P < K neither are.

    There a kernel without zeros can have a smaller rank: with w = (1, 1, 2, 1, 1) and P = 2 the
    minor in one dimension is w_-1 w_0 w_1 - w_2 w_-1² - w_-2 w_1² = 0, so w has rank two and w ⊗ w
    four.
    """
    ranks = {}
    for size, patch in ((3, 3), (3, 4), (5, 5), (3, 2), (5, 3), (5, 2)):
        ones = np.ones((size, size, 1, 1), np.int64)
        flattened = flattened_blocks(output_blocks(ones, patch)) != 0
        if ((flattened.sum(axis=1) <= 1).all()) != (patch >= size):
            raise EvidenceFailed(
                f"K = {size}, P = {patch}: rows with {flattened.sum(axis=1)} entries"
            )
        if (flattened.sum(axis=0) <= 1).all():
            raise EvidenceFailed(f"K = {size}, P = {patch}: the columns are one-hot after all")
        ranks[size, patch] = exact_rank(flattened.astype(np.int64))
    line = np.array([1, 1, 2, 1, 1])
    degenerate = np.outer(line, line)[:, :, None, None]
    rank = exact_rank(flattened_blocks(output_blocks(degenerate, 2)))
    if set(ranks.values()) != {9} or rank != 4:
        raise EvidenceFailed(f"ranks of all ones {ranks}, of w ⊗ w {rank}")
    return "rows are one-hot or zero iff P ≥ K, columns never; w ⊗ w of K = 5, P = 2 has rank four"


def one_patch_takes_one_head(run: Run) -> str:
    """One patch a side: X M_0 is the zero-padded convolution, with the ring too, exactly."""
    for size, patch in ((3, 2), (3, 4), (5, 3), (5, 2)):
        rng = run.rng(size, patch)
        kernel = rng.integers(-9, 10, (size, size, 2, 3))
        images = rng.integers(-9, 10, (3, patch, patch, 2))
        centre = output_blocks(kernel, patch)[4]
        tokens = cut_tokens(images, patch)
        ringed = np.pad(tokens, [(0, 0), (1, 1), (1, 1), (0, 0)]).astype(object)
        mixed = ringed.sum(axis=(1, 2), keepdims=True) * Fraction(1, 9)  # the uniform head
        expected = exact_convolution(images, kernel)
        if (join_tokens(tokens @ centre, patch) != expected).any():
            raise EvidenceFailed(f"K = {size}, P = {patch}: X M_0 is not the convolution")
        if (join_tokens(mixed @ (9 * centre.astype(object)), patch) != expected).any():
            raise EvidenceFailed(f"K = {size}, P = {patch}: the uniform head differs")
    return "four pairs (K, P): one head, on the bare grid and uniform with the ring, equals it"


def offsets_at(query: tuple[int, int], side: int) -> set[tuple[int, int]]:
    """Key minus query for every key of a grid of side × side patches."""
    return {(row - query[0], column - query[1]) for row in range(side) for column in range(side)}


def offsets_of_two_patches(run: Run) -> str:
    """Two patches a side: every query sees four patches, all queries together nine offsets."""
    each = [offsets_at((row, column), 2) for row in range(2) for column in range(2)]
    if {len(offsets) for offsets in each} != {4} or len(set().union(*each)) != 9:
        raise EvidenceFailed(f"offsets by query: {each}")
    return "2 × 2 patches: four offsets at each query, nine over the queries"


CLAIM = Claim(
    id="L21.theorem6",
    source="Li et al. 2021, Theorem 6 and appendix A.3, eqs. 16 to 20",
    verdict=Verdict.AMENDED,
    kinds=(Kind.LOWER_BOUND, Kind.LAYER_EQUALITY),
    evidence=(
        proved(
            "li2021/theorem6.v",
            covers="attention without content, for some kernel and layers that are exact, for 3 ≤ "
            "K ≤ 2P + 1; and K = 1 by one head of one-hot attention, for every kernel; not: "
            "limits (S.heads), two heads exactly, one patch a side, that nine heads do it "
            "(L21.cor4), (4) of the repair",
        ),
        proved(
            "li2021/theorem6_content.v",
            covers="content, for some kernel and layers that are exact, for 3 ≤ K ≤ 2P + 1, if "
            "the weights are continuous at the zero image; not: that finite scores are so, limits",
        ),
        certified("L21.theorem6", "*-bound", name="nine heads are needed"),
        certified("L21.theorem6", "K1-P2", name="K = 1: one head in the limit"),
        Evidence("ranks over sizes", Level.TESTED, ranks_over_sizes),
        Evidence("the last step of the proof", Level.TESTED, last_step),
        Evidence("two patches a side", Level.TESTED, offsets_of_two_patches),
        Evidence("one patch takes one head", Level.TESTED, one_patch_takes_one_head),
        fewer_heads_fail("eight of nine heads, K = 3, P = 2", 3, patch_size=2),
        fewer_heads_fail("eight of nine heads, K = 5, P = 2", 5, patch_size=2),
        equals_convolution("K = 1, P = 2: one head in the limit", (1, 1), patch_size=2),
        equals_convolution("K = 1, P = 2: two heads exactly", (1, 1), patch_size=2, form="exact"),
    ),
)
