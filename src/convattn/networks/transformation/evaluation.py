"""A traced function evaluated equation by equation, its convolutions as one likes.

What holds a jaxpr (a compiled part, a loop, a branch, a checkpoint, a function with a derivative of
its own) is built anew by the public function that made it, around its evaluated jaxpr; where it
holds no convolution it is left as it is. The derivative of a function with its own rule is that
rule, evaluated in the same way.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
from jax import Array, lax
from jax.extend import core
from jax.extend.source_info_util import current_name_stack, user_context

from convattn.networks.transformation.convolution import Convolution, joined

CONVOLUTION = "conv_general_dilated"
SCOPE = "attention_conv"  # the name stack of what attention computes, which is not looked into
Convolve = Callable[[Convolution, Any, Array, Array], Array]
Values = Sequence[Any]


class Evaluation:
    """The way in which the equations of a function are evaluated.

    Attributes:
        convolve: Computes a convolution: from itself, its equation, images and kernel.
        unreached: Is told of the equations that hold convolutions and cannot be built anew.
    """

    def __init__(self, convolve: Convolve, unreached: Callable[[str, str], None]) -> None:
        self.convolve, self.unreached = convolve, unreached

    def closed(self, jaxpr: Any, values: Values, name: str) -> list[Any]:
        """The outputs of a closed jaxpr."""
        return self.outputs(jaxpr.jaxpr, jaxpr.consts, values, name)

    def outputs(self, jaxpr: Any, constants: Values, values: Values, name: str) -> list[Any]:
        """The outputs of a jaxpr.

        Args:
            name: The name stack of the equations around it.
        """
        known: dict[Any, Any] = dict(zip(jaxpr.constvars, constants, strict=True))
        known.update(zip(jaxpr.invars, values, strict=True))

        def read(atom: Any) -> Any:
            return atom.val if isinstance(atom, core.Literal) else known[atom]

        uses = last_uses(jaxpr)
        for number, equation in enumerate(jaxpr.eqns):
            source = equation.source_info
            stack = current_name_stack() + source.name_stack
            with user_context(source.traceback, name_stack=stack), equation.ctx.manager:
                results = self.equation(equation, [*map(read, equation.invars)], name)
            known.update(zip(equation.outvars, results, strict=True))
            for variable in uses.get(number, ()):
                known.pop(variable, None)
        return [*map(read, jaxpr.outvars)]

    def equation(self, equation: Any, values: Values, name: str) -> Values:
        """The results of an equation."""
        primitive = equation.primitive
        if primitive.name == CONVOLUTION and not is_attention(name, equation):
            site = Convolution.of(equation, name)
            return [self.convolve(site, equation, *values)]
        if holds_convolution(equation, name):
            rule = RULES.get(primitive.name)
            if rule is not None:
                return rule(self, equation, values, joined(name, equation))
            self.unreached(joined(name, equation), primitive.name)
        return bound(equation, values)


def bound(equation: Any, values: Values) -> Values:
    """The results of an equation as it is."""
    known = {
        atom: value
        for atom, value in zip(equation.invars, values, strict=True)
        if not isinstance(atom, core.Literal)
    }
    alone = core.Jaxpr((), [*known], equation.outvars, [equation], equation.effects)
    return core.jaxpr_as_fun(core.ClosedJaxpr(alone, ()))(*known.values())


def last_uses(jaxpr: Any) -> dict[int, list[Any]]:
    """For each equation the variables that nothing after it reads."""
    seen = {atom for atom in jaxpr.outvars if isinstance(atom, core.Var)}
    uses: dict[int, list[Any]] = {}
    for number in range(len(jaxpr.eqns) - 1, -1, -1):
        equation = jaxpr.eqns[number]
        for atom in (*equation.invars, *equation.outvars):
            if isinstance(atom, core.Var) and atom not in seen:
                seen.add(atom)
                uses.setdefault(number, []).append(atom)
    return uses


def is_attention(name: str, equation: Any) -> bool:
    """Whether an equation computes attention of this library."""
    return SCOPE in joined(name, equation)


def holds_convolution(equation: Any, name: str) -> bool:
    """Whether an equation holds a jaxpr with a convolution that is not attention's."""
    own = joined(name, equation)
    return any(
        is_convolution(inner, own) or holds_convolution(inner, own)
        for jaxpr in inner_jaxprs(equation)
        for inner in jaxpr.eqns
    )


def is_convolution(equation: Any, name: str) -> bool:
    """Whether an equation is a convolution that is not attention's."""
    return equation.primitive.name == CONVOLUTION and not is_attention(name, equation)


def inner_jaxprs(equation: Any) -> Iterator[Any]:
    """The jaxprs among the parameters of an equation."""
    for parameter in jax.tree.leaves(
        list(equation.params.values()), is_leaf=lambda leaf: hasattr(leaf, "eqns")
    ):
        if isinstance(parameter, core.ClosedJaxpr):
            yield parameter.jaxpr
        elif isinstance(parameter, core.Jaxpr):
            yield parameter


def traced(evaluation: Evaluation, function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function of arrays, its equations evaluated in this way."""

    def evaluated(*arguments: Any) -> Any:
        jaxpr, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        outputs = evaluation.closed(jaxpr, jax.tree.leaves(arguments), name)
        return jax.tree.unflatten(jax.tree.structure(shapes), outputs)

    return evaluated


def _inlined(evaluation: Evaluation, equation: Any, values: Values, name: str) -> Values:
    jaxpr = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
    return evaluation.closed(jaxpr, values, name)


def _compiled(evaluation: Evaluation, equation: Any, values: Values, name: str) -> Values:
    """A compiled part: in place, as the whole is compiled or run step by step; shardings stay."""
    parameters = equation.params
    values = [*map(_constrained, values, parameters["in_shardings"])]
    outputs = evaluation.closed(parameters["jaxpr"], values, name)
    return [*map(_constrained, outputs, parameters["out_shardings"])]


def _constrained(value: Any, sharding: Any) -> Any:
    if isinstance(sharding, jax.sharding.Sharding):
        return lax.with_sharding_constraint(value, sharding)
    return value


def _scanned(evaluation: Evaluation, equation: Any, values: Values, name: str) -> Values:
    parameters, body_jaxpr = equation.params, equation.params["jaxpr"].jaxpr
    rows_in = stacked(equation.invars, body_jaxpr.invars)
    count = len(equation.outvars) - stacked(equation.outvars, body_jaxpr.outvars)
    first = len(values) - rows_in - count
    constants, start, rows = (
        values[:first],
        values[first : first + count],
        values[first + count :],
    )

    def body(carry: Values, row: Values) -> tuple[list[Any], list[Any]]:
        outputs = evaluation.closed(parameters["jaxpr"], [*constants, *carry, *row], name)
        return outputs[:count], outputs[count:]

    carry, collected = lax.scan(
        body,
        [*start],
        [*rows],
        length=parameters["length"],
        reverse=parameters["reverse"],
        unroll=parameters["unroll"],
    )
    return [*carry, *collected]


def stacked(outer: Sequence[Any], inner: Sequence[Any]) -> int:
    """How many variables of a scan have an axis more outside of its body: those it goes along."""
    pairs = zip(outer, inner, strict=True)
    return sum(len(one.aval.shape) > len(other.aval.shape) for one, other in pairs)


def _repeated(evaluation: Evaluation, equation: Any, values: Values, name: str) -> Values:
    parameters = equation.params
    first, second = parameters["cond_nconsts"], parameters["body_nconsts"]
    tested, looped, start = (
        values[:first],
        values[first : first + second],
        values[first + second :],
    )

    def condition(carry: Values) -> Any:
        return evaluation.closed(parameters["cond_jaxpr"], [*tested, *carry], name)[0]

    def body(carry: Values) -> list[Any]:
        return evaluation.closed(parameters["body_jaxpr"], [*looped, *carry], name)

    return lax.while_loop(condition, body, [*start])


def _branched(evaluation: Evaluation, equation: Any, values: Values, name: str) -> Values:
    index, *operands = values
    branches = [
        partial(lambda jaxpr, *args: evaluation.closed(jaxpr, args, name), branch)
        for branch in equation.params["branches"]
    ]
    return lax.switch(index, branches, *operands)


def _rematerialised(evaluation: Evaluation, equation: Any, values: Values, name: str) -> Values:
    parameters = equation.params
    function = jax.checkpoint(
        lambda *args: evaluation.outputs(parameters["jaxpr"], (), args, name),
        prevent_cse=parameters["prevent_cse"],
        policy=parameters["policy"],
    )
    return function(*values)


def _with_jvp(evaluation: Evaluation, equation: Any, values: Values, name: str) -> Values:
    """A function with its own forward derivative: the rule is evaluated as the function is."""

    @jax.custom_jvp
    def function(*args: Any) -> list[Any]:
        return evaluation.closed(equation.params["call_jaxpr"], args, name)

    def rule(*both: Any) -> Any:
        return jax.jvp(lambda *args: [*bound(equation, args)], *both)

    function.defjvp(lambda primals, tangents: traced(evaluation, rule, name)(primals, tangents))
    return function(*values)


def _with_vjp(evaluation: Evaluation, equation: Any, values: Values, name: str) -> Values:
    """A function with its own backward derivative: the rule is evaluated as the function is."""
    jaxpr = equation.params.get("call_jaxpr", equation.params.get("fun_jaxpr"))

    @jax.custom_vjp
    def function(*args: Any) -> list[Any]:
        return evaluation.closed(jaxpr, args, name)

    def forward(*args: Any) -> Any:
        return traced(evaluation, partial(jax.vjp, lambda *a: [*bound(equation, a)]), name)(*args)

    def backward(pulled: Any, cotangents: Any) -> Any:
        return traced(evaluation, lambda pull, given: pull(given), name)(pulled, cotangents)

    function.defvjp(forward, backward)
    return function(*values)


def _sharded(evaluation: Evaluation, equation: Any, values: Values, name: str) -> Values:
    parameters = equation.params
    function = jax.shard_map(
        lambda *args: evaluation.outputs(parameters["jaxpr"], (), args, name),
        mesh=parameters["mesh"],
        in_specs=tuple(parameters["in_specs"]),
        out_specs=[*parameters["out_specs"]],
        axis_names=set(parameters["newly_manual_axes"]),
        check_vma=parameters["check_vma"],
    )
    return function(*values)


Rule = Callable[[Evaluation, Any, Values, str], Values]
RULES: dict[str, Rule] = {
    **dict.fromkeys(("jit", "pjit"), _compiled),
    **dict.fromkeys(("closed_call", "core_call"), _inlined),
    "scan": _scanned,
    "while": _repeated,
    "cond": _branched,
    **dict.fromkeys(("checkpoint", "remat", "remat2"), _rematerialised),
    "custom_jvp_call": _with_jvp,
    **dict.fromkeys(("custom_vjp_call", "custom_vjp_call_jaxpr"), _with_vjp),
    "shard_map": _sharded,
}
