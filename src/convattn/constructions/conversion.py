"""`conv_to_attention`: convolution weights in, attention weights out.

The arguments are read once, into a `SourceConvolution` and `HeadOptions`; one of three functions of
the same type makes the heads; the convolution packs them with its sizes into a layer.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from convattn.constructions.convolution import SourceConvolution
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.given_kernel import rank_heads
from convattn.constructions.head_dimension import map_supports, split_heads
from convattn.constructions.narrow_heads import fewest_narrow_heads
from convattn.constructions.options import UNIFORM_WEIGHT, HeadOptions, read_options
from convattn.constructions.register import limit_register, register_construction
from convattn.constructions.row_basis import exact_entries, is_clearly_of_full_rank
from convattn.constructions.table import CONSTRUCTIONS, Number
from convattn.encodings.base import PositionalEncoding, score_dtype
from convattn.encodings.layer import AttentionLayer, Register
from convattn.operators.arrays import named_arguments
from convattn.operators.roundoff import one_hot_sharpness

# With value maps, output maps and the register.
LayerHeads = tuple[PositionalEncoding, Array | None, Array, Register | None]


@named_arguments
@jax.transfer_guard("allow")  # kernels are read on the host
def conv_to_attention(
    kernel: Any,
    bias: Any = None,
    *,
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    groups: SupportsIndex = 1,
    padding: Any = "SAME",
    patch_size: int | Sequence[int] = 1,
    encoding: str = "bias",
    form: str | None = None,
    uniform_weight: float | Array = UNIFORM_WEIGHT,
    sharpness: float | Array | None = None,
    num_heads: str | None = None,
    head_dim: SupportsIndex | None = None,
    epsilon: float | None = None,
    border: str = "zeros",
    causal: bool = False,
) -> AttentionLayer:
    """The attention layer that computes `conv` with this kernel, stride, dilation and padding.

    Args:
        kernel: `[K_1, K_2, in/groups, out]` or `[K, in/groups, out]`, any size; integers become
            float32, those of 64 bits float64.
        bias: `[out]` or none.
        stride, dilation, groups: As for `conv`.
        padding: As for `conv`. Zeros as far as the kernel reaches, such as `"SAME"` at stride 1,
            are a ring of zero tokens around the image's own. With any other padding the pixels of
            the ring are filled before patches are cut, and the outputs begin with a patch; on the
            filled ring every query is interior, so that the same heads are exact at every size
            (S.pad). With `"CAUSAL"` one-hot heads (form="limit") give no weight to what follows;
            exact ones attend to it, and cancel it up to rounding. In both, a later token that is
            infinite or NaN can reach earlier outputs, as 0·NaN is NaN: take `causal=True`.
        patch_size: P; the layer's tokens are P × P patches of the image.
        encoding: `"bias"` (L21 Theorem 1; exact by S.finite), `"quadratic"` (C20 Theorem 1),
            `"enumerated"` (S.dp2), `"polygon"` (S.polygon), `"rotary"` (N.rope; at most 1024
            tokens a side, ring included) or `"scalar"` (S.dp1).
        form: `"exact"`, in exact arithmetic at finite parameters, at the price of one head; or
            `"limit"`, whose attention is one-hot once the off-target weights underflow. None takes
            the exact form where the encoding has one.
        uniform_weight: ε in (0, 1), the share of each head that attends uniformly, for the exact
            form of `"bias"`.
        sharpness: The M (L21) or α (C20) of a limit form, by which the target's score is ahead of
            the others; None makes attention one-hot in the dtype in which softmax runs. Any
            positive normal number of that dtype is taken. A traced one cannot be looked at: with
            one that is not positive, or an ε outside (0, 1), the layer gives NaN.
        num_heads: `"min"` takes ρ + 1 heads, ρ the rank of this kernel's F (S.kernel;
            `count_heads_of_kernel`), with one head for each of ρ independent mixtures of offsets:
            two for a Sobel kernel in place of ten. The kernel must be concrete. With head_dim it
            takes S.width's heads, in which coordinates share the places, or those of S.kernel
            split, where they are fewer than the usual ones; with form="limit" those of S.width in
            the limit, whose maps grow like 1/ε. None takes one head for each offset, split to
            head_dim.
        head_dim: d_H, the width of every head; wider maps are split over several heads. None gives
            each head the width it needs.
        epsilon: ε in (0, 1) of the limit form of num_heads="min" with head_dim; the result is off
            by about ε, and by κ·u of max|X|·Σ|W| with κ = 1 + 2/ε from the roundoff u of the
            kernel's dtype. None for √(2u).
        border: `"zeros"` pads as said above. `"register"` adds one key instead, as a register
            of a ViT but of value zero (S.registers): the tokens are the image's own, and the
            result is the convolution padded with zeros as far as the kernel reaches. The exact form
            of `"bias"` has two heads for each offset, the limit form of `"bias"` and `"quadratic"`
            one, and needs twice the sharpness.
        causal: Mask the keys after a query's own, for sequences with `padding="CAUSAL"`, which it
            asks for and does not imply. Exact heads stay exact: their scores know the number of
            keys that a query sees, zeros before the sequence included (S.causal). What is infinite
            or NaN reaches no earlier output. No keys are kept from one call to the next.

    Returns:
        An `AttentionLayer` of dtype `kernel.dtype` for any image that P divides.

    Raises:
        ValueError: For what `conv` refuses of a kernel; an unknown encoding; `form="exact"` with an
            encoding that has no exact form, or together with `sharpness`; ε outside (0, 1), a
            sharpness ≤ 0; integers that become others in floating point; sizes at which the maps
            would have more than 2²⁹ entries, or a query more than 2²⁰ keys; a `"scalar"` layer, or
            a `"polygon"` of very many offsets, that rounding would swallow; a `"rotary"` layer of a
            kernel that reaches over 512 tokens; complex numbers; maps that overflow the kernel's
            dtype; a padding whose output is larger than the image; `num_heads="min"` with another
            encoding, a uniform weight, or a limit form but with head_dim; `epsilon` without that
            form, outside (0, 1), or so small that κ·u > 2⁻⁷; `border="register"` with another
            encoding, another padding, or `num_heads`; `causal` with another padding, patches,
            images, or `"scalar"`.

    Source: C20 Theorem 1; L21 Theorem 1; S.finite, S.dp1, S.dp2, S.polygon, S.headdim, S.width,
        S.pad, S.registers, S.causal, N.rope.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention([[[1.0]], [[2.0]], [[3.0]]])
    >>> ca.apply_attention(layer, [[[1.0], [2.0], [4.0]]]).ravel().round(4).tolist()
    [8.0, 17.0, 10.0]
    """
    convolution = SourceConvolution.of(
        kernel,
        bias,
        patch_size=patch_size,
        stride=stride,
        dilation=dilation,
        groups=groups,
        padding=padding,
        causal=causal,
    )
    options = read_options(
        convolution.kernel.dtype,
        score_dtype(convolution.kernel),
        encoding=encoding,
        form=form,
        uniform_weight=uniform_weight,
        sharpness=sharpness,
        num_heads=num_heads,
        head_dim=head_dim,
        epsilon=epsilon,
        border=border,
    )
    if options.register and convolution.padding is not None:
        raise ValueError(
            f"border='register' with padding={padding!r}, which is {convolution.padding}, but "
            "expected zeros as far as the kernel reaches, which a register stands for; leave "
            "border out, or take padding='SAME_TORCH'"
        )
    heads = offset_heads
    if options.fewest:
        heads = kernel_heads if options.head_dim is None else narrow_heads
    return convolution.layer(*heads(convolution, options))


def offset_heads(convolution: SourceConvolution, options: HeadOptions) -> LayerHeads:
    """One head for each offset, and those that an exact form needs besides, split to `head_dim`.

    Raises:
        ValueError: Where the maps overflow the kernel's dtype.
    """
    sharpness = None if options.sharpness is None else _as_float(options.sharpness)
    if options.register and sharpness is None:
        sharpness = 2 * one_hot_sharpness(convolution.maps.dtype)
    encoding, maps, register = _constructed(
        convolution.maps,
        convolution.geometry,
        options.encoding,
        options.exact,
        options.register,
        _as_float(options.uniform_weight),
        sharpness,
    )
    if not isinstance(maps, jax.core.Tracer) and not np.isfinite(np.asarray(maps)).all():
        raise ValueError(
            f"the layer's maps overflow {maps.dtype.name}, in which the kernel is stored: the "
            f"exact form of encoding={options.encoding!r} holds sums and multiples of the kernel's "
            "entries; scale the kernel down, cast it to a wider dtype, or use form='limit'"
        )
    if options.head_dim is None:
        return encoding, None, maps, register
    offsets = convolution.geometry.heads
    repeats = len(maps) // offsets if register is not None else 1  # heads with the same support
    supports = map_supports(
        convolution.geometry,
        (convolution.kernel.shape[-2], convolution.kernel.shape[-1]),
        convolution.groups,
        CONSTRUCTIONS[options.encoding].targeted,
        len(maps) // repeats,
    )
    supports = np.concatenate([supports] * repeats)
    origins, value, output = split_heads(maps, supports, options.head_dim)
    if register is not None:
        register = replace(register, scores=register.scores[np.array(origins, int)])
    return encoding.take_heads(origins), value, output, register


def kernel_heads(convolution: SourceConvolution, options: HeadOptions) -> LayerHeads:
    """ρ + 1 heads for a kernel of rank ρ (S.kernel), or the usual ones where ρ is full."""
    if is_clearly_of_full_rank(convolution.rows):
        return offset_heads(convolution, options)
    encoding, maps = rank_heads(convolution, exact_entries(convolution.kernel))
    return encoding, None, maps, None


def narrow_heads(convolution: SourceConvolution, options: HeadOptions) -> LayerHeads:
    """The fewest of the usual heads, S.kernel's split, which are exact, and S.width's.

    Raises:
        ValueError: Where the maps overflow the kernel's dtype.
    """
    best = offset_heads(convolution, options)
    head_dim = options.head_dim
    assert head_dim is not None
    if not is_clearly_of_full_rank(convolution.rows):
        encoding, maps = rank_heads(convolution, exact_entries(convolution.kernel))
        supports = np.asarray(maps) != 0
        supports[:, 0, 0] |= not supports.any()  # a kernel of zeros keeps a head
        origins, value, output = split_heads(maps, supports, head_dim)
        if len(origins) < best[0].heads:
            best = encoding.take_heads(origins), value, output, None
    fewer = fewest_narrow_heads(
        convolution.maps,
        convolution.geometry.offsets,
        head_dim,
        options.exact,
        options.epsilon,
        best[0].heads,
    )
    if fewer is None:
        return best
    if not all(bool(jnp.isfinite(part).all()) for part in fewer[1:]):
        raise ValueError(
            f"the maps of the fewest heads overflow {convolution.kernel.dtype.name}, in which the "
            "kernel is stored: they hold multiples of its entries; scale the kernel down, cast it "
            "to a wider dtype, or leave out num_heads"
        )
    return *fewer, None


@partial(jax.jit, static_argnames=("geometry", "encoding", "exact", "register"), inline=True)
def _constructed(
    maps: Array,
    geometry: ConvolutionGeometry,
    encoding: str,
    exact: bool,
    register: bool,
    uniform_weight: Number,
    sharpness: Number | None,
) -> tuple[PositionalEncoding, Array, Register | None]:
    """The heads of a construction, the map of each, and the register, as one program."""
    construction = CONSTRUCTIONS[encoding]
    if exact and construction.exact is not None:
        in_range = (uniform_weight > 0) & (uniform_weight < 1)
        uniform_weight = jnp.where(in_range, uniform_weight, jnp.nan)
        if register:
            return register_construction(maps, geometry, uniform_weight)
        return *construction.exact(maps, geometry, uniform_weight), None
    if sharpness is not None:
        sharpness = jnp.where(sharpness > 0, sharpness, jnp.nan)
    heads, blocks = construction.limit(maps, geometry, sharpness)
    return heads, blocks, limit_register(heads) if register else None


def _as_float(number: Number) -> Number:
    """A number of Python as a float, which jit takes however large or exact it is; arrays stay."""
    return number if isinstance(number, Array | np.ndarray | np.generic) else float(number)
