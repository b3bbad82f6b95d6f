"""A SAC contains every n×m convolution: in the limit with one head, exactly with two.

**Claim.** Let c = x ⋆ W be the n×m convolution, zero-padded, with any stride and dilation, on a
grid of N cells. (1) One head without content, with H_V = W, b_00 = M and 0 elsewhere, computes

    y_q = c_q + TV·(mean over the other cells of c - c_q),      TV = (N - 1)/(e^M + N - 1),

so |y_q - c_q| ≤ TV·(max c - min c), which tends to zero as M → ∞. (2) With a second, uniform head
(b = 0), M(N) = log(1 + N(1/ε - 1)) and

    H_V^1 = W/(1 - ε),      H_V^2 = -ε/(1 - ε)·W,

the sum of the heads is c exactly, for any ε in (0, 1); neither ε nor the filters depend on N.

**Proof.** The distance (0, 0) occurs once in each row, at the query itself, so the row is one M and
N - 1 zeros: weight e^M/(e^M + N - 1) at q and 1/(e^M + N - 1) elsewhere. That is (1), since the
weights sum to one. With ε = N/(e^M + N - 1) the row is (1 - ε)S_q + εJ, S_q one-hot and J uniform,
and the second head is J:

    ((1 - ε) c_q + ε·mean c)/(1 - ε) - ε/(1 - ε)·mean c = c_q.  ∎

Nothing is asked of the border: the zeros lie in the filters' convolution, not among the keys, so
every query has its key. Where a query may attend to some keys only, itself among them (causal
sequences, a gap), N counts those, and the same proof holds.

The optional ordinary convolution H_R contains every convolution trivially: H_R = W, and a merge
that ignores y.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from convattn.constructions.options import read_form
from convattn.operators.arrays import accumulation_dtype
from convattn.operators.convolution import check_kernel
from convattn.operators.integers import per_axis
from convattn.operators.kernel_layout import warns_of_layout
from convattn.operators.roundoff import one_hot_sharpness
from convattn.sac.parameters import SelfAttentiveParameters
from convattn.sac.relative_bias import EvenBias


@warns_of_layout
def sac_from_convolution(
    kernel: Any,
    bias: Any = None,
    *,
    form: str = "exact",
    uniform_weight: float = 0.5,
    sharpness: float | None = None,
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    key_stride: int | Sequence[int] | None = None,
    causal: bool = False,
) -> SelfAttentiveParameters:
    """The SAC that computes `conv(…, padding="SAME_TORCH")` with this kernel, at any image size.

    Args:
        kernel: `[K_1, K_2, in, out]`, or `[K, in, out]`, any size; integers become float32.
        bias: `[out]` or none.
        form: `"exact"`, two heads at finite b_00 (no rounding of the filters where ε is 1/2), or
            `"limit"`, one head, within `limit_error_bound` of the convolution.
        uniform_weight: ε in (0, 1), of the exact form.
        sharpness: M ≥ 0 of the single head; by default its attention is one-hot in the dtype in
            which softmax runs.
        stride, dilation: As for `conv`.
        key_stride: Divides the stride; by default the stride.
        causal: Sequences only; the kernel's taps are then -(K-1), …, 0.

    Raises:
        ValueError: For a kernel that `conv` refuses, ε outside (0, 1), a negative sharpness, a
            sharpness of the exact form, a causal kernel on two axes.

    >>> parameters = sac_from_convolution(jnp.ones((2, 3, 1, 4)))
    >>> parameters.heads, parameters.value[:, 0, 0, 0, 0].tolist()
    (2, [2.0, -1.0])
    """
    kernel, bias = check_kernel(kernel, bias, 1)
    axes = kernel.ndim - 2
    strides = per_axis(stride, axes, "stride")
    if causal and axes != 1:
        raise ValueError(
            f"kernel.shape={kernel.shape} has {axes} spatial axes, but causal=True is for "
            "sequences: give a kernel [K, in, out]"
        )
    if not jnp.issubdtype(kernel.dtype, jnp.inexact):
        kernel = kernel.astype(jnp.float32)
    working = accumulation_dtype(kernel)
    grid = {
        "bias": bias,
        "stride": strides,
        "dilation": per_axis(dilation, axes, "dilation"),
        "key_stride": strides if key_stride is None else per_axis(key_stride, axes, "key_stride"),
        "causal": causal,
    }
    ones = (1,) * axes
    if not read_form(form, True):
        height = one_hot_sharpness(kernel.dtype) if sharpness is None else sharpness
        if not 0 <= height < np.inf:
            raise ValueError(f"sharpness={sharpness}, but expected a finite M ≥ 0; ∞ is the limit")
        table = EvenBias(jnp.full((1, *ones), height, working))
        return SelfAttentiveParameters(kernel[None], position=table, **grid)
    if sharpness is not None:
        raise ValueError(
            f"sharpness={sharpness} with form='exact', which works out its own M from the uniform "
            "weight and the number of keys; give uniform_weight instead, or form='limit'"
        )
    if not 0 < uniform_weight < 1:
        raise ValueError(
            f"uniform_weight={uniform_weight}, but expected a number strictly between 0 and 1"
        )
    wide = kernel.astype(working)
    filters = jnp.stack(
        [wide / (1 - uniform_weight), -(uniform_weight / (1 - uniform_weight)) * wide]
    ).astype(kernel.dtype)
    table = EvenBias(
        jnp.array([1, 0], working).reshape(2, *ones), jnp.asarray(uniform_weight, working)
    )
    return SelfAttentiveParameters(filters, position=table, **grid)


def limit_error_bound(logit: float, number_of_keys: int, spread: Any) -> Any:
    """TV·(max c - min c): how far the one-head SAC at M is from the convolution c.

    Args:
        spread: Max c - min c over the cells of the key grid, for each image and channel; at most
            2·max|x|·Σ|W| whatever the image.

    >>> float(limit_error_bound(0.0, 4, 1.0))
    0.75
    """
    others = number_of_keys - 1
    return np.exp(-logit) * others / (1 + others * np.exp(-logit)) * spread


def grid_cells(space: Sequence[int], stride: Sequence[int]) -> int:
    """N: the cells of a strided grid.

    >>> grid_cells((5, 4), (2, 1))
    12
    """
    return int(np.prod([-(-n // s) for n, s in zip(space, stride, strict=True)]))
