"""Whether a device keeps subnormal numbers or flushes them to zero, operation by operation.

With t the least normal number, exact arithmetic gives t/2·4 = 2t from a subnormal input, and the
subnormal results 3t/2 - t = t/2, t·½ = t/2, t/2 = t/2 and e^(ln t - ln 4) ≈ t/4 from normal inputs.
A result of zero shows that the operation flushes. The operands reach the compiled program as
arguments, so that no compiler can fold them, as vectors of 16, so that vectorised code is what
runs, and results are read as bit patterns on the host.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from convattn_ledger.audit.float_format import FloatFormat, bit_patterns, least_representable
from convattn_ledger.audit.saturation import HIGHEST_SCALE

LANES = 16


class Arithmetic(NamedTuple):
    """The operations under test, on arrays of one format."""

    add: Callable
    multiply: Callable
    divide: Callable
    exp: Callable


DEVICE = Arithmetic(*(jax.jit(each) for each in (jnp.add, jnp.multiply, jnp.divide, jnp.exp)))


@dataclass(frozen=True)
class Subnormals:
    """Whether subnormal numbers survive.

    Attributes:
        dtype: The format.
        inputs_kept: A subnormal operand counts as what it is.
        add_kept, multiply_kept, divide_kept, exp_kept: A subnormal result isn't replaced by zero.
        exp_zero_from: The least x of the format for which e^-x is zero; None if not up to 2048.
    """

    dtype: str
    inputs_kept: bool
    add_kept: bool
    multiply_kept: bool
    divide_kept: bool
    exp_kept: bool
    exp_zero_from: float | None


def measure_subnormals(number_format: FloatFormat, arithmetic: Arithmetic = DEVICE) -> Subnormals:
    """Probe each operation, on the default device unless other arithmetic is given."""
    dtype, least = number_format.dtype, number_format.least_normal

    def vector(value: float) -> np.ndarray:
        return np.full(LANES, value).astype(dtype)

    def nonzero(result: jax.Array | np.ndarray) -> bool:
        return bool(bit_patterns(np.asarray(result)).all())

    def exp_is_zero(exponent: np.ndarray) -> bool:
        return not bit_patterns(np.asarray(arithmetic.exp(np.full(LANES, -exponent)))).any()

    return Subnormals(
        dtype=number_format.name,
        inputs_kept=nonzero(arithmetic.multiply(vector(least / 2), vector(4.0))),
        add_kept=nonzero(arithmetic.add(vector(1.5 * least), vector(-least))),
        multiply_kept=nonzero(arithmetic.multiply(vector(least), vector(0.5))),
        divide_kept=nonzero(arithmetic.divide(vector(least), vector(2.0))),
        exp_kept=nonzero(arithmetic.exp(vector(math.log(least) - math.log(4)))),
        exp_zero_from=least_representable(exp_is_zero, 1.0, HIGHEST_SCALE, number_format),
    )
