"""`conv_to_attention`: convolution weights in, attention weights out."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.given_kernel import given_kernel_layer
from convattn.constructions.head_dimension import map_supports, split_heads
from convattn.constructions.li_output_map import expand_groups, token_bias, token_maps
from convattn.constructions.narrow_heads import fewest_narrow_heads, usable_epsilon
from convattn.constructions.regimes import (
    CONSTRUCTIONS,
    DEFAULT_LEAK,
    Heads,
    Number,
    check_regime,
)
from convattn.constructions.row_basis import (
    concrete_kernel,
    distinct_rows,
    is_clearly_of_full_rank,
)
from convattn.encodings.base import score_dtype
from convattn.encodings.layer import AttentionLayer
from convattn.operators.arrays import as_floats, named_arguments
from convattn.operators.convolution import check_kernel
from convattn.operators.integers import as_integer
from convattn.operators.padding import read_padding


@named_arguments
@jax.transfer_guard("allow")  # kernels are read on the host
def conv_to_attention(
    kernel: Any,
    bias: Any = None,
    *,
    patch_size: int | Sequence[int] = 1,
    encoding: str = "bias",
    exact: bool | None = None,
    leak: float | Array = DEFAULT_LEAK,
    logit: float | Array | None = None,
    alpha: float | Array | None = None,
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    groups: SupportsIndex = 1,
    head_dim: SupportsIndex | None = None,
    padding: Any = "SAME",
    heads: str | None = None,
    epsilon: float | None = None,
) -> AttentionLayer:
    """The attention layer that computes `conv` with this kernel, stride, dilation and padding.

    Args:
        kernel: `[K_1, K_2, in/groups, out]` or `[K, in/groups, out]`, any size; integers become
            float32, those of 64 bits float64.
        bias: `[out]` or none.
        patch_size: P; the layer's tokens are P × P patches of the image.
        encoding: `"bias"` (L21 Theorem 1; exact by S.finite), `"quadratic"` (C20 Theorem 1),
            `"enumerated"` (S.dp2), `"polygon"` (S.polygon), `"rotary"` (N.rope; at most 1024
            tokens a side, ring included) or `"scalar"` (S.dp1).
        exact: Exact in exact arithmetic at finite parameters, at the price of one head; default
            where the encoding has such a form. Otherwise the limit form, whose attention is one-hot
            once the off-target weights underflow.
        leak: ε in (0, 1), the share of each head that attends uniformly, for exact `"bias"`.
        logit, alpha: The M or α of a limit form, by which the target's score is ahead of the
            others; the default makes attention one-hot in the dtype
            in which softmax runs. Any positive normal number of that dtype is taken. A traced one
            cannot be looked at: with one that is not positive, or an ε outside (0, 1), the layer
            gives NaN.
        stride, dilation, groups: As for `conv`.
        head_dim: d_H, the width of every head; wider maps are split over several heads. None gives
            each head the width it needs.
        padding: As for `conv`. `"SAME"` lays a ring of zero tokens around the image's own. With any
            other, and for even K with dilation, the pixels of the ring are filled before patches
            are cut, and the outputs begin with a patch; on the filled ring every query is interior,
            so that the same heads are exact at every size (S.pad). With `"CAUSAL"` one-hot heads
            (exact=False) give no weight to what follows; exact ones attend to it, and cancel it up
            to rounding. In both, a later token that is infinite or NaN can reach earlier outputs,
            as 0·NaN is NaN: mask such tokens before the layer.
        heads: `"fewest"` takes ρ + 1 heads, ρ the rank of this kernel's F (S.kernel; `heads_of`),
            with one head for each of ρ independent mixtures of offsets: two for a Sobel kernel in
            place of ten. The kernel must be concrete. With head_dim it takes S.width's heads,
            in which coordinates share the places, or those of S.kernel split, where they are fewer
            than the usual ones; with `exact=False` those of S.width in the limit, whose maps grow
            like 1/ε. None takes one head for each offset, split to head_dim.
        epsilon: ε in (0, 1) of that limit form; the result is off by about ε, and by κ·u of
            max|X|·Σ|W| with κ = 1 + 2/ε from the roundoff u of the kernel's dtype. None for √(2u).

    Returns:
        An `AttentionLayer` of dtype `kernel.dtype` for any image; with `"SAME"`, that P divides.

    Raises:
        ValueError: For what `conv` refuses of a kernel; an unknown encoding; `exact=True` with an
            encoding that has no exact form, or together with `logit` or `alpha`; a parameter that
            the encoding or its form does not have; ε outside (0, 1), α ≤ 0 or M ≤ 0; integers that
            become others in floating point; sizes at which the maps would have more than 2²⁹
            entries, or a query more than 2²⁰ keys; a `"scalar"` layer, or a
            `"polygon"` of very many offsets, that rounding would swallow; a `"rotary"` layer of a
            kernel that reaches over 512 tokens; complex numbers; maps that overflow the kernel's
            dtype; a padding whose output is larger than the image; `heads="fewest"` with another
            encoding, a leak, or a limit form but with head_dim; `epsilon` without that form,
            outside (0, 1), or so small that κ·u > 2⁻⁷.

    Source: C20 Theorem 1; L21 Theorem 1; S.finite, S.dp1, S.dp2, S.polygon, S.headdim, S.width,
        S.pad, N.rope.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention([[[1.0]], [[2.0]], [[3.0]]])
    >>> ca.apply_attention(layer, [[[1.0], [2.0], [4.0]]]).ravel().round(4).tolist()
    [8.0, 17.0, 10.0]
    """
    groups = as_integer(groups, "groups", 1)
    kernel, bias = check_kernel(kernel, bias, groups)
    if any(jnp.iscomplexobj(part) for part in (kernel, bias) if part is not None):
        raise ValueError("kernel or bias is complex, but attention takes real ones; split it")
    kernel = as_floats(kernel, "kernel")
    exact = check_regime(encoding, exact, leak, logit, alpha, score_dtype(kernel))
    geometry = ConvolutionGeometry.of(kernel.shape[:-2], patch_size, stride, dilation)
    outside = read_padding(padding, geometry.kernel_size, geometry.dilation)
    if outside.is_too_wide:
        raise ValueError(
            f"padding={outside.widths}, pixels (before, after) on each axis, is wider than the "
            "kernel reaches, and makes more outputs than the image has pixels, before a stride "
            "drops any, but attention gives one for each token of the image: expected at most "
            f"{tuple(map(sum, outside.reach))} on both sides of an axis together (S.pad); pad the "
            "images before the layer"
        )
    kernel = expand_groups(kernel, groups)
    filled = None if outside.is_zero_ring else outside
    require_fewest(heads, encoding, exact, leak, logit, head_dim, epsilon)
    of_rank = heads is not None and head_dim is None
    if of_rank and not is_clearly_of_full_rank(distinct_rows(concrete_kernel(kernel), geometry)[0]):
        return given_kernel_layer(
            kernel,
            bias,
            patch_size=geometry.patch_size,
            stride=geometry.stride,
            dilation=geometry.dilation,
            padding=filled,
        )
    construction = CONSTRUCTIONS[encoding]
    limit = {"logit": logit, "alpha": alpha}[construction.limit]
    leak, limit = as_float(leak), None if limit is None else as_float(limit)
    positions, blocks = build(kernel, geometry, encoding, exact, leak, limit)
    if not isinstance(blocks, jax.core.Tracer) and not np.isfinite(np.asarray(blocks)).all():
        raise ValueError(
            f"the layer's maps overflow {blocks.dtype.name}, in which the kernel is stored: the "
            f"exact form of encoding={encoding!r} holds sums and multiples of the kernel's "
            "entries; scale the kernel down, cast it to a wider dtype, or use exact=False"
        )
    value: Array | None = None
    output: Array | None = blocks
    if head_dim is not None:
        supports = map_supports(
            geometry, kernel.shape[-2:], groups, construction.targeted, len(blocks)
        )
        origins, value, output = split_heads(blocks, supports, as_integer(head_dim, "head_dim"))
        positions = positions.take_heads(origins)
    layer = AttentionLayer(
        encoding=positions,
        value=value,
        output=output,
        bias=None if bias is None else token_bias(bias, geometry),
        patch_size=geometry.patch_size,
        stride=geometry.stride,
        dilation=geometry.dilation,
        ring=geometry.ring,
        padding=filled,
    )
    if heads is None or head_dim is None:
        return layer
    return narrow_layer(
        layer, kernel, bias, geometry, as_integer(head_dim, "head_dim"), exact, epsilon
    )


def as_float(number: Number) -> Number:
    """A number of Python as a float, which jit takes however large or exact it is; arrays stay."""
    return number if isinstance(number, Array | np.ndarray | np.generic) else float(number)


@partial(jax.jit, static_argnames=("geometry", "encoding", "exact"), inline=True)
def build(
    kernel: Array,
    geometry: ConvolutionGeometry,
    encoding: str,
    exact: bool,
    leak: Number,
    limit: Number | None,
) -> Heads:
    """The heads of a construction, and the map of each, as one program."""
    maps = token_maps(kernel, geometry)
    leak = jnp.where((leak > 0) & (leak < 1), leak, jnp.nan)
    limit = None if limit is None else jnp.where(limit > 0, limit, jnp.nan)
    return CONSTRUCTIONS[encoding].build(maps, geometry, exact, leak, limit)


def narrow_layer(
    usual: AttentionLayer,
    kernel: Array,
    bias: Array | None,
    geometry: ConvolutionGeometry,
    head_dim: int,
    exact: bool,
    epsilon: float | None,
) -> AttentionLayer:
    """The fewest of the usual heads, S.width's and S.kernel's split, which are exact.

    Raises:
        ValueError: As `conv_to_attention` says.
    """
    if epsilon is not None:
        usable_epsilon(epsilon, kernel.dtype)
    rows = distinct_rows(concrete_kernel(kernel), geometry)[0]
    if not is_clearly_of_full_rank(rows):
        whole = given_kernel_layer(
            kernel,
            bias,
            patch_size=geometry.patch_size,
            stride=geometry.stride,
            dilation=geometry.dilation,
            padding=usual.padding,
        )
        blocks = whole.output
        assert blocks is not None
        supports = np.asarray(blocks) != 0
        supports[:, 0, 0] |= not supports.any()  # a kernel of zeros keeps a head
        origins, value, output = split_heads(blocks, supports, head_dim)
        if len(origins) < usual.heads:
            positions = whole.encoding.take_heads(origins)
            usual = replace(usual, encoding=positions, value=value, output=output)
    maps = token_maps(kernel, geometry)
    fewer = fewest_narrow_heads(maps, geometry.offsets, head_dim, exact, epsilon, usual.heads)
    if fewer is None:
        return usual
    if not all(bool(jnp.isfinite(part).all()) for part in fewer[1:]):
        raise ValueError(
            f"the maps of the fewest heads overflow {kernel.dtype.name}, in which the kernel is "
            "stored: they hold multiples of its entries; scale the kernel down, cast it to a wider "
            "dtype, or leave out heads"
        )
    return replace(usual, encoding=fewer[0], value=fewer[1], output=fewer[2])


def require_fewest(
    heads: str | None,
    encoding: str,
    exact: bool,
    leak: float | Array,
    logit: float | Array | None,
    head_dim: SupportsIndex | None,
    epsilon: float | None,
) -> None:
    """Refuse what the layers of the fewest heads do not have, and an ε without them.

    Raises:
        ValueError: As described above.
    """
    if epsilon is not None and (heads is None or head_dim is None or exact):
        raise ValueError(
            f"epsilon={epsilon}, but only the limit form of the fewest narrow heads takes one: "
            "give head_dim, heads='fewest' and exact=False, or leave it out"
        )
    if heads is None:
        return
    if heads != "fewest":
        raise ValueError(
            f"heads={heads!r}, but expected 'fewest' or None (one head for each offset); for a "
            "number of heads use approximate_convolution"
        )
    given = {"encoding": encoding, "leak": leak, "logit": logit}
    usual: dict[str, Any] = {"encoding": "bias", "leak": 0.5, "logit": None}
    if head_dim is None:
        given["exact"], usual["exact"] = exact, True
    for name, value in given.items():
        if isinstance(value, Array) or value != usual[name]:
            raise ValueError(
                f"{name}={value!r} with heads='fewest', but expected {usual[name]!r}: its heads "
                "are mixtures of offsets, at finite scores; leave it out"
            )
