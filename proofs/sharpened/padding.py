"""S.padding: which zero-padded convolutions attention computes without a ring, and two repairs.

Claimed. Without tokens around the image attention is no zero-padded convolution on large grids,
unless each token reads only itself; zero tokens all around it mend that, or a single one in the
limit.
True. So it is, whatever the heads, if their weights sum to one and positions are in the scores
only; on small grids some more kernels are possible, counted exactly.

Printed. Not from a paper: our own result. Cordonnier et al. 2020, §3, and Li et al. 2021, Theorem
1, leave the border open. Let T_q be the sum of W_δ over those δ for which q + δ is in the grid.
Some layer whose rows sum to one over the image's tokens, whatever its heads, computes the
zero-padded convolution on the bare grid if and only if all T_q are equal, which on a grid of at
least 2m+1 tokens a side means W_δ = 0 for all δ ≠ 0. On small grids other kernels do it: for 4 × 4
tokens and K = 5 they form a space of dimension ten. A ring mends it, exactly at finite parameters;
in the limit one token does whose value is zero, after any value bias, and whose score is constant:
M/2 for the bias, -α/2 for the quadratic score relative to its maximum.

Verified. The same. "If" by a layer at finite parameters: the T heads of S.finite and a uniform one,
which serve that image size alone. For pixels and odd K the exceptions have Π K - Π min(n, K) + 1
dimensions for each pair of channels on n_1 × n_2 tokens, so that a side of fewer than K is enough
for more than δ = 0; for patches they are counted by an exact rank (K = 5, P = 2 on 2 × 2 patches:
10; K = 5, P = 4: none). With the zero token a row is off by less than N e^(-s/2), s = M or α.

Nothing to repair. Positions must be in the scores only: with values that carry positions, T_q is no
obstacle.

Proof. *The idea:* on equal tokens attention sees no border.

*Only if*: equal tokens c give every head's output c, whatever the scores; the layer's output is
then the same at every query, and so it is in a limit; the convolution's is c T_q + b.

*If*: head δ of S.finite has the row (1-ε)S_δ + εJ, or J where its key is missing, and the map
W_δ/(1-ε). With U for the uniform head the layer is conv(X)_q + J X (ΣW_δ/(1-ε) - T_q + U), and U =
T - ΣW_δ/(1-ε) does it if T_q = T everywhere.

*The dimension*: on one axis the offsets available at the n queries are min(n, 2m+1) different
intervals, neighbours differing by one offset that comes or goes, so their indicators are
independent; on two axes they are products. All contain δ = 0, so their differences vanish there and
span one dimension less: that many conditions on W. With 2m+1 tokens on both axes the differences
span all functions of δ that vanish at 0, so W_δ = 0 off 0.

*The zero token*: `convattn.constructions.register`. ∎
"""

from fractions import Fraction
from itertools import product
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb, ctx

from convattn.bounds.rounding import layer_error_bound
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_output_map import token_maps
from convattn.constructions.register import limit_register
from convattn.encodings import BiasEncoding, QuadraticEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention
from convattn.operators.shifts import TokenGrid
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.bounds.saturation import PRECISION, upper
from convattn_ledger.bounds.zero_padding import (
    available_offsets,
    bare_zero_padding_basis,
    bare_zero_padding_layer,
    unequal_queries,
)
from convattn_ledger.evidence import (
    DTYPES,
    EXP_AND_LOG1P,
    UNDERFLOW,
    certified,
    certified_identities,
    converted,
    equals_convolution,
    exact_convolution,
    integer_kernel,
    proved,
    whole_images,
)
from convattn_ledger.evidence.enclosures import ASSUMES as BALLS
from convattn_ledger.evidence.enclosures import distance_to_one_hot
from convattn_ledger.evidence.exact_tokens import cut_tokens
from convattn_ledger.evidence.layer_runs import equal, within
from convattn_ledger.evidence.printed_output_map import output_blocks, patch_offsets

# Kernel size, patch size, tokens, and the dimension of the exceptions.
PATCH_SPACES = (
    ((5, 5), 2, (2, 2), 10),
    ((5, 5), 2, (1, 2), 16),
    ((7, 7), 2, (3, 2), 18),
    ((5, 5), 4, (2, 2), 1),
    ((3, 3), 2, (3, 3), 1),
    ((5, 5), 2, (3, 4), 1),
)
SMALL = (((5, 5), 1, (4, 4)), ((5, 5), 2, (2, 2)))  # kernel size, patch size, tokens


def dimensions(run: Run) -> str:
    """Exact ranks against Π K - Π min(n, K) + 1, and against a list for patches."""
    sides = (3, 5) if run.quick else (1, 3, 5, 7)
    cases = list(product(product(sides, repeat=2), product((1, 2, 4, 7), repeat=2)))
    for kernel, grid in cases:
        dimension = len(bare_zero_padding_basis(kernel, grid))
        expected = prod(kernel) - prod(map(min, grid, kernel)) + 1
        require(
            dimension == expected, f"K = {kernel} on {grid} tokens: {dimension}, not {expected}"
        )
    four = len(bare_zero_padding_basis((5, 5), (4, 4)))
    require(four == 10, f"K = 5 on 4 × 4 tokens: {four} dimensions, not 10")
    for kernel, patch, grid, expected in PATCH_SPACES:
        basis = bare_zero_padding_basis(kernel, grid, patch_size=patch)
        require(len(basis) == expected, f"K = {kernel}, P = {patch} on {grid}: {len(basis)}")
    return f"{len(cases)} sizes of pixels and {len(PATCH_SPACES)} of patches; 4 × 4, K = 5: 10"


def exceptions(run: Run, size: tuple, channels: tuple[int, int]) -> np.ndarray:
    """A kernel with a small integer combination of the exceptions for each pair of channels."""
    kernel, patch, tokens = size
    basis = bare_zero_padding_basis(kernel, tokens, patch_size=patch)
    mix = run.rng(f"mix {size}").integers(-2, 3, (*channels, len(basis)))
    return np.moveaxis(np.tensordot(mix, basis, 1), (0, 1), (-2, -1))


def heads_in_fractions(maps: np.ndarray, inside: np.ndarray, uniform_weight: Fraction) -> list:
    """For each head its map, last that of the uniform one, as the proof says; exact."""
    blocks = [block / (1 - uniform_weight) for block in maps]
    return [*blocks, maps[inside[0]].sum(axis=0) - maps.sum(axis=0) / (1 - uniform_weight)]


def layer_in_fractions(run: Run) -> str:
    """The layer of the proof equals the zero-padded convolution, at every query, in fractions."""
    uniform_weight, summary = Fraction(1, 3), []
    for size in SMALL:
        (side, _), patch, grid = size
        kernel = exceptions(run, size, (2, 2))
        if unequal_queries(kernel, grid, patch_size=patch) is not None or not kernel.any():
            raise EvidenceFailed(f"{size}: the kernel is no exception, or zero")
        image = run.rng(f"image {size}").integers(-9, 10, (1, *(n * patch for n in grid), 2))
        geometry = ConvolutionGeometry.of(size[0], patch)
        inside = available_offsets(geometry, grid)
        maps = output_blocks(kernel, patch).astype(object) * Fraction(1)
        blocks = heads_in_fractions(maps, inside, uniform_weight)
        tokens = cut_tokens(image, patch).reshape(prod(grid), -1).astype(object)
        mean = tokens.sum(axis=0) * Fraction(1, prod(grid))
        expected = cut_tokens(exact_convolution(image, kernel), patch).reshape(prod(grid), -1)
        if geometry.offsets != tuple(patch_offsets(side, patch)):
            raise EvidenceFailed(f"{size}: the offsets are in another order")
        for number, query in enumerate(np.ndindex(grid)):
            result = mean @ blocks[-1]
            for offset, there, block in zip(geometry.offsets, inside[number], blocks, strict=False):
                row = mean
                if there:
                    key = tuple(q + d for q, d in zip(query, offset, strict=True))
                    row = (1 - uniform_weight) * tokens[
                        np.ravel_multi_index(key, grid)
                    ] + uniform_weight * mean
                result = result + row @ block
            require((result == expected[number]).all(), f"{size}, query {query}: the layer differs")
        summary.append(f"K = {side}, P = {patch} on {grid[0]} × {grid[1]}")
    return "; ".join(summary) + ": equal at every query, leak 1/3"


def other_kernels_are_refused(run: Run) -> str:
    """A kernel off the space: two queries with other sums, at which a constant image differs."""
    cases = 3 if run.quick else 12
    for case in range(cases):
        rng = run.rng(case)
        grid = tuple(rng.integers(1, 8, 2).tolist())
        size = ((5, 5), (3, 7), (5, 3))[case % 3]
        kernel = rng.integers(-9, 10, (*size, 1, 1))
        queries = unequal_queries(kernel, grid)
        sums = exact_convolution(np.ones((1, *grid, 1), int), kernel)[0, ..., 0]
        if (queries is None) != (sums == sums.flat[0]).all():
            raise EvidenceFailed(f"case {case}: {queries}, sums {sums.tolist()}")
        if queries is not None and sums[queries[0]] == sums[queries[1]]:
            raise EvidenceFailed(f"case {case}: the sums at {queries} are alike")
        try:
            bare_zero_padding_layer(kernel, tokens=grid)
            built = True
        except ValueError as error:
            if "sums of the taps inside differ" not in str(error):
                raise
            built = False
        if built != (queries is None):
            raise EvidenceFailed(f"case {case}: a layer was {'built' if built else 'refused'}")
    return f"{cases} kernels and grids: refused exactly where the image of ones has unequal outputs"


def small_grids_on_images(run: Run) -> str:
    """Crops of images of the one size: within the rounding bound of the zero-padded convolution.

    C, the coefficients of the uniform head's map, are 1 - 1/(1-ε) at the offsets that the first
    query has and -1/(1-ε) at the others; the maps are integers of few bits with ε = 1/2, so storing
    them rounds nothing (which is checked).
    """
    attend = jax.jit(lambda layer, pixels: apply_attention(layer, pixels))
    images, comparisons = whole_images(run), []
    for size in SMALL:
        sides, patch, grid = size
        height, width = (n * patch for n in grid)
        crops = images[:, : 32 // height * height, : 32 // width * width]
        crops = crops.reshape(len(images), 32 // height, height, 32 // width, width, 3)
        crops = crops.transpose(0, 1, 3, 2, 4, 5).reshape(-1, height, width, 3)[:64]
        kernel = exceptions(run, size, (3, 2))
        expected = exact_convolution(crops, kernel)
        geometry = ConvolutionGeometry.of(sides, patch)
        maps = np.asarray(token_maps(jnp.asarray(kernel), geometry))
        inside = available_offsets(geometry, grid)[0]
        exact = np.concatenate([2 * maps, (maps[inside].sum(0) - 2 * maps.sum(0))[None]])
        parts = np.concatenate([2 * np.eye(len(maps)), (inside - 2.0)[None]])
        wide = AttentionLayer(
            encoding=bare_zero_padding_layer(
                kernel.astype(float), tokens=grid, patch_size=patch
            ).encoding,
            value=None,
            output=jnp.asarray(np.tensordot(np.abs(parts), np.abs(maps), 1), jnp.float64),
            patch_size=geometry.patch_size,
        )
        majorant = np.asarray(attend(wide, jnp.asarray(crops, jnp.float64)))
        for dtype in DTYPES[:3] if size == SMALL[0] else ("float32",):
            layer = bare_zero_padding_layer(
                jnp.asarray(kernel, dtype), tokens=grid, patch_size=patch
            )
            if (np.asarray(layer.output, np.float64) != exact).any():
                raise EvidenceFailed(f"{dtype}: the maps are not the integers of the proof")
            typed = jnp.asarray(crops, dtype)
            bound = layer_error_bound(layer, typed, majorant, maps_are_exact=True)
            line = within(dtype, attend(layer, typed), expected, bound)
            comparisons.append(f"P = {patch}, {line}")
    return f"up to 64 crops of 4 × 4 pixels, K = 5, no ring: {'; '.join(comparisons)}"


def register_row(scores: np.ndarray, rest: float, target: int | None):
    """Half the L1 distance to the one-hot row, or to the register's where there is no target."""
    row = np.append(scores, rest)
    return distance_to_one_hot(row, len(scores) if target is None else target)


def register_enclosed(run: Run) -> str:
    """The rows of the library's scores and the register's: 0 < TV < N e^(-s/2) at all queries."""
    grid = TokenGrid((3, 4), ((0, 0), (0, 0)))
    offsets = ((0, 0), (1, -1), (-2, 2))
    summary, missing = [], 0
    for sharpness in (1.0, 128.0):
        worst = 0.0
        with ctx.workprec(PRECISION):
            vanishing = grid.number_of_keys * (-arb(sharpness) / 2).exp()
        for encoding in (
            BiasEncoding(sharpness * jnp.eye(3), None, offsets),
            QuadraticEncoding(jnp.full(3, sharpness), jnp.array(offsets, float)),
        ):
            scores = np.asarray(encoding.positional_scores(grid), np.float64)
            rest = np.asarray(limit_register(encoding).scores, np.float64)
            for head, offset in enumerate(offsets):
                for query, position in enumerate(grid.query_positions):
                    there = position + np.array(offset)
                    inside = bool(((there >= 0) & (there < np.array(grid.keys))).all())
                    target = int(np.ravel_multi_index(tuple(there), grid.keys)) if inside else None
                    distance = register_row(scores[head, query], float(rest[head]), target)
                    if not (distance > 0 and distance < vanishing):
                        raise EvidenceFailed(
                            f"s = {sharpness}, offset {offset}, query {query}: TV {distance}, not "
                            f"between 0 and {vanishing}"
                        )
                    worst, missing = max(worst, upper(distance)), missing + (not inside)
        summary.append(f"s = {sharpness:g}: TV < {worst:.2g}")
    require(missing, "every query had its target, so nothing was seen of the register")
    return f"3 × 4 tokens, two encodings, {missing} rows without a target; " + ", ".join(summary)


def register_on_images(run: Run) -> str:
    """With one-hot attention: equal to the zero-padded convolution without a ring."""
    images, comparisons = whole_images(run), []
    kernel = integer_kernel(run.rng("kernel"), (5, 5), 3, 2)
    expected = exact_convolution(images, kernel)
    apply = jax.jit(lambda layer, pixels: apply_attention(layer, pixels))
    for encoding, dtypes in (("bias", DTYPES[:2]), ("quadratic", DTYPES[2:])):
        lines = []
        for dtype in dtypes:
            options = {"encoding": encoding, "form": "limit", "border": "register"}
            layer = converted(kernel, dtype, patch_size=8, **options)
            lines.append(equal(dtype, apply(layer, images.astype(dtype)), expected))
        comparisons.append(f"{encoding}: {', '.join(lines)}")
    return f"{len(images)} images, K = 5, P = 8, no ring, one register; " + "; ".join(comparisons)


CLAIM = Claim(
    id="S.padding",
    source="this project, sharpening C20 §3 and L21 Theorem 1 at the border",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LAYER_EQUALITY, Kind.LIMIT),
    evidence=(
        proved(
            "sharpened/padding.v",
            covers="the equivalence on every bare grid of two axes, offsets from -m to m and -n to "
            "n, without a bias, with weights that may depend on content, and limits that are "
            "uniform on tokens with entries in [-1, 1]; not: that T + 1 heads do it",
        ),
        proved(
            "sharpened/padding_dimension.v",
            covers="the dimension of the kernels with equal T_q, for pixels, odd K and two axes; "
            "not: the counts for patches",
        ),
        proved(
            "sharpened/padding_large.v",
            covers="on 2m + 1 tokens a side or more only δ = 0 remains, for exact layers and in "
            "limits, without a bias",
        ),
        proved(
            "sharpened/padding_zero_token.v",
            covers="the repair by a zero token, one head an offset, in the limit for each image "
            "and output, with values that have no bias; not: the bound N e^(-s/2); the repair by a "
            "ring is S.finite's",
        ),
        certified("S.padding", "border*", name="kernels that no layer computes"),
        certified_identities(
            "S.padding",
            "a kernel that a layer computes",
            "constant_sums",
            pattern="constant_sums",
            covers="the taps 3, 5, 3 on two pixels, ε = 1/3",
        ),
        Evidence("dimensions", Level.TESTED, dimensions),
        Evidence("the layer in fractions", Level.TESTED, layer_in_fractions),
        Evidence("other kernels", Level.TESTED, other_kernels_are_refused),
        Evidence(
            "small grids on images",
            Level.BOUNDED,
            small_grids_on_images,
            EXP_AND_LOG1P,
            quick=False,
        ),
        equals_convolution(
            "the ring, 3 × 3, P = 4", (3, 3), patch_size=4, form="exact", dtypes=("float32",)
        ),
        Evidence(
            "distance with a register",
            Level.ENCLOSED,
            register_enclosed,
            assumes=BALLS,
            quick=False,
        ),
        Evidence(
            "a register on images",
            Level.BOUNDED,
            register_on_images,
            assumes=UNDERFLOW,
            quick=False,
        ),
    ),
)
