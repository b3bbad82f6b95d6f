"""The sublayers of a vision transformer: what each does to a difference, and what rounding adds.

**Differences.** Let a and b be what two networks computed at the same place, and d = a - b. If f is
the step that they share, f(a) - f(b) = S d with a linear map S that is known once a and b are:

- affine maps and convolutions: their linear part;
- sums and means: themselves;
- gelu: d ↦ s·d with the secant slope s = (gelu(a) - gelu(b))/(a - b), the derivative where a = b;
- LayerNorm with scale t: with centred a_c = a - mean a, d_c, σ_a² = mean a_c² + ε, and so for b,

      t·(a_c/σ_a - b_c/σ_b) = t·( d_c/σ_a - b_c·mean((a_c + b_c)·d_c)/(σ_a σ_b (σ_a + σ_b)) ),

  since 1/σ_a - 1/σ_b = (σ_b² - σ_a²)/(σ_a σ_b (σ_a + σ_b)), σ_b² - σ_a² = -mean((a_c + b_c)·d_c).

Each map is given with its magnitude: the same with every number made positive, for what rounding
can do to it. All of this is called under `jax.enable_x64(True)`, on float64.

**Rounding** of each sublayer in float32, at its own input. Inputs count as exact.
Let u be the unit roundoff and γ_n = n·u/(1 - n·u).

- *Affine maps* of n features: γ_(n+1)(|X||W| + |b|), sums in any order.
- *Sums* of two: u|X + Y|. *Means* of n: γ_(n+2) mean|X|.
- *LayerNorm* over n features, two passes. The mean is off by γ_(n+1)·m with m = mean|x|, so a
  centred number c by e_c = γ_(n+1)·m(1 + u) + u|c|. The mean v of the squares of those is off by
  e_v = w + γ_(n+2)(v + w), w = mean(2|c|e_c + e_c²), and v + ε by e_s = e_v + u(v + ε + e_v). With
  ρ = e_s/(v + ε) < 1 the reciprocal of the root is off by the factor (1 - ρ)^(-1/2)(1 + 8u) at
  most, so that c·s/√(v + ε), with s the scale, is off by

      e = |s|/√(v + ε) · ((|c| + e_c)(1 - ρ)^(-1/2)(1 + 8u)(1 + u)² - |c|),

  and the sum with the bias by e + u(|result| + e).
- *gelu*, x/2·(1 + erf(x/√2)). The argument z takes two roundings, which move erf by at most
  2u·max|z·2/√π·e^(-z²)| < u; erf itself counts as eight roundings of 1, its largest value; a sum of
  at most 2 and a product follow: less than |x|/2·(1 + 8 + 2 + 2)u, for which 8u|x| is taken.
- *The convolution*, K² times C products for each pixel and the bias: γ_(K²C+1)(|X| * |W| + |b|).
  With means of n tokens at the border their roundings add, so the index is K²C + n + 3.

*Underflow.* A product below the normal numbers is off by less than the smallest of them; n + 8 of
these, times 1 + max|X| and 1 + max|W|, are added everywhere.

*Assumed.* rsqrt is within 4 units in the last place, erf within 8u of its largest value 1;
products are sums of products at the pinned precision.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array
from jaxtyping import Float

from convattn.lab.models.compute import gelu
from convattn.lab.models.convolution_mixing import ConvolutionMixing
from convattn.operators.roundoff import EXP_ERROR, gamma, unit_roundoff

UNIT = unit_roundoff(jnp.float32)
TINY = float(jnp.finfo(jnp.float32).tiny)
ASSUMPTION = "rsqrt is within 4 units in the last place, and erf within 8 roundings of 1"

Numbers = Float[Array, "*shape"]
Map = Callable[[Numbers], Numbers]


@dataclass(frozen=True)
class Sublayer:
    """A sublayer between two runs.

    Attributes:
        secant, magnitude: S, and what it does to magnitudes.
        rounding: How far it can be off at an input.
        terms: How many products an entry sums.
    """

    secant: Map
    magnitude: Map
    rounding: Map
    terms: int


def mean_of_tokens(tokens: Float[Array, "batch rows columns features"]) -> Numbers:
    """What the classifier sees."""
    return tokens.mean(axis=(1, 2))


def between(step: Any, a: Numbers, b: Numbers) -> Sublayer:
    """A sublayer between its inputs in two runs, in float64.

    Args:
        step: A LayerNorm, a convolution in float64, a linear map, `gelu` or `mean_of_tokens`.
    """
    if isinstance(step, nnx.LayerNorm):
        return Sublayer(*norm_secant(step, a, b), partial(norm_rounding, step), a.shape[-1])
    if isinstance(step, ConvolutionMixing):
        maps = linear_part(step), linear_part(magnitude_of(step))
        terms = math.prod(step.kernel.shape[:3]) + a.shape[1] * a.shape[2]
        return Sublayer(*maps, partial(convolution_rounding, step), terms)
    if isinstance(step, nnx.Linear):
        held: Any = step.kernel, step.bias
        kernel, bias = (part[...].astype(jnp.float64) for part in held)
        rounding = partial(affine_rounding, kernel, bias)
        size = jnp.abs(kernel)
        return Sublayer(lambda d: d @ kernel, lambda d: d @ size, rounding, len(kernel))
    if step is gelu:
        slope = gelu_slope(a, b)
        return Sublayer(lambda d: slope * d, lambda d: jnp.abs(slope) * d, gelu_rounding, 0)
    count = a.shape[1] * a.shape[2]
    return Sublayer(mean_of_tokens, mean_of_tokens, mean_rounding, count)


def gelu_slope(a: Numbers, b: Numbers) -> Numbers:
    """The secant slope of gelu.

    >>> slope = gelu_slope(jnp.array([1.0, 0.0]), jnp.array([1.0, -100.0]))
    >>> [round(float(number), 6) for number in slope]
    [1.083315, 0.0]
    """
    apart = a - b
    same = apart == 0
    rise = gelu(a) - gelu(b)
    normal = 0.5 * (1 + jax.lax.erf(a / math.sqrt(2)))
    derivative = normal + a * jnp.exp(-jnp.square(a) / 2) / math.sqrt(2 * math.pi)
    return jnp.where(same, derivative, rise / jnp.where(same, 1, apart))


def centered(numbers: Float[Array, "*lead features"]) -> Float[Array, "*lead features"]:
    """x - mean x, over the features."""
    return numbers - numbers.mean(axis=-1, keepdims=True)


def norm_secant(norm: nnx.LayerNorm, a: Numbers, b: Numbers) -> tuple[Map, Map]:
    """The map of LayerNorm between two inputs, and its magnitude.

    >>> norm = nnx.LayerNorm(3, use_fast_variance=False, rngs=nnx.Rngs(0))
    >>> a, b = jnp.array([1.0, 2.0, 6.0]), jnp.array([0.0, 5.0, 4.0])
    >>> secant, _ = norm_secant(norm, a, b)
    >>> bool(jnp.allclose(secant(a - b), norm(a) - norm(b), atol=1e-6))
    True
    """
    left, right = centered(a), centered(b)
    roots = [
        jnp.sqrt(jnp.square(part).mean(axis=-1, keepdims=True) + norm.epsilon)
        for part in (left, right)
    ]
    held: Any = norm.scale
    scale = held[...].astype(a.dtype)
    through = right / (roots[0] * roots[1] * (roots[0] + roots[1]))
    size_a, size_b = (jnp.abs(part) + jnp.abs(part).mean(axis=-1, keepdims=True) for part in (a, b))
    size = size_b / (roots[0] * roots[1] * (roots[0] + roots[1]))

    def secant(d: Numbers) -> Numbers:
        d = centered(d)
        turned = ((left + right) * d).mean(axis=-1, keepdims=True)
        return scale * (d / roots[0] - through * turned)

    def magnitude(d: Numbers) -> Numbers:
        d = d + d.mean(axis=-1, keepdims=True)
        turned = ((size_a + size_b) * d).mean(axis=-1, keepdims=True)
        return jnp.abs(scale) * (d / roots[0] + size * turned)

    return secant, magnitude


def linear_part(mixing: ConvolutionMixing) -> Map:
    """A convolution without its bias.

    Args:
        mixing: In float64.
    """

    def part(d: Numbers) -> Numbers:
        return jax.jvp(mixing, (jnp.zeros_like(d),), (d,))[1]

    return part


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
    lost = (wrong + UNIT * (moved + wrong)) / moved
    # Where all of the variance may be lost there is no bound: 1/0 is infinite, and passes no check.
    factor = (1 + EXP_ERROR * UNIT) * (1 + UNIT) ** 2 / jnp.sqrt(jnp.maximum(1 - lost, 0))
    magnitude = jnp.abs(centered)
    error = jnp.abs(scale) / jnp.sqrt(moved) * ((magnitude + off) * factor - magnitude)
    result = centered / jnp.sqrt(moved) * scale + shift
    return error + UNIT * (jnp.abs(result) + error) + floor(count, inputs, scale)


def gelu_rounding(inputs: Numbers) -> Numbers:
    """8u|x|.

    >>> float(gelu_rounding(jnp.array(-2.0)) / UNIT)
    16.0
    """
    return 8 * UNIT * jnp.abs(inputs) + floor(0, inputs)


def convolution_rounding(
    mixing: ConvolutionMixing, tokens: Float[Array, "batch rows columns features"]
) -> Float[Array, "batch rows columns features"]:
    """γ(|X| * |W| + |b|).

    Args:
        mixing: In float64, see `convattn.lab.two_phase.mixing_bound.wide_mixing`.
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
