"""§3, dilation: heads may look at the pixels of a dilated grid.

Claimed. A self-attention layer can express any dilated convolution, since its heads may look at the
pixels of a dilated grid.
True. It can, for every kernel of odd size and every dilation, in the limit of ever sharper
attention and if the image is padded with zero tokens.

Printed. "A multi-head self-attention layer can express any dilated convolution as each head can
attend a value at any pixel shift and form a (dilated) grid pattern."

Verified. K odd, d ≥ 1, in the limit: with a ring of d·(K-1)/2 zero tokens the layer with the K²
centres d·t, t ∈ Δ_K, is the zero-padded convolution of dilation d, for every kernel. For hard
attention as in Lemma 1 the ring must be that wide. The quadratic heads get by with one zero token
on each side, whatever d and K.

Repair. The hypotheses are those of Theorem 1 as amended: the limit, a ring, K odd. The ⌊K/2⌋ zeros
of the remark on padding become d·⌊K/2⌋: with ⌊K/2⌋ some targets are no tokens, so that (10) fails
there, and one-hot biases, whose rows are then uniform, give another output.

Errata.
- §3, remarks on dilation, stride and sequences | no hypotheses | those of Theorem 1 as amended: in
  the limit, with a zero ring, K odd | C20.stride, C20.sequence, C20.theorem1

Proof. Conv reads X_(q+d·t) for the taps t. Lemma 2 holds for every shift Δ, not only for those of
Δ_K, and Lemma 1 for every bijection onto the shifts that are read; the furthest is d·(K-1)/2. A
quadratic head whose target is no token attends to the target's projection onto the rectangle of
tokens (Lemma 2). If there is a ring of one zero token, that projection lies on the ring, where X
is zero, as it is in the zero-padded convolution. ∎
"""

from dataclasses import replace

from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict
from convattn_ledger.evidence import (
    DTYPES,
    UNDERFLOW,
    applied,
    certified,
    converted,
    equals_convolution,
    exact_convolution,
    integer_kernel,
    proved,
    total_variation_enclosed,
    whole_images,
)
from convattn_ledger.evidence.layer_runs import equal


def narrow_ring(run: Run) -> str:
    """K = 3, d = 2 with a ring of one zero: enough for quadratic heads, too narrow for biases."""
    images = whole_images(run)
    kernel = integer_kernel(run.rng("kernel"), (3, 3), 3, 4)
    expected = exact_convolution(images, kernel, dilation=2)
    comparisons = []
    for dtype in DTYPES:
        layer = converted(kernel, dtype, encoding="quadratic", dilation=2)
        if layer.ring != ((2, 2), (2, 2)):
            raise EvidenceFailed(f"the layer's own ring is {layer.ring}, but should be 2 wide")
        narrow = replace(layer, ring=((1, 1), (1, 1)))
        comparisons.append(equal(dtype, applied(narrow, images, dtype), expected))
    biases = converted(kernel, "float32", encoding="bias", form="limit", dilation=2)
    equal("float32", applied(biases, images, "float32"), expected)
    narrow = replace(biases, ring=((1, 1), (1, 1)))
    try:
        equal("float32", applied(narrow, images, "float32"), expected)
    except EvidenceFailed:
        same = "; ".join(comparisons)
        return f"{len(images)} images; {same}; biases equal with a ring of 2, not of 1"
    raise EvidenceFailed("a ring of one zero was enough for one-hot biases too")


CLAIM = Claim(
    id="C20.dilation",
    source="Cordonnier, Loukas, Jaggi 2020, §3, remark on dilation",
    verdict=Verdict.AMENDED,
    kinds=(Kind.LAYER_EQUALITY, Kind.LIMIT),
    evidence=(
        proved(
            "cordonnier2020/dilation.v",
            covers="hard attention with the maps W_δ, in a ring of d·(K-1)/2 zero tokens; and "
            "that every target is a key only if the ring is that wide; not: what one-hot biases "
            "give on a narrower ring",
        ),
        proved(
            "cordonnier2020/dilation_limit.v",
            covers="the limit, on each image, of quadratic heads given by their scores and the "
            "maps W_δ, with one zero token on each side or more",
        ),
        total_variation_enclosed(
            "distance to hard attention",
            alphas=(1.0, 16.0, 104.0),
            centers=((0, 2), (-2, 2), (3, -3)),
        ),
        certified("C20.dilation"),
        equals_convolution("3 × 3, dilation 2", (3, 3), encoding="quadratic", dilation=2),
        equals_convolution("3 × 3, dilation 3", (3, 3), encoding="quadratic", dilation=3),
        Evidence("a ring of one zero", Level.BOUNDED, narrow_ring, assumes=UNDERFLOW, quick=False),
    ),
)
