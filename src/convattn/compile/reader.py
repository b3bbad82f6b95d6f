"""A function of images, as JAX traces it, read as a network of values.

Each equation of the jaxpr that depends on the images is an affine map of stored values, a function
of one number applied to all of them, or the larger of two affine maps, max(x, y) = x + ReLU(y - x)
(`rules.py`). A value is stored where a function is applied, and where a convolution reads what is
not stored. What depends on no image is computed as JAX does.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from convattn.compile.affine import CENTRE, Affine, Border, Terms, Value
from convattn.compile.lattice import Lattice, Pair
from convattn.compile.network import Network, Node, NotCompiled
from convattn.compile.scalar import IDENTITY, Units, units_of
from convattn.compile.symbol import (
    BATCH,
    COLUMN,
    FEATURE,
    OUTSIDE,
    ROW,
    Flat,
    Sign,
    Symbol,
    whole_places,
)
from convattn.networks.transformation.evaluation import bind

Rule = Callable[["Reader", list[Any], Any], Any]
IDENTICAL = Units()
RELU = Units(bends=((0.0, 1.0, -1),))
_PACKAGES = ("jax", "jaxtyping", "flax", "convattn")  # whose code is not the user's own
_INNER = ("jaxpr", "call_jaxpr", "fun_jaxpr")
_CALLS = (
    "jit",
    "pjit",
    "closed_call",
    "custom_jvp_call",
    "custom_vjp_call",
    "remat2",
    "checkpoint",
)


def read_network(
    function: Callable[..., Any], example: Sequence[Any], patch: Pair, channels_first: bool
) -> Network:
    """The network of a function, whose last argument is a batch of images.

    Raises:
        NotCompiled: For what is not recognised.
    """
    *parameters, images = example
    one = jax.ShapeDtypeStruct((1, *images.shape[1:]), images.dtype)
    closed, shapes = _traced(function, parameters, one)
    outputs = [leaf.shape for leaf in jax.tree.leaves(shapes)]
    if len(outputs) != 1 or len(outputs[0]) != 2 or outputs[0][0] != 1:
        raise NotCompiled(
            f"the function gives arrays of the shapes {outputs} for one image, but expected logits "
            "[batch, classes]"
        )
    axes = (1, 2, 3) if channels_first else (3, 1, 2)
    channels, height, width = (images.shape[axis] for axis in axes)
    image = Value("the image", channels, Lattice((1, 1), (height, width), patch))
    roles = (BATCH, FEATURE, ROW, COLUMN) if channels_first else (BATCH, ROW, COLUMN, FEATURE)
    places = whole_places((height, width))
    symbol = Symbol(Affine.of(image), roles, np.arange(channels), places)
    reader = Reader()
    constants = [np.asarray(leaf) for leaf in jax.tree.leaves(parameters)]
    (output,) = reader.run(closed, [*constants, symbol])
    if not isinstance(output, Symbol) or output.affine.lattice is not None:
        raise NotCompiled("the output is no vector of logits that depends on the images")
    output = reader.linear(output)
    return Network(image, tuple(reader.nodes), output.affine.taken(output.index.ravel()))


def _traced(function: Callable[..., Any], parameters: Sequence[Any], one: Any) -> Any:
    """The jaxpr of a function of one image, and the shapes of its outputs.

    Raises:
        NotCompiled: If it branches on the image, or changes its own state.
    """
    try:
        return jax.make_jaxpr(function, return_shape=True)(*parameters, one)
    except jax.errors.ConcretizationTypeError as error:
        raise NotCompiled(
            "the function branches on the image, or makes a number of Python of it: " + str(error)
        ) from error
    except Exception as error:
        if type(error).__name__ == "TraceContextError":
            raise NotCompiled(
                "the function changes its state as it runs, as batch norm in training and dropout "
                f"do; call model.eval() before ({error})"
            ) from error
        error.add_note(f"The function was called on one image, of shape {one.shape}.")
        raise


class Reader:
    """Reads equations one after the other, and stores values."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.ones: dict[Lattice | None, Value] = {}
        self.kept: list[tuple[Symbol, Affine]] = []  # what was stored for a function
        self.nonnegative: list[Affine] = []  # beside what ReLU gives
        self.line = ""

    def is_nonnegative(self, affine: Affine) -> bool:
        """Whether no number can be negative: it is what ReLU gives, or the largest of that."""
        if any(affine is known for known in self.nonnegative):
            return True
        ((value, _), taps), *others = affine.terms.items()
        node = next((node for node in self.nodes if node.value is value), None)
        alone = not others and set(taps) == {CENTRE} and bool((taps[CENTRE] >= 0).all())
        return alone and node is not None and node.units == RELU

    def refusal(self, what: str) -> NotCompiled:
        """The error for the equation at hand."""
        return NotCompiled(f"{self.line}: {what}")

    def run(self, closed: ClosedJaxpr, arguments: Sequence[Any]) -> list[Any]:
        """The outputs of a jaxpr."""
        jaxpr = closed.jaxpr
        values = dict(zip(jaxpr.constvars, closed.consts, strict=True))
        values |= dict(zip(jaxpr.invars, arguments, strict=True))

        def read(variable: Any) -> Any:
            return variable.val if isinstance(variable, Literal) else values[variable]

        for equation in jaxpr.eqns:
            outputs = self.equation(equation, [read(variable) for variable in equation.invars])
            values |= dict(zip(equation.outvars, outputs, strict=True))
        return [read(variable) for variable in jaxpr.outvars]

    def equation(self, equation: Any, inputs: list[Any]) -> Sequence[Any]:
        """The outputs of an equation."""
        from convattn.compile.rules import RULES

        primitive, parameters = equation.primitive, equation.params
        if not any(isinstance(value, Symbol | Sign | Flat) for value in inputs):
            return bind(equation, inputs)
        if all(0 in variable.aval.shape for variable in equation.outvars):
            return [np.zeros(variable.aval.shape) for variable in equation.outvars]
        self.line = f"{primitive.name} at {_place(equation)}"
        if primitive.name in _CALLS:
            inner = next(parameters[name] for name in _INNER if name in parameters)
            closed = inner if isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner, ())
            return self.run(closed, inputs)
        if primitive.name == "scan":
            return self._unrolled(parameters, inputs)
        rule = RULES.get(primitive.name)
        if rule is None:
            raise self.refusal(
                "is not recognised; known are convolutions, linear maps, sums, pooling, batch "
                "norms at fixed statistics, piecewise linear functions such as ReLU, and exact GELU"
            )
        found, expected = rule(self, inputs, equation), equation.outvars[0].aval.shape
        if isinstance(found, Symbol) and found.shape[1:] != expected[1:] and BATCH in found.roles:
            raise self.refusal(f"gives an array {expected}, which was read as {found.shape}")
        return [found]

    def _unrolled(self, parameters: Any, inputs: list[Any]) -> list[Any]:
        """A scan, step by step; what it stacks must not depend on the images."""
        consts, carried = parameters["num_consts"], parameters["num_carry"]
        fixed, carry = inputs[:consts], inputs[consts : consts + carried]
        stacked = inputs[consts + carried :]
        steps = range(parameters["length"])
        line, results = self.line, []
        for step in reversed(steps) if parameters["reverse"] else steps:
            outputs = self.run(parameters["jaxpr"], [*fixed, *carry, *(x[step] for x in stacked)])
            carry, rest = outputs[:carried], outputs[carried:]
            results.append(rest)
        self.line = line
        if any(isinstance(value, Symbol | Sign | Flat) for rest in results for value in rest):
            raise self.refusal("stacks what depends on the images; give its carry alone")
        if parameters["reverse"]:
            results.reverse()
        return [*carry, *(np.stack(column) for column in zip(*results, strict=True))]

    # Values.

    def constant(self, like: Affine, numbers: np.ndarray) -> Affine:
        """A bias: numbers by channel."""
        if like.lattice not in self.ones:
            self.ones[like.lattice] = Value("1", 1, like.lattice, is_one=True)
        row = np.broadcast_to(np.asarray(numbers, np.float64), (1, like.channels))
        terms: Terms = {(self.ones[like.lattice], "zeros"): {CENTRE: row}}
        return replace(like, terms=terms)

    def stored(self, affine: Affine, units: Units = IDENTICAL) -> Affine:
        """A new value, a function of an affine map."""
        value = Value(f"value {len(self.nodes) + 1}", affine.channels, affine.lattice)
        shift, units = units.shift, replace(units, shift=0.0)
        self.nodes.append(Node(value, affine, units))
        found = Affine.of(value)
        return found.plus(self.constant(found, np.array(shift))) if shift else found

    def linear(self, symbol: Symbol) -> Symbol:
        """With the identity for its function: folded into the affine map, or stored."""
        symbol = symbol.ordered()
        function, affine = symbol.function, symbol.affine
        if function is IDENTITY:
            return symbol
        if function.slope is not None:
            affine = affine.scaled(np.full(affine.channels, function.slope))
            if function.shift:
                affine = affine.plus(self.constant(affine, np.array(function.shift)))
            return replace(symbol, affine=affine, function=IDENTITY)
        for earlier, stored in self.kept:
            if earlier.function is function and earlier.affine is affine:
                return replace(symbol, affine=stored, function=IDENTITY)
        units = units_of(function)
        if units is None:
            raise self.refusal(
                "needs a function of one number that is neither piecewise linear nor the exact "
                "GELU (SiLU, tanh, the approximate GELU, hard swish, …), which the MLP of a vision "
                "transformer does not compute; take ReLU, ReLU6, LeakyReLU or the exact GELU"
            )
        stored = self.stored(affine, units)
        self.kept.append((symbol, stored))
        return replace(symbol, affine=stored, function=IDENTITY)

    def pointwise(self, symbol: Symbol) -> Symbol:
        """Linear, and stored if it reads other points than its own."""
        symbol = self.linear(symbol)
        if symbol.affine.is_pointwise:
            return symbol
        for earlier, stored in self.kept:
            if earlier.function is IDENTITY and earlier.affine is symbol.affine:
                return replace(symbol, affine=stored)
        stored = self.stored(symbol.affine)
        self.kept.append((symbol, stored))
        return replace(symbol, affine=stored)

    def whole(self, symbol: Symbol) -> Symbol:
        """Linear, with every point at its place; rows and columns at a stride become a lattice."""
        symbol = self.linear(symbol)
        if symbol.is_whole:
            return symbol
        symbol = self.pointwise(symbol)
        lattice = symbol.affine.lattice
        assert lattice is not None
        rows, columns = (
            _progression(places, count)
            for places, count in zip(symbol.places, lattice.count, strict=True)
        )
        borders = {axis[2] for axis in (rows, columns) if axis is not None and axis[2] is not None}
        if rows is None or columns is None or len(borders) > 1:
            raise self.refusal(
                "takes rows or columns in another order or number than the map has; what is laid "
                "around a map must be read by a convolution, a pooling or slices of its size next"
            )
        border: Border = borders.pop() if borders else "zeros"
        self.require_border(border, symbol.affine)
        count = (len(symbol.places[0]), len(symbol.places[1]))
        affine = symbol.affine.convolved(
            np.eye(symbol.affine.channels)[None, None],
            stride=(rows[1], columns[1]),
            before=(-rows[0], -columns[0]),
            count=count,
            border=border,
        )
        return replace(symbol, affine=affine, places=whole_places(count))

    def require_border(self, border: Border, affine: Affine) -> None:
        """Refuse what no token's code reads."""
        if border == "edge" and affine.lattice is not None and max(affine.lattice.held) > 1:
            raise self.refusal("reads the nearest pixel beyond the border; take patch_size=1")


def _progression(places: Sequence[int], count: int) -> tuple[int, int, Border | None] | None:
    """The first place, the step, and what is beyond, where places are evenly apart on an axis.

    >>> _progression((OUTSIDE, 0, 1), 3), _progression((0, 2), 4), _progression((1, 2, 0), 3)
    ((-1, 1, 'zeros'), (0, 2, None), (1, 1, 'circular'))
    """
    inside = [(number, place) for number, place in enumerate(places) if place != OUTSIDE]
    if not inside:
        return None
    (i, first), (j, last) = inside[0], inside[-1]
    steps = np.arange(len(places))
    for step in [(last - first) // (j - i)] if j > i else range(1, count + 1):
        expected = first + step * (steps - i)
        beyond = (expected < 0) | (expected >= count)
        same = np.where(beyond, OUTSIDE, expected).tolist() == list(places)
        if same and step > 0 and (len(places) == 1 or (len(places) - 1) * step < count):
            found = step if len(places) > 1 else count
            return first - step * i, found, "zeros" if beyond.any() else None
    starts = sorted(range(1 - len(places), count), key=abs)
    for start in starts if len(places) <= count else ():
        if ((start + steps) % count).tolist() == list(places):
            return start, 1, "circular"
        if np.clip(start + steps, 0, count - 1).tolist() == list(places):
            return start, 1, "edge"
    return None


def _place(equation: Any) -> str:
    """The file and line of the function's own code that an equation comes from."""
    traceback = equation.source_info.traceback
    own = [
        frame
        for frame in ([] if traceback is None else traceback.frames)
        if not any(f"/{package}/" in frame.file_name for package in _PACKAGES)
    ]
    return f"{own[0].file_name}:{own[0].line_num}" if own else "an unknown place"
