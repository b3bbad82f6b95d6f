"""What the device reaches at best: in one large product, and in one large sum of arrays.

Fractions of it compare programs on any device without its data sheet. The product is at the dtype
and the precision of the run.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.measurement import repeat, seconds_of
from benchmarks.settings import Settings

ROUNDS, TIMES = 5, 3
SIDE, SMALL_SIDE = 8192, 1024
NUMBERS, SMALL_NUMBERS = 2**28, 2**23


def peak(settings: Settings, clock: Callable[[], float]) -> dict[str, float]:
    """Operations and bytes a second, the best of some rounds.

    Args:
        settings: Of the run; small on a CPU.
        clock: In seconds.
    """
    small = settings.quick or jax.default_backend() == "cpu"
    side, numbers = (SMALL_SIDE, SMALL_NUMBERS) if small else (SIDE, NUMBERS)
    matrix = jnp.ones((side, side), settings.jax_dtype)
    array = jnp.ones(numbers, settings.jax_dtype)

    def shortest(function: Callable[..., Any], *arguments: Any) -> float:
        compiled = jax.jit(function).lower(*arguments).compile()
        repeat(compiled, arguments, 1)
        rounds = (
            seconds_of(lambda times: repeat(compiled, arguments, times), TIMES, clock)
            for _ in range(ROUNDS)
        )
        return min(rounds)

    product = shortest(lambda a, b: jnp.matmul(a, b, precision=settings.precision), matrix, matrix)
    moved = shortest(jnp.add, array, array)
    return {"flops": 2 * side**3 / product, "bytes": 3 * array.nbytes / moved}
