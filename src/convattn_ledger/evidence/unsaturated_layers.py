"""Evidence of level BOUNDED: limit layers at moderate α or M, where they are not saturated.

The layer's distance from the convolution has two parts, each bounded beforehand: saturation, in
real arithmetic (`bounds/saturation_error.py`), and rounding. For the second the scores are
exactly known, as -α|δ - Δ|² and M are integers here, so that
`convattn_ledger.evidence.softmax_rounding`
bounds each computed weight: within B of a reference w. The layer mixes N tokens and then maps the
heads, in sums of n_1 = N and n_2 = heads · features products, of integer tokens X and maps W, so
that the result is off by at most

    Σ_h B_h |X||W_h| + (Π(1 + γ_n)(1 + u) - 1) Σ_h (w_h + B_h)|X||W_h|

and by products in the subnormal range, at most n_1·n_2·tiny·(1 + max|X|)(1 + max|W|) in all.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from convattn.encodings.layer import AttentionLayer
from convattn.operators.arrays import accumulation_dtype
from convattn.operators.attention import contraction_lengths
from convattn.operators.patches import Ring
from convattn.operators.roundoff import gamma, unit_roundoff
from convattn.operators.shifts import TokenGrid
from convattn_ledger.bounds.saturation_error import saturation_error_bound
from convattn_ledger.claim import Evidence, EvidenceFailed, Level, Run
from convattn_ledger.evidence.exact_convolution import exact_convolution
from convattn_ledger.evidence.exact_tokens import cut_tokens, join_tokens
from convattn_ledger.evidence.layer_runs import applied, converted, integer_kernel, within
from convattn_ledger.evidence.real_images import whole_images
from convattn_ledger.evidence.softmax_rounding import ASSUMPTION, INFLATION, weights_within
from convattn_ledger.evidence.token_padding import token_padded_convolution

PARAMETERS = {"quadratic": "alpha", "bias": "logit"}
PADDINGS = {"quadratic": "edge", "bias": "mean"}


def near_convolution(
    name: str,
    encoding: str,
    *,
    sharpness: tuple[int, ...],
    dtypes: tuple[str, ...] = ("float64", "float32"),
    bare: bool = False,
) -> Evidence:
    """3 × 3 on whole images, P = 4: within saturation plus rounding of the convolution.

    Args:
        encoding: `"quadratic"` or `"bias"`.
        sharpness: Integers α or M.
        bare: Leave out the ring, and compare with the edge- or the mean-padded convolution.

    The check also fails where no entry is further off than rounding explains at the least
    sharpness: then saturation was not seen.
    """

    def check(run: Run) -> str:
        images = whole_images(run)
        kernel = integer_kernel(run.rng("kernel"), (3, 3), 3, 4)
        if bare:
            expected, count = token_padded_convolution(images, kernel, 4, PADDINGS[encoding])
        else:
            expected, count = exact_convolution(images, kernel), 1
        summary = []
        for value in sharpness:
            worst, allowed = 0.0, 0.0
            for dtype in dtypes:
                options: dict[str, Any] = {"sharpness": float(value), "encoding": encoding}
                layer = converted(kernel, dtype, patch_size=4, form="limit", **options)
                border = "none" if bare else "zeros"
                ring = ((0, 0), (0, 0)) if bare else layer.ring
                result = applied(layer, images, dtype, border=border)
                rounding = rounding_bound(layer, images, ring, dtype)
                bound = saturation_error_bound(layer, images, border=border) + rounding
                within(dtype, result, expected / count, bound)
                error = np.abs(np.asarray(result, np.float64) - expected / count)
                if value == min(sharpness) and not (error > rounding).any():
                    raise EvidenceFailed(
                        f"{dtype}, {PARAMETERS[encoding]} = {value}: no error beyond rounding, so "
                        "nothing was seen of saturation"
                    )
                worst, allowed = max(worst, error.max()), max(allowed, bound.max())
            summary.append(f"{PARAMETERS[encoding]} = {value}: {worst:.3g} ≤ {allowed:.3g}")
        place = f"{PADDINGS[encoding]} on the bare grid" if bare else "with the ring"
        return f"{len(images)} images, {', '.join(dtypes)}, {place}; error " + ", ".join(summary)

    return Evidence(name, Level.BOUNDED, check, assumes=ASSUMPTION, quick=False)


def rounding_bound(
    layer: AttentionLayer,
    images: Int[np.ndarray, "batch height width channels"],
    ring: Ring,
    dtype: str,
) -> Float[np.ndarray, "batch height width out_channels"]:
    """What rounding can do to a limit layer with integer scores and maps, square patches."""
    patch = layer.patch_size[0]
    tokens = np.pad(cut_tokens(np.abs(images), patch), [(0, 0), *ring, (0, 0)]).astype(np.float64)
    sides = tuple(n // patch for n in images.shape[1:3])
    grid = TokenGrid(sides, ring)
    keys = tokens.reshape(len(images), grid.number_of_keys, -1)
    maps = np.abs(np.asarray(layer.output, np.float64))
    scores = np.asarray(layer.encoding.positional_scores(grid), np.float64)
    if (scores != np.round(scores)).any() or np.abs(scores).max() >= 2**24:
        raise ValueError("the scores are not integers below 2^24, so they need not be exact")
    drift = np.zeros((len(images), len(grid.query_positions), maps.shape[2]))
    total = np.zeros_like(drift)
    for head_scores, block in zip(scores, maps, strict=True):
        allowed = weights_within(head_scores, dtype)
        mapped = keys @ block
        drift += np.einsum("qk,bko->bqo", allowed.bound, mapped, optimize=True)
        total += np.einsum("qk,bko->bqo", allowed.reference + allowed.bound, mapped, optimize=True)
    working = accumulation_dtype(dtype)
    lengths = contraction_lengths(layer.value, layer.output, layer.heads, grid.number_of_keys)
    growth = np.prod([1 + gamma(length, unit_roundoff(working)) for length in lengths])
    relative = growth * (1 + unit_roundoff(dtype)) - 1
    tiny = float(jnp.finfo(working).tiny) + float(jnp.finfo(dtype).tiny)
    absolute = np.prod(lengths) * tiny * (1 + keys.max()) * (1 + maps.max())
    bound = (drift + relative * total) * INFLATION + absolute
    return join_tokens(bound.reshape(len(images), *sides, -1), patch)
