"""§1: self-attention makes convex combinations of the values.

Claimed. With a column-wise softmax of the scores every output of self-attention is a convex
combination of the values.
True. It is if the softmax runs over the keys, that is, over each row of the printed scores; the
printed one runs over the queries, and an output's weights then need not sum to one.

Printed. Y = V(X) A(X)ᵀ, A(X) = S(α(X)/√d_a), α(X) = Q(X)ᵀ K(X), "S is the column-wise softmax
operator. Therefore, A(X) is the attention scores matrix and every column y_i is a convex
combination of V(X)'s columns."

Verified. With S the softmax of each row of α (over the keys), every column y_i of Y is a convex
combination of V's columns, for every X. The same holds with a column-wise softmax of αᵀ = KᵀQ and Y
= V A. In two dimensions, where α_rtij has the key first, the softmax of eq. 3 is column-wise, over
both axes (r, t) of the keys together.

Repair. A column-wise softmax of α = QᵀK normalises over the queries: the columns of A sum to one,
its rows need not, and y_i = Σ_j A_ij v_j need not be a convex combination: with V = (1, …, 1) it is
the row's sum. Two tokens with α = ((0, 1), (0, 0)) and e for a base 3 give A = ((1/2, 3/4), (1/2,
1/4)) and Y = (5/4, 3/4). Eq. 3 prints S of a single number; taken over the first axis r alone, as
"column-wise" might suggest, the weights of a query would sum to the number of columns. What is
called "scores" is the matrix of weights; the scores are α.

Errata.
- Section 1 | Y = V Aᵀ, column-wise softmax | row-wise, for each row of A to sum to one

Proof. y_i = Σ_j A_ij v_j. Softmax is positive; the coefficients A_ij, j = 1 … n, sum to one if and
only if row i does, and for V = (1, …, 1) that is also necessary. ∎
"""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np

from convattn.sac.attend import attend
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import certified_identities, proved
from convattn_ledger.evidence.exact_attention import exact_softmax


def rows_of_weights(scores: np.ndarray) -> np.ndarray:
    """Softmax over the keys, the columns of QᵀK, in fractions."""
    return exact_softmax(scores)


def convex_combinations(run: Run) -> str:
    """α from integer tokens: by rows every y is convex; by columns some y leaves V's range."""
    cases, left = 5 if run.quick else 50, 0
    for case in range(cases):
        rng = run.rng(case)
        tokens = rng.integers(-2, 3, (3, 6))
        query, key = rng.integers(-1, 2, (2, 2, 3))
        values = rng.integers(-9, 10, 6).astype(object)
        scores = (query @ tokens).T @ (key @ tokens)
        rows, columns = rows_of_weights(scores), exact_softmax(scores.T).T
        if any(sum(row) != 1 or min(row) <= 0 for row in rows):
            raise EvidenceFailed(f"case {case}: rows of {rows.tolist()} are no convex weights")
        mixed = values @ rows.T
        if mixed.max() > values.max() or mixed.min() < values.min():
            raise EvidenceFailed(f"case {case}: {mixed.tolist()} of values {values.tolist()}")
        if any(sum(column) != 1 for column in columns.T):
            raise EvidenceFailed(f"case {case}: columns of {columns.tolist()}")
        outside = values @ columns.T
        left += bool(outside.max() > values.max() or outside.min() < values.min())
    require(left, f"in none of {cases} cases the columns leave the range of V")
    return f"{cases} cases: convex by rows; by columns {left} leave the range of the values"


def two_tokens(run: Run) -> str:
    """The counterexample of the repair, number for number."""
    weights = exact_softmax(np.array([[0, 1], [0, 0]]).T, Fraction(3)).T
    sums = weights.sum(axis=1).tolist()
    if sums != [Fraction(5, 4), Fraction(3, 4)]:
        raise EvidenceFailed(f"A = {weights.tolist()} has rows of sums {sums}")
    return "α = ((0, 1), (0, 0)): column-wise, V = (1, 1) becomes (5/4, 3/4)"


def four_axes(run: Run) -> str:
    """a_rtij: over (r, t) together the weights of a query sum to one, over r alone to M."""
    rng = run.rng("scores")
    scores = rng.integers(-3, 4, (3, 4, 3, 4))  # r, t, i, j
    together = rows_of_weights(scores.reshape(12, 12).T)
    alone = [exact_softmax(scores[:, t].reshape(3, 12).T) for t in range(4)]
    totals = set(sum(array.sum(axis=1) for array in alone).tolist())
    if set(together.sum(axis=1).tolist()) != {1} or totals != {4}:
        raise EvidenceFailed(f"together {together.sum(axis=1).tolist()}, over r alone {totals}")
    return "N × M = 3 × 4: sums of one over (r, t), of four over r alone"


def queries_first(run: Run) -> str:
    """The library mixes V Aᵀ: one-hot scores in float32, for a permutation of order four."""
    order = np.array([2, 0, 3, 1])
    scores = 128.0 * jnp.eye(4)[order][None]
    values = jnp.asarray(run.rng("values").integers(1, 99, (1, 4, 1, 3)), jnp.float32)
    result = np.asarray(attend(scores, values))[0]
    if (result != np.asarray(values)[0, order, 0]).any():
        raise EvidenceFailed(f"{result.tolist()} of {np.asarray(values).tolist()}")
    return "query i takes the value of its own key, V Aᵀ, not V A"


CLAIM = Claim(
    id="B19.softmax",
    source="Barkan 2019, §1, and eq. 3",
    verdict=Verdict.AMENDED,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "barkan2019/softmax.v",
            covers="rows that are softmaxes of positive weights make convex combinations, and only "
            "rows that sum to one keep a constant; not: eq. 3 in two dimensions",
        ),
        proved(
            "barkan2019/softmax_columns.v",
            covers="that the counterexample of two tokens does not keep V = (1, 1), at any query, "
            "for any positive x ≠ 1 in place of e; not: its numbers",
        ),
        certified_identities("B19.softmax", "row sums and column sums", "row_sums", "column_sums"),
        Evidence("convex combinations", Level.TESTED, convex_combinations),
        Evidence("two tokens", Level.TESTED, two_tokens),
        Evidence("four axes", Level.TESTED, four_axes),
        Evidence("queries first", Level.TESTED, queries_first),
    ),
)
