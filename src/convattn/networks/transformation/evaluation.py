"""A traced function evaluated equation by equation, its convolutions as one likes.

What holds a jaxpr (a compiled part, a loop, a branch, a checkpoint, a function with a derivative of
its own) is built anew by the public function that made it, around its evaluated jaxpr; where it
holds no convolution it is left as it is. The derivative of a function with its own rule is that
rule, evaluated in the same way.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core
from jax.extend.source_info_util import current_name_stack, user_context

from convattn.networks.transformation.contents import holds_convolution, is_convolution
from convattn.networks.transformation.convolution import joined

# Of programs that are run a few times, so that compiling them takes longer than running them.
COMPILE_QUICKLY = {
    "xla_backend_optimization_level": "0",
}
Values = Sequence[Any]


class Scope(NamedTuple):
    """Where an equation stands in a traced function.

    Attributes:
        name: The name stacks of the equations that hold it, joined.
        path: What identifies these equations.
    """

    name: str = ""
    path: tuple[int, ...] = ()

    def inside(self, equation: Any) -> "Scope":
        """That of the equations of a jaxpr that an equation here holds."""
        return Scope(joined(self.name, equation), (*self.path, id(equation)))


class Evaluation:
    """The way in which the equations of a function are evaluated."""

    @property
    def rules(self) -> Mapping[str, "Rule"]:
        """For each primitive that holds jaxprs, how it is evaluated."""
        return RULES

    def convolve(self, scope: Scope, equation: Any, images: Any, kernel: Any) -> Any:
        """The result of a convolution.

        Args:
            place: Of the equation that holds the convolution's.
        """
        raise NotImplementedError

    def unreached(self, scope: Scope, equation: Any) -> None:
        """Take note of an equation that holds convolutions and cannot be built anew."""

    def rows(self, scope: Scope) -> Any:
        """What a scan goes along besides its own, a pytree of arrays."""
        return {}

    def with_rows(self, rows: Any) -> "Evaluation":
        """The evaluation of the body of a scan, given one of these rows."""
        return self

    def closed(self, jaxpr: Any, values: Values, scope: Scope) -> list[Any]:
        """The outputs of a closed jaxpr."""
        return self.outputs(jaxpr.jaxpr, jaxpr.consts, values, scope)

    def outputs(self, jaxpr: Any, constants: Values, values: Values, scope: Scope) -> list[Any]:
        """The outputs of a jaxpr.

        Args:
            place: Of the equation that holds it.
        """
        stored = dict(zip(jaxpr.constvars, constants, strict=True))
        known: dict[Any, Any] = {name: self.constant(value) for name, value in stored.items()}
        known.update(zip(jaxpr.invars, values, strict=True))

        def read(atom: Any) -> Any:
            return self.constant(atom.val) if isinstance(atom, core.Literal) else known[atom]

        def result(atom: Any) -> Any:  # a literal need not be an array, but a result is one
            value = atom.val if isinstance(atom, core.Literal) else stored.get(atom)
            if value is None or isinstance(value, jax.Array):
                return read(atom)
            return self.constant(jnp.asarray(value))

        uses = _last_uses(jaxpr)
        for number, equation in enumerate(jaxpr.eqns):
            source = equation.source_info
            stack = current_name_stack() + source.name_stack
            with user_context(source.traceback, name_stack=stack), equation.ctx.manager:
                results = self.equation(equation, [*map(read, equation.invars)], scope)
            known.update(zip(equation.outvars, results, strict=True))
            for variable in uses.get(number, ()):
                known.pop(variable, None)
        return [*map(result, jaxpr.outvars)]

    def equation(self, equation: Any, values: Values, scope: Scope) -> Values:
        """The results of an equation."""
        if is_convolution(equation, scope.name):
            return [self.convolve(scope, equation, *values)]
        if holds_convolution(equation, scope.name):
            rule = self.rules.get(equation.primitive.name)
            if rule is not None:
                return rule(self, equation, values, scope.inside(equation))
            self.unreached(scope, equation)
        return self.bind(equation, values)

    def bind(self, equation: Any, values: Values) -> Values:
        """The results of an equation as it is."""
        return bind(equation, values)

    def constant(self, value: Any) -> Any:
        """A constant of a jaxpr as a value."""
        return value


def bind(equation: Any, values: Values) -> Values:
    """The results of an equation on any operands; a literal is one of them."""
    fresh = core.gensym()
    invars = [fresh(atom.aval) for atom in equation.invars]
    names = ("",) * len(invars), ("",) * len(equation.outvars)
    origin = core.DebugInfo("with_attention", equation.primitive.name, *names)
    alone = core.Jaxpr(
        (), invars, equation.outvars, [equation.replace(invars=invars)], equation.effects, origin
    )
    return core.jaxpr_as_fun(core.ClosedJaxpr(alone, ()))(*values)


def _last_uses(jaxpr: Any) -> dict[int, list[Any]]:
    """For each equation the variables that nothing after it reads."""
    live = {atom for atom in jaxpr.outvars if isinstance(atom, core.Var)}
    uses: dict[int, list[Any]] = {}
    for number in range(len(jaxpr.eqns) - 1, -1, -1):
        equation = jaxpr.eqns[number]
        for atom in (*equation.invars, *equation.outvars):
            if isinstance(atom, core.Var) and atom not in live:
                live.add(atom)
                uses.setdefault(number, []).append(atom)
    return uses


def traced(
    evaluation: Evaluation, function: Callable[..., Any], scope: Scope
) -> Callable[..., Any]:
    """A function of arrays, its equations evaluated in this way."""

    def evaluated(*arguments: Any) -> Any:
        jaxpr, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        outputs = evaluation.closed(jaxpr, jax.tree.leaves(arguments), scope)
        return jax.tree.unflatten(jax.tree.structure(shapes), outputs)

    return evaluated


def _inlined(evaluation: Evaluation, equation: Any, values: Values, scope: Scope) -> Values:
    jaxpr = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
    return evaluation.closed(jaxpr, values, scope)


def _compiled(evaluation: Evaluation, equation: Any, values: Values, scope: Scope) -> Values:
    """A compiled part: in place, as the whole is compiled or run step by step; shardings stay."""
    parameters = equation.params
    values = [*map(_constrained, values, parameters["in_shardings"])]
    outputs = evaluation.closed(parameters["jaxpr"], values, scope)
    return [*map(_constrained, outputs, parameters["out_shardings"])]


def _constrained(value: Any, sharding: Any) -> Any:
    if isinstance(sharding, jax.sharding.Sharding):
        return lax.with_sharding_constraint(value, sharding)
    return value


def _scanned(evaluation: Evaluation, equation: Any, values: Values, scope: Scope) -> Values:
    parameters, body_jaxpr = equation.params, equation.params["jaxpr"].jaxpr
    rows_in = stacked(equation.invars, body_jaxpr.invars)
    count = len(equation.outvars) - stacked(equation.outvars, body_jaxpr.outvars)
    first = len(values) - rows_in - count
    constants, start, rows = (
        values[:first],
        values[first : first + count],
        values[first + count :],
    )

    def body(carry: Values, both: Any) -> tuple[list[Any], list[Any]]:
        row, own = both
        values = [*constants, *carry, *row]
        outputs = evaluation.with_rows(own).closed(parameters["jaxpr"], values, scope)
        return outputs[:count], outputs[count:]

    carry, collected = lax.scan(
        body,
        [*start],
        ([*rows], evaluation.rows(scope)),
        length=parameters["length"],
        reverse=parameters["reverse"],
        unroll=parameters["unroll"],
    )
    return [*carry, *collected]


def stacked(outer: Sequence[Any], inner: Sequence[Any]) -> int:
    """How many variables of a scan have an axis more outside of its body: those it goes along."""
    pairs = zip(outer, inner, strict=True)
    return sum(len(one.aval.shape) > len(other.aval.shape) for one, other in pairs)


def _repeated(evaluation: Evaluation, equation: Any, values: Values, scope: Scope) -> Values:
    parameters = equation.params
    first, second = parameters["cond_nconsts"], parameters["body_nconsts"]
    tested, looped, start = (
        values[:first],
        values[first : first + second],
        values[first + second :],
    )

    def condition(carry: Values) -> Any:
        return evaluation.closed(parameters["cond_jaxpr"], [*tested, *carry], scope)[0]

    def body(carry: Values) -> list[Any]:
        return evaluation.closed(parameters["body_jaxpr"], [*looped, *carry], scope)

    return lax.while_loop(condition, body, [*start])


def _branched(evaluation: Evaluation, equation: Any, values: Values, scope: Scope) -> Values:
    index, *operands = values
    branches = [
        partial(lambda jaxpr, *args: evaluation.closed(jaxpr, args, scope), branch)
        for branch in equation.params["branches"]
    ]
    return lax.switch(index, branches, *operands)


def _rematerialised(evaluation: Evaluation, equation: Any, values: Values, scope: Scope) -> Values:
    parameters = equation.params
    function = jax.checkpoint(
        lambda *args: evaluation.outputs(parameters["jaxpr"], (), args, scope),
        prevent_cse=parameters["prevent_cse"],
        policy=parameters["policy"],
    )
    return function(*values)


def _with_jvp(evaluation: Evaluation, equation: Any, values: Values, scope: Scope) -> Values:
    """A function with its own forward derivative: the rule is evaluated as the function is."""
    own = _OwnRule(evaluation, equation, values, scope)
    function = jax.custom_jvp(own.function)

    def rule(primals: Any, tangents: Any) -> Any:
        return own.traced(lambda *both: jax.jvp(own.original, *both))(primals, tangents)

    function.defjvp(rule)
    return function(*own.values)


def _with_vjp(evaluation: Evaluation, equation: Any, values: Values, scope: Scope) -> Values:
    """A function with its own backward derivative: the rule is evaluated as the function is."""
    own = _OwnRule(evaluation, equation, values, scope)
    function = jax.custom_vjp(own.function)

    def forward(*args: Any) -> Any:
        return own.traced(partial(jax.vjp, own.original))(*args)

    def backward(vjp: Any, cotangents: Any) -> Any:
        return own.traced(lambda vjp, cotangent: vjp(cotangent))(vjp, cotangents)

    function.defvjp(forward, backward)
    return function(*own.values)


class _OwnRule:
    """A function with a derivative of its own, of what it does not close over.

    Attributes:
        values: Its arguments; the first of the equation's are closed over, and have no derivative.
    """

    def __init__(self, evaluation: Evaluation, equation: Any, values: Values, scope: Scope) -> None:
        count = equation.params["num_consts"]
        self.evaluation, self.equation, self.scope = evaluation, equation, scope
        self.closed_over, self.values = [*values[:count]], [*values[count:]]

    def function(self, *args: Any) -> list[Any]:
        """The function, evaluated."""
        jaxpr = self.equation.params["call_jaxpr"]
        return self.evaluation.closed(jaxpr, [*self.closed_over, *args], self.scope)

    def original(self, *args: Any) -> list[Any]:
        """The function as it is, with its derivative."""
        return [*bind(self.equation, [*self.closed_over, *args])]

    def traced(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """A rule of its derivative, evaluated as the function is."""
        return traced(self.evaluation, rule, self.scope)


def _sharded(evaluation: Evaluation, equation: Any, values: Values, scope: Scope) -> Values:
    parameters = equation.params
    function = jax.shard_map(
        lambda *args: evaluation.outputs(parameters["jaxpr"], (), args, scope),
        mesh=parameters["mesh"],
        in_specs=tuple(parameters["in_specs"]),
        out_specs=[*parameters["out_specs"]],
        axis_names=set(parameters["newly_manual_axes"]),
        check_vma=parameters["check_vma"],
    )
    return function(*values)


Rule = Callable[[Any, Any, Values, Scope], Values]
IN_PLACE = ("jit", "closed_call", "core_call")
RULES: dict[str, Rule] = {
    **dict.fromkeys(IN_PLACE, _inlined),
    "jit": _compiled,
    "scan": _scanned,
    "while": _repeated,
    "cond": _branched,
    **dict.fromkeys(("checkpoint", "remat2"), _rematerialised),
    "custom_jvp_call": _with_jvp,
    "custom_vjp_call": _with_vjp,
    "shard_map": _sharded,
}
