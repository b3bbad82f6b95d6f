"""Section 3.3, last paragraph: shift-matrix heads beside attention heads.

Claimed. Heads that are shift matrices can stand beside attention heads in place of positional
encodings, and some heads of trained Transformers are precisely shift matrices.
True. Such a layer is attention plus convolution, and one head with a shift other than zero makes it
depend on the order of the tokens; but a softmax over several finite scores is never precisely a
shift.

Printed. "One or several additional heads with purely index-based basis matrices could be used, in
complement to the attention heads. Typically, […] those of a 1-D grid convolution", in place of
positional encodings; "it has been observed that in Transformers with positional encoding, after
training, some of the attention heads precisely play the role of shift matrices".

Verified. A basis of attention matrices followed by shift matrices, with the parameters in the same
order, gives the sum of the attention convolution and the grid convolution. Self-attention without
positions is equivariant to every reordering of the tokens; one shift head d ≠ 0 with A_d ≠ 0, that
is |d_i| < n_i on every axis, and Θ_d ≠ 0 breaks that. All shifts of a 3 × 3 neighbourhood beside
idle attention heads are a 3 × 3 convolution.

Nothing to repair. To be read with it: (1) "precisely" cannot be meant. A_d has as many zero columns
as nodes lie within d of the border, and a column-wise softmax has none; and with finite scores, two
keys or more, all weights are positive. (2) A mask on the attention heads does not mask the shift
heads: beside a causal mask only shifts d ≥ 0 leave predecessors alone.

Proof. Σ_k over the concatenation is the sum over both parts. ΠA(x)Πᵀ = A(Πx) for scores that are
functions of two rows, so that attention moves along with the tokens; Π A_d = A_d Π for all Π only
if A_d is a combination of I and the matrix of ones, which for d ≠ 0 and at least two nodes A_d is
not unless it is zero. (A_dᵀx)_n = x_(n-d) depends on later tokens iff d < 0. ∎
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np

from convattn.operators.arrays import accumulation_dtype
from convattn.operators.roundoff import unit_roundoff
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import (
    DTYPES,
    EXP,
    certified_identities,
    exact_convolution,
    integer_kernel,
    proved,
    whole_images,
)
from convattn_ledger.evidence.exact_influence import (
    exact_column_softmax,
    exact_influence_convolution,
)
from convattn_ledger.evidence.influence_rounding import attention_within, column_weights_within
from convattn_ledger.structures import (
    attention_with_shifts,
    bi_affine,
    bi_affine_scores,
    causal_mask,
    self_attention_convolution,
    shift_basis,
    softmax_mechanism,
    with_shift_heads,
)


def shift_matrix(nodes: int, shift: int) -> np.ndarray:
    """(A_d)_mn = [n - m = d], from the definition."""
    return np.array([[int(n - m == shift) for n in range(nodes)] for m in range(nodes)])


def the_sum(run: Run) -> str:
    """The concatenated basis, written out and as slices, against both parts, in integers."""
    cases, shifts = 3 if run.quick else 10, (-2, 0, 1)
    for case in range(cases):
        rng = run.rng(case)
        x, matrices = rng.integers(-4, 5, (1, 6, 2)), rng.integers(-4, 5, (2, 2, 2))
        theta, more = rng.integers(-4, 5, (2, 2, 3)), rng.integers(-4, 5, (3, 2, 3))
        parameters = bi_affine(matrices)

        def mechanism(keys, queries, parameters=parameters):
            return bi_affine_scores(keys, queries, parameters)

        influence = [x[0] @ matrix @ x[0].T for matrix in matrices]
        expected = exact_influence_convolution(np.array(influence), x[0], theta)
        shifted = np.array([shift_matrix(6, shift) for shift in shifts])
        expected = (expected + exact_influence_convolution(shifted, x[0], more)).tolist()
        whole = np.concatenate([theta, more])
        written = self_attention_convolution(x, with_shift_heads(mechanism, 6, shifts), whole)
        tokens = jnp.asarray(x)
        sliced = attention_with_shifts(
            tokens, tokens, tokens, mechanism, theta, shift_basis(6, shifts), more
        )
        for name, out in (("written out", written), ("as slices", sliced)):
            if np.asarray(out)[0].tolist() != expected:
                raise EvidenceFailed(f"case {case}, {name}: {out.tolist()}, not {expected}")
    return f"{cases} cases of 6 tokens, two attention and three shift heads equal the sum"


def order_is_seen(run: Run) -> str:
    """Reordered tokens move attention along, with softmax in fractions; a shift head stays."""
    for case in range(5):
        rng = run.rng(case)
        x, matrix = rng.integers(-2, 3, (5, 2)), rng.integers(-1, 2, (2, 2))
        x[:, 0] = np.arange(5)  # five different tokens
        theta, order = rng.integers(1, 4, (2, 2, 3)), np.roll(np.arange(5), case + 1)
        theta[1] = [[1, 1, 1], [0, 0, 0]]  # the shift head passes the number of the token on
        if case == 4:
            order = order[::-1]

        def layer(tokens: np.ndarray, shifts: int, matrix=matrix, theta=theta) -> np.ndarray:
            attended = exact_column_softmax(tokens @ matrix @ tokens.T)
            basis = np.array([attended, shifts * shift_matrix(5, 1)])
            return exact_influence_convolution(basis, tokens, theta)

        if (layer(x[order], 0) != layer(x, 0)[order]).any():
            raise EvidenceFailed(f"case {case}: attention alone does not move along with {order}")
        if (layer(x[order], 1) == layer(x, 1)[order]).all():
            raise EvidenceFailed(f"case {case}: with a shift head nothing changes under {order}")
    return "5 reorderings: attention moves along, with a shift head it does not"


def no_softmax_is_a_shift(run: Run) -> str:
    """Zero columns of A_d, against columns that sum to one and weights that are positive."""
    for shift in range(-5, 6):
        matrix = np.asarray(shift_basis(6, [shift]).matrices())[0]
        if matrix.tolist() != shift_matrix(6, shift).tolist():
            raise EvidenceFailed(f"d = {shift}: {matrix.tolist()}")
        if (~matrix.any(axis=0)).sum() != abs(shift):
            raise EvidenceFailed(f"d = {shift}: {(~matrix.any(axis=0)).sum()} zero columns")
    sharp = 40 * (np.eye(6, dtype=int) + np.eye(6, k=1, dtype=int))
    for scores in (sharp, run.rng("scores").integers(-9, 10, (6, 6))):
        weights = exact_column_softmax(scores, None, Fraction(3))
        if (weights.sum(axis=0) != 1).any() or not (weights > 0).all() or (weights == 1).any():
            raise EvidenceFailed(f"weights {weights.tolist()} of finite scores")
    return "6 nodes: |d| zero columns in A_d, none in a softmax, whose weights are positive"


def masks_and_shifts(run: Run) -> str:
    """Under a causal mask on the attention heads, which shifts let later tokens in."""

    def scores(keys, queries):
        return jnp.einsum("bmp,bnp->bmn", keys, queries)[:, None]

    masked = softmax_mechanism(scores, causal_mask(5))
    x, theta = run.rng("x").integers(-2, 3, (1, 5, 2)), run.rng("theta").integers(1, 4, (2, 2, 3))
    for shift in (-2, -1, 0, 1, 2):
        layer = with_shift_heads(masked, 5, [shift])
        before, after = (
            self_attention_convolution(x + step, layer, theta)
            for step in (0, np.eye(5, dtype=int)[3][:, None])
        )
        unmoved = bool((before[:, :3] == after[:, :3]).all())
        require(unmoved == (shift >= 0), f"d = {shift}: predecessors unmoved is {unmoved}")
    return "d = 0, 1, 2 leave predecessors alone, d = -1, -2 do not"


def on_images(run: Run) -> str:
    """Whole images: nine shift heads beside idle ones are the convolution; a block with attention.

    With attention heads of Θ = 0 the layer is the zero-padded 3 × 3 convolution, integers below
    2²⁴, and must equal it. With attention on 8 × 8 pixels the bound is that of
    `convattn_ledger.evidence.influence_rounding` plus one rounding of the sum of the two parts.
    """
    images = whole_images(run)[:2, 12:20, 12:20]
    x = images.reshape(2, 64, 3)
    kernel = integer_kernel(run.rng("kernel"), (3, 3), 3, 4)
    rng = run.rng("weights")
    matrix, theta = rng.integers(-1, 2, (1, 3, 3)), rng.integers(-3, 4, (1, 3, 4))
    convolved = exact_convolution(images, kernel).reshape(2, 64, 4)
    taps = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    basis = shift_basis((8, 8), [(-i, -j) for i, j in taps])  # δ = key - query = -d

    @jax.jit
    def layer(x, matrix, theta, shifted):
        parameters = bi_affine(matrix)
        mechanism = softmax_mechanism(lambda k, q: bi_affine_scores(k, q, parameters))
        return attention_with_shifts(x, x, x, mechanism, theta, basis, shifted)

    summary = []
    for dtype in DTYPES:
        arrays = jnp.asarray(x, dtype), jnp.asarray(matrix / 2**14, dtype)
        shifted = jnp.asarray(kernel.reshape(9, 3, 4), dtype)
        idle = np.asarray(layer(*arrays, jnp.zeros((1, 3, 4), dtype), shifted), np.float64)
        rounded = np.asarray(jnp.asarray(convolved, dtype), np.float64)
        if (idle != rounded).any():
            raise EvidenceFailed(
                f"{dtype}: idle attention heads leave {np.abs(idle - rounded).max()}"
            )
        out = np.asarray(layer(*arrays, jnp.asarray(theta, dtype), shifted), np.float64)
        reach = 0.0
        for image in (0, 1):
            weights = column_weights_within(x[image] @ matrix @ x[image].T / 2**14, dtype)
            expected, bound = attention_within(
                weights, x[image].astype(float), theta.astype(float), dtype
            )
            # the shift heads are cast to the dtype, the sum is rounded in at least float32
            cast = np.abs(rounded[image] - convolved[image])
            u = unit_roundoff(accumulation_dtype(dtype))
            whole = expected + convolved[image]
            limit = bound + cast + u * (np.abs(whole) + bound + cast) * (1 + 2.0**-20)
            excess = (np.abs(out[image] - whole) - limit).max()
            require(excess <= 0, f"{dtype}: {excess} above the bound")
            reach = max(reach, float(limit.max()))
        summary.append(f"{dtype} {reach:.2g}")
    return "equal to the convolution beside idle heads; beside attention within " + ", ".join(
        summary
    )


CLAIM = Claim(
    id="A19.shiftheads",
    source="Andreoli 2019, Section 3.3, last paragraph",
    verdict=Verdict.HOLDS,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "andreoli2019/shiftheads.v",
            covers="the sum; attention without positions, of weights that are any functions of two "
            "tokens, is equivariant to every reordering, and one shift head beside it, for a d ≠ 0 "
            "that occurs and Θ_d ≠ 0, breaks that; A_d has a column of zeros for d ≠ 0 if no axis "
            "is empty; not: how many, that a softmax has none, masks, the 3 × 3 neighbourhood "
            "beside idle heads",
        ),
        certified_identities("A19.shiftheads", "attention and shifts in one basis", "sum"),
        Evidence("the sum", Level.TESTED, the_sum, quick=False),
        Evidence("order is seen", Level.TESTED, order_is_seen),
        Evidence("no softmax is a shift", Level.TESTED, no_softmax_is_a_shift),
        Evidence("masks and shifts", Level.TESTED, masks_and_shifts),
        Evidence("pixels of images", Level.BOUNDED, on_images, assumes=EXP, quick=False),
    ),
)
