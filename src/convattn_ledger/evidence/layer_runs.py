"""Evidence of level BOUNDED: a converted layer on whole real images, in four dtypes.

The kernel holds small integers and the images are integers, so the convolution is known exactly, in
64-bit integers. A limit layer's weights are exactly zero and one once the off-target weights have
underflowed, and its sums of integers below 2²⁴ are exact in float32: the bound is zero, and the
result must *equal* the exact convolution, rounded once to the dtype. An exact layer at finite
parameters has a derived bound for every output entry.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Int, Num

from convattn.bounds.majorant import majorant_of
from convattn.bounds.rounding import layer_error_bound
from convattn.constructions.conversion import conv_to_attention
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention
from convattn.operators.roundoff import ASSUMPTION
from convattn_ledger.claim import Evidence, EvidenceFailed, Level, Run
from convattn_ledger.evidence.exact_convolution import exact_convolution
from convattn_ledger.evidence.real_images import whole_images

DTYPES = ("float64", "float32", "bfloat16", "float16")
# What a check assumes.
EXP = "exp is within 4 units in the last place; products as pinned"
EXP_AND_LOG1P = "exp and log1p are within 4 units in the last place; products as pinned"
UNDERFLOW = "exp underflows to zero; integer sums below 2^24 are exact"
OUT_CHANNELS = 4
LARGEST_WEIGHT = 3


def integer_kernel(
    rng: np.random.Generator, size: tuple[int, ...], in_channels: int, out_channels: int
) -> Int[np.ndarray, "*taps in_channels out_channels"]:
    """A kernel of integers whose convolution with 8-bit images stays within float16's range.

    Weights lie in ±LARGEST_WEIGHT, but no output channel has more than 60 in absolute sum on each
    sign, so that |output| ≤ 60·255 + bias < 65504, float16's largest number.
    """
    kernel = rng.integers(-LARGEST_WEIGHT, LARGEST_WEIGHT + 1, (*size, in_channels, out_channels))
    flat = kernel.reshape(-1, out_channels)
    for column in flat.T:
        for sign in (1, -1):
            excess = np.cumsum(np.where(sign * column > 0, np.abs(column), 0)) > 60
            column[excess & (sign * column > 0)] = 0
    return kernel


def converted(
    kernel: Num[np.ndarray, "..."],
    dtype: str,
    bias: Num[np.ndarray, " out"] | None = None,
    **options: Any,
) -> AttentionLayer:
    """`conv_to_attention` in this dtype, as one program instead of one for each operation."""
    sharp = {name: options.pop(name) for name in ("sharpness",) if name in options}
    convert = jax.jit(
        lambda kernel, bias, sharp: conv_to_attention(kernel, bias, **sharp, **options)
    )
    typed_bias = None if bias is None else jnp.asarray(bias.astype(dtype))
    return convert(jnp.asarray(kernel.astype(dtype)), typed_bias, sharp)


def applied(
    layer: AttentionLayer, images: Num[np.ndarray, "..."], dtype: str, **options: Any
) -> Num[Array, "..."]:
    """`apply_attention` to the images in this dtype, as one program."""
    return jax.jit(partial(apply_attention, **options))(layer, jnp.asarray(images.astype(dtype)))


def equals_convolution(
    name: str,
    kernel_size: tuple[int, ...],
    *,
    patch_size: int = 1,
    encoding: str = "bias",
    form: str = "limit",
    stride: int = 1,
    dilation: int = 1,
    dtypes: tuple[str, ...] = DTYPES,
    quick: bool = False,
    **parameters: Any,
) -> Evidence:
    """`apply_attention(conv_to_attention(kernel))` against the exact convolution.

    Args:
        As for `conv_to_attention`. One-dimensional kernels run over the rows of the images as
        sequences.
    """

    def check(run: Run) -> str:
        images = whole_images(run)
        if len(kernel_size) == 1:
            images = images.reshape(-1, *images.shape[2:])
        kernel = integer_kernel(run.rng("kernel"), kernel_size, images.shape[-1], OUT_CHANNELS)
        bias = run.rng("bias").integers(-8, 9, OUT_CHANNELS)
        expected = exact_convolution(images, kernel, stride=stride, dilation=dilation) + bias
        options: dict[str, Any] = {"encoding": encoding, "form": form}
        options |= {"stride": stride, "dilation": dilation, "padding": "SAME_TORCH"}
        options |= {"patch_size": patch_size, **parameters}
        majorants: dict[
            float, np.ndarray
        ] = {}  # by the uniform weight, which is rounded with the dtype
        comparisons = []
        for dtype in dtypes:
            layer = converted(kernel, dtype, bias, **options)
            result = applied(layer, images, dtype)
            if result.dtype != jnp.dtype(dtype):
                raise EvidenceFailed(f"{dtype}: the result has dtype {result.dtype}")
            if form == "limit":
                comparisons.append(equal(dtype, result, expected))
                continue
            uniform_weight = float(getattr(layer.encoding, "uniform_weight", 0.0))
            if uniform_weight not in majorants:
                majorants[uniform_weight] = majorant_of(layer, kernel, bias, images)
            bound = layer_error_bound(layer, images.astype(dtype), majorants[uniform_weight])
            comparisons.append(within(dtype, result, expected, bound))
        return f"{len(images)} images, {layer.heads} heads; " + "; ".join(comparisons)

    return Evidence(
        name,
        Level.BOUNDED,
        check,
        assumes=ASSUMPTION if form == "exact" else UNDERFLOW,
        quick=quick,
    )


def equal(dtype: str, result: Array, expected: Int[np.ndarray, "..."]) -> str:
    """Compare with the exact integers, rounded once to the dtype."""
    rounded = expected.astype(np.float64).astype(dtype)
    if result.shape != rounded.shape:
        raise EvidenceFailed(f"{dtype}: shape {result.shape}, expected {rounded.shape}")
    computed = np.asarray(result)
    different = computed != rounded
    if different.any():
        where = tuple(int(i) for i in np.argwhere(different)[0])
        raise EvidenceFailed(
            f"{dtype}: {int(different.sum())} of {different.size} entries differ; at {where} got "
            f"{computed[where]}, expected {rounded[where]}"
        )
    return f"{dtype} equal"


def within(dtype: str, result: Array, expected: Int[np.ndarray, "..."], bound: np.ndarray) -> str:
    """Compare with the exact integers within a bound for every entry."""
    if result.shape != expected.shape or bound.shape != expected.shape:
        raise EvidenceFailed(
            f"{dtype}: shape {result.shape} with a bound of shape {bound.shape}, expected "
            f"{expected.shape}"
        )
    if not np.isfinite(bound).all():
        raise EvidenceFailed(f"{dtype}: the bound is not finite, so it says nothing")
    error = np.abs(np.asarray(result, np.float64) - expected)
    outside = ~(error <= bound)
    if outside.any():
        where = tuple(int(i) for i in np.argwhere(outside)[0])
        raise EvidenceFailed(
            f"{dtype}: {int(outside.sum())} of {outside.size} entries exceed the bound; at {where} "
            f"the error is {error[where]:.3g}, the bound {bound[where]:.3g}"
        )
    return f"{dtype} error {error.max():.2g} ≤ bound {bound.max():.2g}"
