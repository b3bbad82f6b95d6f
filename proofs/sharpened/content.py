"""S.content: the bounds on heads hold for attention to content too, if it is continuous at zero.

Claimed. The lower bounds on the number of heads that attend by position hold for attention to
content too, if its weights are continuous at the zero image.
True. They do for layers that are exactly a convolution; without continuity, or with positions added
to the values, they can fail, and for limits of such layers they are not shown.

Printed. Not from a paper: our own result. Let the weights A_h(X) of a layer be continuous in the
image X at zero. If the layer is a convolution, then its N_H heads obey the lower bounds for heads
without content, S.heads and S.kernel, with the attention A_h(0). Those that ask for one head more
than the rank need A_h(0) > 0, as finite scores have it. Whatever else the layer is, the map X ↦ Σ_h
A_h(0) X W_h, its derivative at X = 0 where positions are not in the values, is N_H content-free
heads, and S.approx bounds its distance from any convolution.

Verified. The same, for scores from content with biases on queries and keys, scaled or not: at X = 0
such scores are the same for all keys, and the layer's derivative there is its positional attention
alone. It is not shown for limits of such layers, and it is false (1) for arbitrary A_h(X), even
homogeneous ones: with the values c·I and c·(rotation by 90°), two heads are a 3 × 3 convolution on
two channels with a kernel of rank 4; (2) where positions are added to the values as well: then one
head's derivative at X = 0 has rank up to D + 2 in D channels, not 1.

Nothing to repair.

Proof. *The idea:* small images see the attention of the zero image.

Let layer(X) = Σ_h A_h(X) X W_h + b be conv(X) + b', for all X. At X = 0 b = b'. For t > 0 conv(X) =
layer(tX)/t - b/t = Σ_h A_h(tX) X W_h, which tends to Σ_h A_h(0) X W_h as t → 0. So the layer with
the fixed attention A_h(0) is the convolution, and the bounds apply to it: in the limit where some
weight may be zero, with the one head more where A_h(0) > 0, for then 0 = Σ_h a_h(σ) W_h with
positive a_h(σ) at a key that the convolution does not read makes the W_h dependent.

Without a convolution, (layer(tX) - b)/t tends to Σ_h A_h(0) X W_h all the same, which S.approx
bounds; nothing follows for the layer away from 0.

With scores (X_q Q + a)·(X_k K + c)/s + B_qk, A(0) is the softmax of a·c/s + B_qk, that is of B_qk,
and positive where all B_qk are finite.

(1) A matrix W with x W xᵀ ≥ 0 and x W (xR)ᵀ ≥ 0 for all rows x, R the rotation, has x W = α(x) x +
β(x) xR with α = x W xᵀ/|x|², β = x W (xR)ᵀ/|x|², both nonnegative and bounded. Those W are a cone
with inner points such as I + R, so nine of them span all four dimensions.

Let the first head give the key q + δ the weight α_δ(X_(q+δ))/c, the second β_δ(X_(q+δ))/c, and what
is left to a token of the zero ring. α and β do not depend on |x|, so they have no limit at 0.

(2) The derivative has the further term A'(0)[X] P W. For X at a key k other than the query's it is
a_k·(u·X_k)(P_k - P̄)W, with u the same for all k and P̄ the mean of P by the weights: with a_k X_k
W that spans 1 + D dimensions at most, and the query's own key adds one. ∎
"""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np

from convattn.bounds.majorant import majorant_of
from convattn.bounds.rounding import relative_error, underflow_bound
from convattn.bounds.score_error import score_error
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.fast.application import apply_attention
from convattn.operators.arrays import accumulation_dtype
from convattn.operators.roundoff import unit_roundoff
from convattn.operators.shifts import TokenGrid
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import (
    certified,
    converted,
    exact_convolution,
    proved,
    whole_images,
)
from convattn_ledger.evidence.exact_attention import exact_softmax
from convattn_ledger.evidence.exact_tokens import cut_tokens
from convattn_ledger.evidence.head_floor import (
    copying_kernel,
    floor_below,
    least_squares_maps,
    receptive_fields,
)
from convattn_ledger.evidence.layer_runs import within
from convattn_ledger.evidence.printed_output_map import flattened_blocks, output_blocks
from convattn_ledger.rational_matrices import rational_rank

ROTATION = np.array([[0, 1], [-1, 0]])


def add_content(layer, rng: np.random.Generator, features: int, dtype: str):
    """Content scores in small integers, with biases, scaled by √4."""

    def draw(*shape: int):
        return jnp.asarray(rng.integers(-3, 4, shape), dtype)

    query, key = draw(layer.heads, features, 4), draw(layer.heads, features, 4)
    biases = draw(layer.heads, 4), draw(layer.heads, 4)
    return replace(layer, content=ContentScores(query, key, *biases))


def derivative_at(layer, point, images):
    """The derivative of the layer at an image, in the direction of the images."""
    return jax.jvp(lambda x: apply_attention(layer, x), (point,), (images,))[1]


def one_hot_layers(run: Run) -> str:
    """One-hot biases under content scores: the derivative at zero equals the convolution, exactly.

    Weights are zero or one there and sums of small integers are not rounded. Away from zero it is
    another map: the content moves attention.
    """
    derivative = jax.jit(derivative_at)
    for case, (size, patch) in enumerate(((3, 1), (3, 2))):
        rng = run.rng(case)
        kernel, images = rng.integers(-3, 4, (size, size, 2, 3)), rng.integers(0, 9, (2, 4, 6, 2))
        layer = converted(kernel, "float64", patch_size=patch, form="limit", sharpness=800.0)
        layer = add_content(layer, rng, 2 * patch**2, "float64")
        typed, exact = jnp.asarray(images, "float64"), exact_convolution(images, kernel)
        if (np.asarray(derivative(layer, jnp.zeros_like(typed), typed)) != exact).any():
            raise EvidenceFailed(f"K = {size}, P = {patch}: the derivative at 0 is another map")
        if (np.asarray(derivative(layer, 40 * typed, typed)) == exact).all():
            raise EvidenceFailed(f"K = {size}, P = {patch}: the content does nothing")
    return "with biases and scaling, the derivative at X = 0 equals the convolution; elsewhere not"


def derivative_on_images(run: Run) -> str:
    """Ten heads with content equal the convolution to first order; eight are above the floor.

    The copying kernel has rank 9. The layer of S.finite with content scores on top is
    differentiated at zero; its bound is that of the positional layer, with the rounding of the
    added constant a·c/2, exact itself, in every score. The eight are one-hot heads with the best
    maps, and the floor is that of all layers with eight heads (evidence/head_floor.py).
    """
    images = whole_images(run)[:4, 8:24, 8:24]
    kernel = copying_kernel(3, 3)
    fields, blocks = receptive_fields(images, 3, 1), output_blocks(kernel, 1)
    floor = floor_below(fields, flattened_blocks(blocks), 8)
    targets = fields.reshape(len(fields), -1) @ blocks.reshape(-1, blocks.shape[2])
    best = least_squares_maps(fields, targets, list(range(8)))
    expected = exact_convolution(images, kernel)
    derivative = jax.jit(derivative_at)
    summary, majorant = [], None
    for dtype in ("float64", "bfloat16"):
        typed = jnp.asarray(images, dtype)
        plain = converted(kernel, dtype)
        layer = add_content(plain, run.rng("content"), 3, dtype)
        if majorant is None:
            majorant = majorant_of(plain, kernel, None, images)
        grid, result = TokenGrid((16, 16), plain.ring), jnp.dtype(dtype)
        scores = score_error(plain.encoding, grid)
        constant = 4 * 3 * 3 / 2
        u = unit_roundoff(scores.dtype)
        absolute = scores.absolute + u * (scores.range + scores.absolute + constant)
        scores = replace(scores, absolute=absolute)
        exponent = absolute + u * (scores.range + 2 * absolute)
        working = accumulation_dtype(result)
        relative = relative_error(plain, grid, scores, exponent, working, result, False)
        bound = relative * majorant * (1 + 2.0**-20)
        bound += underflow_bound(plain, typed, grid, working, result, False)
        comparison = within(dtype, derivative(layer, jnp.zeros_like(typed), typed), expected, bound)

        if dtype != "float64":
            summary.append(comparison)
            continue
        full = converted(kernel, dtype, form="limit")
        fewer = AttentionLayer(
            full.encoding.take_heads(range(8)),
            None,
            jnp.asarray(best, dtype),
            ring=full.ring,
        )
        fewer = add_content(fewer, run.rng("content"), 3, dtype)
        linear = np.asarray(derivative(fewer, jnp.zeros_like(typed), typed), np.float64)
        interior = cut_tokens(linear, 1)[:, 1:-1, 1:-1].reshape(len(fields), -1)
        squared = float(((interior - targets) ** 2).sum(axis=1).mean())
        require(squared > floor > 0, f"{dtype}: eight heads err by {squared}, the floor is {floor}")
        summary.append(f"{comparison}, eight heads {squared:.4g}")
    return f"{len(images)} pieces of 16 × 16, floor {floor:.2g}: " + "; ".join(summary)


def forms_are_nonnegative(matrix: np.ndarray) -> bool:
    """Whether x W xᵀ ≥ 0 and x W (xR)ᵀ ≥ 0 for all x, by the principal minors."""

    def is_nonnegative(form: np.ndarray) -> bool:
        double = form + form.T
        return min(double[0, 0], double[1, 1]) >= 0 and round(np.linalg.det(double), 6) >= 0

    return is_nonnegative(matrix) and is_nonnegative(matrix @ ROTATION.T)


def arbitrary_attention(run: Run) -> str:
    """Two heads with attention that depends on the direction of the tokens, in fractions.

    The taps are 8(I + R) + E with entries of E up to 2 in absolute value; c = 9·40 is above what a
    row can need. The kernel has rank 4, so that heads continuous at zero must be four.
    """
    rng = run.rng()
    kernel = 8 * (np.eye(2, dtype=int) + ROTATION) + rng.integers(-2, 3, (3, 3, 2, 2))
    rank = rational_rank(kernel.reshape(9, 4).tolist())
    if rank != 4 or not all(forms_are_nonnegative(tap) for tap in kernel.reshape(9, 2, 2)):
        raise EvidenceFailed(f"the kernel has rank {rank}, or a tap leaves the cone")
    scale, least = 9 * 40, Fraction(1)
    for case in range(3 if run.quick else 8):
        image = run.rng(case).integers(-9, 10, (1, 3, 4, 2))
        image[0, 0, 1] = 0
        padded = np.pad(image[0], ((1, 1), (1, 1), (0, 0))).astype(object)
        exact = exact_convolution(image, kernel)
        for row, column in product(range(3), range(4)):
            heads = []
            for turn in (np.eye(2, dtype=int), ROTATION):
                attention = {}
                for a, b in product(range(3), repeat=2):
                    x = padded[row + a, column + b]
                    if any(x):
                        form = x @ kernel[a, b] @ (x @ turn)
                        attention[row + a, column + b] = Fraction(int(form), int(x @ x) * scale)
                rest = 1 - sum(attention.values())
                attention[0, 0] = attention.get((0, 0), Fraction(0)) + rest  # a ring token: zero
                least = min(least, *attention.values())
                heads.append(sum(w * padded[key] for key, w in attention.items()))
            output = heads[0] * scale + heads[1] @ ROTATION * scale
            if (output != exact[0, row, column]).any():
                raise EvidenceFailed(f"case {case}: {output} at ({row}, {column})")
    require(least >= 0, f"a weight is {least}, so that some row is no attention")
    return f"two heads, a kernel of rank {rank}, rows nonnegative with the sum one, least {least}"


def derivative_with_positions(
    positions: np.ndarray, maps: tuple[np.ndarray, ...], query: int, in_values: bool
) -> list[list[Fraction]]:
    """For one head and query, the derivative at X = 0 by key, each flattened, in fractions.

    Scores are (X_q + P_q)Q·(X_k + P_k)K with integers, in units in which exp is a power of 3/2 (and
    its derivative 1; any other number, such as ln(3/2), scales the second term alone, and the rank
    for it is no less than the largest, for all but finitely many).
    """
    projection, key_map, value = maps
    keys, width = positions.shape
    scores = positions @ projection @ (positions @ key_map).T
    weights = exact_softmax(scores)[query]
    rows = []
    for key in range(keys):
        entries = []
        for channel in range(width):
            moved = np.zeros((keys, width), int)
            moved[key, channel] = 1
            change = (moved @ projection)[query] @ (positions @ key_map).T
            change = change + (positions @ projection)[query] @ (moved @ key_map).T
            slope = weights * (change - weights @ change)
            result = weights @ moved.astype(object) @ value
            if in_values:
                result = result + slope @ positions.astype(object) @ value
            entries += [Fraction(entry) for entry in result]
        rows.append(entries)
    return rows


def positions_in_the_values(run: Run) -> str:
    """One head, nine keys: rank 1 without positions in the values, D + 2 with them, D = 2, 3, 4."""
    summary = []
    for width in (2, 3, 4):
        numbers = np.random.default_rng(width)  # a generic choice; the rank is what is shown
        positions = numbers.integers(-2, 3, (9, width))
        maps = tuple(numbers.integers(-2, 3, (width, width)) for _ in range(3))
        ranks = [
            rational_rank(derivative_with_positions(positions, maps, 2, in_values))
            for in_values in (False, True)
        ]
        if ranks != [1, width + 2]:
            raise EvidenceFailed(f"D = {width}: the ranks are {ranks}, expected 1 and {width + 2}")
        summary.append(f"D = {width}: rank {ranks[0]}, with positions in the values {ranks[1]}")
    return "one head's derivative at X = 0; " + "; ".join(summary)


CLAIM = Claim(
    id="S.content",
    source="this project, sharpening L21 Theorems 5 and 6",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LOWER_BOUND,),
    evidence=(
        proved(
            "sharpened/content.v",
            covers="the transfer to A_h(0), if the layer is a convolution; not: the derivative of "
            "other layers, scores from queries and keys, the two counterexamples",
        ),
        proved(
            "sharpened/content_bounds.v",
            covers="on more than m rows and n columns of tokens N_H ≥ rank F for weights "
            "continuous at zero; one more if A_h(0) is nowhere zero, F ≠ 0, and some query has a "
            "token of the image outside its field or some M_δ = 0; not: limits, that finite scores "
            "give such weights",
        ),
        certified("S.content"),
        Evidence("one-hot layers with content", Level.TESTED, one_hot_layers, quick=False),
        Evidence("arbitrary attention", Level.TESTED, arbitrary_attention),
        Evidence("positions in the values", Level.TESTED, positions_in_the_values),
        Evidence(
            "derivative on pieces of images",
            Level.BOUNDED,
            derivative_on_images,
            assumes="exp and log1p are within 4 units in the last place; products as pinned; ball "
            "arithmetic (python-flint) for the least eigenvalues",
            quick=False,
        ),
    ),
)
