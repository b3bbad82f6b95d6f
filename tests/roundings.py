"""The roundings that the tests of encodings allow for.

Only elementary facts are used: a sum of n products in floating point, in any order, is off by at
most γ_n Σ|·||·| with γ_n = nu/(1 - nu) (Higham, Accuracy and Stability, §3.1); exp, log and log1p
are taken to be within four units in the last place, a relative error of at most 8u.
"""

import math

import numpy as np

ELEMENTARY = 8


def roundoff(dtype) -> float:
    """u: half the spacing of the numbers just above one."""
    return float(np.finfo(dtype).eps) / 2


def gamma(count: int, u: float) -> float:
    return count * u / (1 - count * u)


def softmax_factor(score_error: float, keys: int, u: float) -> float:
    """Each softmax weight is off by a factor in [1/f, f] if each score is off by `score_error`.

    Numerator and denominator are sums of e^s: the scores give e^(2·error), exp twice 1 + 8u, the
    sum 1 + γ_N, the division 1 + u.
    """
    exponentials = ((1 + ELEMENTARY * u) / (1 - ELEMENTARY * u)) * math.exp(2 * score_error)
    return exponentials * (1 + u) / (1 - gamma(keys, u))
