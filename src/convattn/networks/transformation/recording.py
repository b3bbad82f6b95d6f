"""A function run on an example twice, side by side: as it is, and with attention.

Both runs go equation by equation on values. Loops are run step by step and the branch that is taken
is followed, so that every convolution is seen with the images that it is given.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from convattn.encodings.layer import AttentionLayer
from convattn.networks.transformation.attention import ConversionOptions
from convattn.networks.transformation.contents import convolutions_inside
from convattn.networks.transformation.convolution import Convolution, joined
from convattn.networks.transformation.deviation import Path, Tape, Value
from convattn.networks.transformation.evaluation import (
    RULES,
    Evaluation,
    Rule,
    Scope,
    Values,
    bind,
    stacked,
)
from convattn.networks.transformation.local_error import (
    Magnitudes,
    covered_backend,
    number_of_transposed_products,
    of_attention,
    of_convolution,
)
from convattn.networks.transformation.report import Measured, largest
from convattn.networks.transformation.rounding_rules import abs_gap, is_float
from convattn.networks.transformation.with_attention import Attending
from convattn.operators.arrays import is_traced

_JUMPS = {
    *("sign", "floor", "ceil", "round", "sort", "top_k", "approx_top_k", "argmax", "argmin"),
    *("gt", "ge", "lt", "le", "eq", "ne", "is_finite"),
}


class Call(NamedTuple):
    """One call of a convolution.

    Attributes:
        layer: The attention in its place.
        groups: Of channels.
        measured: On the same images; nothing where they are traced, no bound where none is derived.
        depends, loops: Of its kernel.
        steps: Of the scans around it, by path, the number of the one it is made in.
    """

    layer: AttentionLayer
    groups: int
    measured: Measured
    depends: bool
    loops: frozenset[Path]
    steps: Mapping[Path, int]


class Recording(Attending):
    """Both runs, and what they show of each convolution.

    Attributes:
        names: Of the convolutions, by path.
        calls, forms: Of those that became attention, by name.
        left: Those that did not, and why, one line each.
        tape: The equations that the difference went through.
        jumps: Whether one of them is a step, where the last bit may decide.
    """

    def __init__(self, options: ConversionOptions, names: Mapping[Path, str]) -> None:
        super().__init__(options)
        self.names = names
        self.paths = {name: path for path, name in names.items()}
        self.calls: dict[str, list[Call]] = {}
        self.forms: dict[str, tuple[Any, ...]] = {}
        self.left: list[str] = []
        self.lengths: dict[Path, int] = {}  # of each scan
        self.steps: dict[Path, int] = {}  # of each scan the one that is taken
        self.excluded: set[Path] = set()  # equations in which a layer cannot be put
        self.passed_over: set[Path] = set()  # equations of which it is noted
        self.tape = Tape()
        self.jumps = False

    @property
    def rules(self) -> Mapping[str, Rule]:
        """Each on values."""
        return _STEPWISE

    def argument(self, array: Any) -> Value:
        """An argument of the function."""
        return Value(array, array, depends=True)

    def constant(self, value: Any) -> Value:
        """The same in both runs."""
        return Value(value, value)

    def equation(self, equation: Any, values: Sequence[Value], scope: Scope) -> Values:
        """What holds a jaxpr is looked into where the runs differ, too."""
        if equation.primitive.name in ("stop_gradient", "name"):  # its result is its operand
            return values
        types = (variable.aval for variable in (*equation.invars, *equation.outvars))
        if any(isinstance(kind, jax.ref.AbstractRef) for kind in types):
            raise ValueError(
                f"{joined(scope.name, equation) or 'the function'} changes an array in place "
                "(jax.new_ref), which the two runs that are compared would share; give the array "
                "as an argument and a result, or take with_attention, which compares nothing"
            )
        rule = self.rules.get(equation.primitive.name)
        left = [*convolutions_inside(equation, scope.name)]
        if rule is not None and (left or any(value.differs for value in values)):
            return rule(self, equation, values, scope.inside(equation))
        if left:
            self.unreached(scope, equation)
        return super().equation(equation, values, scope)

    def bind(self, equation: Any, values: Sequence[Value]) -> list[Value]:
        """An equation in both runs."""
        outputs = self.both(equation, values)
        if not is_traced([value.right for value in (*values, *outputs)]):
            self.tape.note(equation, values, outputs)
        return outputs

    def both(self, equation: Any, values: Sequence[Value]) -> list[Value]:
        """Its results."""
        left = bind(equation, [value.left for value in values])
        same = not any(value.differs for value in values)
        self.jumps |= not same and equation.primitive.name in _JUMPS
        right = left if same else bind(equation, [value.right for value in values])
        depends = any(value.depends for value in values)
        loops = frozenset[Path]().union(*(value.loops for value in values))
        return [
            Value(one, one if same or agree(one, other) else other, depends, loops)
            for one, other in zip(left, right, strict=True)
        ]

    def function(self, function: Callable[..., Any], *values: Value) -> Value:
        """A function of arrays in both runs."""
        jaxpr = jax.make_jaxpr(function)(*(value.left for value in values))
        (result,) = self.closed(jaxpr, values, Scope())
        return result

    def convolve(self, scope: Scope, equation: Any, images: Any, kernel: Any) -> Value:
        """A convolution in one run, and attention in the other."""
        convolution, path = Convolution.of(equation, scope.name), scope.inside(equation).path
        name = self.names.get(path, str(convolution))
        reason = self.options.reason_to_keep(convolution)
        if reason is not None:
            return self._keep_convolution(convolution, equation, (images, kernel), name, reason)
        layer = self.options.layer(convolution, convolution.kernel(kernel.left))
        (left,) = bind(equation, (images.left, kernel.left))
        options = self.options
        if options.backend == "auto" and not is_traced([layer]):
            options = options.with_backend(covered_backend(convolution, layer))
        once = not is_traced([layer, left])
        same = right = options.outputs(convolution, layer, images.left, once)
        if images.differs or kernel.differs:
            other = layer
            if kernel.differs:
                other = self.options.layer(convolution, convolution.kernel(kernel.right))
            right = options.outputs(convolution, other, images.right, once)
        depends, loops = images.depends or kernel.depends, images.loops | kernel.loops
        result = Value(left, right, depends, loops)
        difference = bound = most = None
        if not is_traced([left, right]):
            difference = largest([np.asarray(same) - np.asarray(left)])
            most = largest([left])
            attention, own = of_attention(convolution, layer), of_convolution(convolution)
            if attention is None:
                form = "the limit form" if options.form == "limit" else "this form"
                kind = f"attention in {form} and {convolution.layer_dtype.name}"
                self.tape.note_unknown(kind, (result,))
            else:
                sizes = Magnitudes.of(convolution, images.left, kernel.left)
                bound = float((sizes.error(attention) + sizes.error(own)).max(initial=0))
                there = sizes
                if images.differs or kernel.differs:
                    there = Magnitudes.of(convolution, images.right, kernel.right)
                rounded = sizes.error(own) + there.error(attention)
                self._note(convolution, equation, (images, kernel), result, rounded)
        of_kernel = kernel.depends, kernel.loops, {**self.steps}
        call = Call(layer, convolution.groups, Measured(difference, bound, most), *of_kernel)
        self.calls.setdefault(name, []).append(call)
        self.forms[name] = convolution.form
        return result

    def _keep_convolution(
        self,
        convolution: Convolution,
        equation: Any,
        operands: tuple[Value, Value],
        name: str,
        reason: str,
    ) -> Value:
        """A convolution that stays one in both runs."""
        line = f"{name}, kernel {convolution.kernel_shape}: {reason}"
        if line not in self.left:
            self.left.append(line)
        if reason == convolution.reason:
            self.require_converted(name, reason)
        (result,) = self.both(equation, operands)
        if result.differs and not is_traced([result.left]):
            own = of_convolution(convolution)
            sides = zip(*((value.left, value.right) for value in operands), strict=True)
            sizes = [Magnitudes.of(convolution, *side).error(own) for side in sides]
            self._note(convolution, equation, operands, result, sizes[0] + sizes[1])
        return result

    def _note(
        self,
        convolution: Convolution,
        equation: Any,
        operands: tuple[Value, Value],
        result: Value,
        rounded: np.ndarray,
    ) -> None:
        """|r| + |r'|, and γ_n |M||d|, n being the terms of a sum of Mᵀ too."""
        images, kernel = operands
        terms = number_of_transposed_products(convolution)
        if images.differs:
            gap = abs_gap(images.left, images.right)
            sizes = Magnitudes.of(convolution, gap, kernel.left)
            rounded = rounded + sizes.error(of_convolution(convolution, terms))
        if kernel.differs:
            gap = abs_gap(kernel.left, kernel.right)
            sizes = Magnitudes.of(convolution, images.left, gap)
            pixels = math.prod(result.left.shape)
            rounded = rounded + sizes.error(of_convolution(convolution, pixels))
        self.tape.note(equation, operands, (result,), rounded)

    def unreached(self, scope: Scope, equation: Any) -> None:
        """Note what is not converted, each convolution once."""
        nested = scope.inside(equation)
        if nested.path not in self.passed_over:
            self.passed_over.add(nested.path)
            for line in convolutions_inside(equation, scope.name):
                where = "" if "inside" in line else f" inside {equation.primitive.name}"
                self.left.append(f"{nested.name or 'unnamed'}: {line}{where}")
        super().unreached(scope, equation)

    def layer(self, name: str, calls: list[Call]) -> AttentionLayer | None:
        """The layer of a convolution, or those of all its steps in one; None if it has none."""
        path = self.paths.get(name)
        if path is None or any(call.depends for call in calls):
            return None
        if any(path[: len(prefix)] == prefix for prefix in self.excluded):
            return None
        loops = self.loops(name)
        scans = [scan for scan in self.scans(path) if scan in loops]
        lengths = [self.lengths[scan] for scan in scans]
        layers = {tuple(call.steps[scan] for scan in scans): call.layer for call in calls}
        if len(scans) < len(loops) or len(layers) < math.prod(lengths):
            return None
        if not scans:
            return calls[0].layer

        def together(*parts: Any) -> Any:
            return jnp.stack(parts).reshape(*lengths, *jnp.shape(parts[0]))

        return jax.tree.map(together, *(layers[steps] for steps in sorted(layers)))

    def loops(self, name: str) -> frozenset[Path]:
        """The loops between whose steps the kernel differs."""
        return frozenset[Path]().union(*(call.loops for call in self.calls[name]))

    def scans(self, path: Path) -> list[Path]:
        """The scans around a convolution, the outermost first."""
        prefixes = (path[:depth] for depth in range(1, len(path)))
        return [prefix for prefix in prefixes if prefix in self.lengths]


def agree(one: Any, other: Any) -> bool:
    """Whether two results that are not of floating point are the same."""
    return not is_traced([one, other]) and not is_float(one) and bool((one == other).all())


def _in_place(evaluation: Recording, equation: Any, values: Values, scope: Scope) -> Values:
    """What an equation holds, evaluated in its place."""
    jaxpr = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
    if equation.primitive.name.startswith("custom"):
        evaluation.excluded.add(scope.path)
    if hasattr(jaxpr, "consts"):
        return evaluation.closed(jaxpr, values, scope)
    return evaluation.outputs(jaxpr, (), values, scope)


def _step_by_step(evaluation: Recording, equation: Any, values: Values, scope: Scope) -> Values:
    """A scan as a loop of Python."""
    parameters, body = equation.params, equation.params["jaxpr"]
    rows_in = stacked(equation.invars, body.jaxpr.invars)
    count = len(equation.outvars) - stacked(equation.outvars, body.jaxpr.outvars)
    first = len(values) - rows_in - count
    constants, carry = [*values[:first]], [*values[first : first + count]]
    rows, length = values[first + count :], parameters["length"]
    steps = range(length)[::-1] if parameters["reverse"] else range(length)
    evaluation.lengths[scope.path] = length
    changed = _changed_carry(body.jaxpr, first, count)
    collected: list[list[Value]] = []
    for step in steps:
        evaluation.steps[scope.path] = step
        carry = _in_loop(carry, changed, scope.path)
        row = [_row(evaluation, value, step, scope.path) for value in rows]
        outputs = evaluation.closed(body, [*constants, *carry, *row], scope)
        carry = outputs[:count]
        collected.append(outputs[count:])
    if parameters["reverse"]:
        collected.reverse()
    if not length:
        return evaluation.bind(equation, values)
    results = [
        *carry,
        *(evaluation.function(_together, *outputs) for outputs in zip(*collected, strict=True)),
    ]
    return [replace(value, loops=value.loops - {scope.path}) for value in results]


def _changed_carry(body: Any, constants: int, count: int) -> list[bool]:
    """Which of what a loop carries its body changes."""
    inputs = body.invars[constants : constants + count]
    return [old is not new for old, new in zip(inputs, body.outvars[:count], strict=True)]


def _in_loop(carry: Sequence[Value], changed: Sequence[bool], path: Path) -> list[Value]:
    """What a loop carries differs between its steps where the body changes it."""
    return [
        replace(value, loops=value.loops | {path}) if differs else value
        for value, differs in zip(carry, changed, strict=True)
    ]


def _row(evaluation: Recording, value: Value, step: int, path: Path) -> Value:
    row = evaluation.function(lambda array: array[step], value)
    return replace(row, loops=row.loops | {path})


def _together(*arrays: Any) -> Any:
    return jnp.stack(arrays)


def _while(evaluation: Recording, equation: Any, values: Values, scope: Scope) -> Values:
    """A loop as one of Python, as often as the function itself goes round."""
    parameters = equation.params
    first, second = parameters["cond_nconsts"], parameters["body_nconsts"]
    tested, looped = values[:first], values[first : first + second]
    carry = [*values[first + second :]]
    if is_traced([value.left for value in (*tested, *carry)]):
        evaluation.unreached(scope, equation)
        return evaluation.bind(equation, values)
    body = parameters["body_jaxpr"]
    changed = _changed_carry(body.jaxpr, second, len(carry))
    depends, loops = False, frozenset[Path]()  # of the number of steps
    while True:
        carry = _in_loop(carry, changed, scope.path)
        again = evaluation.closed(parameters["cond_jaxpr"], [*tested, *carry], scope)[0]
        depends, loops = depends or again.depends, loops | again.loops
        if again.differs:
            evaluation.tape.parted.add("while")
        if not again.left:
            break
        carry = evaluation.closed(body, [*looped, *carry], scope)
    return [
        replace(value, depends=value.depends or depends, loops=(value.loops | loops) - {scope.path})
        if differs
        else value
        for value, differs in zip(carry, changed, strict=True)
    ]


def _branch(evaluation: Recording, equation: Any, values: Values, scope: Scope) -> Values:
    """The branch that the function itself takes."""
    index, *operands = values
    if is_traced([index.left]):
        evaluation.unreached(scope, equation)
        return evaluation.bind(equation, values)
    branches = equation.params["branches"]
    branch = branches[min(max(int(index.left), 0), len(branches) - 1)]
    outputs = evaluation.closed(branch, operands, scope)
    if index.differs:
        evaluation.tape.parted.add("cond")
    return [
        replace(value, depends=value.depends or index.depends, loops=value.loops | index.loops)
        for value in outputs
    ]


def _sharded(evaluation: Recording, equation: Any, values: Values, scope: Scope) -> Values:
    """What runs on several devices: compared by its outputs."""
    evaluation.excluded.add(scope.path)
    left = bind(equation, [value.left for value in values])
    attending: Evaluation = Attending(evaluation.options, ties=False)
    rule = RULES[equation.primitive.name]
    right = rule(attending, equation, [value.right for value in values], scope)
    evaluation.tape.parted.add(equation.primitive.name)
    depends = any(value.depends for value in values)
    loops = frozenset[Path]().union(*(value.loops for value in values))
    return [Value(*both, depends, loops) for both in zip(left, right, strict=True)]


_STEPWISE: dict[str, Rule] = {
    **dict.fromkeys(RULES, _in_place),
    "scan": _step_by_step,
    "while": _while,
    "cond": _branch,
    "shard_map": _sharded,
}
