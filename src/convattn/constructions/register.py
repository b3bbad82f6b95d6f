"""S.registers, S.padding: one key of zero value in place of the ring.

Beside the N tokens of the bare grid let there be one more key whose *value* is zero (after any bias
of the value map, which a zero input alone would not give), with one score in each head.

**Exact (S.registers).** Let 0 < ε < 1, r = 1/ε - 1 and 0 < σ_0 < σ_1. Head (j, δ), j = 0 or 1,
gives the key at q + δ the weight 1 + N(1 + σ_j)r, every other token 1 and the register σ_j N, and
has the map c_j M_δ/(1 - ε) with

    c_0 = -(1 + σ_0)/(σ_1 - σ_0),    c_1 = (1 + σ_1)/(σ_1 - σ_0).

**Claim.** These 2T heads are the zero-padded convolution at every query of every bare grid.

**Proof.** c_0 + c_1 = 1 and c_0/(1 + σ_0) + c_1/(1 + σ_1) = 0. Let J be the mean of all tokens. The
weights of a row with its target add up to N(1 + σ_j)(1 + r), and 1 + r = 1/ε, so that the row gives
(1 - ε) X_(q+δ) + εJ/(1 + σ_j). The two heads give X_(q+δ) M_δ. Without its target they add up to
N(1 + σ_j), and the row gives J/(1 + σ_j). The two heads give nothing. ∎

**Limit (S.padding).** The scores M/2 against the one-hot bias (M at the target, 0 elsewhere) and
-α/2 against the normalised quadratic score -α|δ - Δ|².

**Claim.** As s = M or α → ∞, a head attends to its target where that is a token of the image, and
to the register where it is not; so the layer tends to the zero-padded convolution. In total
variation a row is off by less than N e^(-s/2).

**Proof.** Where the target exists its score exceeds the register's by s/2 and every other key's by
at least s, since |δ - Δ|² ≥ 1 there. So the others have at most R = e^(-s/2) + (N-1)e^(-s) ≤
N e^(-s/2) times the target's weight, and R/(1 + R) < R of the row. Where it does not exist, each of
the N keys has a score at least s/2 below the register's; now R = N e^(-s/2). ∎

Eq. 9 of C20 as printed adds α|Δ|² to the scores of a head: then the register's score is
α|Δ|² - α/2. The sharpness must be twice that of a layer with a ring for the same distance.
"""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.encodings.base import score_dtype
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import Register
from convattn.encodings.mixture import MixtureEncoding
from convattn.encodings.quadratic import QuadraticEncoding
from convattn.encodings.quadratic_grid import QuadraticGridEncoding

SIGMAS = (1.0, 3.0)  # σ_0 and σ_1, for which all factors are powers of two: c = -1, 2


def register_construction(
    maps: Num[Array, "offsets patch_in patch_out"],
    geometry: ConvolutionGeometry,
    uniform_weight: Num[Array, ""] | float,
) -> tuple[MixtureEncoding, Num[Array, "heads patch_in patch_out"], Register]:
    """The heads (0, δ), then the heads (1, δ), their maps, and the register.

    Source: S.registers of this project's ledger.

    >>> geometry = ConvolutionGeometry.of((3,))
    >>> maps = jnp.array([[[1.0]], [[2.0]], [[3.0]]])
    >>> encoding, maps, register = register_construction(maps, geometry, 0.5)
    >>> encoding.weights[::3].tolist(), jnp.exp(register.scores).round().tolist()
    ([[2.0, 0.0, 0.0], [4.0, 0.0, 0.0]], [1.0, 1.0, 1.0, 3.0, 3.0, 3.0])
    >>> maps.ravel().tolist()
    [-2.0, -4.0, -6.0, 4.0, 8.0, 12.0]
    """
    dtype = score_dtype(maps)
    epsilon, float_maps = jnp.asarray(uniform_weight, dtype), maps.astype(dtype)
    totals = [1 + sigma for sigma in SIGMAS]
    gap = SIGMAS[1] - SIGMAS[0]
    factors = jnp.asarray([-totals[0] / gap, totals[1] / gap], dtype) / (1 - epsilon)
    weights = jnp.asarray(totals, dtype) * ((1 - epsilon) / epsilon)
    encoding = MixtureEncoding(
        jnp.kron(weights[:, None], jnp.eye(geometry.heads, dtype=dtype)), geometry.offsets
    )
    register = Register(jnp.repeat(jnp.log(jnp.asarray(SIGMAS, dtype)), geometry.heads), True)
    blocks = jnp.concatenate([factor * float_maps for factor in factors])
    return encoding, blocks.astype(maps.dtype), register


def limit_register(encoding: object) -> Register:
    """The register of a limit form: M/2 or -α/2 in each head, α the smaller of its axes'.

    Raises:
        ValueError: For an encoding that is neither a bias in plain units nor quadratic.

    Source: S.padding of this project's ledger.

    >>> limit_register(BiasEncoding(jnp.array([[0.0, 6.0]]), None, ((0,), (1,)))).scores.tolist()
    [3.0]
    """
    if isinstance(encoding, BiasEncoding) and encoding.uniform_weight is None:
        return Register(encoding.values.astype(score_dtype(encoding.values)).max(axis=1) / 2)
    if isinstance(encoding, QuadraticEncoding):
        return Register(-encoding.alpha.astype(score_dtype(encoding.alpha, encoding.centers)) / 2)
    if isinstance(encoding, QuadraticGridEncoding):
        dtype = score_dtype(*encoding.alpha, *encoding.centers)
        return Register(-encoding.head_alpha.min(axis=1).astype(dtype) / 2)
    raise ValueError(
        f"encoding is {type(encoding).__name__}, but the register's score is known for a one-hot "
        "bias without a leak and for the quadratic encoding; take one of these, or border='zeros'"
    )
