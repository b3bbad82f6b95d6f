"""§6.1: cross-attentive image similarity, two images side by side.

Claimed. With two images side by side, each patch of one image attends to all patches of the other,
which gives a mechanism for the similarity of images.
True. With 1 × 1 filters it does, and to its own image as well; wider filters mix both images at the
seam unless a gap of zero columns, masked as keys, lies between them in every layer.

Printed. "MSAC operators enable a mechanism for cross attentive image similarity, in which each
patch in image x attends all other patches in image z and vice versa. To this end, we concatenate x
and z to form a new image t = [x, z] ∈ R^(N×2M×d)." Optionally x^seg and z^seg ∈ R^(N×M×d) are
added, or x^seg and z^seg ∈ R^(N×M×d_seg) are concatenated to the channels.

Verified. For 1 × 1 filters, each patch of t is a patch of x or of z and attends to all of both. For
n × m filters with dilation d, and images of at least d·⌊m/2⌋ columns, iff at least ⌈d(m-1)/2⌉ zero
columns are laid between the images is, for every filter, every query, key and value of x in t what
it is in x alone, zero-padded; likewise of z iff ⌊d(m-1)/2⌋ are. With the gap's cells masked as
keys and dropped as queries, x and z attend to the patches of both images and nothing else.
Concatenated segments express everything that added ones do.

Repair. (1) The seam: without a gap, filters of width m ≥ 2 make patches at the seam that are half x
and half z, so the operator does not attend from patches of x to patches of z only. The gap must be
laid anew by every layer, and masked: unmasked, its cells take part of every patch's attention. (2)
b ∈ R^(N×M) of eq. 3 is too small for t: distances run up to 2M - 1, or 2M + g - 1 with the gap. (3)
The patches of x attend to all patches of x, too. (4) [x, z] and [z, x] are different inputs: with
the even bias, pixel j of x and pixel t of z are M + t - j apart in the one and M + j - t in the
other, so the similarity depends on the order of the images. (5) No number comes out: how to get a
similarity from the features is left open.

Errata.
- Section 6.1 | patches of x attend to patches of z | filters mix both at the seam; a gap separates
  them

Proof. *The idea:* a filter mixes the images iff it reaches across the gap.

The query at column j reads from j - ⌊d(m-1)/2⌋ to j + ⌈d(m-1)/2⌉. From x's last column M - 1 that
reaches column M - 1 + ⌈d(m-1)/2⌉, before z's first, M + g, iff g ≥ ⌈d(m-1)/2⌉ (and else a column of
z, as z is wide enough); from z's first it reaches M + g - ⌊d(m-1)/2⌋ > M - 1 iff g ≥ ⌊d(m-1)/2⌋.

Where it does not reach, it reads zeros, as the padding of the image alone. Masked softmax gives the
gap weight zero and leaves the ratios of the others.

*Segments:* (x + s) ⋆ H = [x, s] ⋆ [H, H]. ∎
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np

from convattn.sac import (
    EvenBias,
    SelfAttentiveParameters,
    attention_scores,
    cross_attentive_features,
    seam_reach,
    side_by_side,
    with_segment,
)
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import certified_identities, exact_convolution
from convattn_ledger.evidence.exact_attention import exact_softmax


def draw_images(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Two images without a zero, so that what is read shows."""
    rng = run.rng("images")
    first, second = rng.integers(1, 9, (2, 1, 2, 5, 2))
    return first, second


def joined_image(first: np.ndarray, second: np.ndarray, gap: int) -> np.ndarray:
    """t of the library, with its gap."""
    return np.asarray(side_by_side(jnp.asarray(first), jnp.asarray(second), gap)[0])


def the_seam(run: Run) -> str:
    """Filters without a zero, every gap up to the reach and beyond: where x, and z, is as alone."""
    first, second = draw_images(run)
    cases = 0
    for width in range(1, 6):
        for dilation in (1, 2):
            kernel = run.rng(width).integers(1, 9, (2, width, 2, 1))
            alone = [exact_convolution(each, kernel, dilation=dilation) for each in (first, second)]
            needed = -(-dilation * (width - 1) // 2), dilation * (width - 1) // 2
            for gap in range(needed[0] + 2):
                together = exact_convolution(
                    joined_image(first, second, gap), kernel, dilation=dilation
                )
                halves = together[:, :, :5], together[:, :, 5 + gap :]
                for half, each, reach in zip(halves, alone, needed, strict=True):
                    if bool((half == each).all()) != (gap >= reach):
                        raise EvidenceFailed(
                            f"width {width}, dilation {dilation}, gap {gap}: equal is not "
                            f"{gap >= reach}"
                        )
                cases += 1
    return (
        f"{cases} cases of width, dilation and gap: x is as alone iff gap ≥ ⌈d(m-1)/2⌉, z likewise"
    )


def the_default_gap(run: Run) -> str:
    """The library's own gap leaves x's scores with x as they are alone, and masks the gap.

    Its features, too: a head with M = 128 at the distance (0, M + g) copies x to z and z to x.
    """
    rng = run.rng("parameters")
    query, key = (jnp.asarray(rng.integers(-3, 4, (1, 2, 4, 2, 4)), jnp.float32) for _ in range(2))
    table = EvenBias(jnp.asarray(rng.integers(-9, 10, (1, 2, 12)), jnp.float32))
    parameters = SelfAttentiveParameters(jnp.zeros((1, 2, 4, 2, 1)), query, key, table)
    first, second = (jnp.asarray(each, jnp.float32) for each in draw_images(run))
    gap = seam_reach(parameters)
    scores_of = jax.jit(lambda *args: attention_scores(*args))
    joined, mask = side_by_side(first, second, gap)
    scores, allowed = scores_of(parameters, joined, mask)
    columns = 10 + gap
    square = np.asarray(scores).reshape(2, columns, 2, columns)
    for start, each in ((0, first), (5 + gap, second)):
        span = slice(start, start + 5)
        alone = np.asarray(scores_of(parameters, each)[0]).reshape(2, 5, 2, 5)
        if (square[:, span, :, span] != alone).any():
            raise EvidenceFailed(f"gap {gap}: the scores of the image at {start} differ from alone")
    between = np.zeros((2, columns), bool)
    between[:, 5 : 5 + gap] = True
    if (np.asarray(allowed) == between.ravel()).any():
        raise EvidenceFailed(f"gap {gap}: the mask is {np.asarray(allowed)[0].tolist()}")
    kernel = rng.integers(-3, 4, (2, 4, 2, 1))
    other = jnp.zeros((1, 1, 8), jnp.float32).at[0, 0, 7].set(128)
    copier = SelfAttentiveParameters(
        jnp.asarray(kernel[None], jnp.float32), position=EvenBias(other)
    )
    features = jax.jit(lambda *args: cross_attentive_features(*args))(copier, first, second)
    for feature, each in zip(features, (second, first), strict=True):
        if (np.asarray(feature) != exact_convolution(np.asarray(each, np.int64), kernel)).any():
            raise EvidenceFailed("the features are not the other image's convolution")
    return f"2 × 4 filters, gap {gap}: x and z score as alone, masked gap; each can read the other"


def unmasked_gaps_take_weight(run: Run) -> str:
    """Uniform attention over 2M + g columns: the gap takes g/(2M + g) of each patch's, exactly."""
    shares = []
    for gap in (0, 1, 2):
        weights = exact_softmax(np.zeros((1, 10 + gap), int))[0]
        share = sum(weights[5 : 5 + gap], Fraction(0))
        require(share == Fraction(gap, 10 + gap), f"gap {gap}: {share}")
        shares.append(str(share))
    return f"M = 5: gaps of 0, 1 and 2 columns take {', '.join(shares)} of the attention"


def segments(run: Run) -> str:
    """(x + s) ⋆ H = [x, s] ⋆ [H, H], by the library's segments, in integers."""
    first, segment = draw_images(run)
    kernel = run.rng("kernel").integers(-9, 10, (2, 3, 2, 4))
    added, joined = (
        np.asarray(with_segment(jnp.asarray(first), jnp.asarray(segment[0]), how))
        for how in ("add", "concatenate")
    )
    doubled = np.concatenate([kernel, kernel], axis=2)
    if (exact_convolution(added, kernel) != exact_convolution(joined, doubled)).any():
        raise EvidenceFailed("the filters of added and of concatenated segments differ")
    return "2 × 3 filters on 2 × 5 pixels with a segment for each pixel: equal"


def distances(width: int, sign: int) -> dict[tuple[int, int], int]:
    """Columns between pixel j of x and pixel t of z in [x, z] (sign 1) and in [z, x] (sign -1)."""
    pairs = np.ndindex(width, width)
    return {(j, t): abs(width + sign * (t - j)) for j, t in pairs}


def distances_of_the_join(run: Run) -> str:
    """Between x and z the distances are 1 … 2M - 1, and those of [z, x] are others."""
    width = 5
    one, other = distances(width, 1), distances(width, -1)
    beyond = sorted({d for d in one.values() if d >= width})
    if max(one.values()) != 2 * width - 1 or beyond != list(range(width, 2 * width)):
        raise EvidenceFailed(f"distances {sorted(set(one.values()))}")
    equal = [pair for pair in one if one[pair] == other[pair]]
    require(equal == [(j, j) for j in range(width)], f"the order does not matter at {equal}")
    return f"M = {width}: distances {beyond} are beyond the table; only j = t keeps its distance"


CLAIM = Claim(
    id="B19.cross",
    source="Barkan 2019, §6.1",
    verdict=Verdict.AMENDED,
    kinds=(Kind.IDENTITY,),
    evidence=(
        certified_identities("B19.cross", "the seam and the gap", "seam", "gap"),
        Evidence("the seam", Level.TESTED, the_seam),
        Evidence("the default gap", Level.TESTED, the_default_gap, quick=False),
        Evidence("unmasked gaps take weight", Level.TESTED, unmasked_gaps_take_weight),
        Evidence("segments", Level.TESTED, segments),
        Evidence("distances of the join", Level.TESTED, distances_of_the_join),
    ),
)
