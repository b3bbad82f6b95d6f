"""What each step adds to the difference of two runs, and the transposes of steps.

On the host and in float64 wherever it is elementwise: that takes longer to compile than to do.
Cotangents are float32, whatever the runs are in. The derivation is in `deviation.py`.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from convattn.networks.local_errors import SINGLE, TINY, LocalError, local_error, magnitudes
from convattn.networks.steps import Convolution, Linear, Values, convolve
from convattn.operators.attention import HIGHEST
from convattn.operators.roundoff import gamma, unit_roundoff


def convolution_error(
    step: Convolution,
    x: Values,
    y: Values,
    same: Values,
    right: Values,
    errors: tuple[LocalError, LocalError, LocalError],
) -> tuple[np.ndarray, float, float]:
    """ρ(x) + ρ'(x') + γ_n |W||d|; the largest ratio to the bound at the same input; Σ|d|."""
    of_run, of_other, of_transpose = errors
    gap = apart(x, y)
    unbiased = replace(step, bias=jnp.zeros_like(step.bias))
    all_three = np.concatenate([np.asarray(x), np.asarray(y), gap])
    seen, other, moved = np.split(wide(magnitudes(unbiased, all_three)), 3)
    bias = np.abs(wide(step.bias))
    there = local_error(step, wide(y), other + bias, of_other)
    local = local_error(step, wide(x), seen + bias, of_run) + there
    local = local + local_error(step, gap, moved, of_transpose)
    allowed = there + local_error(step, wide(y), other + bias, of_run)
    return local, worst_ratio(wide(same), wide(right), allowed), float(gap.sum())


def worst_ratio(one: np.ndarray, two: np.ndarray, allowed: np.ndarray) -> float:
    """The largest of |one - two| / allowed; infinite where one of them is not finite.

    >>> worst_ratio(np.array([1.0, 2.0]), np.array([1.0, 1.0]), np.array([0.0, 4.0]))
    0.25
    """
    if not all(np.isfinite(part).all() for part in (one, two, allowed)):
        return float("inf")
    gap = np.abs(one - two)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(gap == 0, 0.0, gap / allowed).max(initial=0.0))


def rectified(x: Values, y: Values) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """relu of both, the secant slope, and what its rounding to float32 can do:
    4u|relu(x) - relu(y)|.

    >>> found = rectified(jnp.array([3.0, -1.0, 1.0]), jnp.array([1.0, -2.0, -1.0]))
    >>> found[2].tolist(), (found[3] > 0).tolist()
    ([1.0, 0.0, 0.5], [False, False, True])
    """
    left, right = wide(x), wide(y)
    rise = np.abs(np.maximum(left, 0) - np.maximum(right, 0))
    mixed = (left > 0) != (right > 0)
    slope = np.where(mixed, rise / np.where(mixed, np.abs(left - right), 1), left > 0)
    local = np.where(mixed, 4 * SINGLE * rise + 2 * TINY, 0)
    return (
        np.maximum(np.asarray(x), 0),
        np.maximum(np.asarray(y), 0),
        slope.astype(np.float32),
        local,
    )


def apart(x: Values, y: Values) -> np.ndarray:
    """|x - y|, in float64.

    >>> apart(jnp.array([1.0]), jnp.array([3.0])).item()
    2.0
    """
    return np.abs(wide(x) - wide(y))


def wide(array: Values) -> np.ndarray:
    """On the host, in float64."""
    return np.asarray(array).astype(np.float64)


def mean_error(x: Values, y: Values) -> np.ndarray:
    """γ_n of the means of |x| + |y|, and of |x - y| in float32.

    >>> ones = jnp.ones((1, 2, 2, 1), jnp.float32)
    >>> round(mean_error(ones, ones).item() * 2**24)
    16
    """
    terms = x.shape[1] * x.shape[2] + 4
    size = gamma(terms, unit_roundoff(x.dtype)) * (np.abs(wide(x)) + np.abs(wide(y)))
    return (size + gamma(terms, SINGLE) * apart(x, y)).mean(axis=(1, 2)) + 8 * TINY


def linear_error(step: Linear, x: Values, y: Values) -> np.ndarray:
    """γ_n of (|x| + |y|)|W| + 2|b|, n of the longer side, and of |x - y||W| in float32."""
    terms, kernel = max(step.kernel.shape) + 4, np.abs(wide(step.kernel))
    magnitude, gap = np.abs(wide(x)) + np.abs(wide(y)), apart(x, y)
    size = gamma(terms, unit_roundoff(x.dtype)) * (magnitude @ kernel + 2 * np.abs(wide(step.bias)))
    floor = 4 * terms * TINY * (1 + (magnitude + gap).max(initial=0)) * (1 + kernel.max())
    return size + gamma(terms, SINGLE) * (gap @ kernel) + floor


def sum_error(left: Values, right: Values) -> np.ndarray:
    """u of each of two sums."""
    return unit_roundoff(left.dtype) * (np.abs(wide(left)) + np.abs(wide(right))) + TINY


@jax.jit
def times_transpose(cotangent: Values, kernel: Values) -> Array:
    """g Wᵀ, in the dtype of g."""
    return jnp.matmul(cotangent, kernel.T.astype(cotangent.dtype), precision=HIGHEST)


def pulled(
    kernel: Values, cotangent: Values, shape: tuple[int, ...], stride: int
) -> Float[Array, "classes batch rows columns channels"]:
    """Wᵀ g, the transpose of the convolution of images of a shape, in float32.

    >>> kernel, cotangent = np.array([1.0, 2.0, 3.0]).reshape(3, 1, 1, 1), np.ones((1, 1, 2, 1, 1))
    >>> pulled(kernel, cotangent, (4, 1, 1), 2).ravel().tolist()
    [2.0, 4.0, 2.0, 3.0]
    """
    parts = (np.asarray(part).astype(np.float32) for part in (kernel, cotangent))
    with jax.enable_x64(False):  # one program, whatever the network is in
        return transposed_convolution(*parts, shape, stride)


@partial(jax.jit, static_argnames=("shape", "stride"))
def transposed_convolution(
    kernel: Values, cotangent: Values, shape: tuple[int, ...], stride: int
) -> Float[Array, "classes batch rows columns channels"]:
    """`pulled`, of what is in float32 already."""
    rows = cotangent.reshape(-1, *cotangent.shape[2:])

    def apply(images: Array) -> Array:
        return convolve(kernel, jnp.zeros(kernel.shape[-1], kernel.dtype), images, stride)

    like = jax.ShapeDtypeStruct((len(rows), *shape), kernel.dtype)
    (found,) = jax.linear_transpose(apply, like)(rows)
    return found.reshape(*cotangent.shape[:2], *shape)
