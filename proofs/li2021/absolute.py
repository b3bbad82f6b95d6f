"""Absolute encodings: with channels of their own they do it; mixed with the content they cannot.

Claimed. The construction does not apply to absolute position encodings, as these are added to the
content and cannot be separated from it.
True. It does apply if positions have four channels to themselves; if content may take any value in
all channels, heads that ignore it can only attend uniformly.

Printed. "Our construction does not apply to MHSA layers that only use absolute positional encoding.
In the proof, we need a separate context-agnostic term in calculating attention scores. However,
absolute positional encoding, which is typically added to the input representation, cannot be
separated from context-dependent information and generate the desired attention pattern in Lemma 2."

Verified. (1) If the positions occupy channels that hold no content, the absolute encoding (p_1,
p_2, |p|², 1) and W^Q W^Kᵀ = αB_Δ on these channels give, up to a term of the query, the quadratic
scores -α|k - q - Δ|² exactly, so the whole construction applies: K² heads (or (2m+1)² on patches),
with a ring, tend to the zero-padded convolution as α → ∞. (2) If content may be any vector of R^d,
two tokens or more, and a softmax head with scores (x_q + p_q)W(x_k + p_k)ᵀ has weights that do not
depend on the content, then W = 0 and the weights are uniform.

Repair. "Cannot be separated" is too strong: adding is not mixing, where content and positions live
in different channels; four channels are enough. What is true is (2).

Errata.
- Section 3.1 | absolute encodings "cannot be separated" | kept apart from the content they do it

Proof. *The idea:* up to a term of the query, the quadratic score is bilinear in features of the two
positions.

(1) With k, q positions, -α|k - q - Δ|² = α(2⟨k, q + Δ⟩ - |k|²) - α|q + Δ|². The first term is f(q)
αB_Δ f(k)ᵀ with f(p) = (p, |p|², 1), the second is a term of the query and drops out of softmax. W^Q
and W^K that vanish on the content's channels give just this, W^V that vanishes on the positions'
channels keeps them out of the values, and C20 Theorem 1 says the rest.

(2) Weights of row q determine the differences of its scores. Take k ≠ q and change x_k by y: the
score at k changes by (x_q + p_q)Wyᵀ and the score at q does not change. So (x_q + p_q)Wyᵀ = 0 for
all x_q and y in R^d, that is W = 0. ∎
"""

import jax
import jax.numpy as jnp
import numpy as np

from convattn.bounds.flattened_kernel import exact_rank
from convattn.encodings import AbsoluteEncoding, BiasEncoding, QuadraticEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.fast.application import apply_attention
from convattn.operators.roundoff import one_hot_sharpness
from convattn.operators.shifts import TokenGrid
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.certificates.equality import absolute_form
from convattn_ledger.evidence import (
    DTYPES,
    UNDERFLOW,
    applied,
    certified,
    converted,
    exact_convolution,
    integer_kernel,
    proved,
    total_variation_enclosed,
    whole_images,
)
from convattn_ledger.evidence.exact_tokens import cut_tokens, join_tokens
from convattn_ledger.evidence.layer_runs import equal
from convattn_ledger.evidence.printed_output_map import output_blocks, patch_offsets


def position_channels(rows: int, columns: int) -> np.ndarray:
    """f(p) = (p_1, p_2, |p|², 1) for every position, `[rows, columns, 4]`, in integers."""
    down, right = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    return np.stack([down, right, down**2 + right**2, np.ones_like(down)], axis=-1)


def forms(offsets) -> np.ndarray:
    """B_Δ for every offset, `[heads, 4, 4]`, in integers."""
    return np.array([absolute_form(offset) for offset in offsets])


def form_is_quadratic(run: Run) -> str:
    """f(q) B_Δ f(k)ᵀ = |q + Δ|² - |k - q - Δ|², in integers, for every pair of positions."""
    features = position_channels(7, 9).reshape(-1, 4)
    coordinates = features[:, :2]
    offsets = [(0, 0), (1, -1), (-3, 2), (5, 0)]
    for offset, form in zip(offsets, forms(offsets), strict=True):
        target = coordinates + np.array(offset)
        distance = ((coordinates[None] - target[:, None]) ** 2).sum(-1)
        if (features @ form @ features.T != (target**2).sum(-1)[:, None] - distance).any():
            raise EvidenceFailed(f"Δ = {offset}: the form is not the quadratic score")
    return f"{len(offsets)} offsets, all pairs of {len(coordinates)} positions: equal"


def encoding_on_images(run: Run) -> str:
    """`AbsoluteEncoding` with that table, on pixels, in four dtypes, equal to the convolution.

    Positions count from the first key of the 34 × 34 grid, so every sum of a score is α times an
    integer of absolute value below 34²·4 + 34²·2 < 2²⁴, exact in float32 as α is a power of two:
    the scores, less their maximum, are those of the quadratic encoding, bit by bit, and the
    off-target weights underflow. The table and W^Q are held in at least float32, as the scores are:
    |p|² needs 12 bits.
    """
    images = whole_images(run)
    kernel = integer_kernel(run.rng("kernel"), (3, 3), 3, 4)
    expected = exact_convolution(images, kernel)
    comparisons, compared = [], []
    for dtype in DTYPES:
        quadratic = converted(kernel, dtype, encoding="quadratic")
        grid = TokenGrid(images.shape[1:3], quadratic.ring)
        table = position_channels(*grid.keys)
        alpha, centers = one_hot_sharpness(dtype), quadratic.encoding.head_centers
        form = forms(np.asarray(centers, np.int64).tolist())
        largest = 4 * table[..., :2].max() * (table[..., :2].max() + 1) + table[..., 2].max()
        require(largest < 2**24, f"a sum of a score reaches {largest}·α, so float32 may round it")
        working = centers.dtype
        encoding = AbsoluteEncoding(
            jnp.asarray(alpha * form, working),
            jnp.asarray(np.broadcast_to(np.eye(4), form.shape), working),
            jnp.asarray(table, working),
        )
        if working not in compared:
            scores = np.asarray(encoding.positional_scores(grid))
            centred = QuadraticEncoding(jnp.full(len(form), alpha, working), centers)
            difference = scores - scores.max(axis=-1, keepdims=True)
            if (difference != np.asarray(centred.positional_scores(grid))).any():
                raise EvidenceFailed(f"{working}: the scores are not the quadratic ones")
            compared.append(working)
        layer = AttentionLayer(encoding, None, quadratic.output, ring=quadratic.ring)
        comparisons.append(equal(dtype, applied(layer, images, dtype), expected))
    return f"{len(images)} images, {len(form)} heads, quadratic scores exactly; " + "; ".join(
        comparisons
    )


def channels_in_the_input(run: Run) -> str:
    """The positions added to the input, in four channels of their own: plain content scores do it.

    Tokens are 4 × 4 patches, with a ring of tokens whose content is zero. Positions run to 9, so
    every channel, |p|² ≤ 162 included, is an integer of at most eight bits, exact in all four
    dtypes.
    """
    patch, images = 4, whole_images(run)
    kernel = integer_kernel(run.rng("kernel"), (3, 3), 3, 4)
    expected = exact_convolution(images, kernel)
    offsets, blocks = patch_offsets(3, patch), output_blocks(kernel, patch)
    content = np.pad(cut_tokens(images, patch), [(0, 0), (1, 1), (1, 1), (0, 0)])
    positions = position_channels(*content.shape[1:3])
    encodings = np.broadcast_to(positions, (*content.shape[:3], 4))
    tokens, width = np.concatenate([content, encodings], axis=-1), content.shape[-1]
    heads = len(offsets)
    query, key = np.zeros((2, heads, width + 4, 4))
    query[:, width:], key[:, width:] = forms(offsets), np.eye(4)
    output = np.concatenate([blocks, np.zeros((heads, 4, blocks.shape[-1]))], axis=1)
    comparisons = []
    for dtype in DTYPES:
        alpha = 2 * one_hot_sharpness(dtype)  # over √D_k = 2
        layer = AttentionLayer(
            encoding=BiasEncoding(jnp.zeros((heads, 1), dtype), None, ((0, 0),)),
            value=None,
            output=jnp.asarray(output, dtype),
            content=ContentScores(jnp.asarray(alpha * query, dtype), jnp.asarray(key, dtype)),
        )
        result = jax.jit(apply_attention)(layer, jnp.asarray(tokens, dtype))
        image = join_tokens(np.asarray(result)[:, 1:-1, 1:-1], patch)
        comparisons.append(equal(dtype, jnp.asarray(image), expected))
    return f"{len(images)} images, P = {patch}, {heads} heads with content scores: " + "; ".join(
        comparisons
    )


def score_conditions(
    rng: np.random.Generator, tokens: int, content: int, channels: int, draws: int
) -> np.ndarray:
    """Linear conditions on W for differences of scores not to depend on the content, in integers.

    The first `content` channels hold content, the rest only positions; positions stand in all of
    them where all hold content, otherwise in the rest. Each row is one condition on the d² entries
    of W.
    """
    size = content + channels
    positions = rng.integers(-9, 10, (tokens, size))
    if channels:
        positions[:, :content] = 0
        positions[:, -1] = 1
    rows = []
    for _ in range(draws):
        pairs = []
        for _ in range(2):
            fresh = np.zeros((tokens, size), np.int64)
            fresh[:, :content] = rng.integers(-9, 10, (tokens, content))
            full = fresh + positions
            pairs.append(np.einsum("qi,kj->qkij", full, full).reshape(tokens, tokens, -1))
        change = pairs[1] - pairs[0]
        rows.append((change[:, 1:] - change[:, :1]).reshape(-1, size * size))
    return np.concatenate(rows)


def only_uniform_is_content_free(run: Run) -> str:
    """The conditions leave W = 0 if content fills R^d; with channels apart they leave all of
    theirs.

    With c content channels and p positional ones, the last constant, the conditions leave exactly
    p² + c dimensions: W on the positions, and content against the constant, a term of the query
    alone.
    """
    summary = []
    for number, (tokens, content) in enumerate(((2, 1), (2, 3), (3, 2), (5, 4))):
        conditions = score_conditions(run.rng(number), tokens, content, 0, 12)
        rank = exact_rank(conditions)
        if rank != content**2:
            raise EvidenceFailed(
                f"d = {content}, {tokens} tokens: rank {rank}, so W may be nonzero"
            )
        summary.append(f"d = {content}: W = 0")
    for number, (content, channels) in enumerate(((1, 4), (3, 4))):
        conditions = score_conditions(run.rng(10 + number), 6, content, channels, 6)
        free = (content + channels) ** 2 - exact_rank(conditions)
        if free != channels**2 + content:
            raise EvidenceFailed(f"c = {content}, p = {channels}: {free} dimensions are left")
        summary.append(f"c = {content}, p = {channels}: {free} dimensions")
    return "; ".join(summary)


CLAIM = Claim(
    id="L21.absolute",
    source="Li et al. 2021, §3.1, remark on the positional encoding",
    verdict=Verdict.AMENDED,
    kinds=(Kind.LAYER_EQUALITY, Kind.LIMIT),
    evidence=(
        proved(
            "li2021/absolute_quadratic.v",
            covers="(1): on pixels the softmax with αB_Δ on the position channels is that of the "
            "quadratic scores, whatever the content; not: the layer, with values from the "
            "content's channels, its limit, W^Q and W^K, patches",
        ),
        proved("li2021/absolute_content.v", covers="(2)"),
        certified("L21.absolute"),
        total_variation_enclosed("distance to hard attention", alphas=(1.0, 8.0, 128.0)),
        Evidence("the form is quadratic", Level.TESTED, form_is_quadratic),
        Evidence("content that fills R^d", Level.TESTED, only_uniform_is_content_free),
        Evidence(
            "3 × 3 on pixels", Level.BOUNDED, encoding_on_images, assumes=UNDERFLOW, quick=False
        ),
        Evidence(
            "3 × 3, P = 4, positions in the input",
            Level.BOUNDED,
            channels_in_the_input,
            assumes=UNDERFLOW,
            quick=False,
        ),
    ),
)
