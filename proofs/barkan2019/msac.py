"""§4: multiscale SAC, several filter sizes in parallel, reduced by a 1 × 1 convolution.

Claimed. Self-attentive convolutions (SAC) of several filter sizes in parallel are merged by a 1 × 1
convolution, and 5 × 5 filters can be had by a cascade of two 3 × 3 ones.
True. With the indices corrected and one grid for all scales this is SAC again, with more heads and
the largest filters; a cascade is 5 × 5 only away from the border, and not every 5 × 5 filter.

Printed. MSAC has L SAC operators with filters H_Q^(l,c), H_K^(l,c) ∈ R^(d_a×n_l×m_l×d), "H_V^(l,c),
H_R^l ∈ R^(d_o×n_l×m_l×d) and H_V^l ∈ R^(d_o×1×1×2d_o) (1 < l < L)"; the outputs are concatenated to
ψ ∈ R^(N×M×d_o·L) and reduced, φ = ψ ∗ H_φ, H_φ ∈ R^(d_o×1×1×d_o·L). §6: "5 × 5 via a cascade of two
3 × 3 filter sets".

Verified. With 1 ≤ l ≤ L, φ = Σ_l γ^l U^l, where H_φ = [U^1, …, U^L]. Sharpened: MSAC is SAC. With
one grid for all scales, an MSAC with C heads a scale equals the SAC with C·L heads whose filters
have the largest n_l and the largest m_l, for every input.

Repair. (1) The 1 × 1 convolution H_V^l should read H_Y^l, as in §3; H_V^(l,c) is the value filter.
(2) 1 < l < L should be 1 ≤ l ≤ L, here and in §5: as printed the first and the last scale have no
filters, and of §5's three scales one has. (3) φ = ψ ∗ H_φ should have the ⋆ of Definition 2. (4)
The scales need one stride, or they cannot be concatenated. (5) "5 × 5 via a cascade of two 3 × 3"
has the receptive field of 5 × 5 filters, and is a 5 × 5 convolution only away from the border:
between the two, the values beyond the image are set to zero. With one filter in between it is not
every 5 × 5 filter either: 9 + 9 - 1 = 17 free parameters at most, of 25.

Errata.
- Section 4 | H_V^l of shape d_o×1×1×2d_o | Misprint: H_Y^l
- Sections 4, 5 | 1 < l < L | 1 ≤ l ≤ L: as printed, the first and the last scale have no filters

Proof. Concatenation and a 1 × 1 convolution are a sum over blocks. A filter surrounded by zeros,
its taps -⌊(n-1)/2⌋, …, ⌊n/2⌋ where they were, is the same filter, and these ranges are nested, for
odd and even n alike; so all queries, keys and values are filters of the largest size. The scores of
a head do not change, as d_a is one for all. Of the 1 × 1 convolutions, H_Y,c^l U^l is one matrix
for each head; the ordinary convolutions H_R^l, each times its matrix, add up to one. ∎
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from convattn.sac import (
    EvenBias,
    MultiscaleParameters,
    SelfAttentiveParameters,
    as_single_scale,
    attention_scores,
    multiscale_self_attentive_convolution,
    self_attentive_convolution,
)
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import certified_identities, exact_convolution

SIZES = ((2, 1), (1, 3))


def msac_is_sac(run: Run) -> str:
    """Scores of heads with content, in integers; the whole operator where attention is one-hot."""
    rng = run.rng("parameters")

    def integers(*shape: int) -> jax.Array:
        return jnp.asarray(rng.integers(-2, 3, shape), jnp.float32)

    scales = tuple(
        SelfAttentiveParameters(
            value=integers(2, *size, 2, 3),
            query=integers(2, *size, 2, 4),
            key=integers(2, *size, 2, 4),
            position=EvenBias(integers(2, *size)),
            output=integers(2, 3, 3),
            ordinary=integers(*size, 2, 3),
            merge=integers(6, 3),
        )
        for size in SIZES
    )
    parameters = MultiscaleParameters(scales, integers(6, 5))
    images = integers(2, 4, 5, 2)
    join = jax.jit(lambda parameters: as_single_scale(parameters))
    single = join(parameters)
    if single.kernel_size != (2, 3) or single.heads != 4:
        raise EvidenceFailed(f"a SAC of {single.kernel_size} with {single.heads} heads")
    scores_of = jax.jit(lambda *args: attention_scores(*args))
    scores = [np.asarray(scores_of(scale, images)[0]) for scale in scales]
    if (np.asarray(scores_of(single, images)[0]) != np.concatenate(scores, axis=1)).any():
        raise EvidenceFailed("the scores of the larger filters differ")
    hard = EvenBias(jnp.full((2, 1, 1), 128.0))  # one-hot in float32
    plain = {"query": None, "key": None, "position": hard}
    parameters = replace(parameters, scales=tuple(replace(scale, **plain) for scale in scales))
    expected = jax.jit(multiscale_self_attentive_convolution)(parameters, images)
    result = jax.jit(self_attentive_convolution)(join(parameters), images)
    if (np.asarray(result) != np.asarray(expected)).any():
        raise EvidenceFailed(f"they differ by {abs(result - expected).max()}")
    return "2 × 1 and 1 × 3, two heads each, with H_R: one SAC of 2 × 3, four heads, equal"


def printed_range(count: int) -> list[int]:
    """The l with 1 < l < L."""
    return [l for l in range(1, count + 1) if 1 < l < count]  # noqa: E741


def range_of_scales(run: Run) -> str:
    """1 < l < L leaves out two scales of every L ≥ 2: both of two, two of the three of §5."""
    missing = {count: count - len(printed_range(count)) for count in range(2, 9)}
    require(set(missing.values()) == {2}, f"missing scales by L: {missing}")
    return f"L = 2 … 8: two scales are missing each time; of L = 3 stays {printed_range(3)}"


def full_convolution(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The 5 × 5 kernel whose convolution is the second after the first on an infinite grid."""
    total = np.zeros((5, 5, first.shape[2], second.shape[3]), np.int64)
    for one in np.ndindex(3, 3):
        for two in np.ndindex(3, 3):
            total[one[0] + two[0], one[1] + two[1]] += first[one] @ second[two]
    return total


def a_cascade(run: Run) -> str:
    """Two 3 × 3 in a row and their 5 × 5: equal one pixel from the border, different at it."""
    rng = run.rng("kernels")
    first, second = rng.integers(1, 5, (3, 3, 2, 3)), rng.integers(1, 5, (3, 3, 3, 2))
    images = rng.integers(1, 9, (2, 6, 7, 2))
    cascade = exact_convolution(exact_convolution(images, first), second)
    single = exact_convolution(images, full_convolution(first, second))
    differ = (cascade != single).any(axis=(0, 3))
    border = np.ones((6, 7), bool)
    border[1:-1, 1:-1] = False
    if (differ != border).any():
        raise EvidenceFailed(f"they differ at {np.argwhere(differ).tolist()}")
    return f"6 × 7 pixels: different at the {border.sum()} pixels of the border, equal inside"


CLAIM = Claim(
    id="B19.msac",
    source="Barkan 2019, §4, and §6",
    verdict=Verdict.AMENDED,
    kinds=(Kind.IDENTITY,),
    evidence=(
        certified_identities("B19.msac", "a sum over the scales", "scales"),
        Evidence("MSAC is SAC", Level.TESTED, msac_is_sac, quick=False),
        Evidence("the range of the scales", Level.TESTED, range_of_scales),
        Evidence("a cascade of two 3 × 3", Level.TESTED, a_cascade),
    ),
)
