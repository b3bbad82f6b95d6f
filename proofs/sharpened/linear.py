"""S.linear: the state that linear attention needs to be a convolution, and what it must forget.

Claimed. A linear recurrent layer such as linear attention needs a state of a certain size to be a
causal convolution, and a state of fixed size has to forget tokens exactly.
True. So it is for layers by position, and by content if continuous at zero: that size suffices with
forgetting, but plain linear attention, decay and positive gates need a state that grows with the
length.

Printed. Not from a paper: our own result. (The realisation of (2) is Ho and Kalman's, 1966. Ghodsi
2025, arXiv:2512.15115, counts heads of linear state spaces in a class with factored weights; only
its abstract was read.)

Verified. A recurrent layer with n state numbers reads tokens x_q as rows and has

    s_q = s_(q-1) A_q + x_q B_q,    y_q = s_q C_q,    s_(-1) = 0,

with matrices that depend on the position q alone. H causal heads of linear attention, y_q = Σ_h
Σ_(k ≤ q) (φ_h(q)·ψ_h(k)) x_k V_h U_h with r features of positions and d value columns, are such a
layer with n = Hrd and A_q = 1; a normaliser that depends on h and q alone is a part of φ. With
decay, or gates by position, n is the same and A_q is not 1. Let such a layer be the causal
convolution Σ_(j<T) x_(q-j) M_j on N ≥ 2T - 1 tokens for all of their values; missing tokens are
zero. Let ρ > 0 be the rank of the last tap M_(T-1), and Γ the Hankel matrix with the blocks
M_(i+j), 0 ≤ i, j < T, which are zero for i + j ≥ T.

(1) n ≥ rank Γ, and Tρ ≤ rank Γ ≤ T·min(d_in, d_out). If the last tap has full rank, that is
    T·min(d_in, d_out). The same in limits of such layers.
(2) n = rank Γ is enough, with constant A, B, C, for sequences of every length.
(3) n + Σ (n - rank A_q) ≥ (N - T + 1)ρ, the sum over q = T, …, N - T, counted from 0: a state of
    fixed size must forget, exactly, ρ dimensions a token or more on the average of a long
    sequence. The shift register, whose state is the last T tokens, has equality if ρ = d_in.
(4) So if no A_q is singular (linear attention as it is, decay, rotations, gates above 0), then n ≥
    (N - T + 1)ρ, and no such layer with a fixed state is the convolution at all lengths. If M_(T-1)
    is square and invertible, (N - T + 1)ρ are enough with A_q = 1.

With a term x_q D_q in y_q, (3) and (4) hold for T ≥ 2; a layer that reads its state before it
writes, y_q = s_(q-1) C_q + x_q D_q, is the case of T - 1 taps M_1, …, M_(T-1) on N - 1 tokens, so
(1) says the rank of Γ of M_1, …, M_(T-1) there, (T - 1)ρ at least for T ≥ 2. If the matrices depend
on the tokens as well, (1), (3) and (4) hold with those at the zero image, provided that they are
continuous there; not in limits. Softmax forgets: T +
1 heads are exact at every length, S.causal (c), from q = T - 1.

Nothing to repair. What H heads of given r and d attain is another question: for r and d fixed their
maps are Σ_h (φ_h·ψ_h) V_h U_h, so that H is at least the rank of the kernel too (S.kernel).

Proof. *The idea:* cut the sequence after a token: what the tokens before do to the outputs after it
goes through the state.

Write K_(k,t) = B_k A_(k+1) … A_t for what token k adds to s_t, a map of the token. Equality for all
tokens says K_(k,q) C_q = M_(q-k), or 0 for q - k ≥ T.

(1) Cut after token t = T - 1. The map of the token t - i to the output t + j is M_(i+j), for i, j <
T, and is K_(t-i,t) times what A_(t+1), …, A_(t+j), C_(t+j) make of s_t: Γ factors through n
numbers. Matrices of rank n or less are a closed set.

Take the block rows of Γ from the last on. Row T - 1 - m has M_(T-1) in block column m, in which the
later rows are zero, so each adds ρ to the rank.

(2) The row space of Γ is mapped into itself by the shift of its rows by one block, since block row
i goes to block row i + 1, and the last to zero. In coordinates of a basis of it let A be the shift,
B write the block row 0, C read the first block. Then B A^j C = M_j, or 0 for j ≥ T.

(3) Let P(j, t) be the span of the rows of K_(0,t), …, K_(j-1,t). *Step:* dim P(j+1, t) is at least
dim P(j, t) + ρ for j ≤ t ≤ j + T - 1 < N. For the output q = j + T - 1 sees token j by M_(T-1) and
the tokens before it not at all: what leads from s_t to y_q kills P(j, t) and has rank ρ on the rows
of K_(j,t). P(j, t+1) = P(j, t) A_(t+1) has at most n - rank A_(t+1) dimensions less.

So P(j, j+T-1) has at least jρ - Σ_(T ≤ q < j+T) (n - rank A_q). Let j = N - 2T + 1 and t = j + T -
1, and take T steps more at this t: n ≥ dim P(j+T, t) ≥ dim P(j, t) + Tρ.

A term x_q D_q does not change what y_q sees of earlier tokens. The register loses the oldest token,
d_in dimensions, at each step.

(4) *Enough:* rows T - 1, …, N - 1 of the matrix of maps, with zeros for k > q, have on the first
N - T + 1 columns an upper triangle with M_(T-1) on its diagonal, so that its inverse exists. Every
other row q < T - 1 is known in the columns k ≤ q only, and is the combination of those rows that
agrees there. So the whole has rank (N - T + 1)ρ, as y_q = (Σ x_k B_k) C_q.

*With tokens:* as the layer has degree one in small tokens, layer(tX)/t tends to the layer with the
matrices at X = 0 as t → 0, as in S.content. ∎
"""

from fractions import Fraction
from math import sqrt

import jax
import jax.numpy as jnp
import numpy as np
from flint import nmod_mat
from jax import Array

from convattn_ledger import Claim, Evidence, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import (
    DTYPES,
    certified_identities,
    exact_convolution,
    proved,
    whole_images,
)
from convattn_ledger.evidence.layer_runs import equal
from convattn_ledger.rational_matrices import fractions, rational_matrix, rational_rank

PRIME = 2**61 - 1


def hankel(taps: np.ndarray) -> np.ndarray:
    """The matrix with the blocks M_(i+j), for taps `[T, d_in, d_out]`."""
    count, inputs, outputs = taps.shape
    blocks = np.zeros((2 * count, inputs, outputs), taps.dtype)
    blocks[:count] = taps
    index = np.add.outer(np.arange(count), np.arange(count))
    return blocks[index].transpose(0, 2, 1, 3).reshape(count * inputs, count * outputs)


def rank_modulo(matrix: np.ndarray) -> int:
    """Modulo a prime, so at most the rank over the rationals."""
    flat = [int(x) % PRIME for x in matrix.ravel()]
    return int(nmod_mat(*matrix.shape, flat, PRIME).rank())


def draw_taps(run: Run, case: int, count: int, inputs: int, outputs: int, last: int) -> np.ndarray:
    """Taps in small integers; the last one has the rank `last`."""
    rng = run.rng("taps", case)
    taps = rng.integers(-3, 4, (count, inputs, outputs))
    while True:
        taps[-1] = rng.integers(-2, 3, (inputs, last)) @ rng.integers(-2, 3, (last, outputs))
        if rational_rank(taps[-1].tolist()) == last:
            return taps


SHAPES = ((1, 2, 3, 2), (2, 1, 1, 1), (3, 2, 2, 2), (4, 3, 2, 2), (3, 2, 3, 1), (5, 3, 3, 2))


def hankel_ranks(run: Run) -> str:
    """Between Tρ and T·min(d_in, d_out), in integers."""
    summary = []
    for case, shape in enumerate(SHAPES):
        count, inputs, outputs, last = shape
        rank = rational_rank(hankel(draw_taps(run, case, *shape)).tolist())
        most = count * min(inputs, outputs)
        require(count * last <= rank <= most, f"T, d_in, d_out, ρ = {shape}: rank {rank}")
        summary.append(f"{rank} of {count * last} to {most}")
    return "; ".join(summary)


def realised(taps: np.ndarray) -> tuple[list, list, list]:
    """A, B and C of (2), in fractions."""
    matrix = hankel(taps)
    inputs, outputs = taps.shape[1:]
    reduced, rank = rational_matrix(matrix.tolist()).rref()
    basis = fractions(reduced)[:rank]
    pivots = [next(column for column, x in enumerate(row) if x) for row in basis]
    shifted = [row[outputs:] + [Fraction(0)] * outputs for row in basis]
    # The coordinates of a row of the space in a reduced basis are its entries at the pivots.
    step = [[row[column] for column in pivots] for row in shifted]
    write = [[Fraction(int(row[column])) for column in pivots] for row in matrix[:inputs]]
    return step, write, [row[:outputs] for row in basis]


def realisations(run: Run) -> str:
    """B A^j C is tap j, and zero from T on to 3T, with as many state numbers as Γ has rank."""
    sizes = []
    for case, shape in enumerate(SHAPES):
        taps = draw_taps(run, case, *shape)
        step, write, read = (np.array(x, object) for x in realised(taps))
        require(len(step) == rational_rank(hankel(taps).tolist()), f"{shape}: {len(step)} numbers")
        for j in range(3 * shape[0]):
            expected = taps[j] if j < shape[0] else 0 * taps[0]
            require((write @ read == expected).all(), f"{shape}: tap {j} is {write @ read}")
            write = write @ step
        sizes.append(len(step))
    return f"state numbers {sizes}: the taps, then zeros"


def ring_register(taps: np.ndarray, tokens: int, spare: int) -> tuple[np.ndarray, ...]:
    """A_q, B_q, C_q of a register of T + spare tokens that clears spare + 1 slots at a time."""
    count, inputs, outputs = taps.shape
    slots, one = count + spare, np.eye(inputs, dtype=int)
    step = np.zeros((tokens, slots * inputs, slots * inputs), int)
    write = np.zeros((tokens, inputs, slots * inputs), int)
    read = np.zeros((tokens, slots * inputs, outputs), int)
    for q in range(tokens):
        mask = np.ones(slots, int)
        if q >= count and (q - count) % (spare + 1) == 0:
            mask[[(q + ahead) % slots for ahead in range(spare + 1)]] = 0
        step[q] = np.kron(np.diag(mask), one)
        write[q, :, q % slots * inputs :][:, :inputs] = one
        for j in range(min(count, q + 1)):
            read[q, (q - j) % slots * inputs :][:inputs] = taps[j]
    return step, write, read


def response(step: np.ndarray, write: np.ndarray, read: np.ndarray) -> np.ndarray:
    """The map of every token to every output, `[token, output, d_in, d_out]`."""
    tokens, inputs, outputs = len(step), write.shape[1], read.shape[2]
    maps = np.zeros((tokens, tokens, inputs, outputs), int)
    for token in range(tokens):
        carried = write[token]
        for q in range(token, tokens):
            carried = carried if q == token else carried @ step[q]
            maps[token, q] = carried @ read[q]
    return maps


def target_map(taps: np.ndarray, tokens: int) -> np.ndarray:
    """The same of the convolution."""
    maps = np.zeros((tokens, tokens, *taps.shape[1:]), int)
    for token in range(tokens):
        for j, tap in enumerate(taps[: tokens - token]):
            maps[token, token + j] = tap
    return maps


def forgetting(run: Run) -> str:
    """Registers that clear 1 to 4 slots at a time: exact, never below (3), and equal to it at 1."""
    summary = []
    for case, (count, inputs, outputs) in enumerate(((1, 2, 2), (2, 1, 3), (3, 2, 2), (4, 2, 3))):
        taps = draw_taps(run, case, count, inputs, outputs, min(inputs, outputs))
        for spare, tokens in ((0, 2 * count - 1), (0, 4 * count + 1), (1, 4 * count), (3, 17)):
            step, write, read = ring_register(taps, tokens, spare)
            exact = (response(step, write, read) == target_map(taps, tokens)).all()
            require(exact, f"T = {count}, N = {tokens}, {spare} spare slots: another map")
            numbers = step.shape[1]
            lost = sum(
                numbers - rational_rank(step[q].tolist()) for q in range(count, tokens - count + 1)
            )
            bound = (tokens - count + 1) * min(inputs, outputs)
            require(numbers + lost >= bound, f"{numbers} + {lost} is below {bound}")
            if spare == 0 and inputs <= outputs:
                require(numbers + lost == bound, f"{numbers} + {lost}, expected {bound}")
            summary.append(f"{numbers} + {lost} ≥ {bound}")
    return "state and losses: " + "; ".join(summary)


def completed(taps: np.ndarray, tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """φ and ψ of (4) for scalar taps, the last of them 1: rows T - 1, … first, then the others."""
    count, rows = len(taps), tokens - len(taps) + 1
    psi = np.zeros((rows, tokens), int)
    for i in range(rows):
        psi[i, i : i + count] = taps[::-1]
    phi = np.zeros((tokens, rows), int)
    phi[count - 1 :] = np.eye(rows, dtype=int)
    for q in range(count - 1):
        left = np.zeros(rows, int)
        left[: q + 1] = taps[q::-1]
        for k in range(rows):  # forward substitution: the triangle has ones on its diagonal
            phi[q, k] = left[k] - phi[q, :k] @ psi[:k, k]
    return phi, psi


def completions(run: Run) -> str:
    """However the maps to earlier outputs are filled in, the rank is N - T + 1 or more."""
    summary = []
    for case, (count, tokens) in enumerate(((1, 4), (2, 5), (3, 8), (4, 12))):
        rng = run.rng("fill", case)
        taps = rng.integers(-2, 3, count)
        taps[-1] = 1
        phi, psi = completed(taps, tokens)
        whole, known = phi @ psi, np.tril(np.ones((tokens, tokens), bool))
        expected = target_map(taps[:, None, None], tokens)[..., 0, 0].T
        require((whole == expected)[known].all(), f"T = {count}, N = {tokens}: another map")
        for _ in range(20 if run.quick else 200):
            filled = np.where(known, expected, rng.integers(0, PRIME, (tokens, tokens)))
            least = rank_modulo(filled)
            require(least >= tokens - count + 1, f"T = {count}, N = {tokens}: rank {least}")
        rank = rank_modulo(whole)
        require(rank == tokens - count + 1, f"T = {count}, N = {tokens}: rank {rank}")
        summary.append(f"T = {count}, N = {tokens}: {rank}")
    return "features attained: " + "; ".join(summary)


def recurrent_layer(step: Array, write: Array, read: Array, tokens: Array) -> Array:
    """The layer, as a scan over the tokens `[batch, N, d_in]`; products summed in float32 or 64."""
    wide = jnp.promote_types(tokens.dtype, jnp.float32)

    def times(rows: Array, matrix: Array) -> Array:
        return jnp.matmul(rows, matrix, precision="highest", preferred_element_type=wide)

    def advance(state: Array, inputs: tuple[Array, ...]) -> tuple[Array, Array]:
        a, b, c, x = inputs
        state = (times(state, a) + times(x, b)).astype(tokens.dtype)
        return state, times(state, c).astype(tokens.dtype)

    start = jnp.zeros((len(tokens), step.shape[1]), tokens.dtype)
    _, outputs = jax.lax.scan(advance, start, (step, write, read, tokens.swapaxes(0, 1)))
    return outputs.swapaxes(0, 1)


def linear_attention(phi: Array, psi: Array, tokens: Array) -> Array:
    """One head with the identity for V U: its state is the sum of ψ(k) x_k, added up as it goes."""
    state = jnp.cumsum(jnp.einsum("rk,bki->bkri", psi, tokens, precision="highest"), axis=1)
    return jnp.einsum("qr,bqri->bqi", phi, state, precision="highest")


def causal_kernel(taps: np.ndarray) -> np.ndarray:
    """The taps from the last to the first, then as many zeros for the tokens ahead."""
    return np.concatenate([taps[::-1], 0 * taps[1:]])


def layers_on_images(run: Run) -> str:
    """Rows of images: a register of 4 pixels, and linear attention with N - T + 1 = 29 features.

    Registers hold pixels, and the features of the box filter's head are -1, 0 and 1, so that all
    sums are integers below 2²⁴: the results equal the convolution, rounded once.
    """
    images = whole_images(run)
    rows = images.reshape(-1, *images.shape[2:])
    taps = draw_taps(run, 0, 4, 3, 4, 3)
    expected = exact_convolution(rows, causal_kernel(taps))
    register = ring_register(taps, rows.shape[1], 0)
    run_layer, attend, comparisons = jax.jit(recurrent_layer), jax.jit(linear_attention), []
    for dtype in DTYPES:
        typed = (jnp.asarray(array, dtype) for array in (*register, rows))
        comparisons.append(equal(dtype, run_layer(*typed), expected))
    box = np.ones(4, int)
    phi, psi = completed(box, rows.shape[1])
    require(len(psi) == 29 and np.abs(phi).max() == 1, f"{len(psi)} features, {np.abs(phi).max()}")
    blurred = exact_convolution(rows, causal_kernel(box[:, None, None] * np.eye(3, dtype=int)))
    for dtype in DTYPES[:2]:
        result = attend(*(jnp.asarray(array, dtype) for array in (phi, psi, rows)))
        comparisons.append(f"attention, {equal(dtype, result, blurred)}")
    return f"{len(rows)} rows of 32 tokens, 12 state numbers, then 29 features; " + ", ".join(
        comparisons
    )


def least_distance(matrix: np.ndarray) -> float:
    """1/√trace((Γ Γᵀ)⁻¹), at most the distance of a Γ of full row rank from those of less rank."""
    gram = rational_matrix((matrix @ matrix.T).tolist()).inv()
    return 1 / sqrt(sum(fractions(gram)[i][i] for i in range(len(matrix))))


def truncated(taps: np.ndarray, numbers: int) -> tuple[np.ndarray, ...]:
    """A, B and C with fewer state numbers, from the largest singular values (Kung 1978)."""
    matrix = hankel(taps).astype(float)
    inputs, outputs = taps.shape[1:]
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    read = (np.sqrt(values)[:, None] * right)[:numbers]
    write = (left * np.sqrt(values))[:inputs, :numbers]
    step = np.hstack([read[:, outputs:], np.zeros((numbers, outputs))]) @ np.linalg.pinv(read)
    return step, write, read[:, :outputs]


def one_number_too_few(run: Run) -> str:
    """The best known layer with rank Γ - 1 state numbers errs on 2T - 1 tokens, as (1) says.

    Its maps from the first T tokens to the last T outputs are a matrix of rank n at most, so that
    they differ from Γ by its distance from such matrices. What is computed in float64 differs from
    those maps by γ_m times the layer with absolute values, m = (N + 1)(n + d_in + 1) roundings.
    """
    run_layer, summary = jax.jit(recurrent_layer), []
    for case, (count, inputs, outputs) in enumerate(((2, 1, 1), (3, 2, 2), (4, 3, 4))):
        taps, tokens = draw_taps(run, case, count, inputs, outputs, inputs), 2 * count - 1
        floor, numbers = least_distance(hankel(taps)), count * inputs - 1
        arrays = [np.broadcast_to(x, (tokens, *x.shape)) for x in truncated(taps, numbers)]
        unit = np.eye(tokens * inputs).reshape(-1, tokens, inputs)
        response_map, majorant = (
            np.asarray(run_layer(*map(jnp.asarray, both), jnp.asarray(unit))).reshape(
                tokens, inputs, tokens, outputs
            )
            for both in (arrays, [np.abs(array) for array in arrays])
        )
        block = np.s_[count - 1 :: -1, :, count - 1 :]
        error = response_map[block].reshape(count * inputs, -1) - hankel(taps)
        roundings = (tokens + 1) * (numbers + inputs + 1) * 2.0**-53
        slack = 2 * roundings * float(np.linalg.norm(majorant[block]))
        distance = float(np.linalg.norm(error))
        require(
            distance + slack >= floor > 10 * slack, f"{numbers} numbers: {distance}, floor {floor}"
        )
        summary.append(f"{numbers} numbers: {distance:.3g} ≥ {floor:.3g}")
    return "; ".join(summary)


def with_content(arrays: tuple[Array, ...], slopes: tuple[Array, ...], tokens: Array) -> Array:
    """A layer whose matrices are those of the positions plus linear functions of the token."""

    def advance(state: Array, inputs: tuple[Array, ...]) -> tuple[Array, Array]:
        a, b, c, x = inputs
        a, b, c = (
            m + jnp.einsum("i,i...->...", x, s) for m, s in zip((a, b, c), slopes, strict=True)
        )
        state = state @ a + x @ b
        return state, state @ c

    return jax.lax.scan(advance, jnp.zeros(arrays[0].shape[1]), (*arrays, tokens))[1]


def at_the_zero_image(run: Run) -> str:
    """The derivative at zero is the layer of the positions, exactly; elsewhere its rank is larger.

    Whole numbers below 2⁵³ in float64. The block is that of (1): from the first 3 tokens to the
    outputs from the third on.
    """
    rng, (tokens, inputs, numbers, outputs) = run.rng(), (6, 2, 3, 4)
    shapes = ((numbers, numbers), (inputs, numbers), (numbers, outputs))
    arrays = [rng.integers(-2, 3, (tokens, *shape)) for shape in shapes]
    slopes = [jnp.asarray(rng.integers(-2, 3, (inputs, *shape)), float) for shape in shapes]
    typed = [jnp.asarray(array, float) for array in arrays]
    derivative = jax.jit(jax.jacfwd(lambda x: with_content(typed, slopes, x)))
    ranks = []
    for point in (np.zeros((tokens, inputs)), rng.integers(1, 3, (tokens, inputs))):
        jacobian = np.asarray(derivative(jnp.asarray(point, float))).transpose(2, 0, 3, 1)
        require(np.abs(jacobian).max() < 2**53, "the derivative is not exact")
        exact = (jacobian == response(*arrays)).all()
        require(exact == (not point.any()), f"at {point.tolist()}: equal is {exact}")
        block = jacobian[:3, 2:].transpose(0, 2, 1, 3).reshape(3 * inputs, -1)
        ranks.append(rational_rank(block.astype(int).tolist()))
    require(ranks[0] <= numbers < ranks[1], f"ranks {ranks} with {numbers} state numbers")
    return f"{numbers} state numbers: rank {ranks[0]} at zero, {ranks[1]} at another image"


CLAIM = Claim(
    id="S.linear",
    source="this project, on linear attention and state space layers",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LOWER_BOUND, Kind.LAYER_EQUALITY),
    evidence=(
        proved(
            "sharpened/linear.v",
            covers="for exact layers (1)'s Tρ ≤ rank Γ ≤ n, and (3)'s bound, also with a term x_q "
            "D_q where T ≥ 2; not: limits, content, the upper bound on rank Γ, layers that read "
            "before they write, that the register has equality",
        ),
        proved("sharpened/linear_exact.v", covers="(2)"),
        proved(
            "sharpened/linear_attention.v",
            covers="(1)'s n ≥ rank Γ and (4)'s bound, n = Hrd, for exact heads of linear attention "
            "whose features are those of positions; not: limits, gates and rotations, that so many "
            "features are enough",
        ),
        certified_identities(
            "S.linear",
            "three taps",
            "hankel",
            "register",
            covers="T = 3: Γ has an inverse if the last tap is 1, for three channels, and the "
            "register is the convolution, for any taps, at two tokens",
        ),
        Evidence("ranks of Hankel matrices", Level.TESTED, hankel_ranks),
        Evidence("realisations", Level.TESTED, realisations),
        Evidence("what is lost", Level.TESTED, forgetting),
        Evidence("maps to earlier outputs", Level.TESTED, completions),
        Evidence("at the zero image", Level.TESTED, at_the_zero_image, quick=False),
        Evidence(
            "layers on rows of images",
            Level.BOUNDED,
            layers_on_images,
            assumes="integer sums below 2^24 are exact",
            quick=False,
        ),
        Evidence(
            "one state number too few",
            Level.BOUNDED,
            one_number_too_few,
            assumes="float64 sums of products are rounded by units of roundoff",
            quick=False,
        ),
    ),
)
