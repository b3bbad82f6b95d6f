"""Section 3.3: scaled dot products and the output projection as factorisations.

Claimed. The Transformer factors its score and output maps through D dimensions, which takes fewer
parameters, and its mask keeps tokens from influencing their predecessors.
True. All of it holds, and the factors say no more than that these maps have rank at most D; for
maps between equal widths they save parameters only if D is below half the width.

Printed. In the Transformer "only the bi-linear part of Equation (8) is kept", with Λ_k = Λ_key,k
Λ_query,kᵀ (= Λ_key,kᵀ ∘ Λ_query,kᵀ) (eq. 9), of shapes ⟨P′, D⟩ and ⟨Q′, D⟩: "only (P′ + Q′)D
parameters are required instead of P′Q′". The heads are combined by y = [h_1, …, h_K] Θ_Oᵀ, h_k =
A_kᵀ x Θ_value,k, Θ_O of shape ⟨Q, KD⟩: "strictly equivalent to the sum model of Equation (7), only
with the constraint Θ_k = Θ_value,k Θ_O,kᵀ (= Θ_value,kᵀ ∘ Θ_O,kᵀ)" (eq. 10). The mask of the target
sequence ensures "that tokens in that sequence do not have influence on their predecessors".

Verified. All of it, shapes, transposes and mixed products included. Eq. 9 says that the rank of Λ_k
is at most D, eq. 10 that the rank of Θ_k is, and neither says more. A Transformer layer and the
attention convolution with these Λ_k, Θ_k give the same output, for the same weights; with the mask
m ≤ n no token influences its predecessors.

Nothing to repair. To be read with it: (1) eq. 9 leaves out the 1/√D of the scaled dot product,
which goes into either factor and leaves the set of matrices alone. (2) Neither equation is a
constraint once D ≥ min(P′, Q′) or D ≥ min(P, Q), and (P′ + Q′)D is less than P′Q′ only for D <
P′Q′/(P′ + Q′): half of P′ = Q′, not all of it. (3) Of the (P′ + Q′)D numbers D² are redundant: the
matrices of rank D form a set of dimension (P′ + Q′ - D)D, so that fewer parameters are "required".
(4) With biases in the projections, all four terms of eq. 8 are there, μ = Λ_key a, ν = Λ_query c, ξ
= c·a with c of the keys and a of the queries, and c, being in ν and ξ alone, changes no weight.

Proof. *The idea:* a matrix has rank at most D iff it is a product through D dimensions.

Uᵀ ∘ Vᵀ = Σ_d U_·d ⊗ V_·d = UVᵀ for U, V with D columns. A matrix of rank ρ ≤ D is such a product:
its ρ columns that span, times the coordinates, filled up with zeros.

(UG)(VG⁻ᵀ)ᵀ = UVᵀ for every invertible G, and at U, V of full column rank the derivative dU Vᵀ + U
dVᵀ vanishes for dU = UX, dV = -VXᵀ only: D² dimensions.

[h_1, …, h_K] Θ_Oᵀ = Σ_k h_k Θ_O,kᵀ is the product of blocks.

The weight of key m > n in column n is zero under the mask, so that y_n does not depend on x_m. ∎
"""

import jax
import jax.numpy as jnp
import numpy as np
from flint import fmpq_mat, fmpz_mat

from convattn.encodings.layer import ContentScores
from convattn.operators.attention import attention_weights, multi_head_self_attention
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import DTYPES, EXP, certified_identities, proved, whole_images
from convattn_ledger.evidence.exact_influence import (
    exact_column_softmax,
    exact_influence_convolution,
)
from convattn_ledger.evidence.influence_rounding import attention_within, column_weights_within
from convattn_ledger.structures import (
    as_attention_convolution,
    as_bi_affine,
    attention_convolution,
    bi_affine_scores,
    causal_mask,
    parameter_from_maps,
    self_attention_convolution,
)


def mixed_product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Σ_d left_d ⊗ right_d of eq. 1, by loops: ⟨D, P⟩ and ⟨D, Q⟩ give ⟨P, Q⟩."""
    total = np.zeros((left.shape[1], right.shape[1]), left.dtype)
    for a, b in zip(left, right, strict=True):
        total += np.multiply.outer(a, b)
    return total


def both_equations(run: Run) -> str:
    """Eqs. 9 and 10 with every transpose as printed, in integers, all sizes different."""
    cases = 5 if run.quick else 20
    heads, keys, queries, p, q, width = 3, 5, 4, 6, 7, 2
    for case in range(cases):
        rng = run.rng(case)
        key, query = rng.integers(-5, 6, (p, width)), rng.integers(-5, 6, (q, width))
        x, y = rng.integers(-5, 6, (keys, p)), rng.integers(-5, 6, (queries, q))
        matrix = key @ query.T
        if (mixed_product(key.T, query.T) != matrix).any():
            raise EvidenceFailed(f"case {case}: eq. 9's mixed product is not its matrix product")
        if (x @ matrix @ y.T != (x @ key) @ (y @ query).T).any():
            raise EvidenceFailed(f"case {case}: the scores of eq. 9 are not the dot products")
        value = rng.integers(-5, 6, (heads, p, width))
        output = rng.integers(-5, 6, (q, heads * width))
        influence = rng.integers(-5, 6, (heads, keys, queries))
        concatenated = np.hstack([influence[k].T @ x @ value[k] for k in range(heads)])
        blocks = [output[:, k * width : (k + 1) * width] for k in range(heads)]
        theta = np.array([mixed_product(value[k].T, blocks[k].T) for k in range(heads)])
        if any((theta[k] != value[k] @ blocks[k].T).any() for k in range(heads)):
            raise EvidenceFailed(f"case {case}: eq. 10's mixed product is not its matrix product")
        expected = exact_influence_convolution(influence, x, theta)
        if (concatenated @ output.T != expected).any():
            raise EvidenceFailed(f"case {case}: concatenating and summing differ")
    return f"{cases} cases: dot products and concatenated heads equal the factored forms"


def tangents(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The derivatives of left·rightᵀ by every entry of both, one row each."""
    (p, width), q = left.shape, len(right)
    rows, columns = np.eye(p, dtype=int), np.eye(q, dtype=int)
    moved = [np.multiply.outer(rows[i], right[:, d]) for i in range(p) for d in range(width)]
    moved += [np.multiply.outer(left[:, d], columns[j]) for j in range(q) for d in range(width)]
    return np.array([tangent.ravel() for tangent in moved])


def of_full_rank(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Random integers whose columns are linearly independent."""
    while True:
        matrix = rng.integers(-9, 10, (rows, columns))
        if fmpz_mat(matrix.tolist()).rank() == columns:
            return matrix


def what_the_factors_reach(run: Run) -> str:
    """Rank at most D, every matrix of rank D, and a set of dimension (P′ + Q′ - D)D."""
    p, q = 5, 4
    for width in (1, 2, 3, 4):
        rng = run.rng(width)
        left, right = of_full_rank(rng, p, width), of_full_rank(rng, q, width)
        matrix = fmpz_mat((left @ right.T).tolist())
        echelon, rank = fmpq_mat(matrix).rref()
        require(rank == width, f"D = {width}: a product of rank {rank}")
        rows = [[echelon[i, j] for j in range(q)] for i in range(rank)]
        pivots = [next(j for j in range(q) if row[j] != 0) for row in rows]
        columns = fmpz_mat([[matrix[i, j] for j in pivots] for i in range(p)])
        flat = [entry for row in rows for entry in row]
        if fmpq_mat(columns) * fmpq_mat(rank, q, flat) != fmpq_mat(matrix):
            raise EvidenceFailed(f"D = {width}: columns times echelon form is not the matrix")
        dimension = fmpz_mat(tangents(left, right).tolist()).rank()
        require(dimension == (p + q - width) * width, f"D = {width}: dimension {dimension}")
    return "P′ = 5, Q′ = 4, D = 1 to 4: ranks D, factored back, dimensions 8, 14, 18, 20"


def stored(key_features: int, query_features: int, width: int) -> int:
    """How many numbers Λ_key and Λ_query hold."""
    return np.empty((key_features, width)).size + np.empty((query_features, width)).size


def counts(run: Run) -> str:
    """(P′ + Q′)D against P′Q′: 65,536 against 262,144 at 512, 512, 64; equal at D = 256."""
    for p, q in ((512, 512), (6, 3), (5, 4), (1, 7)):
        least = [width for width in range(1, min(p, q) + 1) if stored(p, q, width) >= p * q]
        if least[0] != -(-p * q // (p + q)) or least[-1] != min(p, q):
            raise EvidenceFailed(f"P′ = {p}, Q′ = {q}: nothing is saved at D = {least}")
    require((stored(512, 512, 64), 512 * 512) == (65536, 262144), "the figures of the Transformer")
    return "D = 64 of 512: a quarter; from D = 256 on nothing is saved"


def split_output_map(output: np.ndarray, heads: int) -> np.ndarray:
    """Θ_O `[Q, K·D]` cut into the transposes of its K blocks `[Q, D]`."""
    return output.reshape(len(output), heads, -1).transpose(1, 2, 0)


def maps_from_parameter(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eq. 10 from right to left with D = P ≤ Q: Θ_k = I Θ_k."""
    heads, p, _ = theta.shape
    return np.broadcast_to(np.eye(p, dtype=int), (heads, p, p)), theta


def layer_and_convolution(run: Run) -> str:
    """Our Transformer layer, with one-hot weights and integers, and eq. 7 on the same numbers."""
    cases = 3 if run.quick else 10
    for case in range(cases):
        rng = run.rng(case)
        x = jnp.asarray(rng.integers(-5, 6, (2, 5, 6)))
        value = jnp.asarray(rng.integers(-5, 6, (3, 6, 2)))
        output = jnp.asarray(split_output_map(rng.integers(-5, 6, (7, 6)), 3))
        weights = jnp.asarray(np.eye(5)[rng.integers(0, 5, (2, 3, 4))])
        layer = multi_head_self_attention(x, weights, value, output)
        theta = parameter_from_maps(value, output)
        queries = jnp.zeros((2, 4, 1), int)
        matrices = weights.swapaxes(2, 3)
        args = x, x, queries, lambda keys, queries, a=matrices: a
        convolution = attention_convolution(*args, theta)
        if (layer != convolution).any():
            raise EvidenceFailed(f"case {case}: {layer} as layer, {convolution} as convolution")
        maps = map(jnp.asarray, maps_from_parameter(np.asarray(theta)))
        back = multi_head_self_attention(x, weights, *maps)
        require((back == layer).all(), f"case {case}: back from Θ the layer gives {back}")
    return f"{cases} cases of 5 keys, 4 queries, three heads equal, and back"


def no_influence_on_predecessors(run: Run) -> str:
    """The causal mask of the library, m ≤ n, in fractions; without it they do."""
    mask = np.asarray(causal_mask(6))
    for case in range(5):
        rng = run.rng(case)
        x, theta = rng.integers(-2, 3, (6, 2)), rng.integers(1, 4, (1, 2, 3))
        matrix = rng.integers(-1, 2, (2, 2))
        token = int(rng.integers(1, 6))
        changed = x.copy()
        changed[token] += 1

        def layer(tokens: np.ndarray, mask: np.ndarray | None, matrix=matrix, theta=theta):
            weights = exact_column_softmax(tokens @ matrix @ tokens.T, mask)
            return exact_influence_convolution(weights[None], tokens, theta)

        before, after = layer(x, mask), layer(changed, mask)
        if (before[:token] != after[:token]).any():
            raise EvidenceFailed(f"case {case}: token {token} influences its predecessors")
        before, after = (layer(tokens, None, 0 * matrix) for tokens in (x, changed))
        if (before[:token] == after[:token]).any():
            raise EvidenceFailed(f"case {case}: without the mask, equal weights give no influence")
    return "5 cases of 6 tokens: nothing before the changed token moves, unless the mask is lifted"


def key_bias(run: Run) -> str:
    """Biases give all four terms of eq. 8, and that of the keys changes no weight."""
    for case in range(3):
        rng = run.rng(case)
        x, y = (jnp.asarray(rng.integers(-2, 3, (1, count, 3))) for count in (5, 4))
        key, query = (jnp.asarray(rng.integers(-2, 3, (1, 3, 2))) for _ in range(2))
        for_keys, for_queries = (jnp.asarray(rng.integers(1, 4, (1, 2))) for _ in range(2))
        whole = ContentScores(query, key, for_queries, for_keys, scaled=False)
        scores = whole.scores(y, x).swapaxes(2, 3)
        if (bi_affine_scores(x, y, as_bi_affine(whole)) != scores).any():
            raise EvidenceFailed(f"case {case}: the biases do not give the four terms")
        without = ContentScores(query, key, for_queries, None, scaled=False).scores(y, x)
        weights = [
            exact_column_softmax(np.asarray(array)[0, 0])
            for array in (scores, without.swapaxes(2, 3))
        ]
        require((weights[0] == weights[1]).all(), f"case {case}: the bias of the keys matters")
    return "3 cases: four terms, and no weight changes with the bias of the keys"


def on_images(run: Run) -> str:
    """Eight by eight pixels: our layer, JAX's and the convolution, the causal mask on all.

    D = 4, so √D = 2 divides exactly; scores are integers below 2²⁴ times 2^-16. Each result is
    within the bound of `convattn_ledger.evidence.influence_rounding`; JAX's softmax runs in
    float32.
    """
    pixels = whole_images(run)[:1, 12:20, 12:20].reshape(1, 64, 3)
    rng = run.rng("weights")
    query, key, value = rng.integers(-1, 2, (3, 2, 3, 4))
    output = rng.integers(-2, 3, (2, 4, 5))
    mask = np.triu(np.ones((64, 64), bool))

    @jax.jit
    def three(tokens, query, key, value, output):
        content = ContentScores(query, key)
        scores = content.scores(tokens, tokens)
        weights = attention_weights(scores, jnp.broadcast_to(mask.T, scores.shape))
        layer = multi_head_self_attention(tokens, weights, value, output)
        converted = as_attention_convolution(content, value, output, mask)
        wide = [array.astype(jnp.float32) for array in (tokens, query, key, value, output)]
        projected = [
            jnp.einsum("btp,hpd->bthd", wide[0], array, precision="highest") for array in wide[1:4]
        ]
        with jax.default_matmul_precision("highest"):
            theirs = jax.nn.dot_product_attention(*projected, is_causal=True)
        theirs = jnp.einsum("bthd,hdq->btq", theirs, wide[4], precision="highest")
        return layer, self_attention_convolution(tokens, *converted), theirs

    scores = np.stack([pixels[0] @ k @ (pixels[0] @ q).T for q, k in zip(query, key, strict=True)])
    theta = np.einsum("hpd,hdq->hpq", value, output).astype(float)
    magnitude = np.einsum("hpd,hdq->hpq", abs(value), abs(output)).astype(float)
    bounds = {}
    for dtype in ("float64", "float32"):
        weights = column_weights_within(scores / 2**15, dtype, mask)
        bounds[dtype] = attention_within(
            weights, pixels[0].astype(float), theta, dtype, magnitude=magnitude, inner=8
        )
    summary = []
    for dtype in DTYPES:
        maps = [jnp.asarray(array / 2**7, dtype) for array in (query, key)]
        maps += [jnp.asarray(array, dtype) for array in (value, output)]
        results = three(jnp.asarray(pixels, dtype), *maps)
        for name, out in zip(("layer", "convolution", "JAX"), results, strict=True):
            wide = dtype == "float64" and name != "JAX"
            expected, bound = bounds["float64" if wide else "float32"]
            excess = (np.abs(np.asarray(out[0], np.float64) - expected) - bound).max()
            require(excess <= 0, f"{dtype}, {name}: {excess} above the bound")
        gap = float(jnp.abs(results[0] - results[1]).max())
        summary.append(f"{dtype} {gap:.2g}")
    return "three routes within the bound; layer and convolution apart by " + ", ".join(summary)


CLAIM = Claim(
    id="A19.transformer",
    source="Andreoli 2019, Section 3.3, eqs. 9 and 10",
    verdict=Verdict.HOLDS,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "andreoli2019/transformer.v",
            covers="eqs. 9 and 10, that they say rank at most D and no more, and the mask for "
            "given weights A_k; not: that masked softmax weights at n do not depend on "
            "later tokens, the counts, and (1) to (4)",
        ),
        certified_identities(
            "A19.transformer", "dot products and concatenated heads", "key_query", "output"
        ),
        Evidence("eqs. 9 and 10 exactly", Level.TESTED, both_equations),
        Evidence("what the factors reach", Level.TESTED, what_the_factors_reach),
        Evidence("counts", Level.TESTED, counts),
        Evidence("layer and convolution", Level.TESTED, layer_and_convolution, quick=False),
        Evidence("no influence on predecessors", Level.TESTED, no_influence_on_predecessors),
        Evidence("biases", Level.TESTED, key_bias),
        Evidence(
            "pixels of images, three routes",
            Level.BOUNDED,
            on_images,
            assumes=EXP,
            quick=False,
        ),
    ),
)
