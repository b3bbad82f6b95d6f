"""In which precision a program multiplies matrices, read from the program itself.

An accelerator may multiply float32 in fewer bits where nothing is pinned, and no run on a CPU would
show it.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax import lax

HIGHEST = (lax.Precision.HIGHEST, lax.Precision.HIGHEST)


def precisions(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """The precision of every matrix product of a function, those of its inner programs too."""
    return _precisions(jax.make_jaxpr(function)(*arguments).jaxpr)


def _precisions(jaxpr: Any) -> list[Any]:
    precisions = []
    for equation in jaxpr.eqns:
        if equation.primitive is lax.dot_general_p:
            precisions.append(equation.params["precision"])
        for value in equation.params.values():
            sub_jaxpr = getattr(value, "jaxpr", value)
            if hasattr(sub_jaxpr, "eqns"):
                precisions += _precisions(sub_jaxpr)
    return precisions
