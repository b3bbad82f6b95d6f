"""S.finite: one head more makes the construction exact at finite parameters.

**Claim.** Let T offsets be read and let 0 < ε < 1. T heads with bias M(N) = log(1 + N(1/ε - 1))
at their offset, and one head without bias, compute the convolution exactly at every query whose
offsets are all keys, so with the zero ring everywhere; ε and the value maps do not depend on the
image size.

**Proof.** Let S_δ be the one-hot row at q + δ and J the uniform row over the N keys. The
softmax of M at one key and zero at the others has the weights e^M/(e^M + N - 1) and 1/(e^M + N
- 1). With ε = N/(e^M + N - 1), that is e^M = 1 + N(1/ε - 1), this is exactly (1 - ε)S_δ + εJ.
The head without bias is J. Give head δ the map M_δ/(1 - ε) and the uniform head -ε/(1 - ε)·Σ_δ
M_δ:

    Σ_δ ((1 - ε)S_δ + εJ) X M_δ/(1 - ε) - ε/(1 - ε)·J X Σ_δ M_δ = Σ_δ S_δ X M_δ = conv(X)_q. ∎

On the bare grid a head whose key is missing has the row J, and the same sum gives the
convolution in which every missing token is replaced by the mean of all tokens.

Any M ≠ 0 does; ε = 1/2 is the default because 1/(1 - ε) = 2 and ε/(1 - ε) = 1 are exact in binary.
"""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.encodings.base import score_dtype
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.tied import finite_maps


def finite_construction(
    maps: Num[Array, "offsets patch_in patch_out"],
    geometry: ConvolutionGeometry,
    uniform_weight: Num[Array, ""] | float,
) -> tuple[BiasEncoding, Num[Array, "heads patch_in patch_out"]]:
    """T leaky heads and the uniform head that takes the leak back.

    Source: S.finite of this project's ledger.

    >>> geometry = ConvolutionGeometry.of((3,))
    >>> _, maps = finite_construction(jnp.array([[[1.0]], [[2.0]], [[3.0]]]), geometry, 0.5)
    >>> maps[:, 0, 0].tolist()
    [2.0, 4.0, 6.0, -6.0]
    """
    dtype = score_dtype(maps)
    epsilon = jnp.asarray(uniform_weight, dtype)
    table = jnp.eye(geometry.heads + 1, geometry.heads, dtype=dtype)
    return BiasEncoding(table, epsilon, geometry.offsets), finite_maps(maps, epsilon)
