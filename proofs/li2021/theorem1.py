"""Theorem 1: (2m+1)² heads express every K × K convolution of an image cut into patches.

Claimed. On images cut into patches, a self-attention layer can express every K × K convolution with
one head for each patch that the kernel reaches from a patch.
True. It can, for odd K, in the limit of sharp attention, if the image is padded with zero patches
and patch embeddings lose nothing; an exact layer takes one head more in general.

Printed. "In the patch-input setting, assume d_H ≥ d and d_O ≥ P²D_out. Then a multi-head
self-attention layer with N_H = (2⌈(K-1)/(2P)⌉ + 1)² heads and relative positional encoding can
express any convolutional layer of kernel size K × K, and D_out output channels."

Verified. Let K be odd, m = ⌈(K-1)/(2P)⌉, let P divide the sides of the image, let the patch
embedding be injective, d_O ≥ P²D_out and d_H ≥ d (min(P²D_in, P²D_out) will do), and let a ring of
m zero patches surround the image. As M → ∞ the layer with (2m+1)² heads, the biases of Lemma 2 and
the explicit W^O tends to the zero-padded convolution, for every kernel, image size and any
channels. In floating point, with M so large that the off-target weights underflow, it is equal to
it.

Repair. Four points. (1) It is a limit: at finite M, (2m+1)² heads are not the convolution in
general, and one head more makes it exact (S.finite). (2) The proof says that MHSA(X)_q = conv(X)_q
"holds for any q", but eq. 14 needs every patch q + δ. On the bare grid the same layer replaces
every missing patch by the mean of all patches, which is not the zero padding. (3) §2.2 allows any
linear patch projection; with one that is not injective, two images that convolution tells apart
become the same input, and no layer helps. An injective one is undone by W^O (and must map the ring
to zero, as a linear one does). (4) d_H ≥ d is more than is needed. Some bound is: for K = 1 the one
head must carry the identity of R^d.

Errata.
- Theorem 1 | equality | in the limit with a ring; exactly with one head more | S.finite

Proof. *The idea:* head δ brings the patch q + δ, and W^O applies what the convolution makes of it.

With W^V = I head δ tends to X_(q+δ) at every q for which q + δ is a key (Lemma 2); with the ring
all are.

Pixel p of patch q reads the pixels at Pq + p + t, |t| ≤ (K-1)/2 on each axis, which lie in the
patches q + δ with |δ| ≤ m. So conv(X)_q = Σ_δ X_(q+δ) M_δ with the blocks M_δ of W^O; they do not
depend on q, because the convolution is translation invariant, and they are zero for |δ| > m,
because it is local.

If tokens are XE with E injective, take E⁺M_δ with E⁺ a left inverse on row vectors, EE⁺ = I. As the
rank of M_δ is at most min(P²D_in, P²D_out), a head of that dimension can hold it as W^V W^O.

For the bare grid: a head without its key has the uniform row. ∎
"""

import flint
import numpy as np

from convattn.bounds.flattened_kernel import exact_rank
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import (
    DTYPES,
    UNDERFLOW,
    applied,
    bias_saturation_enclosed,
    certified,
    converted,
    equals_convolution,
    exact_convolution,
    integer_kernel,
    proved,
    whole_images,
)
from convattn_ledger.evidence.exact_tokens import cut_tokens, join_tokens, tokens_at
from convattn_ledger.evidence.layer_runs import equal
from convattn_ledger.evidence.printed_output_map import output_blocks, patch_offsets


def mean_padded(tokens: np.ndarray, blocks: np.ndarray, offsets: list) -> np.ndarray:
    """N times the convolution in which a missing patch is the mean of all N, in integers."""
    count = tokens.shape[1] * tokens.shape[2]
    total = tokens.sum(axis=(1, 2), keepdims=True)
    return sum(
        tokens_at(count * tokens, offset, total) @ block
        for offset, block in zip(offsets, blocks, strict=True)
    )


def bare_grid_takes_the_mean(run: Run) -> str:
    """Without the ring: equal to the mean-padded convolution, in four dtypes, and to no zero
    padding.

    N = 64 patches: 1/N is a power of two, the uniform rows are exact, and N times the result is an
    integer below 2²⁴ with all its partial sums, so the comparison is `==`.
    """
    images, patch = whole_images(run), 4
    kernel = integer_kernel(run.rng("kernel"), (3, 3), 3, 4)
    tokens = cut_tokens(images, patch)
    count = tokens.shape[1] * tokens.shape[2]
    blocks, offsets = output_blocks(kernel, patch), patch_offsets(3, patch)
    size = count * (np.abs(kernel).sum(axis=(0, 1, 2)).max() * 255)
    require(size < 2**24, f"partial sums reach {size}, so float32 need not be exact")
    expected = join_tokens(mean_padded(tokens, blocks, offsets), patch) / count
    zero_padded = exact_convolution(images, kernel)
    differ = int((expected != zero_padded).sum())
    if not differ or (expected != zero_padded)[:, 4:-4, 4:-4].any():
        raise EvidenceFailed(f"mean and zero padding differ in {differ} entries, not at the border")
    comparisons = []
    for dtype in DTYPES:
        layer = converted(kernel, dtype, patch_size=patch, encoding="bias", form="limit")
        comparisons.append(equal(dtype, applied(layer, images, dtype, border="none"), expected))
    return (
        f"{len(images)} images, P = {patch}, mean padding: {'; '.join(comparisons)}; zero padding "
        f"differs in {differ} of {expected.size} outputs, all at the border"
    )


def unimodular(rng: np.random.Generator, size: int) -> np.ndarray:
    """An integer matrix with an integer inverse: a lower times an upper triangle of ones."""
    lower = np.tril(rng.integers(-2, 3, (size, size)), -1) + np.eye(size, dtype=np.int64)
    upper = np.triu(rng.integers(-2, 3, (size, size)), 1) + np.eye(size, dtype=np.int64)
    return lower @ upper


def patch_embeddings(run: Run) -> str:
    """An injective embedding is undone by W^O, exactly; for one that is not, no W^O exists."""
    cases = 5 if run.quick else 20
    for case in range(cases):
        rng = run.rng(case)
        patch, channels = 2, 1 + case % 3
        kernel = rng.integers(-9, 10, (3, 3, channels, 2))
        images = rng.integers(-9, 10, (2, 6, 8, channels))
        blocks, offsets = output_blocks(kernel, patch), patch_offsets(3, patch)
        tokens = cut_tokens(images, patch)
        embedding = unimodular(rng, tokens.shape[-1])
        inverse = flint.fmpq_mat(flint.fmpz_mat(embedding.tolist())).inv()
        undo = np.array([[int(entry) for entry in row] for row in inverse.tolist()])
        plain, embedded = (
            sum(tokens_at(inputs, o) @ block for o, block in zip(offsets, maps, strict=True))
            for inputs, maps in ((tokens, blocks), (tokens @ embedding, undo @ blocks))
        )
        expected = exact_convolution(images, kernel)
        for name, result in (("identity", plain), ("embedded", embedded)):
            if (join_tokens(result, patch) != expected).any():
                raise EvidenceFailed(f"case {case}: with the {name} tokens the layer differs")

        narrow = embedding[:, :-1]
        stacked = np.concatenate(list(blocks), axis=1)
        before, after = exact_rank(narrow), exact_rank(np.concatenate([narrow, stacked], axis=1))
        if not after > before:
            raise EvidenceFailed(
                f"case {case}: the maps lie in the span of an embedding of rank {before}, so that "
                "the kernel was too special to show anything"
            )
    return f"{cases} kernels: with unimodular E equal; with E of one column less no W has EW = M_δ"


def head_dimensions(run: Run) -> str:
    """d_H = min(P²D_in, P²D_out) < d suffices for nine heads; for K = 1 less does not."""
    patch, channels = 2, 3
    rng = run.rng("kernel")
    kernel = rng.integers(-9, 10, (3, 3, channels, 1))
    images = rng.integers(0, 256, (2, 8, 6, channels))
    options = {"patch_size": patch, "encoding": "bias", "form": "limit", "head_dim": 4}
    layer = converted(kernel, "float64", **options)
    if layer.heads != 9 or layer.value is None or layer.value.shape[1:] != (12, 4):
        raise EvidenceFailed(f"the layer has {layer.heads} heads and values {layer.value}")
    maps = np.asarray(layer.value, np.int64) @ np.asarray(layer.output, np.int64)
    tokens = cut_tokens(images, patch)
    result = sum(
        tokens_at(tokens, offset) @ one
        for offset, one in zip(patch_offsets(3, patch), maps, strict=True)
    )
    if (join_tokens(result, patch) != exact_convolution(images, kernel)).any():
        raise EvidenceFailed("nine heads of dimension 4 differ from the convolution")
    identity = output_blocks(np.eye(channels, dtype=np.int64)[None, None], patch)
    rank = exact_rank(identity[0])
    if len(identity) != 1 or rank != 12:
        raise EvidenceFailed(f"K = 1: {len(identity)} heads, whose map has rank {rank}")
    return "nine heads with d = 12, d_H = 4 are exact for D_out = 1; K = 1: one map of rank 12 = d"


CLAIM = Claim(
    id="L21.theorem1",
    source="Li et al. 2021, Theorem 1 and appendix A.2, eqs. 5, 13 to 15",
    verdict=Verdict.AMENDED,
    kinds=(Kind.LAYER_EQUALITY, Kind.LIMIT),
    evidence=(
        proved(
            "li2021/theorem1.v",
            covers="hard attention with the explicit W^O, in the ring, d_O = P²·D_out; not: d_H, "
            "an injective embedding, d_O > P²·D_out, the repair",
        ),
        proved(
            "li2021/theorem1_limit.v",
            covers="the limit M → ∞ at each pixel of each image, d_O = P²·D_out, d_H ≥ "
            "min(P²·D_in, P²·D_out); not: an injective embedding, d_O > P²·D_out, floating point, "
            "(1) to (3) of the repair, that some bound on d_H is needed",
        ),
        certified("L21.theorem1", "K*", name="every kernel of seven sizes"),
        certified("L21.theorem1", "border", name="fails on the bare grid"),
        bias_saturation_enclosed(
            "distance to hard attention", logits=(1.0, 8.0, 40.0, 128.0), keys=(9, 100, 1156)
        ),
        equals_convolution("3 × 3, P = 2", (3, 3), patch_size=2),
        equals_convolution("5 × 5, P = 4", (5, 5), patch_size=4),
        equals_convolution("3 × 3, P = 16", (3, 3), patch_size=16),
        Evidence(
            "bare grid: the mean for a missing patch",
            Level.BOUNDED,
            bare_grid_takes_the_mean,
            assumes=UNDERFLOW,
            quick=False,
        ),
        Evidence("patch embeddings", Level.TESTED, patch_embeddings),
        Evidence("head dimensions", Level.TESTED, head_dimensions, quick=False),
    ),
)
