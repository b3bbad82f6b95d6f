"""Eq. 3: without positions self-attention is equivariant to reordering; with positions it is not.

Claimed. Without position encodings, self-attention gives the same output however its tokens are
shuffled; so positions are added to the tokens.
True. Without positions the outputs are shuffled along with the tokens, for all weights and inputs;
with positions added there are inputs for which they are not.

Printed. "A key property of the self-attention model described above is that it is equivariant to
reordering, that is, it gives the same output independently of how the T input tokens are
shuffled", and a positional encoding "is learned for each token in the sequence […] and added to
the representation of the token itself before applying self-attention", A := (X + P) W_qry W_keyᵀ
(X + P)ᵀ (eq. 3).

Verified. With the scores of eq. 2, Self-Attention(ΠX) = Π Self-Attention(X) for every permutation
matrix Π, all weights and all X. With the scores of eq. 3 there are X, P and Π for which this
fails, whether P enters the scores only, as in eq. 3, or the values too, as in the text; permuting
P along with X restores it.

Nothing to repair. Read "the same output" as the same up to the same reordering. The text adds P to
the representation, from which the values are taken too; eq. 3 adds it to the scores only.

Errata.
- eq. 3 and text | the text adds P to the representation, eq. 3 to the scores only | Remark: it
  has to say which; both break equivariance

Proof. *The idea:* reordering the tokens reorders the rows and the columns of the scores.

Let W = W_qry W_keyᵀ. The scores of ΠX are ΠX W Xᵀ Πᵀ. Softmax acts on each row and does not care
for the order of its entries, so the weights are Π S Πᵀ with S = softmax(A), and Π S Πᵀ ΠX W_val =
Π(S X W_val).

With X + P the same holds if P moves along.

If it does not: for X = (1, 2)ᵀ, P = (0, 1)ᵀ, all maps 1 and Π the swap, X + P = (1, 3)ᵀ has the
rows of scores (1, 3) and (3, 9), while ΠX + P = (2, 2)ᵀ has equal scores everywhere. With eq. 3 as
printed the second gives 3/2 at both tokens, and the first gives more at both, as e^3 > e and e^9 >
e^3. ∎
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from convattn.encodings import BiasEncoding, QuadraticEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.fast.application import apply_attention
from convattn.operators.roundoff import EXP_ERROR, gamma, unit_roundoff
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict
from convattn_ledger.evidence import DTYPES, EXP, proved, whole_images
from convattn_ledger.evidence.exact_attention import exact_self_attention
from convattn_ledger.evidence.scores import content_scores, position_added_scores


def permuted_exactly(run: Run) -> str:
    """Integer tokens and weights; softmax with the base 3/2, as fractions."""
    cases = 5 if run.quick else 25
    for case in range(cases):
        rng = run.rng(case)
        tokens, positions = (jnp.asarray(array) for array in rng.integers(-2, 3, (2, 6, 3)))
        query, key, value = (jnp.asarray(array) for array in rng.integers(-1, 2, (3, 3, 2)))
        order = rng.permutation(6)

        def attend(tokens: Any, scores: Any, value: Any = value) -> np.ndarray:
            return exact_self_attention(*(np.asarray(array) for array in (tokens, scores, value)))

        before = attend(tokens, content_scores(tokens, query, key))[order]
        after = attend(tokens[order], content_scores(tokens[order], query, key))
        if (after != before).any():
            raise EvidenceFailed(f"case {case}: tokens reordered by {order} give another output")
        before = attend(tokens, position_added_scores(tokens, positions, query, key))[order]
        joint = position_added_scores(tokens[order], positions[order], query, key)
        if (attend(tokens[order], joint) != before).any():
            raise EvidenceFailed(f"case {case}: positions that move along break the equivariance")
    return f"{cases} cases of 6 tokens equal, also with positions that move along"


def positions_break_it(run: Run) -> str:
    """The witness of the proof, with P in the scores only and in the values too."""
    one = jnp.ones((1, 1), int)
    tokens, positions, swap = jnp.array([[1], [2]]), jnp.array([[0], [1]]), np.array([1, 0])
    for in_values in (0, 1):
        outputs = []
        for inputs in (tokens, tokens[swap]):
            scores = np.asarray(position_added_scores(inputs, positions, one, one))
            values = np.asarray(inputs + in_values * positions)
            outputs.append(exact_self_attention(values, scores, np.asarray(one)))
        if (outputs[1] == outputs[0][swap]).any():
            raise EvidenceFailed(f"the swap moved {outputs[0]} along to {outputs[1]}")
    first, second = ([str(entry) for entry in output.ravel()] for output in outputs)
    return f"with positions in the values too: {first}, swapped {second}"


def permuted_images(run: Run) -> str:
    """Pixels in random order, against the order of the image.

    Scores are integers below 2²² times 2^-16, so scores, maxima and differences are exact in at
    least float32. Each of the two runs is off by at most the bound of
    `convattn_ledger.evidence.softmax_rounding` with equal weights, their argument errors being
    zero: at
    most B = max|X W_val|·((1 + 8u)(1 + u)²/(1 - ζ) - 1 + γ_N) plus the cast, where 1 + ζ = (1 +
    8u)(1 + γ_N). So they differ by at most 2B. The quadratic encoding, which does not move along,
    has to exceed that.
    """
    images = whole_images(run)
    count, tokens = len(images), images[0].shape[0] * images[0].shape[1]
    sequences = images.reshape(count, tokens, 3)
    order = run.rng("order").permutation(tokens)
    rng = run.rng("weights")
    query, key, value = rng.integers(-1, 2, (3, 3, 3))
    largest = int(np.abs(sequences @ value).max())
    apply = jax.jit(apply_attention)
    summary = []
    for dtype in DTYPES:
        content = ContentScores(
            jnp.asarray(query[None], dtype) / 2**8,
            jnp.asarray(key[None], dtype) / 2**8,
            scaled=False,
        )
        nowhere = BiasEncoding(jnp.zeros((1, 1), dtype), None, ((0,),))
        near = QuadraticEncoding(jnp.ones(1, dtype), jnp.zeros((1, 1), dtype))
        layers = [
            AttentionLayer(
                encoding,
                jnp.asarray(value[None], dtype),
                None,
                content=content,
                patch_size=(1,),
                stride=(1,),
                dilation=(1,),
                ring=((0, 0),),
            )
            for encoding in (nowhere, near)
        ]
        working = jnp.promote_types(dtype, jnp.float32)
        roundoff, sums = unit_roundoff(working), gamma(tokens, unit_roundoff(working))
        off = (1 + EXP_ERROR * roundoff) * (1 + sums) - 1
        each = (1 + EXP_ERROR * roundoff) * (1 + roundoff) ** 2 / (1 - off) - 1
        each = each + sums * (1 + each)
        bound = 2 * largest * (each + unit_roundoff(dtype) * (1 + each)) * (1 + 2.0**-20)
        moves = []
        for layer, some in ((layers[0], sequences), (layers[1], sequences[:1])):
            distance = 0.0
            for sequence in some:
                straight = jnp.asarray(sequence[None], dtype)
                before = np.asarray(apply(layer, straight), np.float64)[:, order]
                after = np.asarray(apply(layer, straight[:, order]), np.float64)
                distance = max(distance, float(np.abs(after - before).max()))
            moves.append(distance)
        if not moves[0] <= bound:
            raise EvidenceFailed(f"{dtype}: reordering moves a pixel by {moves[0]}, above {bound}")
        if not moves[1] > bound:
            raise EvidenceFailed(f"{dtype}: with positions too it moves by {moves[1]} only")
        summary.append(f"{dtype} {moves[0]:.2g} ≤ {bound:.2g} < {moves[1]:.3g} with positions")
    return f"{count} images, {tokens} tokens; " + "; ".join(summary)


CLAIM = Claim(
    id="C20.eq3",
    source="Cordonnier, Loukas, Jaggi 2020, §2.1, eqs. 1 to 3",
    verdict=Verdict.HOLDS,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved("cordonnier2020/eq3.v", covers="the whole claim"),
        Evidence("exact, without positions", Level.TESTED, permuted_exactly),
        Evidence("planted, with positions", Level.TESTED, positions_break_it),
        Evidence(
            "pixels of images reordered",
            Level.BOUNDED,
            permuted_images,
            assumes=EXP,
            quick=False,
        ),
    ),
)
