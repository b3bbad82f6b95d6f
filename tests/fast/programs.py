"""What stands in a program: its operations, those of the programs inside it included."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax import lax


def operations(function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
    """Every operation of a function, in the order in which they are written."""
    yield from _operations(jax.make_jaxpr(function)(*arguments).jaxpr)


def _operations(program: Any) -> Iterator[Any]:
    def is_program(value: Any) -> bool:
        return hasattr(value, "eqns") or hasattr(value, "jaxpr")

    for operation in program.eqns:
        yield operation
        for value in jax.tree.leaves(list(operation.params.values()), is_leaf=is_program):
            if is_program(value):
                yield from _operations(getattr(value, "jaxpr", value))


def largest_intermediate(function: Callable[..., Any], *arguments: Any) -> int:
    """The most entries that any value of a program has."""
    return max(out.aval.size for part in operations(function, *arguments) for out in part.outvars)


def product_dtypes(function: Callable[..., Any], *arguments: Any) -> list[tuple[str, str, str]]:
    """For every matrix product the dtypes of its two operands and of its sums."""
    return [
        tuple(str(variable.aval.dtype) for variable in (*part.invars, *part.outvars))
        for part in operations(function, *arguments)
        if part.primitive is lax.dot_general_p
    ]
