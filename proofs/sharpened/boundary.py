"""S.boundary: what attention computes on the bare grid: the edge repeated, or the mean.

Claimed. With no tokens around the image, quadratic heads compute in the limit the convolution that
repeats the edge, and one-hot biases the one that sees the mean of all tokens outside.
True. They do, for every kernel and grid, and one uniform head more makes the biases exact at finite
parameters; on patches it is a whole patch, not a pixel, that is repeated or averaged.

Printed. Not from a paper: our own result. Cordonnier et al. 2020 and Li et al. 2021 leave the
border open. Without a ring the quadratic heads compute, in the limit, the convolution in which
every token outside the grid is replaced by the nearest token of the grid, and the one-hot biases
the one in which it is replaced by the mean of all tokens; the latter exactly at finite M ≠ 0, with
the uniform head of S.finite.

Verified. The same, for every kernel and grid, N counting the grid's tokens. For P = 1 these are
`conv(padding="EDGE")` and `conv(padding="MEAN")`; for P > 1 the nearest patch is not the nearest
pixel, and the mean patch is not the mean pixel. In the limit the distance to the nearest key's row
is below 1 - θ(α)^-axes (S.saturation), at the border too.

Nothing to repair.

Proof. *The idea:* a head whose target is missing attends to the nearest key, or to all keys alike.

*Quadratic*: on a rectangle |k - (q+Δ)|² is a sum over the axes, and on each axis the nearest key is
the clipped coordinate, the only one at that distance as q + Δ is an integer point. So the head
tends to the one-hot row of the projection of q + Δ, which is the token that repeating the edge puts
there; Lemma 1 of C20 does the rest.

*Bias*: a head whose key is missing has N equal scores and the row J, at every M, so it reads the
mean; the others tend to their keys.

*With the correction*: head δ has (1-ε)S_δ + εJ or J, and the map M_δ/(1-ε); the uniform head has
the map -ε/(1-ε)·ΣM_δ. An offset inside leaves S_δ X M_δ + ε/(1-ε)·J X M_δ, one outside (1 +
ε/(1-ε))·J X M_δ; the uniform head takes ε/(1-ε)·J X M_δ from each. What is left outside is the
mean's part. ∎
"""

from fractions import Fraction
from functools import partial

import jax
import numpy as np

from convattn.bounds.majorant import majorant_of
from convattn.bounds.rounding import layer_error_bound
from convattn.encodings.layer import AttentionLayer
from convattn.operators.convolution import conv
from convattn.operators.shifts import TokenGrid
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import (
    EXP_AND_LOG1P,
    UNDERFLOW,
    applied,
    bias_saturation_enclosed,
    certified_identities,
    converted,
    exact_convolution,
    integer_kernel,
    proved,
    total_variation_enclosed,
    whole_images,
)
from convattn_ledger.evidence.exact_tokens import cut_tokens, tokens_at
from convattn_ledger.evidence.layer_runs import equal, within
from convattn_ledger.evidence.printed_output_map import output_blocks, patch_offsets
from convattn_ledger.evidence.token_padding import token_padded_convolution

FLOATS = ("float64", "float32", "bfloat16", "float16")
CASES = (  # patch size, kernel size, encoding, padding, dtypes
    (4, 5, "quadratic", "edge", (FLOATS[0], FLOATS[3])),
    (4, 5, "bias", "mean", FLOATS[1:3]),
    (1, 3, "quadratic", "edge", FLOATS[1:2]),
    (1, 3, "bias", "mean", FLOATS[1:2]),
)


def best_scores(grid, center: tuple[int, ...]) -> np.ndarray:
    """The keys that have the largest score -|δ - Δ|² of their row; exact."""
    shifts = grid.key_positions[None] - grid.query_positions[:, None]
    scores = -((shifts - np.array(center)) ** 2).sum(axis=-1)
    return scores == scores.max(axis=1, keepdims=True)


def nearest_is_unique(run: Run) -> str:
    """In integers: one key has the largest score, and it is the clipped target."""
    grids = ((6, 7),) if run.quick else ((6, 7), (1, 5), (3, 3))
    outside = 0
    for sides in grids:
        grid = TokenGrid(sides, ((0, 0), (0, 0)))
        for center in np.ndindex(9, 9):
            shift = tuple(c - 4 for c in center)
            best = best_scores(grid, shift)
            target = grid.query_positions + np.array(shift)
            clipped = np.clip(target, 0, np.array(sides) - 1)
            expected = np.zeros_like(best)
            expected[np.arange(len(best)), np.ravel_multi_index(tuple(clipped.T), sides)] = True
            require(
                (best == expected).all(), f"grid {sides}, Δ = {shift}: not the clipped key alone"
            )
            outside += int((clipped != target).any(axis=1).sum())
    return f"{len(grids)} grids, 81 shifts, {outside} targets outside: the clipped key, alone"


def corrected_maps(maps: np.ndarray, uniform_weight: Fraction) -> list:
    """M_δ/(1-ε), and the uniform head's -ε/(1-ε)·Σ M_δ; in fractions."""
    return [
        *(block / (1 - uniform_weight) for block in maps),
        -uniform_weight / (1 - uniform_weight) * maps.sum(axis=0),
    ]


def mean_in_fractions(run: Run) -> str:
    """The finite layer on the bare grid is the mean-padded convolution, in fractions."""
    summary = []
    for kernel_size, patch, grid in ((3, 1, (5, 6)), (5, 2, (2, 3)), (5, 1, (3, 4))):
        rng = run.rng(f"{kernel_size} {patch}")
        kernel = rng.integers(-9, 10, (kernel_size, kernel_size, 2, 2))
        image = rng.integers(-9, 10, (1, grid[0] * patch, grid[1] * patch, 2))
        tokens = cut_tokens(image, patch).astype(object)
        count = grid[0] * grid[1]
        mean = tokens.sum(axis=(1, 2), keepdims=True) * Fraction(1, count)
        maps = output_blocks(kernel, patch).astype(object) * Fraction(1)
        uniform_weight = Fraction(2, 7)
        *blocks, uniform = corrected_maps(maps, uniform_weight)
        result = np.broadcast_to(mean @ uniform, (*tokens.shape[:3], uniform.shape[1]))
        for offset, block in zip(patch_offsets(kernel_size, patch), blocks, strict=True):
            # (1-ε)S_δ + εJ inside, J outside: the mean in place of a missing token in (1-ε)S_δ.
            shifted = tokens_at(tokens * Fraction(1), offset, mean)
            result = result + ((1 - uniform_weight) * shifted + uniform_weight * mean) @ block
        padded, divisor = token_padded_convolution(image, kernel, patch, "mean")
        if (result * divisor != cut_tokens(padded, patch)).any():
            raise EvidenceFailed(f"K = {kernel_size}, P = {patch}: not the mean-padded convolution")
        summary.append(f"K = {kernel_size}, P = {patch} on {grid[0]} × {grid[1]}")
    return "; ".join(summary) + ": equal, leak 2/7"


def six_by_seven(run: Run) -> str:
    """K = 5 on 6 × 7 pixels: the edge exactly, the mean at finite M within the derived bound.

    The mean-padded reference is exact but for one division.
    """
    images = whole_images(run)[:, 13:19, 13:20]
    kernel = integer_kernel(run.rng("kernel"), (5, 5), 3, 2)
    edge, _ = token_padded_convolution(images, kernel, 1, "edge")
    quadratic = converted(kernel, "float64", encoding="quadratic")
    equal("float64", applied(quadratic, images, "float64", border="none"), edge)

    total, count = token_padded_convolution(images, kernel, 1, "mean")
    mean = total / count
    leaky = converted(kernel, "float64")
    off = AttentionLayer(leaky.encoding, None, leaky.output)
    typed = images.astype(float)
    bound = layer_error_bound(off, typed, majorant_of(off, kernel, None, images))
    result = applied(leaky, images, "float64", border="none")
    line = within("float64", result, mean, bound + 2.0**-52 * np.abs(mean))
    return f"{len(images)} crops; EDGE: difference 0; MEAN at finite M: {line}"


def limits_on_images(run: Run) -> str:
    """Whole images, P = 1 and P = 4: equal to edge and mean padding of tokens, and so is `conv`.

    N is 1024 or 64, so 1/N is exact, and so are multiples of 1/N up to 15,300 in 24 bits.
    """
    images = whole_images(run)
    summary = []
    for patch, size, encoding, outside, dtypes in CASES:
        kernel = integer_kernel(run.rng("kernel"), (size, size), 3, 2)
        padded, count = token_padded_convolution(images, kernel, patch, outside)
        pixels, by = token_padded_convolution(images, kernel, 1, outside)
        differ = int((padded * by != pixels * count).sum())
        zeros = int((padded != count * exact_convolution(images, kernel)).sum())
        if (differ > 0) != (patch > 1) or not zeros:
            raise EvidenceFailed(f"P = {patch}, {outside}: {differ} and {zeros} entries differ")
        for dtype in dtypes:
            layer = converted(kernel, dtype, patch_size=patch, encoding=encoding, form="limit")
            equal(dtype, applied(layer, images, dtype, border="none"), padded / count)
            if patch == 1:
                pad = jax.jit(partial(conv, padding=outside.upper()))
                arrays = images.astype(dtype), kernel.astype(dtype)
                equal(dtype, pad(*arrays), padded / count)
        summary.append(
            f"P = {patch}, {outside}: equal in {', '.join(dtypes)}; off the padding of pixels "
            f"in {differ}, of zeros in {zeros} of {padded.size}"
        )
    return f"{len(images)} images; " + "; ".join(summary)


def mean_patches_at_finite_parameters(run: Run) -> str:
    """S.finite's layer with its ring taken off, P = 4, within its derived bound."""
    images = whole_images(run)
    kernel = integer_kernel(run.rng("kernel"), (5, 5), 3, 2)
    padded, count = token_padded_convolution(images, kernel, 4, "mean")
    comparisons, majorant = [], None
    for dtype in FLOATS[:3]:
        ringed = converted(kernel, dtype, patch_size=4)
        layer = AttentionLayer(ringed.encoding, None, ringed.output, patch_size=(4, 4))
        if majorant is None:
            majorant = majorant_of(layer, kernel, None, images)
        result = applied(layer, images, dtype)
        bound = layer_error_bound(layer, images.astype(dtype), majorant)
        expected = padded / count  # N = 64: the division is exact
        comparisons.append(within(dtype, result, expected, bound))
    return f"{len(images)} images, K = 5, P = 4, no ring; " + "; ".join(comparisons)


CLAIM = Claim(
    id="S.boundary",
    source="this project, sharpening C20 Lemma 2 and L21 Lemma 2 at the border",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LAYER_EQUALITY, Kind.LIMIT),
    evidence=(
        proved(
            "sharpened/boundary.v",
            covers="the bias: the mean for every missing token, exactly for M ≠ 0 with the uniform "
            "head; without it up to N/(N + e^M - 1) times a remainder free of M, for each output "
            "of each image",
        ),
        proved(
            "sharpened/boundary_clamped.v",
            covers="the quadratic encoding on two axes, over an ordered field: the edge repeated "
            "by hard heads, and up to e^-α times a number free of α for each output of "
            "each image; not: the bound 1 - θ(α)^-axes",
        ),
        certified_identities(
            "S.boundary", "the nearest key is the edge repeated", "edge", pattern="edge*"
        ),
        certified_identities(
            "S.boundary",
            "the corrected bias is the mean",
            "mean",
            pattern="mean*",
            covers="ε = 1/3",
        ),
        Evidence("the nearest key is unique", Level.TESTED, nearest_is_unique),
        Evidence("the mean in fractions", Level.TESTED, mean_in_fractions),
        total_variation_enclosed(
            "distance to the nearest key",
            alphas=(1.0, 16.0, 104.0),
            keys=(6, 7),
            centers=((0, 0), (2, -2), (-1, 2), (9, -4)),
        ),
        bias_saturation_enclosed(
            "distance to one-hot and to uniform", logits=(1.0, 40.0, 128.0), keys=(42, 64, 1024)
        ),
        Evidence(
            "5 × 5 on 6 × 7 pixels",
            Level.BOUNDED,
            six_by_seven,
            assumes=f"{EXP_AND_LOG1P}; {UNDERFLOW}",
            quick=False,
        ),
        Evidence(
            "limits on images", Level.BOUNDED, limits_on_images, assumes=UNDERFLOW, quick=False
        ),
        Evidence(
            "mean patches at finite parameters",
            Level.BOUNDED,
            mean_patches_at_finite_parameters,
            assumes=EXP_AND_LOG1P,
            quick=False,
        ),
    ),
)
