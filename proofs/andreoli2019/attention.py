"""Section 3.1: masks in the log domain, softmax, and attention convolutions.

Claimed. A mask of minus infinities, added to the scores, gives the masked entries the weight zero
after softmax; fixed matrices in place of attention give an ordinary convolution.
True. They do, if the mask comes last and leaves every column an entry; but no softmax gives the
shifts of a grid without padding, so the second half holds only without softmax.

Printed. "Given a mask as an a priori matrix H of shape ⟨M, N⟩ with values in {-∞, 0}, […] one can
straightforwardly form the mechanism a + H: it masks (sets to -∞) the output of a wherever H is -∞
leaving the other values unchanged. […] When softmax normalisation is applied to a masked attention,
the masked values become 0." Attention convolutions are y = Σ_k a(x′, y′; Ξ_k)ᵀ x Θ_k (eq. 7), with
x′ = x in cross-attention and x′ = y′ = x in self-attention; "a graph or grid convolution […] can be
seen as a degenerate case", and eq. 7 is linear in x for fixed x′ and y′, but a self- or
cross-attention convolution "may not even be linear in its main input".

Verified. For finite a and a mask that lets some entry of every column through, the column-wise
softmax of a + H is zero where H is -∞, and elsewhere softmax(a) over what its column keeps; row by
row the same holds for the row-wise softmax. Eq. 7 for self-, cross- and three-input attention; for
a mechanism that ignores its input it is the convolution of eq. 4.

Repair. (1) A column that H blanks altogether does not become 0: its softmax is 0/0, NaN. The
library refuses such a mask by naming the column, or defines the column as zero where that is asked
for. (2) "Multiplied term-wise" and "masking" do not commute: a masked score of -∞ times a negative
number is +∞, times zero NaN. The mask must come last. (3) The degenerate case is in the linear
domain, before any softmax: no softmax of finite or masked scores is a shift matrix other than the
identity, as that has zero columns on a bare grid, which only the repaired definition gives.

Errata.
- Section 3.1 | softmax of masked scores | undefined where a whole column is masked

Proof. e^(a + H) = e^a · e^H with e^H ∈ {0, 1}. So the weight is e^a·e^H over the sum of e^a over
the unmasked entries of the column, which is positive unless there is none. Dividing numerator and
denominator by the sum of the whole column gives softmax(a)·e^H over what the column keeps. A_kᵀ x
Θ_k is linear in x for a given A_k. If a ignores its arguments then A_k is given, and eq. 7 is eq.
4. ∎
"""

import jax
import jax.numpy as jnp
import numpy as np

from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import DTYPES, EXP, certified_identities, proved, whole_images
from convattn_ledger.evidence.exact_influence import (
    exact_column_softmax,
    exact_influence_convolution,
)
from convattn_ledger.evidence.influence_rounding import attention_within, column_weights_within
from convattn_ledger.structures import (
    attention_convolution,
    bi_affine,
    bi_affine_scores,
    causal_mask,
    column_softmax,
    constant_mechanism,
    cross_attention_convolution,
    dense_basis,
    masked_scores,
    self_attention_convolution,
    softmax_mechanism,
    structured_convolution,
)


def draw_mask(rng: np.random.Generator, keys: int, queries: int) -> np.ndarray:
    """A random mask that lets something of every column through, and blanks something."""
    mask = rng.random((keys, queries)) < 0.5
    mask[rng.integers(0, keys, queries), np.arange(queries)] = True
    mask[0, 0], mask[1, 0] = False, True
    return mask


def masked_in_fractions(run: Run) -> str:
    """Masked softmax is softmax over what its column keeps; a positive rational stands for e."""
    cases = 10 if run.quick else 40
    for case in range(cases):
        rng = run.rng(case)
        scores, mask = rng.integers(-6, 7, (5, 4)), draw_mask(rng, 5, 4)
        weights = exact_column_softmax(scores, mask)
        if weights[~mask].any() or (weights.sum(axis=0) != 1).any():
            raise EvidenceFailed(f"case {case}: masked weights {weights[~mask]}, or other sums")
        masked = exact_column_softmax(scores) * mask
        if (weights != masked / masked.sum(axis=0)).any():
            raise EvidenceFailed(f"case {case}: not the unmasked weights over what is kept")
    return f"{cases} cases of 5 keys, 4 queries: zero where masked, renormalised elsewhere"


def blank_column(run: Run) -> str:
    """0/0 as printed; refused, NaN under jit, zero on request; the other columns as ever."""
    mask = np.array([[True, False, True], [True, False, False]])
    scores = jnp.zeros((2, 3))
    try:
        exact_column_softmax(np.zeros((2, 3), int), mask)
        raise EvidenceFailed("0/0 has a value in exact arithmetic")
    except ZeroDivisionError:
        pass
    printed = np.asarray(jax.nn.softmax(scores + np.where(mask, 0, -np.inf), axis=0))
    traced = np.asarray(jax.jit(column_softmax)(scores, jnp.asarray(mask)))
    for name, out in (("as printed", printed), ("under jit", traced)):
        if not np.isnan(out[:, 1]).all() or np.isnan(out[:, ::2]).any():
            raise EvidenceFailed(f"{name} the blank column is {out[:, 1]}, not NaN")
    try:
        column_softmax(scores, mask)
    except ValueError as refusal:
        if "column 1 is masked everywhere" not in str(refusal):
            raise EvidenceFailed(f"refused without naming the column: {refusal}") from refusal
    else:
        raise EvidenceFailed("the blank column was not refused")
    zero = np.asarray(column_softmax(scores, mask, blank="zero"))
    if zero.tolist() != [[0.5, 0.0, 1.0], [0.5, 0.0, 0.0]]:
        raise EvidenceFailed(f"with blank='zero' the weights are {zero.tolist()}")
    return "a blank column: NaN as printed, refused by name, or zero"


def masks_come_last(run: Run) -> str:
    """A masked mechanism times another is not masked."""
    mask = np.array([[True], [False], [False]])
    masked = masked_scores(jnp.array([[1.0], [2.0], [3.0]]), mask)
    for factor, weight in ((-1.0, "+∞"), (0.0, "NaN")):
        product = np.asarray(masked * factor)[1:]
        matches = np.isposinf(product) if weight == "+∞" else np.isnan(product)
        require(matches.all(), f"-∞ times {factor} is {product}, not {weight}")
    after = column_softmax(masked_scores(-jnp.array([[1.0], [2.0], [3.0]]), mask))
    require(after.tolist() == [[1.0], [0.0], [0.0]], f"masked after the product: {after.tolist()}")
    return "-∞ times -1 is +∞, times 0 NaN; a mask laid after the product holds"


def eq_7_exactly(run: Run) -> str:
    """Three inputs, cross-, self-attention and the constant case, in integers."""
    cases = 3 if run.quick else 10
    for case in range(cases):
        rng = run.rng(case)
        x, keys = rng.integers(-4, 5, (1, 5, 2)), rng.integers(-4, 5, (1, 5, 3))
        queries, other = rng.integers(-4, 5, (1, 4, 6)), rng.integers(-4, 5, (1, 4, 2))
        theta = rng.integers(-4, 5, (3, 2, 7))
        general, square = rng.integers(-4, 5, (3, 3, 6)), rng.integers(-4, 5, (3, 2, 2))
        constant = rng.integers(-4, 5, (3, 5, 4))

        def scores(matrices: np.ndarray):
            parameters = bi_affine(matrices)
            return lambda left, right: bi_affine_scores(left, right, parameters)

        def influence(left: np.ndarray, matrices: np.ndarray, right: np.ndarray) -> np.ndarray:
            return np.array([left[0] @ matrix @ right[0].T for matrix in matrices])

        for name, out, matrices in (
            (
                "three inputs",
                attention_convolution(x, keys, queries, scores(general), theta),
                influence(keys, general, queries),
            ),
            (
                "cross-attention",
                cross_attention_convolution(x, other, scores(square), theta),
                influence(x, square, other),
            ),
            (
                "self-attention",
                self_attention_convolution(x, scores(square), theta),
                influence(x, square, x),
            ),
            (
                "constant",
                attention_convolution(
                    x, keys, queries, constant_mechanism(dense_basis(constant)), theta
                ),
                constant,
            ),
        ):
            expected = exact_influence_convolution(matrices, x[0], theta)
            if np.asarray(out)[0].tolist() != expected.tolist():
                raise EvidenceFailed(f"case {case}, {name}: {out.tolist()}, not {expected}")
        structured = structured_convolution(jnp.asarray(x), dense_basis(constant), theta)
        if (structured != out).any():  # the constant case, the last of the four
            raise EvidenceFailed(f"case {case}: the constant case is not eq. 4")
    return f"{cases} cases of 5 keys, 4 queries, three heads: all four forms equal"


def what_is_linear(run: Run) -> str:
    """Doubling x doubles y for fixed x′ and y′; with A = x xᵀ it makes eightfold of it."""
    rng = run.rng("linear")
    x, theta = jnp.asarray(rng.integers(1, 5, (1, 5, 2))), rng.integers(1, 5, (1, 2, 3))

    def products(keys, queries):
        return jnp.einsum("bmp,bnp->bmn", keys, queries)[:, None]

    once, twice = (attention_convolution(s * x, x, x, products, theta) for s in (1, 2))
    if (twice != 2 * once).any():
        raise EvidenceFailed(f"for fixed x′ and y′ doubling x gives {twice}, not twice {once}")
    once, twice = (self_attention_convolution(s * x, products, theta) for s in (1, 2))
    if (twice != 8 * once).any() or (twice == 2 * once).any():
        raise EvidenceFailed(f"self-attention by products: {twice} for 2x, {once} for x")
    return "twofold for fixed auxiliary inputs, eightfold in self-attention by products"


def on_images(run: Run) -> str:
    """Eight by eight pixels attend under the causal mask, to themselves and to another image's.

    The scores are integers below 2²⁴ times 2^-14, exact in at least float32, and so are x and Θ.
    The bound is that of `convattn_ledger.evidence.influence_rounding`.
    """
    pixels = whole_images(run)[:2, 12:20, 12:20].reshape(2, 64, 3)
    rng = run.rng("weights")
    matrices, theta = rng.integers(-1, 2, (2, 3, 3)), rng.integers(-3, 4, (2, 3, 4))
    mask = np.asarray(causal_mask(64))
    summary = []
    for dtype in DTYPES:
        parameters = bi_affine(jnp.asarray(matrices / 2**14, dtype))
        mechanism = softmax_mechanism(lambda k, q, p=parameters: bi_affine_scores(k, q, p), mask)
        tokens = jnp.asarray(pixels, dtype)
        parameter = jnp.asarray(theta, dtype)
        layer = jax.jit(lambda x, y, t, m=mechanism: attention_convolution(x, x, y, m, t))
        reach = 0.0
        for name, queries in (("self", pixels), ("cross", pixels[::-1])):
            out = np.asarray(layer(tokens, jnp.asarray(queries, dtype), parameter), np.float64)
            for image in (0, 1):
                scores = pixels[image] @ matrices @ queries[image].T / 2**14
                weights = column_weights_within(scores, dtype, mask)
                expected, bound = attention_within(
                    weights, pixels[image].astype(float), theta.astype(float), dtype
                )
                excess = (np.abs(out[image] - expected) - bound).max()
                require(excess <= 0, f"{dtype}, {name}: {excess} above the bound")
                reach = max(reach, float(bound.max()))
        summary.append(f"{dtype} {reach:.2g}")
    return "self and cross within " + ", ".join(summary)


CLAIM = Claim(
    id="A19.attention",
    source="Andreoli 2019, Section 3.1, Definitions 3 and 4, eq. 7",
    verdict=Verdict.AMENDED,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "andreoli2019/attention.v",
            covers="the column-wise softmax of positive weights under a mask, which leaves zero of "
            "a blank column's sum; eq. 7 is eq. 4 for a mechanism that ignores its inputs, linear "
            "in x for fixed x', y', and for one head with a = x xᵀ homogeneous of degree three; "
            "not: the row-wise softmax, the library's blank columns, (2) and (3) of the repair",
        ),
        certified_identities("A19.attention", "masking and constants in the softmax", "masking"),
        Evidence("masked columns in fractions", Level.TESTED, masked_in_fractions),
        Evidence("a blank column", Level.TESTED, blank_column),
        Evidence("masks come last", Level.TESTED, masks_come_last),
        Evidence("eq. 7 exactly", Level.TESTED, eq_7_exactly),
        Evidence("what is linear", Level.TESTED, what_is_linear),
        Evidence("pixels of images, masked", Level.BOUNDED, on_images, assumes=EXP, quick=False),
    ),
)
