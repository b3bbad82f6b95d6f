"""How far the computed scores of an exact layer are off: the first part of the rounding bound.

Let u be the unit roundoff of the dtype of the scores, at least float32's, and γ_n = n·u/(1 - n·u).
exp, log and log1p count as eight roundings.

- A leaky bias is M(N) = log1p(x), x = N(1/ε - 1). Its x takes six roundings (a quotient may be a
  product with a reciprocal), which move log1p(x) by at most γ_7·x/(1+x) ≤ γ_7·log1p(x). So
  e = γ_15·M(N), and the other scores are zero.
- A scalar score is h·log t: the logarithm, its storing and the product make e = γ_11·h·log t. The
  gain Σ_δ t_δ^h + (N - T) has T exponentials of such scores, and T + 1 roundings of sums.
"""

import math
from dataclasses import dataclass

import numpy as np

from convattn.encodings.base import score_dtype
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.scalar import ScalarEncoding
from convattn.operators.roundoff import ASSUMPTION as ASSUMPTION
from convattn.operators.roundoff import EXP_ERROR as EXP_ERROR
from convattn.operators.roundoff import gamma as gamma
from convattn.operators.roundoff import unit_roundoff as unit_roundoff
from convattn.operators.shifts import TokenGrid


@dataclass(frozen=True)
class ScoreError:
    """How exactly the scores of an encoding are computed.

    Attributes:
        dtype: Of the scores.
        absolute: e, how far each score can be off.
        range: S, how far the scores of a row lie apart.
        gain: The logarithm of the factor by which a head gain, and its product with the weight, can
            be off.
    """

    dtype: np.dtype
    absolute: float
    range: float
    gain: float


def no_exact_form(encoding: object) -> ValueError:
    """The error to raise for anything but the exact forms of `conv_to_attention`."""
    return ValueError(
        f"no rounding bound is derived for this {type(encoding).__name__}, only for the exact "
        "forms (a bias with a leak, a scalar encoding without a logit); one-hot layers are "
        "compared exactly instead"
    )


def score_error(encoding: object, grid: TokenGrid) -> ScoreError:
    """The error of the positional scores, and of the gains.

    Raises:
        ValueError: For anything but the exact forms of `conv_to_attention`.

    >>> import jax.numpy as jnp
    >>> encoding = ScalarEncoding(jnp.arange(3.0), jnp.log(jnp.array([2.0])), None, ((0,),))
    >>> error = score_error(encoding, TokenGrid((9,), ((0, 0),)))
    >>> round(error.range, 3), round(error.absolute / error.range / unit_roundoff(error.dtype))
    (1.386, 11)
    """
    if isinstance(encoding, BiasEncoding) and encoding.leak is not None:
        dtype = score_dtype(encoding.values)
        leak = float(encoding.leak)
        height = math.log1p(grid.number_of_keys * (1 - leak) / leak)
        return ScoreError(dtype, gamma(EXP_ERROR + 7, unit_roundoff(dtype)) * height, height, 0.0)
    if isinstance(encoding, ScalarEncoding) and encoding.logit is None:
        dtype = score_dtype(encoding.exponents, encoding.log_bases)
        u = unit_roundoff(dtype)
        bases = np.abs(np.asarray(encoding.log_bases, np.float64)).max()
        height = float(np.asarray(encoding.exponents, np.float64).max() * bases)
        error = gamma(EXP_ERROR + 3, u) * height
        sums = gamma(len(encoding.offsets) + 1, u)
        gain = error + math.log1p(EXP_ERROR * u) + math.log1p(sums) + math.log1p(u)
        return ScoreError(dtype, error, height, gain)
    raise no_exact_form(encoding)
