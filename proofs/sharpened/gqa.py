"""S.gqa: heads that share G value maps of d_H columns: G·d_H ≥ r_in, and then it costs no width.

Claimed. Heads that share their value maps in G groups can be a convolution only if G times the
width of these maps is at least the rank of the kernel's maps side by side.
True. So it is, whatever the scores and however many heads; if G maps are wide enough together, G
times the heads suffice, and if one map is wide enough alone, sharing costs no head.

Printed. Not from a paper: our own result. Grouped-query attention (Ainslie et al. 2023) shares the
maps of keys and values among the heads of a group; with G = 1 it is multi-query attention (Shazeer
2019).

Verified. Let the H heads of a layer be in G groups. Group g has a value map V_g of d_H columns, and
head h of it an output map U_h, so that its map is W_h = V_g U_h. Let M_δ be the maps of a
convolution from the token at q + δ to that at q, and r_in the rank of all M_δ side by side.

(1) If the layer is the convolution, on images in which every offset joins two tokens, G·d_H ≥ r_in,
however many heads it has and whatever the scores see; also in limits of heads by position, whether
the maps stay bounded or not.

(2) If d_H ≥ r_in, sharing costs no head: whatever N heads by position are the convolution, with
value maps of their own and of any width, the same N heads are so with one value map.

(3) If G·d_H ≥ r_in, G·N such heads are. (Where d_H in (2), G·d_H in (3) is at least the number d_in
of a token's numbers, and not only r_in, the heads may see the tokens.)

For K = 3, P = 16, three channels and d_H = 64, r_in = 768 for all kernels but a null set: twelve
groups at least, and 120 heads in twelve groups are exact. Multi-query attention of that width is
no such convolution with any number of heads.

Nothing to repair. (Shared keys restrict the scores. With biases by position alone they do not.
S.headdim asks for H·d_H ≥ r_out as well, for the rank r_out of the maps one below the other.)

Proof. *The idea:* whatever the heads attend to, they see no more of a token than its values.

(1) If the layer is the convolution, M_δ = Σ_h a_h(δ) V_g(h) U_h at some query, with a_h(δ) the
weight of head h at the offset δ (S.heads). So the columns of all M_δ are in the span of the columns
of V_1, …, V_G, which are G·d_H. Matrices of at most that rank are a closed set.

*With any scores:* if G·d_H < r_in, some row x has x V_g = 0 for all g and x M_δ ≠ 0 for some δ. Put
x at q + δ and zeros elsewhere: all values are 0, whatever the scores are, but the convolution is
not.

(2) and (3) Let N heads by position, with the maps W_h, be the convolution, and let the columns of L
be a basis of the space that those of all M_δ span, so that Π = L L⁺ has Π M_δ = M_δ. At every query
that is judged and token of the image, Σ_h a_h W_h is one of the M_δ or zero. So Σ_h a_h ΠW_h is the
same, and the W_h can be replaced by ΠW_h = L (L⁺W_h). L has r_in columns.

If d_H ≥ r_in, L is the one value map, filled up with zeros. Otherwise cut L into G parts L_g of at
most d_H columns, and L⁺ into as many parts of rows. Then ΠW_h = Σ_g L_g (L⁺)_g W_h: each group
attends as the N heads do, with the value map L_g. With d_in for r_in, let Π = L = I. ∎
"""

from fractions import Fraction
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from flint import nmod_mat

from convattn.bounds.heads import count_heads
from convattn_ledger import Claim, Evidence, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import (
    UNDERFLOW,
    certified,
    exact_convolution,
    integer_kernel,
    proved,
    whole_images,
)
from convattn_ledger.evidence.exact_tokens import cut_tokens
from convattn_ledger.evidence.head_floor import receptive_fields
from convattn_ledger.evidence.layer_runs import equal
from convattn_ledger.evidence.least_eigenvalue import least_eigenvalue
from convattn_ledger.evidence.printed_output_map import output_blocks, patch_offsets

PRIME = 2**31 - 1
SIZE, PATCH, WIDTH = 3, 2, 12  # of the layers on images, with three channels: nine offsets


def rank(matrix: np.ndarray) -> int:
    """Modulo the prime, so at most that over the rationals."""
    height, width = matrix.shape
    return int(nmod_mat(height, width, [int(e) % PRIME for e in matrix.ravel()], PRIME).rank())


def side_by_side(maps: np.ndarray) -> np.ndarray:
    """The maps [offsets, in, out] as one matrix with as many rows as a token has numbers."""
    return np.concatenate(list(maps), axis=1)


def grouped_maps(rng: np.random.Generator, groups: int, heads: int, width: int) -> np.ndarray:
    """The maps of heads with integer value maps of a width in groups, twelve numbers a token."""
    values = rng.integers(-9, 10, (groups, WIDTH, width))
    outputs = rng.integers(-9, 10, (groups, heads, width, WIDTH))
    return np.einsum("gie,gheo->ghio", values, outputs).reshape(-1, WIDTH, WIDTH)


def ranks(run: Run) -> str:
    """Layers of random rows: the maps that they make have rank G·d_H, however many heads."""
    summary = []
    for groups, heads, width in ((1, 9, 4), (2, 9, 4), (3, 5, 3), (2, 30, 5), (1, 40, 12)):
        rng = run.rng(groups, heads, width)
        rows = rng.integers(1, 99, (9, groups * heads))
        mixed = np.tensordot(rows, grouped_maps(rng, groups, heads, width), 1)
        actual = rank(side_by_side(mixed))
        require(actual == groups * width, f"G = {groups}, d_H = {width}: rank {actual}")
        summary.append(f"{groups * heads} heads, {groups} · {width}: {actual}")
    return "; ".join(summary)


def twelve_groups(run: Run) -> str:
    """K = 3, P = 16, three channels: r_in = 768, and what the library counts."""
    sizes = {"patch_size": 16, "in_channels": 3, "out_channels": 3, "head_dim": 64}
    if not run.quick:
        maps = output_blocks(run.rng().integers(1, 1000, (3, 3, 3, 3)), 16)
        actual = rank(side_by_side(maps[[4, 0, 8]]))  # no more columns can raise it
        require(actual == 768, f"r_in = {actual}")
    counts = count_heads(3, **sizes, kv_groups=12)
    numbers = int(counts.groups), int(counts.exact.sufficient), int(counts.exact.necessary)
    require(numbers == (12, 120, 24), f"the library counts {numbers}")
    try:
        message = str(count_heads(3, **sizes, kv_groups=11))
    except ValueError as error:
        message = str(error)
    require("kv_groups=12 or more" in message, f"eleven groups: {message}")
    return "r_in = 768: twelve groups of width 64, 24 heads at least, 120 suffice; eleven refused"


def projected(run: Run) -> str:
    """(2), (3) in fractions: heads whose sums have two columns, from maps that L L⁺ projects.

    Three of four heads have a further map, outside of that plane, which the fourth takes back: its
    row is the sum of theirs, up to a scale that could as well be in its map.
    """
    layers = 0
    rows = [[6, 3, 2, 1], [1, 6, 2, 3], [3, 1, 6, 2], [10, 10, 10, 6]]
    for case in range(3 if run.quick else 10):
        rng = run.rng(case)
        basis = rng.integers(-5, 6, (4, 2)).astype(object)
        (a, b), (_, d) = basis.T @ basis
        if a * d == b * b:
            continue
        left = np.array([[d, -b], [-b, a]]) * Fraction(1, int(a * d - b * b)) @ basis.T  # L⁺
        wild = rng.integers(-9, 10, (4, 3)) * np.array([1, 1, 1, -1])[:, None, None]
        maps = basis @ rng.integers(-9, 10, (4, 2, 3)).astype(object) + wild
        shared = basis @ (left @ maps)
        one_column_maps = sum(basis[:, g, None] * (left @ maps)[:, g, None] for g in (0, 1))
        for factorized in (shared, one_column_maps):
            same = (
                np.tensordot(rows, factorized, (0, 0)) == np.tensordot(rows, maps, (0, 0))
            ).all()
            require(
                same and (factorized != maps).any(), f"case {case}: another layer, or the same maps"
            )
        layers += 1
    require(layers > 0, "every basis was singular")
    return f"{layers} layers with one map of two columns, and with two of one, in fractions"


def flax_layer(dtype: str, values: np.ndarray, outputs: np.ndarray, sides: tuple[int, int]):
    """Grouped-query attention of Flax with content and one-hot biases, from tokens to tokens.

    Args:
        values: [groups, in, d_H].
        outputs: [groups, offsets, d_H, out]; within a group head δ looks at δ.
        sides: The tokens, around which there is a ring of zero ones.
    """
    from flax import nnx

    groups, features, width = values.shape
    offsets = patch_offsets(SIZE, PATCH)
    heads = groups * len(offsets)
    keys = tuple(side + 2 for side in sides)
    bias = np.full((len(offsets), *sides, *keys), -(10.0**4))
    for head, (row, column) in product(range(len(offsets)), np.ndindex(sides)):
        a, b = offsets[head]
        bias[head, row, column, row + 1 + a, column + 1 + b] = 0
    bias = np.tile(bias.reshape(len(offsets), np.prod(sides), -1), (groups, 1, 1))

    def attend(query, key, value, **others):
        return jax.nn.dot_product_attention(query, key, value, jnp.asarray(bias[None], dtype))

    layer = nnx.MultiHeadAttention(
        heads,
        features,
        heads * width,
        outputs.shape[-1],
        num_kv_heads=groups,
        use_bias=False,
        param_dtype=dtype,
        attention_fn=attend,
        kernel_init=lambda key, shape, dtype: jnp.full(shape, 2.0**-12, dtype),
        decode=False,
        rngs=nnx.Rngs(0),
    )
    layer.value.kernel[...] = jnp.asarray(values.transpose(1, 0, 2), dtype)
    layer.out.kernel[...] = jnp.asarray(outputs.reshape(heads, width, -1), dtype)

    def apply(tokens):
        ringed = np.pad(tokens, ((0, 0), (1, 1), (1, 1), (0, 0)))
        flat = [jnp.asarray(x.reshape(len(x), -1, features), dtype) for x in (tokens, ringed)]
        return jax.jit(lambda query, key: layer(query, key))(*flat)

    return apply


def in_groups(maps: np.ndarray, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """The tokens' numbers cut into groups: value maps, and output maps of all heads."""
    width = WIDTH // groups
    values = np.eye(WIDTH, dtype=int).reshape(WIDTH, groups, width).transpose(1, 0, 2)
    return values, maps.reshape(len(maps), groups, width, -1).swapaxes(0, 1)


def on_images(run: Run) -> str:
    """Three groups of width 4 and one of width 12 equal the convolution; the bound is zero."""
    images = whole_images(run)[:4]
    kernel = integer_kernel(run.rng("kernel"), (SIZE, SIZE), 3, 3)
    tokens, exact = cut_tokens(images, PATCH), exact_convolution(images, kernel)
    expected = cut_tokens(exact, PATCH)
    expected = expected.reshape(len(images), -1, expected.shape[-1])
    maps, comparisons = output_blocks(kernel, PATCH), []
    for dtype, groups in product(("float64", "float32"), (3, 1)):
        with jax.enable_x64(True):
            result = flax_layer(dtype, *in_groups(maps, groups), tokens.shape[1:3])(tokens)
        comparisons.append(
            f"{9 * groups} heads, {groups} value maps, {equal(dtype, result, expected)}"
        )
    return f"{len(images)} images; " + "; ".join(comparisons)


def too_few_groups(run: Run) -> str:
    """Two groups of width 4 for r_in = 12: any such layer is above a floor on these fields.

    As in evidence/head_floor.py, with the maps side by side in place of F: their distance from
    maps of rank 8 is at least √(4 λ_min(M Mᵀ)). The layer that is run has the value maps that
    come nearest, the singular vectors.
    """
    images = whole_images(run)[:8]
    kernel = integer_kernel(run.rng("kernel"), (SIZE, SIZE), 3, 3)
    maps, tokens = output_blocks(kernel, PATCH), cut_tokens(images, PATCH)
    matrix = side_by_side(maps)
    fields = receptive_fields(images, SIZE, PATCH).reshape(-1, 9 * WIDTH)
    count, total = len(fields), fields.sum(axis=0)
    spread = least_eigenvalue(count * (fields.T @ fields) - np.outer(total, total)) / count
    floor = spread * 4 * least_eigenvalue(matrix @ matrix.T) / count * (1 - 2.0**-50)
    near = np.linalg.svd(matrix.astype(float))[0][:, :8]
    values = near.reshape(WIDTH, 2, 4).transpose(1, 0, 2)
    outputs = np.einsum("gie,hio->gheo", values, maps)
    with jax.enable_x64(True):
        result = np.asarray(flax_layer("float64", values, outputs, tokens.shape[1:3])(tokens))
    interior = result.reshape(*tokens.shape[:3], -1)[:, 1:-1, 1:-1].reshape(count, -1)
    error = ((interior - fields @ maps.reshape(9 * WIDTH, -1)) ** 2).sum(axis=1).mean()
    require(error > floor > 0, f"two groups err by {error:.3g}, the floor is {floor:.3g}")
    return f"{count} fields: any 2 groups err by more than {floor:.2g}, the nearest by {error:.3g}"


CLAIM = Claim(
    id="S.gqa",
    source="this project, beside S.headdim",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LAYER_EQUALITY, Kind.LOWER_BOUND),
    evidence=(
        proved(
            "sharpened/gqa.v",
            covers="(1) for attention by position, in limits too, (2), (3); not: content in (1), "
            "the rank of a generic kernel",
        ),
        certified(
            "S.finite",
            "K3-P16",
            name="ten heads with the tokens as values, as for S.finite",
            covers="(2) for K = 3, P = 16 and d_H = d_in at ε = 1/2; (1) is proved by position",
        ),
        Evidence("ranks in groups", Level.TESTED, ranks),
        Evidence("twelve groups", Level.TESTED, twelve_groups),
        Evidence("one value map", Level.TESTED, projected),
        Evidence("Flax layers on images", Level.BOUNDED, on_images, assumes=UNDERFLOW, quick=False),
        Evidence(
            "too few groups",
            Level.BOUNDED,
            too_few_groups,
            assumes=f"{UNDERFLOW}; ball arithmetic (python-flint) for the least eigenvalues",
            quick=False,
        ),
    ),
)
