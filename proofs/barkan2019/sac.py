"""§3: self-attentive convolutions; one head contains every convolution, two do so exactly.

Claimed. Self-attentive convolutions (SAC) generalise self-attention and can implement any type of
convolution, strided and dilated ones included.
True. They can, at every image size and with nothing laid around the image: one head comes as near
to a zero-padded convolution as one likes, and two are exactly it at finite parameters.

Printed. The SAC operator "generalizes the (multi-headed) 2D self attention operator [...] from 1 ×
1 to n × m convolutions", with H_Q^c, H_K^c ∈ R^(d_a×n×m×d), H_V^c ∈ R^(d_o×n×m×d). "We can
optionally apply a regular convolution layer H_R", y' = x ⋆ H_R, concatenate to y'' ∈ R^(N×M×2d_o)
and reduce by H_Y ∈ R^(d_o×1×1×2d_o). "SAC operator can implement any type of convolution (e.g.
strided, dilated, etc.)". §6: "1 × 1 SAC is essentially equivalent to 2D self attention".

Verified. 1 × 1 SAC without H_R is 2-D self-attention. SAC contains every n × m zero-padded
convolution W, of any stride and dilation, on every grid of N cells, with nothing laid around the
image: (1) one head with H_V = W, b_00 = M, else 0, no content, is within TV·(max - min of the
convolution) of it, TV = (N-1)/(e^M + N - 1) → 0; (2) with a second, uniform head it is equal at
finite b_00: H_V = W/(1-ε) and -ε/(1-ε)·W, b_00 = log(1 + N(1/ε - 1)); ε and the filters serve every
size. Under a stride the queries live on every s-th pixel; the keys on the same grid (all three star
products strided) or on all pixels; (1) and (2) hold for both.

Repair. (Sharpened; and three points of the print.) (1) H_Y names two tensors: of d_o × C·d_o in
§2.1, of d_o × 2d_o here. The second has its printed shape for C heads only if the first has been
applied; concatenating the C heads with y' gives (C+1)·d_o channels. Both forms compute the same
maps: 1 × 1 convolutions compose. (2) "Any type of convolution" needs saying on which grid queries
and keys live, and in what the bias counts; above, in cells of the key grid. (3) With H_R the
containment is trivial (H_R = W, and a merge that ignores y); the statement above is without H_R. It
does not contradict S.padding: there the value maps act on single tokens and the border must come
from the attention, here the filters carry the zeros.

Errata.
- Sections 2.1, 3 | H_Y for two 1×1 convolutions | two tensors, of d_o×C·d_o and d_o×2d_o
- Section 3 | any type of convolution | Remark: on which grid do the keys live? With H_R it is
  trivial

Proof. The distance (0, 0) occurs once in every row, at the query itself: softmax of one M and N - 1
zeros is (1-ε)S_q + εJ with ε = N/(e^M + N - 1). With v = x ⋆ W the head gives (1-ε)v_q + ε·mean v =
v_q + TV·(mean of the others - v_q), as TV = ε(N-1)/N. The uniform head gives mean v; (1-ε)v_q/(1-ε)
+ ε/(1-ε)·mean v - ε/(1-ε)·mean v = v_q. ∎
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb, ctx

from convattn.operators.roundoff import ASSUMPTION
from convattn.sac import (
    EvenBias,
    SelfAttentiveParameters,
    attention_scores,
    even_bias_scores,
    limit_error_bound,
    sac_from_convolution,
    self_attention_2d,
    self_attentive_convolution,
)
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict
from convattn_ledger.bounds.saturation import PRECISION, bias_total_variation, upper
from convattn_ledger.bounds.self_attentive_rounding import two_head_error_bound
from convattn_ledger.evidence import (
    EXP,
    UNDERFLOW,
    certified_identities,
    exact_convolution,
    integer_kernel,
    proved,
    whole_images,
)
from convattn_ledger.evidence.enclosures import ASSUMES, distance_to_one_hot
from convattn_ledger.evidence.layer_runs import DTYPES, OUT_CHANNELS, equal, within


def self_attentive_equals_convolution(
    name: str,
    kernel_size: tuple[int, ...],
    *,
    form: str,
    stride: int = 1,
    dilation: int = 1,
    key_stride: int | None = None,
    dtypes: tuple[str, ...] = DTYPES,
    count: int = 4,
    quick: bool = False,
) -> Evidence:
    """`self_attentive_convolution(sac_from_convolution(kernel))` against the exact convolution.

    Args:
        As for `sac_from_convolution`, with ε = 1/2; `count` images.
    """

    def check(run: Run) -> str:
        images = whole_images(run)[:count]
        kernel = integer_kernel(run.rng("kernel"), kernel_size, images.shape[-1], OUT_CHANNELS)
        bias = run.rng("bias").integers(-8, 9, OUT_CHANNELS)
        grid: dict[str, Any] = {"stride": stride, "dilation": dilation}
        at_queries = exact_convolution(images, kernel, **grid)
        step = stride if key_stride is None else key_stride
        at_keys = exact_convolution(images, kernel, stride=step, dilation=dilation)
        sums = np.abs(kernel).reshape(-1, OUT_CHANNELS).sum(axis=0)
        magnitude = int(np.abs(images).max() * sums.max())
        comparisons = []
        for dtype in dtypes:
            parameters = sac_from_convolution(
                jnp.asarray(kernel, dtype),
                jnp.asarray(bias, dtype),
                form=form,
                key_stride=key_stride,
                **grid,
            )
            result = jax.jit(self_attentive_convolution)(parameters, jnp.asarray(images, dtype))
            if form == "exact":
                bound = two_head_error_bound(
                    at_keys, at_queries, dtype, bias=bias, magnitude=magnitude
                )
                comparisons.append(within(dtype, result, at_queries + bias, bound))
            else:
                comparisons.append(equal(dtype, result, at_queries + bias))
        return f"{len(images)} images, {parameters.heads} heads; " + "; ".join(comparisons)

    return Evidence(
        name,
        Level.BOUNDED,
        check,
        assumes=ASSUMPTION if form == "exact" else UNDERFLOW,
        quick=quick,
    )


def distance_to_own_patch(run: Run) -> str:
    """The library's own scores at every query of a grid: TV in balls, the formula, and N·e^-M."""
    summary, cells = [], 20
    for logit in (1.0, 16.0, 104.0):
        parameters = sac_from_convolution(
            jnp.ones((2, 3, 1, 1), jnp.float64), form="limit", sharpness=logit
        )
        scores = np.asarray(even_bias_scores(parameters.position, (4, 5), (4, 5))[0], np.float64)
        formula = bias_total_variation(logit, cells)
        with ctx.workprec(PRECISION):
            vanishing = cells * (-arb(logit)).exp()
        for query, row in enumerate(scores):
            distance = distance_to_one_hot(row, query)
            agrees = abs(distance - formula) < formula * arb(2) ** -100
            if not (agrees and distance > 0 and distance < vanishing):
                raise EvidenceFailed(
                    f"M = {logit}, query {query}: total variation {distance}, but should be "
                    f"{formula}, between 0 and N e^-M = {vanishing}"
                )
        summary.append(f"M={logit:g}: TV < {upper(formula):.2g}")
    return f"all {cells} queries of 4 × 5, corners included; " + ", ".join(summary)


def within_total_variation(run: Run) -> str:
    """One head at M = 4 in float64: off by at most TV·spread and rounding, and by half of that.

    4 is below log(1 + N), N = 1024, and the head's row is a convex combination of S_q and J, so the
    rounding bound of the two heads is a bound here.
    """
    images = whole_images(run)[:2]
    kernel = integer_kernel(run.rng("kernel"), (3, 3), 3, 4)
    expected = exact_convolution(images, kernel)
    spread = np.ptp(expected, axis=(1, 2), keepdims=True)
    parameters = sac_from_convolution(jnp.asarray(kernel, jnp.float64), form="limit", sharpness=4.0)
    result = jax.jit(self_attentive_convolution)(parameters, jnp.asarray(images, jnp.float64))
    total_variation = limit_error_bound(4.0, 1024, 1.0)
    rounding = two_head_error_bound(expected, expected, "float64", magnitude=255 * 81)
    line = within("float64", result, expected, total_variation * spread + rounding)
    off = np.abs(np.asarray(result) - expected).max(axis=(1, 2), keepdims=True)
    if not (off >= total_variation * spread / 2 - rounding.max()).all():
        raise EvidenceFailed(f"off by {off.max()} only, where the formula gives half the spread")
    return f"{len(images)} images, TV = {total_variation:.3g}; {line}"


def one_by_one(run: Run) -> str:
    """The operator of §3 with 1 × 1 filters and that of §2, two programs, the same numbers."""
    rng = run.rng("parameters")
    images, query, key, value, output, table = (
        jnp.asarray(rng.integers(-3, 4, shape), jnp.float32)
        for shape in ((2, 3, 4, 2), (2, 2, 4), (2, 2, 4), (2, 2, 5), (2, 5, 6), (2, 3, 4))
    )
    filters = (array[:, None, None] for array in (value, query, key))
    parameters = SelfAttentiveParameters(*filters, EvenBias(table), output)
    results = (
        jax.jit(self_attention_2d)(parameters, images),
        jax.jit(self_attentive_convolution)(parameters, images),
    )
    if (np.asarray(results[0]) != np.asarray(results[1])).any():
        raise EvidenceFailed(f"they differ by {abs(results[0] - results[1]).max()}")
    return "2 images, 2 heads with content: equal to the last bit"


def two_merges(run: Run) -> str:
    """[[y_1, y_2] H_Y, y'] H_Y' is [y_1, y_2, y'] times one matrix of (C+1)·d_o rows; integers."""
    rng = run.rng("parameters")
    image = rng.integers(-3, 4, (1, 4, 5, 2))
    values, ordinary = rng.integers(-3, 4, (2, 2, 3, 2, 6)), rng.integers(-3, 4, (2, 3, 2, 6))
    output, merge = rng.integers(-3, 4, (2, 6, 6)), rng.integers(-3, 4, (12, 6))
    parameters = SelfAttentiveParameters(
        value=jnp.asarray(values, jnp.float32),
        position=EvenBias(jnp.full((2, 1, 1), 128.0)),  # one-hot in float32
        output=jnp.asarray(output, jnp.float32),
        ordinary=jnp.asarray(ordinary, jnp.float32),
        merge=jnp.asarray(merge, jnp.float32),
    )
    result = jax.jit(self_attentive_convolution)(parameters, jnp.asarray(image, jnp.float32))
    outputs = [exact_convolution(image, each) for each in (*values, ordinary)]
    joined = np.concatenate(outputs, axis=-1)
    one = np.concatenate([output.reshape(12, 6) @ merge[:6], merge[6:]])
    if joined.shape[-1] != 18 or (np.asarray(result) != joined @ one).any():
        raise EvidenceFailed(f"{joined.shape[-1]} channels, and the results differ")
    return "C = 2, d_o = 6: 18 channels and one 1 × 1 convolution, or 12 and then 12: equal"


def grids_under_stride(run: Run) -> str:
    """Stride (2, 3): keys on all pixels, some rows of the stride-1 scores; and keys on the grid."""
    rng = run.rng("parameters")
    image = jnp.asarray(rng.integers(-3, 4, (1, 5, 6, 2)), jnp.float32)
    query, key = (jnp.asarray(rng.integers(-3, 4, (1, 2, 3, 2, 4)), jnp.float32) for _ in range(2))
    table = EvenBias(jnp.asarray(rng.integers(-9, 10, (1, 5, 6)), jnp.float32))
    parameters = SelfAttentiveParameters(jnp.zeros((1, 2, 3, 2, 1)), query, key, table)
    scores_of = jax.jit(lambda *args: attention_scores(*args))

    def scores(parameters: SelfAttentiveParameters, shape: tuple[int, ...]) -> np.ndarray:
        return np.asarray(scores_of(parameters, image)[0]).reshape(shape)

    full = scores(parameters, (5, 6, 5, 6))
    every = scores(replace(parameters, stride=(2, 3)), (3, 2, 5, 6))
    if (every != full[::2, ::3]).any():
        raise EvidenceFailed("keys everywhere: not the scores of stride 1 at every s-th query")
    coarse = scores(replace(parameters, stride=(2, 3), key_stride=(2, 3)), (3, 2, 3, 2))
    plain = replace(parameters, position=None)
    products = scores(plain, (5, 6, 5, 6))[::2, ::3, ::2, ::3]
    bias = np.asarray(table.values)[0]
    for index in np.ndindex(coarse.shape):
        i, j, r, t = index
        if coarse[index] != products[index] + bias[abs(i - r), abs(j - t)]:
            raise EvidenceFailed(f"coarse grid, (i, j, r, t) = {index}: {coarse[index]}")
    return "5 × 6 pixels, stride (2, 3): keys on all pixels, and on the coarse grid"


CLAIM = Claim(
    id="B19.sac",
    source="Barkan 2019, §3",
    verdict=Verdict.SHARPENED,
    kinds=(Kind.IDENTITY, Kind.LAYER_EQUALITY, Kind.LIMIT),
    evidence=(
        proved(
            "barkan2019/sac.v",
            covers="(2), for any finite b_00 but zero, with filters that depend on N; not: one set "
            "of filters, even filters with dilation as in this library, from -⌊d(n-1)/2⌋ and not "
            "from -d⌊(n-1)/2⌋",
        ),
        proved(
            "barkan2019/sac_sizes.v",
            covers="(2), with any one ε in (0, 1) and one set of filters at all sizes; not: even "
            "filters with dilation as in this library",
        ),
        proved(
            "barkan2019/sac_limit.v",
            covers="(1), as a bound for each image, with any e > 0 in place of e^M; not: that 1 × "
            "1 SAC is 2-D self-attention, even filters with dilation as in this library",
        ),
        certified_identities(
            "B19.sac",
            "one head in the limit, two exactly",
            "two_heads",
            "limit",
            covers="(1) with one-hot attention, two heads with ε = 1/3",
        ),
        Evidence("distance to its own patch", Level.ENCLOSED, distance_to_own_patch, ASSUMES),
        self_attentive_equals_convolution(
            "3 × 3, two heads exactly", (3, 3), form="exact", count=2
        ),
        self_attentive_equals_convolution(
            "2 × 4, stride 2, two heads, keys on all pixels",
            (2, 4),
            form="exact",
            stride=2,
            key_stride=1,
            dtypes=("float32",),
        ),
        self_attentive_equals_convolution(
            "3 × 2, stride 2, dilation 2, one head",
            (3, 2),
            form="limit",
            stride=2,
            dilation=2,
            dtypes=("float32", "bfloat16"),
        ),
        Evidence("one head at M = 4", Level.BOUNDED, within_total_variation, EXP, quick=False),
        Evidence("1 × 1 is 2-D self-attention", Level.TESTED, one_by_one, quick=False),
        Evidence("two merges", Level.TESTED, two_merges),
        Evidence("grids under stride", Level.TESTED, grids_under_stride, quick=False),
    ),
)
