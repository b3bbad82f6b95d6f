"""How a module holds the arrays of a pytree: as `nnx.Param`, and None as None."""

from typing import Any

from flax import nnx
from jax import Array


def held(part: Array | None) -> Any:
    """A parameter to train, or None."""
    return None if part is None else nnx.Param(part)


def read(part: Any) -> Any:
    """The array that a parameter or variable holds, or None."""
    return None if part is None else part[...]
