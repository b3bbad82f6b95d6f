"""How far an exact form, computed in floating point, may be from the integer convolution.

Let u be the unit roundoff of the dtype that sums (at least float32), u_p of the one that stores
the maps and the result. Write X for the largest pixel, S_o = Σ_(t,i) |W_(t,i,o)|, n for the number
of tokens, N for that of keys, T for that of offsets, H for that of heads, F for that of features of
a token. In exact arithmetic the layer is the convolution. Every computed summand is the
exact one times 1 + η with |η| ≤ Π - 1, so the result is off by at most (Π - 1)·G, where the
majorant G is the sum of the absolute summands.

**Majorant.** For one output pixel each tap reads one input pixel, so the entries of all |M_δ| in
its column sum to S_o. Rows of attention sum to one, so they average |X| to at most X.

- Bias with leak ε: Σ_δ a_δ|X||M_δ|/(1-ε) + ε/(1-ε)·J|X| Σ_δ |M_δ|, at most
  G = X·S_o·(1 + ε)/(1 - ε) + |b_o|.
- Scalar: Σ_h Σ_k t_k^h |X_k| Σ_δ |V_hδ||M_δ| with Σ_h |V_hδ| t^h ≤ κ at every node t, over the n
  tokens of the image: G = κ·n·X·S_o + |b_o|.

**Factors of Π.**

- Bias: scores are 0 and M = log1p(N((1-ε)/ε)), off by 3u through the argument and by 8uM through
  the function; 0 - M and M - M are exact. Scalar: h·log t is off by (9 + 1 + 1)u of at most
  s = H_max·log(T + 1): the stored logarithm, the product, the difference to the maximum.
- Softmax of N such scores: `softmax_factor`.
- Scalar gains: e^(10us) from the exponent, 1 + 8u from exp, γ_(T+2) from the sum, u from the
  product.
- Maps: at most T + 4 roundings in sums, quotients and coefficients, one to store them.
- Products: in whatever order, N + H·max(N, F, d_H) + F terms.
- Bias and cast: (1 + u)(1 + u_p).
"""

import math

import jax.numpy as jnp
import numpy as np
from roundings import ELEMENTARY, gamma, roundoff, softmax_factor
from strategies import Case

from convattn.constructions.geometry import ConvolutionGeometry


def exact_form_bound(
    case: Case,
    geometry: ConvolutionGeometry,
    heads: int,
    *,
    encoding: str,
    uniform_weight: float = 0.5,
    amplification: float | None = None,
    head_dim: int | None = None,
    bias: bool = True,
) -> np.ndarray:
    """The bound for each output channel; κ is `amplification`."""
    stored = float(jnp.finfo(case.dtype).eps) / 2
    u = min(stored, roundoff("float32"))
    count = geometry.heads
    grid = [n // p for n, p in zip(case.bucket.space, geometry.patch_size, strict=True)]
    sides = zip(grid, geometry.ring, strict=True)
    keys = math.prod(n + before + after for n, (before, after) in sides)
    features = math.prod(geometry.patch_size) * case.bucket.in_channels
    axes = len(geometry.kernel_size)
    summed = np.abs(case.kernel).sum(axis=tuple(range(axes + 1)))
    top = np.abs(case.images).max() * summed
    if encoding == "bias":
        majorant = top * (1 + uniform_weight) / (1 - uniform_weight)
        height = math.log1p(keys * (1 - uniform_weight) / uniform_weight)
        factor = softmax_factor(3.01 * u + ELEMENTARY * u * height, keys, u)
    else:
        majorant = amplification * math.prod(grid) * top
        height = count * math.log(count + 1)
        factor = softmax_factor((ELEMENTARY + 3.01) * u * height, keys, u)
        gains = math.exp((ELEMENTARY + 2.01) * u * height) * (1 + ELEMENTARY * u)
        factor *= gains * (1 + gamma(count + 2, u)) * (1 + u)
    if bias:
        majorant = majorant + np.abs(case.bias)
    factor *= (1 + gamma(count + 4, u)) * (1 + stored)
    factor *= 1 + gamma(keys + heads * max(keys, features, head_dim or 0) + features, u)
    factor *= (1 + u) * (1 + stored)
    return (factor - 1) * majorant
