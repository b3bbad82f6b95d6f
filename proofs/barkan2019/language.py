"""§5: SAC and MSAC on sentences; a language model needs causal filters, not only a causal mask.

Claimed. Self-attentive convolutions (SAC) of one or several scales can replace self-attention in
language models, and 1 × 1 SAC is regular self-attention.
True. In a causal model the filters have to look back only, as a causal mask is not enough for
filters of two words or more; and 1 × 1 SAC is regular self-attention only if its bias is constant.

Printed. A sentence is x ∈ R^(1×M×d) and n_l = 1. MSAC "can potentially replace the original self
attention mechanism from [1] that is widely used in recent language models such as Transformer and
BERT". The 1 × 1 SAC operator "is equivalent to the regular self attention"; 1 × 2 and 1 × 3
operators allow "every pair and triplet of words to attend all other pairs and triplet".

Verified. 1 × m SAC of x is 1-D SAC of the sequence. With filters of taps -(m-1), …, 0 and a causal
attention mask the output at position i depends on the words up to i only, for any widths, scales,
dilations and with H_R; every earlier word can be seen. 1 × 1 SAC is regular self-attention where
its bias is constant.

Repair. (1) Causality, which the paper leaves out and the Transformer's decoder needs: a causal mask
alone does not give it. A filter of Definition 1 of width m ≥ 2 reads ⌊m/2⌋ words ahead, so the
query at i, and the keys and values it attends to, hold words after i: with m = 2 or 3 the next
word. (2) "Equivalent to the regular self attention": the bias b_(|j-t|) is in the way. Regular
self-attention commutes with every permutation of the words, 1 × 1 SAC with a bias that is not
constant does not. (3) Of M positions one holds a pair with a zero and M - 1 a pair of words; of
triplets M - 2; the patches at the borders attend and are attended to as well. (4) 1 < l < L should
be 1 ≤ l ≤ L (B19.msac).

Errata.
- Section 5 | replaces self-attention in language models | filters that reach ahead leak; they must
  be shifted

Proof. A filter of taps -(m-1)d, …, 0 at position t reads words ≤ t. Under the mask the output at i
mixes values at t ≤ i with weights made of the query at i and the keys at t ≤ i: words ≤ i. H_R at i
reads words ≤ i. For the centred filter of width m the query at i reads i + ⌈d(m-1)/2⌉. ∎
"""

import jax
import jax.numpy as jnp
import numpy as np

from convattn.sac import (
    EvenBias,
    MultiscaleParameters,
    SelfAttentiveParameters,
    as_sequence,
    attention_scores,
    multiscale_self_attentive_convolution,
    self_attentive_convolution,
)
from convattn.sac.attend import attend
from convattn.sac.self_attentive_convolution import flat_bank
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import certified_identities
from convattn_ledger.evidence.printed_filters import printed_convolution

WORDS = 6


def multiscale(run: Run, causal: bool, dilation: int = 1):
    """MSAC of widths 1, 2 and 3, with content and H_R; scores too small to underflow."""
    rng = run.rng("parameters")

    def draw(*shape: int):
        return jnp.asarray(rng.integers(1, 4, shape) * rng.choice([-1, 1], shape), jnp.float32)

    scales = tuple(
        SelfAttentiveParameters(
            value=draw(2, width, 2, 3),
            query=draw(2, width, 2, 4) / 64,
            key=draw(2, width, 2, 4),
            position=EvenBias(draw(2, WORDS)),
            output=draw(2, 3, 3),
            ordinary=draw(width, 2, 3),
            merge=draw(6, 3),
            stride=(1,),
            dilation=(dilation,),
            key_stride=(1,),
            causal=causal,
        )
        for width in (1, 2, 3)
    )
    return MultiscaleParameters(scales, draw(9, 2))


def dependence(operator, words) -> np.ndarray:
    """Which outputs depend on which words: where the Jacobian is not exactly zero."""
    jacobian = np.asarray(jax.jit(jax.jacobian(operator))(words))[0, :, :, 0]
    return (jacobian != 0).any(axis=(1, 3))


def draw_words(run: Run):
    """One sentence of six words with two features."""
    return jnp.asarray(run.rng("words").integers(-3, 4, (1, WORDS, 2)), jnp.float32)


def no_later_word(run: Run) -> str:
    """The Jacobian of output i by word j is exactly zero for j > i, and is not for j ≤ i."""
    for dilation in (1,) if run.quick else (1, 2):
        parameters = multiscale(run, causal=True, dilation=dilation)
        reads = dependence(
            lambda words, parameters=parameters: multiscale_self_attentive_convolution(
                parameters, words
            ),
            draw_words(run),
        )
        if (reads != np.tri(WORDS, dtype=bool)).any():
            raise EvidenceFailed(f"dilation {dilation}: {reads.astype(int).tolist()}")
    return f"{WORDS} words, widths 1, 2 and 3, with H_R: output i sees exactly the words 1 … i"


def masked_only(parameters, words):
    """A SAC with the filters of Definition 1 under a causal attention mask."""
    scores, _ = attention_scores(parameters, words)
    values = flat_bank(parameters, words, parameters.value, (1,))
    return attend(scores, values, parameters.output, jnp.tri(WORDS, dtype=bool))


def a_mask_alone_leaks(run: Run) -> str:
    """Width 1 sees up to i, widths 2 and 3 up to i + 1."""
    for scale, ahead in zip(multiscale(run, causal=False).scales, (0, 1, 1), strict=True):
        reads = dependence(lambda words, scale=scale: masked_only(scale, words), draw_words(run))
        if (reads != np.tri(WORDS, k=ahead, dtype=bool)).any():
            raise EvidenceFailed(f"{scale.kernel_size}: {reads.astype(int).tolist()}")
    return "a causal mask on centred filters: width 1 sees up to i, widths 2 and 3 up to i + 1"


def one_by_m(run: Run) -> str:
    """1 × m on an image of height one, and m on the sequence: the same numbers."""
    rng = run.rng("parameters")
    value, query, key = (
        jnp.asarray(rng.integers(-3, 4, (2, 1, 3, 2, 4)), jnp.float32) for _ in range(3)
    )
    table = EvenBias(jnp.asarray(rng.integers(-3, 4, (2, 1, WORDS)), jnp.float32))
    image, words = SelfAttentiveParameters(value, query, key, table), draw_words(run)
    apply = jax.jit(self_attentive_convolution)
    result, expected = apply(as_sequence(image), words), apply(image, words[:, None])[:, 0]
    if (np.asarray(result) != np.asarray(expected)).any():
        raise EvidenceFailed(f"they differ by {abs(result - expected).max()}")
    return "1 × 3 on 1 × 6 pixels and 3 on 6 words: equal to the last bit"


def regular_if_constant(run: Run) -> str:
    """Scores of permuted words: permuted alike iff the bias is constant."""
    rng = run.rng("parameters")
    query, key = (jnp.asarray(rng.integers(-3, 4, (1, 1, 2, 4)), jnp.float32) for _ in range(2))
    words, order = draw_words(run), np.array([1, 2, 0, 4, 5, 3])
    scores_of = jax.jit(lambda *args: attention_scores(*args))
    ones = {"stride": (1,), "dilation": (1,), "key_stride": (1,)}
    for table, regular in (([3] * WORDS, True), ([3, 1, 2, 0, 1, 2], False)):
        position = EvenBias(jnp.asarray([table], jnp.float32))
        parameters = SelfAttentiveParameters(jnp.zeros((1, 1, 2, 1)), query, key, position, **ones)
        before, after = (
            np.asarray(scores_of(parameters, each)[0]) for each in (words, words[:, order])
        )
        equal = bool((after == before[:, :, order][..., order]).all())
        require(equal == regular, f"table {table}: permuted alike is {equal}")
    return "six words: the scores are permuted with them iff the bias is constant"


def pairs_at_the_border(run: Run) -> str:
    """M positions of 1 × m patches, of which M - m + 1 hold words only."""
    for width in (1, 2, 3):
        counted = printed_convolution(
            np.ones((1, WORDS, 1), np.int64), np.ones((1, width, 1), np.int64)
        )[0]
        if int((counted == width).sum()) != WORDS - width + 1:
            raise EvidenceFailed(f"width {width}: {counted.tolist()} words at each position")
    return f"{WORDS} words: {WORDS - 1} pairs and {WORDS - 2} triplets at {WORDS} positions each"


CLAIM = Claim(
    id="B19.language",
    source="Barkan 2019, §5",
    verdict=Verdict.AMENDED,
    kinds=(Kind.IDENTITY,),
    evidence=(
        certified_identities("B19.language", "causal filters, and centred ones", "causal"),
        Evidence("no later word", Level.TESTED, no_later_word, quick=False),
        Evidence("a mask alone leaks", Level.TESTED, a_mask_alone_leaks, quick=False),
        Evidence("1 × m is one-dimensional", Level.TESTED, one_by_m),
        Evidence("regular if the bias is constant", Level.TESTED, regular_if_constant),
        Evidence("pairs at the border", Level.TESTED, pairs_at_the_border),
    ),
)
