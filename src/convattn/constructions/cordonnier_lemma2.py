"""C20 Lemma 2: the quadratic encoding attends to one shift, in the limit α → ∞.

**Claim.** With the scores -α|δ - Δ|², softmax tends to one at k = q + Δ and to zero at every
other key, at every query q for which q + Δ is a key.

**Proof.** At δ = Δ the score is 0, and at every other key it is at most -α, as |δ - Δ|² is a
positive integer. So the target's weight is 1/(1 + Σ_(k ≠ q+Δ) e^(-α|δ-Δ|²)), and the sum tends
to zero. ∎

It is a limit, not an equality as printed: at finite α every weight is positive. How far it is from
one-hot is bounded in `convattn.bounds.saturation`. Where q + Δ is no key, the head attends to the
nearest key instead. In floating point the weights below the smallest number vanish: from
`one_hot_sharpness` on, the weights *are* one-hot.
"""

import math
from itertools import product

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Num

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.encodings.base import score_dtype
from convattn.encodings.quadratic_grid import QuadraticGridEncoding


def one_hot_sharpness(dtype: DTypeLike) -> float:
    """A power of two s so large that e^-s is zero in the dtype in which softmax runs.

    Softmax runs in at least float32. There e^-104 is below half the smallest subnormal number,
    2^-150, and in float64 e^-746 is below 2^-1075. The next powers of two are 128 and 1024; a
    power of two keeps α|δ - Δ|² exact while |δ - Δ|² has no more bits than the dtype.

    >>> one_hot_sharpness(jnp.bfloat16), one_hot_sharpness(jnp.float32)
    (128.0, 128.0)
    """
    limits = jnp.finfo(jnp.promote_types(dtype, jnp.float32))
    smallest_exponent = limits.minexp - limits.nmant - 1
    return 2.0 ** math.ceil(math.log2(-smallest_exponent * math.log(2)))


def quadratic_heads(
    geometry: ConvolutionGeometry, alpha: Num[Array, ""] | float | None, dtype: DTypeLike
) -> QuadraticGridEncoding:
    """One head for each offset, centred on it; the offsets are a grid, row-major.

    Source: C20 Lemma 2, eq. 9.

    >>> heads = quadratic_heads(ConvolutionGeometry.of((3, 1)), 8.0, jnp.float32)
    >>> heads.head_centers.tolist(), heads.pairs
    ([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]], ((0, 0), (1, 0), (2, 0)))
    """
    wide = score_dtype(jnp.zeros((), dtype))
    sharpness = one_hot_sharpness(dtype) if alpha is None else alpha
    return QuadraticGridEncoding(
        tuple(jnp.full((len(axis),), sharpness, wide) for axis in geometry.axis_offsets),
        tuple(jnp.asarray(np.array(axis), wide) for axis in geometry.axis_offsets),
        tuple(product(*(range(len(axis)) for axis in geometry.axis_offsets))),
    )
