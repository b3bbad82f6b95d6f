"""L21 Lemma 2: a relative bias M at one shift attends to that shift, in the limit M → ∞.

**Claim.** With b_δ0 = M and b_δ = 0 elsewhere, the weight of the key at δ0 is e^M/(e^M + N - 1),
and that of every other key 1/(e^M + N - 1), at every query for which the key at δ0 exists; the
first tends to one. Where it does not exist all scores are equal, and the row is uniform, 1/N.
(L21 eq. 10 is printed for every query.)

**Proof.** Softmax of one M and N - 1 zeros; of N zeros. ∎

The total variation to the one-hot row is (N - 1)/(e^M + N - 1) exactly. M = 40 is "machine
precision" in float32 for every practical N, not in float64: if the sum is rounded once, the
maximum stays below one from N = 28 on.
"""

import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Num

from convattn.constructions.cordonnier_lemma2 import one_hot_sharpness
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.encodings.base import score_dtype
from convattn.encodings.bias import BiasEncoding


def one_hot_bias_heads(
    geometry: ConvolutionGeometry, logit: Num[Array, ""] | float | None, dtype: DTypeLike
) -> BiasEncoding:
    """One head for each offset, with bias M there and zero elsewhere.

    Source: L21 Lemma 2.

    >>> one_hot_bias_heads(ConvolutionGeometry.of((3,)), 40.0, jnp.float32).values[0].tolist()
    [40.0, 0.0, 0.0]
    """
    working = score_dtype(jnp.zeros((), dtype))
    height = jnp.asarray(one_hot_sharpness(dtype) if logit is None else logit, working)
    return BiasEncoding(jnp.eye(geometry.heads, dtype=working) * height, None, geometry.offsets)
