"""§2: 2-D self-attention, and what its even bias can express.

Claimed. Self-attention of all pixels can use the relative distance by a bias indexed by the
absolute distance on each axis.
True. It can, but the bias cannot tell left from right: of the convolutions, 1 × 1 heads express
exactly those whose kernel is even on each axis, and need zero tokens around the image at its
border.

Printed. Eqs. 1 to 4: q = x ⋆ H_Q, k = x ⋆ H_K, v = x ⋆ H_V with 1 × 1 filters; α = k ⋆ q'; a_rtij =
S(α_rtij/√d_a + b_(|i-r|, |j-t|)) with "a relative positional bias matrix b ∈ R^(N×M)"; y_ij = Σ_rt
a_rtij v_rt. C heads are concatenated and reduced by a 1 × 1 convolution H_Y.

Verified. The equations define self-attention of all pixels, with the softmax over (r, t) together
and b indexed from 0; concatenating the heads and reducing is the sum over the heads of a_c v_c
H_Y,c. Of the convolutions, 1 × 1 heads with this bias express exactly those whose kernel is even in
each axis: if W_δ depends on (|δ_1|, |δ_2|) only, K = 2r + 1, then (r+1)² + 1 heads at any finite
M > 0 are the convolution at every query whose neighbours lie in the image, everywhere with a ring
of r zeros; if W_δ differs from W_(Pδ) for a reflection P of an axis and a δ that occurs in the
image, no number of heads is, content or not, in the limit or not.

Repair. (1) |i - r| runs from 0 to N - 1, but arrays of the paper start at 1: as printed b_0 does
not exist, and b_N is never used; read b_(|i-r|+1, |j-t|+1). (2) S is applied to a number: it is the
softmax over (r, t). (3) "to leverage the relative distance" is right, and a restriction: the bias
cannot tell left from right, so a 1 × 1 head cannot look at the pixel to the left. (r+1)² of the K²
taps are free. A bias indexed by (r - i, t - j) has no such restriction (L21.theorem1).

Errata.
- Section 2 | b ∈ R^(N×M) with b_(abs(i-r), abs(j-t)) | indices from 0; even in each axis, so no
  kernel that is not

Proof. *The idea:* 1 × 1 heads with an even bias commute with reflections.

*Even kernels.* One head for each distance c, with bias M at c and 0 elsewhere, e^M = 1 + N(1/ε -
1), and a uniform one: `convattn.sac.even_kernels` gives the values and the cancellation.

*Others.* Let P reflect an axis. 1 × 1 filters commute with P and |i - r| does not change if both
are reflected, so a_(P·)(PX) = a(X), and L(PX) = P L(X) for every X; limits and sums of such maps
have the property too. For the convolution, conv_W(PX) = P conv_(W∘P)(X). Were conv_W = L, then
conv_W = conv_(W∘P), so W_δ = W_(Pδ) for every δ for which some query q has q + δ in the image.

No linearisation is needed, so continuity of the scores is not either. ∎
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np

from convattn.sac import (
    EvenBias,
    SelfAttentiveParameters,
    attention_scores,
    even_bias_scores,
    sac_from_even_kernel,
)
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import certified_identities, exact_convolution, proved
from convattn_ledger.evidence.exact_attention import exact_softmax


def printed_scores(query: np.ndarray, key: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """α_rtij/2 + b_(|i-r|, |j-t|) in loops, b from 0, as a matrix of queries and keys; d_a = 4."""
    height, width = query.shape[:2]
    scores = np.zeros((height, width, height, width), object)
    for r, t, i, j in np.ndindex(scores.shape):
        scores[r, t, i, j] = Fraction(int(key[r, t] @ query[i, j]), 2)
        scores[r, t, i, j] += int(bias[abs(i - r), abs(j - t)])
    return scores.reshape(height * width, -1).T


def equations(run: Run) -> str:
    """The library's scores are those of eqs. 1 to 3, exactly: integers over 2."""
    rng = run.rng("parameters")
    image = rng.integers(-3, 4, (3, 4, 2))
    query, key = rng.integers(-3, 4, (2, 2, 1, 1, 2, 4))  # two heads
    bias = rng.integers(-9, 10, (2, 3, 4))
    parameters = SelfAttentiveParameters(
        jnp.zeros((2, 1, 1, 2, 1)),
        *(jnp.asarray(array, jnp.float32) for array in (query, key)),
        EvenBias(jnp.asarray(bias, jnp.float32)),
    )
    scores = np.asarray(
        jax.jit(lambda *args: attention_scores(*args))(
            parameters, jnp.asarray(image[None], jnp.float32)
        )[0]
    )
    for head in range(2):
        projected = (image @ array[head, 0, 0] for array in (query, key))
        expected = printed_scores(*projected, bias[head])
        if (scores[0, head] != expected.astype(float)).any():
            raise EvidenceFailed(f"head {head}: {scores[0, head].tolist()}")
    return "two heads on 3 × 4 pixels, d_a = 4: all 288 scores equal"


def distances(count: int) -> set[int]:
    """|i - r| for i and r from 1 to N."""
    return {abs(i - r) for i in range(1, count + 1) for r in range(1, count + 1)}


def distances_from_zero(run: Run) -> str:
    """|i - r| over N = 5 rows: 0 to 4, of which an array from 1 to 5 lacks 0 and never gives 5."""
    used = distances(5)
    present = set(range(1, 6))
    require(used - present == {0} and present - used == {5}, f"distances {used}")
    return "N = 5: the distances are 0 … 4; a table from 1 lacks 0 and never reads its last entry"


def even_kernels_exactly(run: Run) -> str:
    """(r+1)² + 1 heads in fractions, on the image with a ring, at ε = 1/2 and e^M = 1 + N."""
    summary = []
    for size in ((3, 5),) if run.quick else ((3, 5), (3, 3)):
        rng = run.rng(*size)
        kernel = rng.integers(-9, 10, (*size, 2, 3))
        for axis in range(2):
            kernel = kernel + np.flip(kernel, axis)
        image = rng.integers(-9, 10, (1, 4, 3, 2))
        parameters = sac_from_even_kernel(jnp.asarray(kernel, jnp.float32))
        ring = [size[0] // 2, size[1] // 2]
        padded = np.pad(image, [(0, 0), *((r, r) for r in ring), (0, 0)])
        space = padded.shape[1:3]
        table = np.asarray(
            even_bias_scores(EvenBias(parameters.position.values), space, space), int
        )
        values = np.asarray(parameters.value[:, 0, 0], int)
        tokens = padded.reshape(-1, 2).astype(object)
        base = Fraction(1 + len(tokens))
        total = sum(
            exact_softmax(scores, base) @ (tokens @ value.astype(object))
            for scores, value in zip(table, values, strict=True)
        ).reshape(*space, 3)
        inside = total[ring[0] : space[0] - ring[0], ring[1] : space[1] - ring[1]]
        if (inside != exact_convolution(image, kernel)[0]).any():
            raise EvidenceFailed(f"{size}: the heads are not the convolution")
        require(len(values) == (ring[0] + 1) * (ring[1] + 1) + 1, f"{size}: {len(values)} heads")
        summary.append(f"{size[0]} × {size[1]}: {len(values)} heads")
    return "equal in fractions at every pixel; " + ", ".join(summary)


def reflected(image: np.ndarray, axis: int) -> np.ndarray:
    """P on an array [batch, height, width, …]."""
    return np.flip(image, 1 + axis)


def layers_commute_with_reflections(run: Run) -> str:
    """S(PX) = P S(X) P for 1 × 1 heads with content, in integers: so the layer commutes with P."""
    rng = run.rng("parameters")
    filters = [jnp.asarray(rng.integers(-3, 4, (3, 1, 1, 2, 4)), jnp.float32) for _ in range(2)]
    table = EvenBias(jnp.asarray(rng.integers(-9, 10, (3, 3, 4)), jnp.float32))
    parameters = SelfAttentiveParameters(jnp.zeros((3, 1, 1, 2, 1)), *filters, table)
    scores_of = jax.jit(lambda *args: attention_scores(*args))
    image = rng.integers(-3, 4, (1, 3, 4, 2))

    def scores(image: np.ndarray) -> np.ndarray:
        result = scores_of(parameters, jnp.asarray(image, jnp.float32))[0]
        return np.asarray(result).reshape(3, 3, 4, 3, 4)

    for axis in range(2):
        mirrored = np.flip(scores(image), (1 + axis, 3 + axis))
        if (scores(reflected(image, axis)) != mirrored).any():
            raise EvidenceFailed(f"axis {axis}: the scores of the reflected image are others")
    return "three heads with content on 3 × 4 pixels: equal in both axes"


def convolutions_commute_if_even(run: Run) -> str:
    """conv(PX) = P conv(X) for all X, so on the unit images, iff the kernel is even in the axis.

    A kernel with one tap at each δ of 3 × 3, on 2 × 2 pixels, where every such δ occurs.
    """
    units = np.eye(4, dtype=np.int64).reshape(4, 2, 2, 1)
    for tap in np.ndindex(3, 3):
        kernel = np.zeros((3, 3, 1, 1), np.int64)
        kernel[tap] = 1
        for axis in range(2):
            direct = exact_convolution(reflected(units, axis), kernel)
            turned = reflected(exact_convolution(units, kernel), axis)
            if bool((direct == turned).all()) != (tap[axis] == 1):
                raise EvidenceFailed(f"tap {tap}, axis {axis}: {direct.tolist()}")
    return "nine taps, two axes, 2 × 2 pixels: exactly the taps on the axis commute"


CLAIM = Claim(
    id="B19.sa2d",
    source="Barkan 2019, §2, eqs. 1 to 4, and §2.1",
    verdict=Verdict.AMENDED,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "barkan2019/sa2d.v",
            covers="kernels that are even in each axis are expressed by (r+1)² + 1 heads, with a "
            "ring, for any finite bias but zero, by maps that depend on N; not: the definition by "
            "eqs. 1-4, queries without a ring",
        ),
        proved(
            "barkan2019/sa2d_even.v",
            covers="a kernel that is expressed exactly at all queries, without a ring, is even at "
            "the shifts that occur in the image; not: with a ring, at some queries",
        ),
        proved(
            "barkan2019/sa2d_even_limit.v",
            covers="a kernel that is approached at all queries of the images of zeros and ones of "
            "one size, without a ring, is even at the shifts that occur in them; not: with a ring, "
            "at some queries",
        ),
        certified_identities("B19.sa2d", "heads, and the even bias", "heads", "even"),
        Evidence("eqs. 1 to 3", Level.TESTED, equations),
        Evidence("distances from zero", Level.TESTED, distances_from_zero),
        Evidence("even kernels exactly", Level.TESTED, even_kernels_exactly, quick=False),
        Evidence("layers commute with reflections", Level.TESTED, layers_commute_with_reflections),
        Evidence("convolutions, if even", Level.TESTED, convolutions_commute_if_even),
    ),
)
