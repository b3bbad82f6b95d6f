"""What the kernels of a traced function are made of, so that two traces can be compared.

A layer takes the place of the kernel that the function had on the example. On other arguments the
function is traced again, and may reach another kernel by a branch of Python's: one for another
size, or for another value that is no array. The numbers are not there yet under `jax.jit`, so the
ways are compared: the digest of a value is that of the operation which makes it and of the digests
of its operands; of a constant that of its numbers; of what a scan carries, that of its beginning
and of a step. What depends on an argument has none, nor does what a `while` changes, nor what comes
from a program that is no jaxpr, such as a callback.
"""

import hashlib
import re
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from convattn.networks.transformation.contents import (
    inner_jaxprs_and_constants,
    is_convolution,
    is_unseen,
)
from convattn.networks.transformation.deviation import Path
from convattn.networks.transformation.evaluation import RULES, Scope
from convattn.operators.arrays import is_traced

_BRANCHING = ("cond", "scan", "while", "shard_map")  # others hold one jaxpr, and give its outputs
Digests = list[str | None]


def kernel_digests(closed: Any, names: Mapping[Path, str]) -> dict[str, str | None]:
    """By name what the kernel of each convolution is made of; None where an argument decides it.

    Args:
        closed: The jaxpr of the function.
        names: Of its convolutions, by path.
    """
    arguments: Digests = [None] * len(closed.jaxpr.invars)
    return dict(_kernels(closed.jaxpr, closed.consts, arguments, Scope(), names))


def _kernels(
    jaxpr: Any, constants: Sequence[Any], operands: Digests, scope: Scope, names: Mapping[Path, str]
) -> Generator[tuple[str, str | None], None, Digests]:
    """Those of one jaxpr and of what its equations hold; returns the digests of its outputs."""
    known: dict[Any, str | None] = dict(zip(jaxpr.invars, operands, strict=True))
    known |= dict(zip(jaxpr.constvars, map(_of_array, constants), strict=True))

    def read(atom: Any) -> str | None:
        return _of_array(atom.val) if isinstance(atom, core.Literal) else known[atom]

    for equation in jaxpr.eqns:
        own = [*map(read, equation.invars)]
        name = names.get(scope.inside(equation).path)
        outputs: Digests = [None] * len(equation.outvars)
        if None not in own and not is_unseen(equation, scope.name):
            text = re.sub(r"0x[0-9a-f]+", "", f"{equation.primitive.name} {equation.params}")
            digest = hashlib.sha256("\n".join([text, *map(str, own)]).encode()).hexdigest()
            outputs = [f"{number} {digest}" for number in range(len(outputs))]
        if is_convolution(equation, scope.name) and name is not None:
            yield name, own[1]
        elif equation.primitive.name in RULES:
            for inner, consts in inner_jaxprs_and_constants(equation):
                inner_operands = _operand_digests(equation, inner, consts, own, scope, names)
                results = yield from _kernels(
                    inner, consts, inner_operands, scope.inside(equation), names
                )
                if equation.primitive.name not in _BRANCHING:
                    outputs = results
        known |= dict(zip(equation.outvars, outputs, strict=True))
    return [*map(read, jaxpr.outvars)]


def _operand_digests(
    equation: Any,
    inner: Any,
    consts: Sequence[Any],
    own: Digests,
    scope: Scope,
    names: Mapping[Path, str],
) -> Digests:
    """The digests of what a jaxpr is given."""
    operands, parameters = own[len(own) - len(inner.invars) :], equation.params
    if equation.primitive.name == "while":
        first, second = parameters["cond_nconsts"], parameters["body_nconsts"]
        start, is_body = second, inner is parameters["body_jaxpr"].jaxpr
        operands = operands if is_body else [*own[:first], *own[first + second :]]
        if not is_body:  # it holds no kernel that the body does not change
            return [*operands[:first], *[None] * (len(operands) - first)]
        variables = zip(inner.invars[start:], inner.outvars, strict=True)
        carry = zip(operands[start:], variables, strict=True)
        return [
            *operands[:start],
            *(digest if one is other else None for digest, (one, other) in carry),
        ]
    if equation.primitive.name != "scan":
        return operands
    start, end = parameters["num_consts"], parameters["num_consts"] + parameters["num_carry"]
    before: Digests = []
    while operands != before:  # what a step makes of something unknown is unknown in the next
        before = operands
        step = _finished(_kernels(inner, consts, operands, scope.inside(equation), names))
        carried = [
            None if digest is None else first
            for first, digest in zip(operands[start:end], step[: end - start], strict=True)
        ]
        operands = [*operands[:start], *carried, *operands[end:]]
    carried = [
        None if first is None else f"{first} carried {digest}"
        for first, digest in zip(operands[start:end], step[: end - start], strict=True)
    ]
    return [*operands[:start], *carried, *operands[end:]]


def _finished(kernels: Generator[Any, None, Digests]) -> Digests:
    """The digests of the outputs alone."""
    while True:
        try:
            next(kernels)
        except StopIteration as end:
            return end.value


def _of_array(array: Any) -> str | None:
    if array is None:
        return None
    if is_traced(array):  # the same one, as long as the trace that it belongs to
        return f"traced {id(array)}"
    if jnp.issubdtype(getattr(array, "dtype", bool), jax.dtypes.prng_key):
        return f"{array.dtype} {_of_array(jax.random.key_data(array))}"
    values = np.asarray(array)
    if values.dtype == object:
        return None
    return hashlib.sha256(f"{values.dtype} {values.shape}".encode() + values.tobytes()).hexdigest()
