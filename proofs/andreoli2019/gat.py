"""Section 3.2: graph attention networks as attention convolutions.

Claimed. Graph attention networks are a variant of self-attention convolutions in which the leaky
ReLU before the softmax matters, and has to be leaky for the mask to survive.
True. So it is: without it the query's own term would drop out of the softmax, and masked scores
stay masked exactly if its slope is positive, while a plain ReLU would unmask them.

Printed. "Graph attention networks are based on a variant of self-attention convolutions, where the
equation A_k = a(x, x; Ξ_k) is replaced by A_k = a(xΘ_k, xΘ_k; Ξ_k)", with Λ_k = 0, a mask from the
graph, "a term-wise 'leaky ReLU' followed by a column-wise softmax. […] the masked values are still
masked after a leaky ReLU […] Skipping ReLU altogether before the softmax would make the term
involving ν […] redundant: it is constant along each column, and softmax is invariant to an additive
constant." Footnote 3: "is important here: recall that, in log domain, the mask value is -∞ which is
unchanged by a leaky ReLU but annulled by a plain ReLU".

Verified. The layer is that of Veličković et al. (2018): their W is Θᵀ, and of a, which multiplies
[W h_i ‖ W h_j] for node i attending to node j, the first half is ν and the second μ; ξ = 0. Without
the leaky ReLU ν is redundant, mask or not, and so is ξ. With it ν matters. Masked values stay
masked under a leaky ReLU iff its slope is positive; a plain ReLU makes them 0, a score like any
other.

Nothing to repair. Four things may be added. (1) It is no variant: a(xΘ, xΘ; ξ, μ, ν, Λ) is a(x, x;
ξ, Θμ, Θν, ΘΛΘᵀ), a self-attention convolution whose Ξ_k is tied to Θ_k. (2) The networks
concatenate heads, or average them in the last layer, where eq. 7 sums; a concatenation is the sum
for Θ_k laid into the k-th block of wider zero matrices. (3) "Important" is the leak only because
the mask comes first: a plain ReLU before the mask leaves the mask alone. (4) Also with the leaky
ReLU, every query that sees two keys gives more weight to the one with the larger μ·z: ν changes the
weights, never their order.

Proof. Without the ReLU e^(μ·z_m + ν·z_n + ξ) = e^(μ·z_m)·e^(ν·z_n + ξ), and the second factor is
common to column n. With slope 1/5, two keys of scores ±5 get 5 - (-1) = 6 apart; ν·z_n = 5 makes
that 10 - 0 = 10, so the weights change. -∞·slope = -∞ iff slope > 0. The leaky ReLU is increasing,
so s_m ≤ s_m′ for one shift of both iff for another. ∎
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np

from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import DTYPES, EXP, certified_identities, proved, whole_images
from convattn_ledger.evidence.exact_influence import exact_column_softmax
from convattn_ledger.evidence.influence_rounding import attention_within, column_weights_within
from convattn_ledger.structures import (
    bi_affine,
    bi_affine_scores,
    column_softmax,
    graph_attention,
    leaky_relu,
    masked_scores,
    through_parameter,
)


def sloped(scores: np.ndarray) -> np.ndarray:
    """A leaky ReLU of slope 1/5 on multiples of five, so that integers stay integers."""
    return np.where(scores >= 0, scores, scores // 5)


def draw(run: Run, case: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """μ·z and ν·z of six nodes, in multiples of five, and a graph with self-loops."""
    rng = run.rng(case)
    left, right = 5 * rng.integers(-3, 4, (2, 6))
    mask = rng.random((6, 6)) < 0.6
    np.fill_diagonal(mask, True)
    return left, right, mask


def query_term(run: Run) -> str:
    """With ν and ξ and without, before the softmax and before a leaky ReLU of slope 1/5."""
    cases, changed = 10 if run.quick else 30, 0
    for case in range(cases):
        left, right, mask = draw(run, case)
        offset = 5 * int(run.rng(case, "offset").integers(1, 4))
        whole = left[:, None] + right[None, :] + offset
        rest = np.broadcast_to(left[:, None], (6, 6))
        linear = [exact_column_softmax(scores, mask, Fraction(3, 2)) for scores in (whole, rest)]
        if (linear[0] != linear[1]).any():
            raise EvidenceFailed(f"case {case}: without the leaky ReLU ν = {right} matters")
        bent = [exact_column_softmax(sloped(scores), mask) for scores in (whole, rest)]
        changed += (bent[0] != bent[1]).any()
    two = np.array([[5, 10], [-5, 0]])  # ν·z = 0 and 5
    columns = exact_column_softmax(sloped(two), None, Fraction(2))
    if columns[0].tolist() != [Fraction(64, 65), Fraction(1024, 1025)]:
        raise EvidenceFailed(f"the example of the proof has the weights {columns[0]}")
    require(changed, "with the leaky ReLU ν never mattered")
    return f"{cases} graphs: redundant without the leaky ReLU; with it {changed} change"


def same_order(run: Run) -> str:
    """Every query ranks the keys that it sees by μ·z, with a leaky ReLU too."""
    cases = 10 if run.quick else 30
    for case in range(cases):
        left, right, mask = draw(run, case)
        scores = sloped(left[:, None] + right[None, :])
        weights = exact_column_softmax(scores, mask)
        for query in range(6):
            keys = np.flatnonzero(mask[:, query])
            ranked = weights[keys[np.argsort(left[keys], kind="stable")], query]
            if (ranked[1:] < ranked[:-1]).any():
                raise EvidenceFailed(f"case {case}: query {query} has the order {ranked}")
    return f"{cases} graphs of 6 nodes: all queries rank alike"


def masks_and_slopes(run: Run) -> str:
    """-∞ under leaky and plain ReLUs, after the mask and before it."""
    scores, mask = jnp.array([[-1.0], [2.0]]), jnp.array([[True], [False]])
    leaky = leaky_relu(masked_scores(scores, mask), 0.2)
    plain = jax.nn.relu(masked_scores(scores, mask))
    if leaky[1, 0] != -jnp.inf or column_softmax(leaky).tolist() != [[1.0], [0.0]]:
        raise EvidenceFailed(f"the leaky ReLU makes {leaky[1, 0]} of -∞")
    if plain[1, 0] != 0 or column_softmax(plain).tolist() != [[0.5], [0.5]]:
        raise EvidenceFailed(f"the plain ReLU makes {plain[1, 0]} of -∞")
    before = column_softmax(masked_scores(jax.nn.relu(scores), mask))
    if before.tolist() != [[1.0], [0.0]]:
        raise EvidenceFailed(f"a plain ReLU before the mask gives {before.tolist()}")
    for slope in (0.0, -0.2):
        try:
            leaky_relu(scores, slope)
        except ValueError:
            continue
        raise EvidenceFailed(f"a slope of {slope}, which loses the mask, is not refused")
    return "-∞ stays -∞ for slope 0.2, becomes 0 in a plain ReLU; before the mask it is harmless"


def tied_parameters(run: Run) -> str:
    """a(xΘ, xΘ; Ξ) as a(x, x; Ξ′), with Λ too; and concatenation as a sum; in integers."""
    cases = 3 if run.quick else 10
    for case in range(cases):
        rng = run.rng(case)
        x, theta = rng.integers(-4, 5, (1, 5, 3)), rng.integers(-4, 5, (2, 3, 4))
        terms = [rng.integers(-4, 5, shape) for shape in ((2, 4, 4), (2, 4), (2, 4), (2,))]
        tied = through_parameter(bi_affine(*terms), jnp.asarray(theta))
        scores = np.asarray(bi_affine_scores(jnp.asarray(x), jnp.asarray(x), tied))
        for k in (0, 1):
            z, (bilinear, key, query, offset) = x[0] @ theta[k], (term[k] for term in terms)
            expected = z @ bilinear @ z.T + (z @ key)[:, None] + (z @ query)[None] + offset
            if (scores[0, k] != expected).any():
                raise EvidenceFailed(f"case {case}, head {k}: {scores[0, k]}, not {expected}")
        weights = rng.integers(-4, 5, (2, 5, 5))
        wide = np.zeros((2, 3, 8), int)
        wide[0, :, :4], wide[1, :, 4:] = theta
        heads = [weights[k].T @ x[0] @ theta[k] for k in (0, 1)]
        if (np.hstack(heads) != sum(weights[k].T @ x[0] @ wide[k] for k in (0, 1))).any():
            raise EvidenceFailed(f"case {case}: concatenation is not the sum of wider parameters")
    return f"{cases} cases of 5 nodes, two heads: equal"


def by_loops(
    nodes: np.ndarray, mask: np.ndarray, weight: np.ndarray, own: np.ndarray, other: np.ndarray
) -> np.ndarray:
    """Veličković et al., eqs. 3 and 4, one head, slope 1/4, before σ, one node at a time."""
    mapped = [weight @ node for node in nodes]
    out = np.empty((len(nodes), len(weight)))
    for i in range(len(nodes)):
        neighbours = np.flatnonzero(mask[:, i])
        raw = np.array([own @ mapped[i] + other @ mapped[j] for j in neighbours])
        scores = np.where(raw > 0, raw, raw / 4)
        powers = np.exp(scores - scores.max())
        out[i] = sum(p * mapped[j] for p, j in zip(powers / powers.sum(), neighbours, strict=True))
    return out


def on_images(run: Run) -> str:
    """Blocks of 6 × 6 pixels, each joined with its eight neighbours, against loops in float64.

    Scores are integers below 2²⁴ times 2^-10, and the slope is 1/4: all exact in at least float32.
    The loops and the layer are each within the bound of
    `convattn_ledger.evidence.influence_rounding`, in
    float64 and in the layer's dtype; the bounds are added.
    """
    pixels = whole_images(run)[:2, 12:18, 12:18].reshape(2, 36, 3)
    positions = np.stack(np.unravel_index(np.arange(36), (6, 6)), axis=1)
    mask = np.abs(positions[:, None] - positions[None]).max(axis=-1) <= 1
    rng = run.rng("weights")
    theta = rng.integers(-2, 3, (2, 3, 4))
    own, other = rng.integers(-2, 3, (2, 2, 4)) / 2**10
    apply = jax.jit(graph_attention, static_argnames=("slope",))
    summary = []
    for dtype in DTYPES:
        parameters = bi_affine(
            key_weight=jnp.asarray(other, dtype), query_weight=jnp.asarray(own, dtype)
        )
        arrays = jnp.asarray(pixels, dtype), jnp.asarray(mask), jnp.asarray(theta, dtype)
        out = np.asarray(apply(*arrays, parameters, slope=0.25), np.float64)
        largest = 0.0
        for image in (0, 1):
            expected, limit = np.zeros((36, 4)), np.zeros((36, 4))
            for weight, left, right in zip(theta, own, other, strict=True):
                z = pixels[image] @ weight
                raw = (z @ right)[:, None] + (z @ left)[None]
                bent = np.where(raw >= 0, raw, raw / 4)[None]
                expected += by_loops(pixels[image], mask, weight.T, left, right)
                for each in (dtype, "float64"):
                    weights = column_weights_within(bent, each, mask)
                    single = pixels[image].astype(float), weight[None].astype(float)
                    limit += attention_within(weights, *single, each, inner=2).bound
            excess = (np.abs(out[image] - expected) - limit).max()
            require(excess <= 0, f"{dtype}: {excess} above the bound")
            largest = max(largest, float(limit.max()))
        summary.append(f"{dtype} {largest:.2g}")
    return "36 pixels, two heads, within " + ", ".join(summary)


CLAIM = Claim(
    id="A19.gat",
    source="Andreoli 2019, Section 3.2",
    verdict=Verdict.HOLDS,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "andreoli2019/gat.v",
            covers="(1) for the scores, before ReLU and mask, and in (2) heads side by side as a "
            "sum; without the leaky ReLU ν and ξ are redundant under every mask, for any "
            "exponential that takes sums to products and is never zero, under a fully masked "
            "column only by the convention x/0 = 0; not: that the layer is that of Veličković et "
            "al., averaged heads, (3), masks under a plain or leaky ReLU",
        ),
        proved(
            "andreoli2019/gat_relu.v",
            covers="for slopes between 0 and 1 and an exponential that is 1 at 0 alone: (4), "
            "whatever ν·z_n + ξ is, and that ν matters, by two keys with μ·z = ±1, whose "
            "weights are not the same for ν·z_n + ξ = 0 and 1",
        ),
        certified_identities("A19.gat", "without the leaky ReLU", "redundant"),
        Evidence("the query term", Level.TESTED, query_term),
        Evidence("the order of the keys", Level.TESTED, same_order),
        Evidence("masks and slopes", Level.TESTED, masks_and_slopes),
        Evidence("tied parameters", Level.TESTED, tied_parameters),
        Evidence(
            "neighbouring pixels of images",
            Level.BOUNDED,
            on_images,
            assumes=EXP,
            quick=False,
        ),
    ),
)
