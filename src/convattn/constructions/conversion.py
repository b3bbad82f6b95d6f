"""`conv_to_attention`: convolution weights in, attention weights out."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from convattn.constructions.cordonnier_theorem1 import quadratic_construction
from convattn.constructions.enumerated import enumerated_construction
from convattn.constructions.finite import leaky_construction
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.head_dimension import split_heads
from convattn.constructions.li_output_map import expand_groups, token_bias, token_maps
from convattn.constructions.li_theorem1 import bias_construction
from convattn.constructions.scalar import scalar_construction
from convattn.convolution import check_kernel
from convattn.encodings.base import PositionalEncoding, score_dtype
from convattn.layer import AttentionLayer

# Which encoding has an exact form at finite parameters, which a limit form, and the parameter that
# goes to infinity there. What is not in the table is refused.
ENCODINGS = {
    "bias": {"exact": True, "limit": "logit"},
    "scalar": {"exact": True, "limit": "logit"},
    "quadratic": {"exact": False, "limit": "alpha"},
    "enumerated": {"exact": False, "limit": "alpha"},
}


def conv_to_attention(
    kernel: Any,
    bias: Any = None,
    *,
    patch_size: int | Sequence[int] = 1,
    encoding: str = "bias",
    exact: bool | None = None,
    leak: float | Array = 0.5,
    logit: float | Array | None = None,
    alpha: float | Array | None = None,
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    head_dim: int | None = None,
) -> AttentionLayer:
    """The attention layer that computes `conv(…, padding="SAME")` with this kernel.

    **Arguments:**

    - `kernel`: `[K_1, K_2, in/groups, out]` or `[K, in/groups, out]`, any size; integers become
      float32.
    - `bias`: `[out]` or none.
    - `patch_size`: P; the layer's tokens are P × P patches of the image.
    - `encoding`: `"bias"` (L21 Theorem 1; exact by S.finite), `"quadratic"` (C20 Theorem 1),
      `"enumerated"` (S.dp2) or `"scalar"` (S.dp1).
    - `exact`: exact in exact arithmetic at finite parameters, at the price of one head; default
      where the encoding has such a form. Otherwise the limit form, whose attention is one-hot
      once the off-target weights underflow.
    - `leak`: ε in (0, 1), the share of each head that attends uniformly, for exact `"bias"`.
    - `logit`, `alpha`: the M or α of a limit form; the default makes attention one-hot in the
      dtype in which softmax runs. Any positive number of that dtype is taken.
    - `stride`, `dilation`, `groups`: as for `conv`.
    - `head_dim`: d_H, the width of every head; wider maps are split over several heads. None
      gives each head the width it needs.

    **Returns:** an `AttentionLayer` of dtype `kernel.dtype` for any image that P divides.

    **Raises:** `ValueError` for what `conv` refuses of a kernel; an unknown encoding;
    `exact=True` with an encoding that has no exact form, or together with `logit` or `alpha`; a
    parameter that the encoding does not have; ε outside (0, 1), α ≤ 0 or M ≤ 0; a `"scalar"`
    layer that rounding would swallow.

    **Source:** C20 Theorem 1; L21 Theorem 1; S.finite, S.dp1, S.dp2, S.headdim.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention([[[1.0]], [[2.0]], [[3.0]]])
    >>> ca.apply_attention(layer, [[[1.0], [2.0], [4.0]]]).ravel().round(4).tolist()
    [8.0, 17.0, 10.0]
    """
    kernel, bias = check_kernel(kernel, bias, groups)
    if not jnp.issubdtype(kernel.dtype, jnp.inexact):
        kernel = kernel.astype(jnp.result_type(kernel, jnp.float32))
    exact = check_regime(encoding, exact, leak, logit, alpha, score_dtype(kernel))
    geometry = ConvolutionGeometry.of(kernel.shape[:-2], patch_size, stride, dilation)
    kernel = expand_groups(kernel, groups)
    maps = token_maps(kernel, geometry)

    heads: PositionalEncoding
    if encoding == "bias":
        heads, blocks = (
            leaky_construction(maps, geometry, leak)
            if exact
            else bias_construction(maps, geometry, logit)
        )
    elif encoding == "quadratic":
        heads, blocks = quadratic_construction(maps, geometry, alpha)
    elif encoding == "enumerated":
        heads, blocks = enumerated_construction(maps, geometry, alpha)
    else:
        heads, blocks = scalar_construction(maps, geometry, exact, logit)

    value: Array | None = None
    output: Array | None = blocks
    if head_dim is not None:
        supports = map_supports(geometry, kernel.shape[-2:], groups, encoding, len(blocks))
        origins, value, output = split_heads(blocks, supports, head_dim)
        heads = heads.take_heads(origins)
    return AttentionLayer(
        encoding=heads,
        value=value,
        output=output,
        bias=None if bias is None else token_bias(bias.astype(kernel.dtype), geometry),
        patch_size=geometry.patch_size,
        stride=geometry.stride,
        dilation=geometry.dilation,
        ring=geometry.ring,
    )


def check_regime(
    encoding: str,
    exact: bool | None,
    leak: float | Array,
    logit: float | Array | None,
    alpha: float | Array | None,
    dtype: DTypeLike,
) -> bool:
    """Settle exact or limit, and refuse what does not go together.

    **Arguments:** those of `conv_to_attention`, and the dtype in which softmax runs.

    **Raises:** `ValueError` as `conv_to_attention` says.

    >>> check_regime("bias", None, 0.5, None, None, jnp.float32)
    True
    >>> check_regime("quadratic", None, 0.5, None, 8.0, jnp.float32)
    False
    """
    if encoding not in ENCODINGS:
        raise ValueError(f"encoding={encoding!r}, but should be one of {', '.join(ENCODINGS)}")
    row = ENCODINGS[encoding]
    given = {"logit": logit, "alpha": alpha}
    for name, parameter in given.items():
        if parameter is None:
            continue
        if name != row["limit"]:
            raise ValueError(
                f"{name}={parameter} was given, but encoding={encoding!r} has no such parameter; "
                f"its limit form takes {row['limit']}"
            )
        if exact or (exact is None and row["exact"]):
            raise ValueError(
                f"{name}={parameter} belongs to the limit form of encoding={encoding!r}, but the "
                f"exact form was asked for; pass exact=False or leave {name} out"
            )
        require_positive(parameter, name, dtype)
    if exact and not row["exact"]:
        raise ValueError(
            f"exact=True with encoding={encoding!r}, which is exact only in the limit "
            f"{row['limit']} → ∞; use encoding='bias' or 'scalar', or exact=False"
        )
    require_leak(leak, dtype)
    return bool(row["exact"]) if exact is None else exact


def require_positive(parameter: float | Array, name: str, dtype: DTypeLike) -> None:
    """Refuse what is not one positive finite number in `dtype`, subnormal numbers included.

    **Raises:** `ValueError`.
    """
    number, limits = one_number(parameter, name, dtype), jnp.finfo(dtype)
    if number is not None and not float(limits.tiny) <= number <= float(limits.max):
        raise ValueError(
            f"{name}={parameter}, but should be positive and finite in {jnp.dtype(dtype).name}: at "
            f"{name} ≤ 0 a head attends away from its target; leave it out for the value that "
            "gives one-hot attention"
        )


def require_leak(leak: float | Array, dtype: DTypeLike) -> None:
    """Refuse an ε that is no number between 0 and 1 in `dtype`, or so small that N/ε overflows.

    **Raises:** `ValueError`.
    """
    number, limits = one_number(leak, "leak", dtype), jnp.finfo(dtype)
    least = float(limits.tiny) / float(limits.eps)
    if number is not None and not least <= number < 1:
        raise ValueError(
            f"leak={leak}, but should lie strictly between 0 and 1 in {jnp.dtype(dtype).name}, and "
            f"not below {least:.1e}; 0.5 is the default"
        )


def one_number(parameter: float | Array, name: str, dtype: DTypeLike) -> float | None:
    """A parameter rounded to `dtype`, or None if it is traced and cannot be looked at.

    **Raises:** `ValueError` for more than one number.
    """
    if jnp.shape(parameter) != ():
        raise ValueError(
            f"{name} has shape {jnp.shape(parameter)}, but should be one number for all heads"
        )
    if isinstance(parameter, jax.core.Tracer):
        return None
    with np.errstate(over="ignore", under="ignore"):
        return float(np.asarray(parameter).astype(dtype))


def map_supports(
    geometry: ConvolutionGeometry,
    channels: tuple[int, int],
    groups: int,
    encoding: str,
    heads: int,
) -> np.ndarray:
    """Where each head's map can be nonzero for some kernel: `[heads, P²·in, P_out²·out]`.

    A head with a target has the support of that offset's map. The uniform head of the exact bias,
    and every head of the scalar encoding, mixes all maps.
    """
    size_in, size_out = channels
    block = np.kron(np.eye(groups), np.ones((size_in // groups, size_out // groups)))
    with jax.ensure_compile_time_eval():
        ones = jnp.asarray(np.broadcast_to(block, (*geometry.kernel_size, *block.shape)))
        supports = np.asarray(token_maps(ones, geometry)) != 0
    union = supports.any(0, keepdims=True)
    targeted = supports if encoding != "scalar" else supports[:0]
    return np.concatenate([targeted, np.repeat(union, heads - len(targeted), axis=0)])
