"""What a run of the benchmark is asked for."""

from dataclasses import dataclass

import jax.numpy as jnp
from jax import lax

GIB = 2**30


@dataclass(frozen=True)
class Settings:
    """Sizes, widths and limits of a run.

    Attributes:
        sizes: Images of n × n tokens.
        dims: Features of a token, in and out.
        batch: Images at a time.
        turns: How often every implementation is timed; the median counts.
        dtype: Of images and maps, `"float32"` or `"bfloat16"`; encodings stay in float32.
        precision: Of all matrix products and convolutions, `"highest"` or `"default"`.
        turn_seconds: How long a turn lasts at least, by repetition.
        memory_limit: Bytes; who is expected to take more is left out.
        time_limit: Seconds; who is expected to take longer for a turn is left out.
        resident_from: Bytes that XLA predicts from which resident memory is measured as well, in a
            process of its own; None never measures it.
        back_ends: Names of the back ends that are timed; None takes all.
        cases: Names of the cases; None takes all.
        quick: The fixed sizes of some cases shrink as well.
    """

    sizes: tuple[int, ...] = (8, 16, 32, 48, 64, 128, 224)
    dims: tuple[int, ...] = (400, 64)
    batch: int = 1
    turns: int = 7
    dtype: str = "float32"
    precision: str = "highest"
    turn_seconds: float = 0.02
    memory_limit: float = 12 * GIB
    time_limit: float = 60.0
    resident_from: float | None = GIB / 8
    back_ends: tuple[str, ...] | None = None
    cases: tuple[str, ...] | None = None
    quick: bool = False

    @property
    def jax_dtype(self) -> jnp.dtype:
        """The dtype of images and maps."""
        return jnp.dtype(self.dtype)

    @property
    def jax_precision(self) -> lax.Precision:
        """The precision, as a constant of JAX."""
        return lax.Precision.HIGHEST if self.precision == "highest" else lax.Precision.DEFAULT
