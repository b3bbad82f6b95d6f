"""S.depth: two layers of K and K + 1 heads do exactly what one takes K² + 1 for, if the rank is K².

Claimed. Two layers of K and K + 1 heads do exactly what one layer takes K² + 1 heads for, if the
kernel has the full rank K².
True. They do at every image size, with zero tokens around the image and wide layers, and no two
linear layers do with fewer where some query has a token of the image outside its receptive field.

Printed. Not from a paper: our own result. (That a convolution of rank one in its taps is a product
of two line convolutions is old; here no tap has to factor, as layer 1 keeps its shifts in separate
channels.)

Verified. Let L content-free layers of H_1, …, H_L heads, with nothing but linear maps of the
channels between them, compose to a zero-padded convolution of rank ρ = rank F on images of m + 1
tokens a side or more.

(1) ΠH_l ≥ ρ, in limits too; a skip connection around one layer counts as one head of it. At finite
scores, if some query has a token of the image outside its receptive field, ρ > 0, and some layer
has a head besides its skip connection, ΠH_l ≥ ρ + 1.

(2) For T_1 × T_2 token offsets, two layers of T_1 and T_2 heads are every convolution in the limit,
and two of T_1 and T_2 + 1 heads are exactly so at finite scores, on images of every size. Between
them stand T_1·P²·D_in channels. Layer 1 is applied on zero tokens around the image, too: on axis 1
at least as many before the image as the reach ahead, and after it as the reach back; on axis 2 the
reach itself. The scores and the gain of the last head of layer 2 depend on the number of tokens.

(3) For ρ = K² the totals 2K and, where some query has a token of the image outside its receptive
field, 2K + 1 are the least over two layers: for K = 3, six and seven heads instead of nine and ten.

Nothing to repair. (The library lays as many zero tokens on both sides as the longer side of the
reach. On 2 × 2 images no token is outside, and 3 + 3 heads at finite scores can be exact.)

Proof. *The idea:* two layers are one layer, whose heads are the pairs of theirs.

(1) Σ_g A²_g (Σ_h A¹_h X W_h + b) W'_g = Σ_gh (A²_g A¹_h) X (W_h W'_g) + b': a layer again,
content-free, with H_1·H_2 heads; so for L layers by induction.

A skip connection is a head with the attention I and the map I. S.heads' bound for one layer (F
factors through as many dimensions as there are heads, and matrices of rank at most that number are
a closed set) is (1).

With exactly ρ heads the composed maps would be independent, as they span F's columns; a token of
the image outside the receptive field has Σ a_gh W_h W'_g = 0, and so the weight zero from every
pair. But a pair of which one head has positive weights, and the other too or is the skip, has
positive weights at the tokens of the image; likewise for L layers.

(2) Let c = ε/(1 - ε), and m be the sum of the image's tokens. Head a of layer 1 has the row (1 -
ε)S_(a,0) + εJ over N_1 keys and writes X/(1 - ε) into block a: Y_a(p) = X_(p+(a,0)) + c·m/N_1.
Layer 1 has N_2 outputs, those at the zero tokens included, and these are so many that each block
holds each token of the image once: ΣY_a/N_2 = γ·m/N_1 with γ = N_1/N_2 + c, the same for all a.

Head b of layer 2 sees (1 - ε)Y(q + (0, b)) + ε·γ·m/N_1 in each block. With the maps M_ab/(1 - ε)
from block a these heads give the convolution plus (c + cγ)(m/N_1)ΣM_ab, and a uniform head sees
γ·m/N_1: its map is -c(1 + 1/γ) times the sum of M_ab over b, from block a. In the limit ε = 0.

(3) ab ≥ K² gives a + b ≥ 2√(ab) ≥ 2K; ab ≥ K² + 1 gives (a + b)² ≥ 4K² + 4 > (2K)². ∎
"""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np

from convattn.bounds.flattened_kernel import exact_rank
from convattn.bounds.two_layers import two_layers_bound
from convattn.constructions.two_layers import conv_to_two_layers
from convattn.operators.roundoff import ASSUMPTION
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.certificates.canonical import certificate
from convattn_ledger.certificates.two_layers import two_layers_body
from convattn_ledger.evidence import (
    DTYPES,
    UNDERFLOW,
    certified,
    exact_convolution,
    integer_kernel,
    proved,
    whole_images,
)
from convattn_ledger.evidence.head_floor import fewer_heads_fail
from convattn_ledger.evidence.layer_runs import equal, within


def other_sizes(run: Run) -> str:
    """Every kernel up to 4 × 4, on images down to one token, composed by the checker."""
    from convattn_check import check
    from convattn_check.reading import canonical

    sides = (1, 2, 3) if run.quick else (1, 2, 3, 4, 5)
    checked = 0
    for size, image in product(product(sides, repeat=2), ((1, 1), (1, 3), (4, 2))):
        for patch, exact in ((1, True), (2, False), (3, True)):
            body = two_layers_body(size, patch, image, exact)
            document = certificate("S.depth", "two_layers", "So many heads.", body)
            verdict = check(canonical(document) + "\n")
            # K = 1, and images as small as the reach, are cases of the mathematics, not the claim.
            if not verdict.accepted and verdict.code not in ("claim", "tokens"):
                raise EvidenceFailed(f"K = {size}, P = {patch}, image {image}: {verdict.reason}")
            checked += 1
    return f"{checked} sizes, odd and even kernels, images from one token"


def draw_layer(run: Run, salt: str, heads: int, queries: int) -> tuple[np.ndarray, np.ndarray]:
    """Attention [heads, queries, 13 keys] and maps [heads, 4, 4], integers."""
    rng = run.rng(salt, heads, queries)
    return rng.integers(1, 99, (heads, queries, 13)), rng.integers(-99, 99, (heads, 4, 4))


def composed_rank(run: Run) -> str:
    """Random layers, a skip connection among them: F̂ of the composition has rank H_1·H_2."""
    summary = []
    for one, two, skip in ((2, 3, False), (3, 3, False), (2, 3, True), (1, 4, True)):
        attention_1, maps_1 = draw_layer(run, "one", one, 13)
        attention_2, maps_2 = draw_layer(run, "two", two, 1)
        if skip:  # head 0 of layer 1 passes its token on
            attention_1[0], maps_1[0] = np.eye(13, dtype=int), np.eye(4, dtype=int)
        attention = np.einsum("gqp,hpk->ghk", attention_2, attention_1).reshape(one * two, -1)
        through = np.einsum("hic,gco->ghio", maps_1, maps_2).reshape(one * two, -1)
        flat = through.T @ attention
        rank = exact_rank(flat)
        require(rank == one * two, f"{one} and {two} heads: rank {rank}")
        summary.append(f"{one} · {two} = {rank}" + (" with a skip connection" if skip else ""))
    return "rank " + ", ".join(summary)


def least_total(needed: int) -> int:
    """The least a + b with a·b at least what is needed."""
    return min(a + -(-needed // a) for a in range(1, needed + 1))


def totals(run: Run) -> str:
    """The least totals for the products K² and K² + 1."""
    for size in range(1, 41):
        totals = least_total(size**2), least_total(size**2 + 1)
        require(totals == (2 * size, 2 * size + 1), f"K = {size}: {totals}")
    return "K ≤ 40: 2K and 2K + 1; K = 3: 6 and 7 heads"


def on_images(name: str, size: tuple[int, int], patch: int, exact: bool) -> Evidence:
    """The two layers on real images; equal in the limit, within a bound at finite scores.

    The bound: layer 1 is off by E_1 (`bounds/rounding.py`; its maps, powers of two, are exact for
    ε = 1/2), which layer 2 enlarges by at most its attention and the absolute values of its maps;
    and layer 2 is off by its own bound, plus 8 roundings of the gain 1 + 1/γ.
    """

    def check(run: Run) -> str:
        images = whole_images(run)[:4]
        kernel = integer_kernel(run.rng("kernel"), size, images.shape[-1], 4)
        expected = exact_convolution(images, kernel)
        comparisons = []
        for dtype in DTYPES[:2] if exact else DTYPES:
            tokens = jnp.asarray(images.astype(dtype))
            layers = conv_to_two_layers(
                kernel.astype(dtype), patch_size=patch, form="exact" if exact else "limit"
            )
            result = jax.jit(lambda layers, tokens: layers(tokens))(layers, tokens)
            comparisons.append(
                within(dtype, result, expected, two_layers_bound(layers, tokens))
                if exact
                else equal(dtype, result, expected)
            )
        first, second = layers.heads
        return f"{len(images)} images, {first} + {second} heads; " + "; ".join(comparisons)

    assumes = ASSUMPTION if exact else UNDERFLOW
    return Evidence(name, Level.BOUNDED, check, assumes=assumes, quick=False)


CLAIM = Claim(
    id="S.depth",
    source="this project, beside L21 Theorem 1 and S.heads",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LAYER_EQUALITY, Kind.LOWER_BOUND),
    evidence=(
        proved(
            "sharpened/depth.v",
            covers="(1) for two layers: at least ρ, a skip connection as a head; one more where "
            "all weights are positive, so without skips, if ρ > 0 and some token of the image is "
            "out of reach or some M_δ = 0; not: more layers, limits, one more beside a skip",
        ),
        proved(
            "sharpened/depth_limit.v",
            covers="(2) with hard attention, for odd K without dilation, by 2m + 1 and 2n + 1 "
            "heads, with layer 1 on the rows of the image and n zero columns on each side, "
            "its keys in a ring of m × n zero tokens; not: wider rings, the limit itself, "
            "finite scores, even K, dilation",
        ),
        certified(
            "S.depth",
            "K*x*",
            name="two layers, composed",
            covers="ε = 1/2 at finite scores, ε = 0 in the limit",
        ),
        certified("S.depth", "K*-in*", name="lower bounds"),
        Evidence("other sizes", Level.TESTED, other_sizes),
        Evidence("rank of a composition", Level.TESTED, composed_rank),
        Evidence("the least totals", Level.TESTED, totals),
        fewer_heads_fail("eight heads, as of two layers of 2 and 4", 3),
        on_images("3 × 3, 3 + 3 heads in the limit", (3, 3), 1, False),
        on_images("3 × 3, 3 + 4 heads", (3, 3), 1, True),
        on_images("5 × 5, P = 4, 3 + 4 heads", (5, 5), 4, True),
    ),
)
