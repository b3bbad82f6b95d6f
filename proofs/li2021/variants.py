"""Stride and dilation: "easily generalized", but not by linearity alone.

Claimed. The theorem carries over to strides and dilations, since its proof uses only that
convolution is linear.
True. For odd K it does, for all dilations, and for strides that divide P or are made by dropping
pixels afterwards; but the proof uses locality and translation invariance too.

Printed. "This theorem can be easily generalized to these cases [stride greater than 1, dilation].
Intuitively, we only use the linearity of convolution in our proof, so any variant of convolution
that preserves this property can be expressed by MHSA layers according to our construction."

Verified. Under the hypotheses of Theorem 1 as amended, with K odd: (1) Dilation d: one head for
each patch that is read, the patches ⌊(p + d·t)/P⌋ on each axis, and a ring that holds them all.
There can be gaps among them, so they are counted, not taken from a formula in m. (2) Stride s,
computed at full resolution and then subsampled: for every s and P. (3) Stride s, written
straight into the output patches, of (P/s)² pixels each: if s divides P, and on two patches or
more a side only then.

Repair. The proof uses three properties, not one. Locality makes the patches read finitely many;
translation invariance makes W^O the same for every patch; linearity makes it a matrix. A linear
map that is not translation invariant is not in the reach of the construction, whatever the
values, and a generic one on n pixels takes n² heads if there are n² channel pairs, of any
content-free attention. A linear, translation invariant map that is not local takes up to
(2n-1)² heads on n × n tokens. Stride is an example: as a map from patches to patches of its own
output it is translation invariant only if s divides P. For P = 2, s = 3 successive patches keep
the pixels {0}, {1}, {}, so their outputs have different lengths.

Errata.
- Section 3.1 | stride and dilation, "we only use the linearity" | locality and translation too; a
  stride on tokens must divide P

Proof. *The idea:* the construction serves every patch if all of them read the same offsets.

Pixel p of patch q reads Pq + p + d·t, in the patch q + ⌊(p + d·t)/P⌋; the set of these offsets does
not depend on q, so Theorem 1's proof applies.

Conv_s(X)_i = Conv_1(X)_(si) gives (2).

On an axis the pixels kept of patch q are the p with s | Pq + p. If s | P these are s | p for every
q. Conversely patch 0 keeps pixel 0, so if all patches keep the same, s | P.

For the converse statements: Σ_h A_h X W_h as a matrix over (query, key) × (input, output channel)
has rank at most N_H, and one-hot heads put the same M_δ at every (q, q + δ). ∎
"""

import numpy as np

from convattn.bounds.flattened_kernel import exact_rank
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.operators.shifts import TokenGrid, kernel_shifts
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import bias_saturation_enclosed, certified, equals_convolution, proved
from convattn_ledger.evidence.printed_output_map import flattened_blocks, output_blocks


def sampled_pixels(patch_size: int, stride: int, patches: int) -> list[tuple[int, ...]]:
    """On one axis, which pixels of each patch a stride keeps."""
    return [
        tuple(p for p in range(patch_size) if (patch_size * patch + p) % stride == 0)
        for patch in range(patches)
    ]


def stride_and_patches(run: Run) -> str:
    """All patches keep the same pixels iff s divides P, counted; P = 2, s = 3 keeps 1, 1, 0
    pixels."""
    for patch in range(1, 17):
        for stride in range(1, 17):
            pixels = sampled_pixels(patch, stride, stride)  # the pattern repeats after s patches
            same = len(set(pixels)) == 1
            geometry = ConvolutionGeometry.of((3,), patch, stride)
            if same != (patch % stride == 0) or same != geometry.writes_stride_to_tokens:
                raise EvidenceFailed(f"P = {patch}, s = {stride}: patches keep {pixels}")
    example = sampled_pixels(2, 3, 3)
    if [len(pixels) for pixels in example] != [1, 1, 0]:
        raise EvidenceFailed(f"P = 2, s = 3: patches keep {example}")
    return f"P, s ≤ 16: the same pixels iff s | P; P = 2, s = 3: {example}"


def translation_invariance_is_used(run: Run) -> str:
    """Scaling pixel k by k + 1 is linear and local, yet in no span of shifts; generic maps take n².

    The rows of the nine one-hot heads, each stacked over all queries of 3 × 3 pixels in their ring,
    and the map's own coefficients, stacked likewise: with one channel the layer is the map iff the
    latter lies in the span of the former.
    """
    grid = TokenGrid((3, 3), ((1, 1), (1, 1)))
    shifts = grid.key_positions[None] - grid.query_positions[:, None]
    heads = np.array([(shifts == delta).all(-1).ravel() for delta in kernel_shifts((3, 3), (1, 1))])
    scaling = heads[4] * np.repeat(np.arange(1, 10), grid.number_of_keys)
    uniform = heads[4] * 7
    ranks = [exact_rank(np.vstack([heads, extra]).astype(np.int64)) for extra in (uniform, scaling)]
    if ranks != [9, 10]:
        raise EvidenceFailed(f"with a multiple of the identity and with the scaling: ranks {ranks}")

    pixels = 9
    generic = run.rng("generic").integers(-9, 10, (pixels, pixels, pixels**2))  # q, k, (i, j)
    rank = exact_rank(generic.reshape(pixels**2, -1))
    require(rank == pixels**2, f"the generic linear map has rank {rank}")
    return f"scaling pixel k by k + 1 is outside the span of 9 heads; a generic map takes {rank}"


def locality_is_used(run: Run) -> str:
    """A translation invariant map as wide as the image takes (2n-1)² heads, exactly."""
    summary = []
    for side in (2, 3, 4):
        size = 2 * side - 1  # every shift between two of the side × side pixels
        kernel = run.rng(side).integers(-9, 10, (size, size, size, size))
        rank = exact_rank(flattened_blocks(output_blocks(kernel, 1)))
        require(rank == size**2, f"{side} pixels a side: rank {rank}, expected {size**2}")
        summary.append(f"{side} × {side} pixels: {rank}")
    return "heads of a generic map that is linear and translation invariant: " + "; ".join(summary)


CLAIM = Claim(
    id="L21.variants",
    source="Li et al. 2021, §3.1, after Corollary 4",
    verdict=Verdict.AMENDED,
    kinds=(Kind.LAYER_EQUALITY, Kind.LIMIT),
    evidence=(
        proved(
            "li2021/variants.v",
            covers="hard attention with blocks of W^O, d_O the number of outputs of a token: (1) "
            "with a head for every offset from -m to m, gaps included, for any m with Pm ≥ "
            "d(K-1)/2, (2), (3) if s divides P, and that patches keep the same pixels only "
            "then; not: the count of (1) without the gaps, d_H, an injective embedding, "
            "larger d_O, that no layer gives another stride, maps that are not invariant "
            "or not local, limits",
        ),
        certified("L21.variants"),
        bias_saturation_enclosed("distance to hard attention", logits=(8.0, 40.0), keys=(100, 324)),
        Evidence("stride and patches", Level.TESTED, stride_and_patches),
        Evidence("translation invariance is used", Level.TESTED, translation_invariance_is_used),
        Evidence("locality is used", Level.TESTED, locality_is_used),
        equals_convolution("3 × 3, P = 2, stride 3, subsampled", (3, 3), patch_size=2, stride=3),
        equals_convolution("3 × 3, P = 4, dilation 2", (3, 3), patch_size=4, dilation=2),
        equals_convolution(
            "5 × 5, P = 4, stride 2 in tokens, dilation 3",
            (5, 5),
            patch_size=4,
            stride=2,
            dilation=3,
        ),
    ),
)
