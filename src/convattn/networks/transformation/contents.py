"""What a traced function holds that is not looked into, and the convolutions that are in it.

A primitive that has a jaxpr is looked into, and so is the StableHLO of an exported function. All
others that are none of JAX's own array operations run programs of someone else, such as callbacks,
foreign functions and kernels; there is no telling what they compute.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.extend import core
from jax.extend.core import primitives

from convattn.networks.transformation.convolution import Convolution, joined

CONVOLUTION = "conv_general_dilated"
SCOPE = "convattn.attention"  # the name of what attention computes, which is not looked into
_SCOPES = re.compile(r"[/()]")  # between scopes, and around what a transformation has made of one
_OPAQUE = "which is not seen into"
_EXPORTED = "call_exported"
_NAME = r"(\"[^\"]+\"|[\w.$-]+)"
_FUNCTION = re.compile(
    rf"func\.func\s+(?:public |private )?@{_NAME}(.*?)(?=func\.func|\Z)", re.DOTALL
)
_CALL = re.compile(rf"\bcall @{_NAME}")
_STABLE_CONVOLUTION = re.compile(r"stablehlo\.(convolution|dynamic_conv)\b")
# Those of JAX's own linear algebra, FFT and shapes compute no convolution.
_OWN = (
    r"lapack_|cu(?:solver|blas)|hipsolver|Sharding|SPMD|shape_assertion|LayoutConstraint|annotate"
)
_FOREIGN = re.compile(rf"stablehlo\.custom_call @(?!\w*(?:{_OWN}))([\w.$-]+)")
# Of JAX's own those that `jax.lax` and `jax.extend` do not list.
_UNLISTED = [
    "addupdate",
    "all_gather_invariant",
    "all_gather_reduced",
    "broadcast_to",
    "cholesky_update",
    "dim_as_value",
    "dimension_size",
    "empty",
    "free_ref",
    "freeze",
    "from_edtype",
    "geqp3",
    "geqrf",
    "iota_2x32_shape",
    "layout_constraint",
    "lu_pivots_to_permutation",
    "mesh_cast",
    "new_ref",
    "ormqr",
    "pbroadcast",
    "pcast",
    "philox2x32",
    "philox4x32",
    "platform_index",
    "preduced",
    "psum_invariant",
    "pvary",
    "ragged_dot_general",
    "random_clone",
    "random_unwrap",
    "random_wrap",
    "reciprocal",
    "reduce_scatter",
    "reshard",
    "scaled_dot",
    "symmetric_product",
    "threefry4x32",
    "to_edtype",
    "unreduced_psum",
    "unreduced_reduce_scatter",
    "with_memory_space_constraint",
    "zeros_like",
]
_ARRAY_OPERATIONS = frozenset(_UNLISTED) | {
    value.name
    for module in (lax, primitives)
    for value in vars(module).values()
    if isinstance(value, core.Primitive)
}


def remaining_convolutions(function: Any, *arguments: Any) -> tuple[str, ...] | None:
    """The convolutions of a function that are not those of attention; None if it does not trace.

    The arrays among the arguments are traced, so that a function that was compiled ahead of time
    shows: it takes no tracers, and is named as not seen into where it takes what they hold. A model
    that needs the values of its arguments is traced with these.

    >>> import jax.numpy as jnp
    >>> def blur(image): return jnp.convolve(image, jnp.ones(3))
    >>> remaining_convolutions(blur, jnp.ones(5))
    ('kernel (3, 1, 1)',)
    """
    leaves, tree = jax.tree.flatten(arguments)
    arrays = {
        index: leaf for index, leaf in enumerate(leaves) if isinstance(leaf, jax.Array | np.ndarray)
    }

    def of_arrays(arrays: dict[int, Any]) -> Any:
        inputs = [arrays.get(index, leaf) for index, leaf in enumerate(leaves)]
        return function(*jax.tree.unflatten(tree, inputs))

    unseen: tuple[str, ...] = ()
    try:
        traced = jax.make_jaxpr(of_arrays)(arrays)
    except Exception as error:
        if "compiled for a particular signature" in str(error):
            unseen = (f"inside a function compiled ahead of time, {_OPAQUE}",)
        try:
            traced = jax.make_jaxpr(lambda: function(*arguments))()
        except Exception:  # the model's own: what it does with values is not ours to know
            return None
    return (*convolutions_in(traced.jaxpr), *unseen)


def convolutions_in(jaxpr: Any, name: str = "") -> Iterator[str]:
    """The convolutions of a jaxpr that are not those of attention, and what is not seen into."""
    for equation in jaxpr.eqns:
        if is_convolution(equation, name):
            yield f"kernel {Convolution.of(equation).kernel_shape}"
        else:
            yield from convolutions_inside(equation, name)


def convolutions_inside(equation: Any, name: str) -> Iterator[str]:
    """Those that an equation holds, one line each.

    Args:
        name: The name stack of the equations around it.
    """
    for inner in inner_jaxprs(equation):
        yield from convolutions_in(inner, joined(name, equation))
    if is_unseen(equation, name):
        primitive = equation.primitive.name
        if primitive == _EXPORTED:
            yield from _exported_contents(equation.params["exported"].mlir_module())
        else:
            yield f"inside {primitive}, {_OPAQUE}"


def _exported_contents(module: str) -> Iterator[str]:
    """The same of StableHLO: each function as often as it is called, once in a loop.

    >>> text = "func.func public @main\\n call @f\\n call @f\\nfunc.func private @f\\n stablehlo.{}"
    >>> [*_exported_contents(text.format("dynamic_conv"))]
    ['a convolution inside call_exported', 'a convolution inside call_exported']
    """
    functions = dict(_FUNCTION.findall(module))

    def contents(name: str) -> Iterator[str]:
        for line in functions[name].splitlines():
            if _STABLE_CONVOLUTION.search(line):
                yield f"a convolution inside {_EXPORTED}"
            elif match := _FOREIGN.search(line):
                yield f"inside {match[1]} of {_EXPORTED}, {_OPAQUE}"
            elif (match := _CALL.search(line)) and match[1] in functions:
                yield from contents(match[1])

    yield from contents("main")


def is_unseen(equation: Any, name: str) -> bool:
    """Whether an equation computes something by a program that is no jaxpr."""
    return (
        equation.primitive.name not in _ARRAY_OPERATIONS
        and bool(equation.outvars)
        and not any(True for _ in inner_jaxprs(equation))
        and not _is_attention(name, equation)
    )


def is_opaque(line: str) -> bool:
    """Whether a line of the functions above names no convolution, but what may hold one."""
    return line.endswith(_OPAQUE)


def _is_attention(name: str, equation: Any) -> bool:
    """Whether an equation computes attention of this library."""
    return SCOPE in _SCOPES.split(joined(name, equation))


def holds_convolution(equation: Any, name: str) -> bool:
    """Whether an equation holds a convolution that is not attention's."""
    return not all(map(is_opaque, convolutions_inside(equation, name)))


def is_convolution(equation: Any, name: str) -> bool:
    """Whether an equation is a convolution that is not attention's."""
    return equation.primitive.name == CONVOLUTION and not _is_attention(name, equation)


def inner_jaxprs(equation: Any) -> Iterator[Any]:
    """The jaxprs among the parameters of an equation."""
    for jaxpr, _ in inner_jaxprs_and_constants(equation):
        yield jaxpr


def inner_jaxprs_and_constants(equation: Any) -> Iterator[tuple[Any, Sequence[Any]]]:
    """The same with their constants; None for each that the equation does not hold."""
    for parameter in jax.tree.leaves(
        list(equation.params.values()), is_leaf=lambda leaf: hasattr(leaf, "eqns")
    ):
        if isinstance(parameter, core.ClosedJaxpr):
            yield parameter.jaxpr, parameter.consts
        elif isinstance(parameter, core.Jaxpr):
            yield parameter, [None] * len(parameter.constvars)
