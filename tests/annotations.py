"""Annotations are checked while tests run, except where they cannot hold."""

from collections.abc import Callable
from typing import Any

from beartype import beartype


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """`beartype`, but for `__init__`: JAX rebuilds trees with anything at all for leaves.

    (`jax.tree.map(jnp.shape, layer)`, the in_axes of `vmap` and the like make such trees.)
    """
    return function if function.__name__ == "__init__" else beartype(function)
