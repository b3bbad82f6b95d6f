"""How far the two-head SAC computed in floating point can be from the convolution that it is.

Let the values be exact: images and filters are integers, and so are c/(1-ε) and ε/(1-ε)·c with
ε = 1/2, and no partial sum exceeds 2²⁴. Let u be the unit roundoff of the dtype in which
`self_attentive_convolution` works, at least float32, u_r of the result's, N the number of keys,
γ_n = n·u/(1 - n·u), and exp and log1p count as eight roundings.

1. *Scores.* M(N) = log1p(N(1-ε)/ε) is off by at most e = γ_15·M (as in `score_error`); the others
   are zero. The argument of exp is off by E = e + u(M + 2e).
2. *Softmax* makes each weight a(1 + η), 1 + η ≤ e^(2E)·(1 + 8u)/(1 - 8u)·(1 + 2u)/(1 - γ_N). No
   weight is below 1/(2N), so nothing underflows. (`convattn.bounds.rounding` derives both.)
3. *Sum* over the keys and heads: 2N products in any order cost 1 + γ_2N.
4. *Bias and cast* cost (1 + u)(1 + u_r), and the least normal number of the result's dtype.

With Π the product, |computed - exact| ≤ (Π - 1)·G, where G = Σ_h A_h |v_h| + |b| is

    G_q = |c_q| + 2·ε/(1 - ε)·mean|c| + |b|.
"""

import math

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Float, Int

from convattn.operators.arrays import accumulation_dtype
from convattn.operators.roundoff import EXP_ERROR, gamma, unit_roundoff

LARGEST_EXACT = 2**24


def two_head_error_bound(
    at_keys: Int[np.ndarray, "batch *cells channels"],
    at_queries: Int[np.ndarray, "batch *queries channels"],
    dtype: DTypeLike,
    *,
    bias: Int[np.ndarray, " channels"] | None = None,
    magnitude: int,
) -> Float[np.ndarray, "batch *queries channels"]:
    """The bound of this module for ε = 1/2, entry by entry.

    Args:
        at_keys, at_queries: c without the bias, on the grid of the keys and of the queries.
        dtype: Of images and filters.
        magnitude: No partial sum of c exceeds it: max|x|·max Σ|W|.

    >>> ones = np.ones((1, 4, 1), int)
    >>> bool(two_head_error_bound(ones, ones, "float32", magnitude=1).max() < 2e-5)
    True
    """
    if 2 * magnitude > LARGEST_EXACT:
        raise ValueError(
            f"magnitude={magnitude}, but expected at most 2^23, so that float32 holds twice every "
            "value; take smaller weights"
        )
    u = unit_roundoff(accumulation_dtype(dtype))
    keys = math.prod(at_keys.shape[1:-1])
    height = math.log1p(keys)
    error = gamma(EXP_ERROR + 7, u) * height
    exponent = error + u * (height + 2 * error)
    total = 2 * exponent + 2 * math.atanh(EXP_ERROR * u)
    total += math.log1p(2 * u) - math.log1p(-gamma(keys, u)) + math.log1p(gamma(2 * keys, u))
    relative = math.expm1(total + math.log1p(u) + math.log1p(unit_roundoff(dtype)))
    axes = tuple(range(1, at_keys.ndim - 1))
    majorant = np.abs(at_queries) + 2 * np.abs(at_keys).mean(axis=axes, keepdims=True)
    if bias is not None:
        majorant = majorant + np.abs(bias)
    return relative * majorant * (1 + 2.0**-20) + float(jnp.finfo(dtype).tiny)
