"""How many bits of its operands a float32 matrix product really uses.

Accelerators may round float32 operands before they multiply: TF32 keeps p = 11 bits of significand
(10 stored), a bfloat16 pass 8, three bfloat16 passes 16 or 17, six all 24. To find p, the operands
are numbers of exactly k bits, k = 1 … 24, multiplied by one and summed with zeros: the product
comes back unchanged for every number of k ≤ p bits, but not for all of p + 1 bits. The bits between
the first and the last are pseudo-random: a number such as 1 + 2^-23 is the sum of two bfloat16
numbers and survives three passes, which a general one doesn't. The accumulator is probed by
1·1 + 2^-k·1, whose operands every format has.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

BITS = 24
PATTERNS = 16
WIDTH = 128
PRECISIONS: dict[str, lax.Precision | None] = {
    "unspecified": None,
    "DEFAULT": lax.Precision.DEFAULT,
    "HIGH": lax.Precision.HIGH,
    "HIGHEST": lax.Precision.HIGHEST,
}
Dot = Callable[[Float[np.ndarray, "m k"], Float[np.ndarray, "k n"]], Array | np.ndarray]


@dataclass(frozen=True)
class MatmulPrecision:
    """What one kind of float32 product keeps.

    Attributes:
        precision: How it was asked for; "unspecified" follows JAX's configuration.
        left_bits, right_bits: Significand bits that survive in each operand, at most 24.
        accumulator_bits: The largest p ≤ 24 such that 1 + 2^-(p-1) comes out exactly.
        name: What that amounts to.
    """

    precision: str
    left_bits: int
    right_bits: int
    accumulator_bits: int
    name: str


def probe_numbers() -> Float[np.ndarray, "bits patterns"]:
    """Row k - 1: numbers in [1, 2) whose significands have exactly k bits.

    >>> probe_numbers()[1].tolist() == [1.5] * PATTERNS
    True
    """
    generator = np.random.default_rng(0)
    rows = []
    for bits in range(1, BITS + 1):
        leading = 1 << (bits - 1)
        middle = generator.integers(0, max(leading >> 1, 1), PATTERNS) << 1
        rows.append((leading | middle | 1) / leading)
    return np.array(rows).astype(np.float32)


def _leading_run(exact: list[bool]) -> int:
    """How many leading entries are True.

    >>> _leading_run([True, True, False, True])
    2
    """
    return exact.index(False) if False in exact else len(exact)


def measure_dot(dot: Dot, precision: str) -> MatmulPrecision:
    """Count the bits that a product of float32 matrices keeps; `precision` names the result.

    >>> measure_dot(np.matmul, "numpy").left_bits
    24
    """
    numbers = probe_numbers()
    spread = np.zeros((numbers.size, WIDTH), np.float32)
    spread[np.arange(numbers.size), np.arange(numbers.size) % WIDTH] = numbers.ravel()
    ones = np.ones((WIDTH, WIDTH), np.float32)
    left = np.asarray(dot(spread, ones)) == numbers.reshape(-1, 1)
    right = np.asarray(dot(ones, spread.T.copy())) == numbers.reshape(1, -1)

    powers = np.ldexp(np.float32(1), -np.arange(BITS)).astype(np.float32)
    pairs = np.zeros((BITS, WIDTH), np.float32)
    pairs[:, 0], pairs[1:, WIDTH // 2] = 1, powers[1:]
    expected = 1 + powers
    expected[0] = 1
    sums = np.asarray(dot(pairs, ones)) == expected[:, None]

    def bits_kept(exact: np.ndarray) -> int:
        return _leading_run([bool(row.all()) for row in exact])

    left_bits = bits_kept(left.reshape(BITS, -1))
    right_bits = bits_kept(right.T.reshape(BITS, -1))
    accumulator_bits = bits_kept(sums)
    name = operand_name(min(left_bits, right_bits))
    if accumulator_bits < BITS:
        name += f", {accumulator_bits}-bit sums"
    return MatmulPrecision(precision, left_bits, right_bits, accumulator_bits, name)


def operand_name(bits: int) -> str:
    """What is known to keep so many bits of its operands.

    >>> operand_name(11)
    'TF32 or float16'
    """
    known = {
        8: "bfloat16",
        11: "TF32 or float16",
        16: "bfloat16, 3 passes",
        17: "bfloat16, 3 passes",
        22: "TF32, 3 passes",
        23: "TF32, 3 passes",
        24: "float32",
    }
    return known.get(bits, f"{bits} bits")


def measure_matmul_precision() -> tuple[MatmulPrecision, ...]:
    """Count the bits on the default device, for each precision that JAX knows."""

    def compiled(precision: lax.Precision | None) -> Dot:
        return jax.jit(lambda left, right: jnp.matmul(left, right, precision=precision))

    return tuple(measure_dot(compiled(value), name) for name, value in PRECISIONS.items())
