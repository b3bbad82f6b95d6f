"""How far each sublayer of a vision transformer, computed in float32, can be off at its own input.

Inputs count as exact. Let u be the unit roundoff and γ_n = n·u/(1 - n·u).

- *Affine maps* of n features: γ_(n+1)(|X||W| + |b|), sums in any order.
- *Sums* of two: u|X + Y|. *Means* of n: γ_(n+2) mean|X|.
- *LayerNorm* over n features, two passes. The mean is off by γ_(n+1)·m with m = mean|x|, so a
  centred number c by e_c = γ_(n+1)·m(1 + u) + u|c|. The mean v of the squares of those is off by
  e_v = w + γ_(n+2)(v + w), w = mean(2|c|e_c + e_c²), and v + ε by e_s = e_v + u(v + ε + e_v). With
  ρ = e_s/(v + ε) < 1 the reciprocal of the root is off by the factor (1 - ρ)^(-1/2)(1 + 8u) at
  most, so that c·s/√(v + ε), with s the scale, is off by

      e = |s|/√(v + ε) · ((|c| + e_c)(1 - ρ)^(-1/2)(1 + 8u)(1 + u)² - |c|),

  and the sum with the bias by e + u(|result| + e).
- *gelu*, x·erfc(-x/√2)/2. The argument z takes two roundings, which move erfc by at most
  2u·max|z·2/√π·e^(-z²)| < u; erfc itself counts as eight roundings of 2, its largest value; two
  products follow: less than |x|((1 + 16)/2 + 2)u, for which 16u|x| is taken.
- *The convolution*, K² times C products for each pixel and the bias: γ_(K²C+1)(|X| * |W| + |b|).
  With means of n tokens at the border their roundings add, so the index is K²C + n + 3.

*Underflow.* A product below the normal numbers is off by less than the smallest of them; n + 8 of
these, times 1 + max|X| and 1 + max|W|, are added everywhere.

*Assumed.* rsqrt is within 4 units in the last place, erfc within 8u of its largest value 2;
products are sums of products at the pinned precision.
"""

from typing import Any

import jax.numpy as jnp
from flax import nnx
from jax import Array
from jaxtyping import Float

from convattn.lab.models.convolution_mixing import ConvolutionMixing
from convattn.operators.roundoff import EXP_ERROR, gamma, unit_roundoff

UNIT = unit_roundoff(jnp.float32)
TINY = float(jnp.finfo(jnp.float32).tiny)
ASSUMPTION = "rsqrt is within 4 units in the last place, and erfc within 8 roundings of 2"

Numbers = Float[Array, "*shape"]


def floor(terms: int, *operands: Array) -> Array:
    """What products that underflow can add.

    >>> float(floor(0, jnp.ones(2))) < 1e-36
    True
    """
    size = jnp.asarray(TINY * (terms + 8))
    for operand in operands:
        size = size * (1 + jnp.abs(operand).max(initial=0))
    return size


def affine_rounding(
    kernel: Float[Array, "features out_features"],
    bias: Float[Array, "out_features"],
    inputs: Float[Array, "*lead features"],
) -> Float[Array, "*lead out_features"]:
    """γ_(n+1)(|X||W| + |b|). All of this file is called, and returns, in float64.

    >>> bound = affine_rounding(jnp.ones((3, 1)), jnp.ones(1), jnp.ones((1, 3)))
    >>> round(float(bound[0, 0]) / UNIT, 3)
    16.0
    """
    terms = kernel.shape[0]
    size = jnp.abs(inputs) @ jnp.abs(kernel) + jnp.abs(bias)
    return gamma(terms + 1, UNIT) * size + floor(terms, inputs, kernel)


def sum_rounding(left: Numbers, right: Numbers) -> Numbers:
    """u|X + Y|; a sum that underflows is exact.

    >>> float(sum_rounding(jnp.array(1.0), jnp.array(-3.0)) / UNIT)
    2.0
    """
    return UNIT * jnp.abs(left + right)


def mean_rounding(
    tokens: Float[Array, "batch rows columns features"],
) -> Float[Array, "batch features"]:
    """γ_(n+2) mean|X|."""
    count = tokens.shape[1] * tokens.shape[2]
    size = jnp.abs(tokens).mean(axis=(1, 2))
    return gamma(count + 2, UNIT) * size + floor(count, tokens)


def norm_rounding(norm: nnx.LayerNorm, inputs: Float[Array, "*lead features"]) -> Numbers:
    """That of LayerNorm, as derived above.

    Raises:
        ValueError: For so many features that the variance may be rounded away.

    >>> norm = nnx.LayerNorm(2, use_fast_variance=False, rngs=nnx.Rngs(0))
    >>> bound = norm_rounding(norm, jnp.array([[1.0, 3.0]]))
    >>> 10 < float(bound[0, 0]) / UNIT < 40
    True
    """
    count = inputs.shape[-1]
    held: Any = norm.scale, norm.bias
    scale, shift = (part[...].astype(inputs.dtype) for part in held)
    centered = inputs - inputs.mean(axis=-1, keepdims=True)
    size = jnp.abs(inputs).mean(axis=-1, keepdims=True)
    off = gamma(count + 1, UNIT) * size * (1 + UNIT) + UNIT * jnp.abs(centered)
    variance = jnp.square(centered).mean(axis=-1, keepdims=True)
    wrong = (2 * jnp.abs(centered) * off + jnp.square(off)).mean(axis=-1, keepdims=True)
    wrong = wrong + gamma(count + 2, UNIT) * (variance + wrong) + floor(count, inputs, inputs)
    moved = variance + norm.epsilon
    share = (wrong + UNIT * (moved + wrong)) / moved
    # Where all of the variance may be lost there is no bound: 1/0 is infinite, and passes no check.
    factor = (1 + EXP_ERROR * UNIT) * (1 + UNIT) ** 2 / jnp.sqrt(jnp.maximum(1 - share, 0))
    magnitude = jnp.abs(centered)
    error = jnp.abs(scale) / jnp.sqrt(moved) * ((magnitude + off) * factor - magnitude)
    result = centered / jnp.sqrt(moved) * scale + shift
    return error + UNIT * (jnp.abs(result) + error) + floor(count, inputs, scale)


def gelu_rounding(inputs: Numbers) -> Numbers:
    """16u|x|.

    >>> float(gelu_rounding(jnp.array(-2.0)) / UNIT)
    32.0
    """
    return 16 * UNIT * jnp.abs(inputs) + floor(0, inputs)


def convolution_rounding(
    mixing: ConvolutionMixing, tokens: Float[Array, "batch rows columns features"]
) -> Float[Array, "batch rows columns features"]:
    """γ(|X| * |W| + |b|).

    Args:
        mixing: In float64, see `convattn.lab.two_phase.wide_mixing`.
    """
    kernel = mixing.kernel[...]
    terms = kernel.shape[0] * kernel.shape[1] * kernel.shape[2]
    roundings = terms + 1
    if mixing.border == "mean":
        roundings += tokens.shape[1] * tokens.shape[2] + 2
    size = magnitude_of(mixing)(jnp.abs(tokens))
    return gamma(roundings, UNIT) * size + floor(terms, tokens, kernel)


def magnitude_of(mixing: ConvolutionMixing) -> ConvolutionMixing:
    """The convolution with |W| and |b|."""
    positive = nnx.clone(mixing)
    for part in (positive.kernel, positive.bias):
        part[...] = jnp.abs(part[...])
    return positive
