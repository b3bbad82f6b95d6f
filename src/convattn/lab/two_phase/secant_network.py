"""The linear network through which the difference of two runs goes, and its transpose.

Let a and b be what two networks computed at the same place, and d = a - b. If f is the step that
they share, f(a) - f(b) = S d with a linear map S that is known once a and b are:

- affine maps and convolutions: their linear part;
- sums and means: themselves;
- gelu: d ↦ s·d with the secant slope s = (gelu(a) - gelu(b))/(a - b), the derivative where a = b;
- LayerNorm with scale t: with centred a_c = a - mean a, d_c, σ_a² = mean a_c² + ε, and so for b,

      t·(a_c/σ_a - b_c/σ_b) = t·( d_c/σ_a - b_c·mean((a_c + b_c)·d_c)/(σ_a σ_b (σ_a + σ_b)) ),

  since 1/σ_a - 1/σ_b = (σ_b² - σ_a²)/(σ_a σ_b (σ_a + σ_b)), σ_b² - σ_a² = -mean((a_c + b_c)·d_c).

Each map is given with its magnitude: the same with every number made positive, for what rounding
can do to it. All of this is called under `jax.enable_x64(True)`, on float64.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array
from jaxtyping import Float

from convattn.lab.models.convolution_mixing import ConvolutionMixing

Numbers = Float[Array, "*shape"]
Linear = Callable[[Numbers], Numbers]


def gelu_slope(a: Numbers, b: Numbers) -> Numbers:
    """The secant slope of gelu.

    >>> slope = gelu_slope(jnp.array([1.0, 0.0]), jnp.array([1.0, -100.0]))
    >>> [round(float(number), 6) for number in slope]
    [1.083315, 0.0]
    """
    apart = a - b
    same = apart == 0
    rise = jax.nn.gelu(a, approximate=False) - jax.nn.gelu(b, approximate=False)
    normal = 0.5 * jax.lax.erfc(-a / math.sqrt(2))
    derivative = normal + a * jnp.exp(-jnp.square(a) / 2) / math.sqrt(2 * math.pi)
    return jnp.where(same, derivative, rise / jnp.where(same, 1, apart))


def centered(numbers: Float[Array, "*lead features"]) -> Float[Array, "*lead features"]:
    """x - mean x, over the features."""
    return numbers - numbers.mean(axis=-1, keepdims=True)


def norm_secant(norm: nnx.LayerNorm, a: Numbers, b: Numbers) -> tuple[Linear, Linear]:
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


def linear_part(mixing: ConvolutionMixing) -> Linear:
    """A convolution without its bias.

    Args:
        mixing: In float64.
    """

    def part(d: Numbers) -> Numbers:
        return jax.jvp(mixing, (jnp.zeros_like(d),), (d,))[1]

    return part
