"""A function of images, as JAX traces it, read as a network of values.

Each equation of the jaxpr that depends on the images moves numbers (`moves.py`), is a function of
one number or joins two affine maps (`elementwise.py`), reads neighbours (`windows.py`) or is a
linear map of many (`contractions.py`). A value is stored where a function is applied that is not
affine, and where neighbours are read of what is not stored. What depends on no image is computed as
JAX does.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from convattn.compile.affine import CENTRE, MEAN, Affine, Terms, Value, concatenated
from convattn.compile.lattice import Lattice, Pair
from convattn.compile.network import Network, Node, NotCompiled
from convattn.compile.scalar import IDENTITY, Units, normal_form
from convattn.compile.symbol import IMAGES, Map, Sign, Symbol, placed, renumbered
from convattn.networks.transformation.evaluation import bind

Rule = Callable[["Reader", list[Any], Any], Any]
RELU = Units(bends=((0.0, 1.0, -1),))
# Whose code is not the user's own.
_PACKAGES = (
    "jax",
    "jaxtyping",
    "flax",
    "equinox",
    "haiku",
    "keras",
    "torch",
    "torchax",
    "convattn",
)
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
_BRANCHES = ("cond", "while")


def read_network(
    function: Callable[..., Any], example: Sequence[Any], patch: Pair, channels_first: bool
) -> Network:
    """The network of a function, whose last argument is a batch of images.

    Raises:
        NotCompiled: For what is not recognised.
    """
    *parameters, images = example
    two = jax.ShapeDtypeStruct((IMAGES, *images.shape[1:]), images.dtype)
    closed, shapes = _traced(function, parameters, two)
    outputs = [leaf.shape for leaf in jax.tree.leaves(shapes)]
    if not hasattr(shapes, "shape") or len(shapes.shape) != 2 or shapes.shape[0] != IMAGES:
        raise NotCompiled(
            f"the function gives arrays of the shapes {outputs} for {IMAGES} images, but expected "
            "logits: one array [batch, classes], in no container"
        )
    axes = (1, 2, 3) if channels_first else (3, 1, 2)
    channels, height, width = (images.shape[axis] for axis in axes)
    image = Value("the image", channels, Lattice((1, 1), (height, width), patch))
    whole = Map(np.arange(height), np.arange(width), np.arange(channels))
    index = placed((height, width), channels, whole)
    symbol = Symbol(Affine.of(image), np.moveaxis(index, -1, 1) if channels_first else index)
    reader = Reader()
    constants = [np.asarray(leaf) for leaf in jax.tree.leaves(parameters)]
    (output,) = reader.run(closed, [*constants, symbol])
    if not isinstance(output, Symbol):
        raise NotCompiled("the logits do not depend on the images, but expected a network of them")
    logits = reader.logits(output)  # it may store values
    return Network(image, tuple(reader.nodes), logits)


def _traced(function: Callable[..., Any], parameters: Sequence[Any], two: Any) -> Any:
    """The jaxpr of a function of two images, and the shapes of its outputs.

    Raises:
        NotCompiled: If it branches on the image, or changes its own state.
    """
    try:
        return jax.make_jaxpr(function, return_shape=True)(*parameters, two)
    except jax.errors.JAXTypeError as error:
        raise NotCompiled(
            "the function branches on the image, or makes a number of Python or an array of NumPy "
            "of it; compile what it does on one of the branches, in operations of jax.numpy: "
            + str(error)
        ) from error
    except Exception as error:
        if type(error).__name__ == "TraceContextError":
            raise NotCompiled(
                "the function changes its state as it runs, as batch norm in training and dropout "
                f"do; call model.eval() before ({error})"
            ) from error
        error.add_note(f"The function was called on {IMAGES} images, of the shape {two.shape}.")
        raise


class Reader:
    """Reads equations one after the other, and stores values."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.ones: dict[Lattice | None, Value] = {}
        self.kept: list[tuple[Symbol, Symbol]] = []  # what was stored, and what for
        self.place = ""  # a file and a line
        self.scope = ""  # modules, and operators of PyTorch
        self.line = ""

    def refusal(self, what: str, line: str = "") -> NotCompiled:
        """The error for the equation at hand."""
        return NotCompiled(f"{line or self.line}: {what}")

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
        from convattn.compile.rules import MOVES, RULES

        primitive, parameters = equation.primitive, equation.params
        if not any(isinstance(value, Symbol | Sign) for value in inputs):
            return bind(equation, inputs)
        if primitive.name in MOVES and all(0 in v.aval.shape for v in equation.outvars):
            return [np.zeros(v.aval.shape, v.aval.dtype) for v in equation.outvars]
        outer = self.place, self.scope
        self.place = _place(equation) or self.place
        scopes = self.scope, str(equation.source_info.name_stack)
        self.scope = "/".join(filter(None, scopes))
        where = [f"at {self.place}"] if self.place else []
        where += [f"in {self.scope}"] if self.scope else []
        self.line = f"{primitive.name} {', '.join(where) or 'at an unknown place'}"
        try:
            if primitive.name in _CALLS:
                inner = next(parameters[name] for name in _INNER if name in parameters)
                closed = inner if isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner, ())
                return self.run(closed, inputs)
            if primitive.name == "scan":
                return self._unrolled(parameters, inputs)
            rule = RULES.get(primitive.name)
            if rule is None:
                raise self.refusal(self._unknown(primitive.name))
            outputs = rule(self, inputs, equation)
        finally:
            self.place, self.scope = outer
        return outputs if isinstance(outputs, list) else [outputs]

    def _unknown(self, name: str) -> str:
        if name in _BRANCHES:
            return (
                "branches on the image, which no vision transformer does; compile what it does on "
                "one of the branches"
            )
        return (
            "is not recognised; known are convolutions, linear maps, sums, pooling, batch norms at "
            "fixed statistics, piecewise linear functions such as ReLU, and exact GELU"
        )

    def _unrolled(self, parameters: Any, inputs: list[Any]) -> list[Any]:
        """A scan, step by step; what it stacks must not depend on the images."""
        consts, carried = parameters["num_consts"], parameters["num_carry"]
        fixed, carry = inputs[:consts], inputs[consts : consts + carried]
        stacked = inputs[consts + carried :]
        steps = range(parameters["length"])
        line, results = self.line, []
        if any(isinstance(value, Symbol | Sign) for value in stacked):
            raise self.refusal("goes over rows, columns, channels or images one after the other")
        for step in reversed(steps) if parameters["reverse"] else steps:
            outputs = self.run(parameters["jaxpr"], [*fixed, *carry, *(x[step] for x in stacked)])
            carry, rest = outputs[:carried], outputs[carried:]
            results.append(rest)
        self.line = line
        if any(isinstance(value, Symbol | Sign) for rest in results for value in rest):
            raise self.refusal("stacks what depends on the images; give its carry alone")
        if parameters["reverse"]:
            results.reverse()
        return [*carry, *(np.stack(column) for column in zip(*results, strict=True))]

    # Values.

    def constant(self, like: Affine, numbers: np.ndarray) -> Affine:
        """A bias: numbers by channel."""
        if like.lattice not in self.ones:
            self.ones[like.lattice] = Value("1", 1, like.lattice, is_one=True)
        row = np.array(np.broadcast_to(np.asarray(numbers, np.float64), (1, like.channels)))
        terms: Terms = {(self.ones[like.lattice], "zeros"): {CENTRE: row}}
        return replace(like, terms=terms)

    def stored(self, affine: Affine, units: Units | None = None) -> Affine:
        """A new value, a function of an affine map."""
        value = Value(f"value {len(self.nodes) + 1}", affine.channels, affine.lattice)
        self.nodes.append(Node(value, affine.simplified(), units or Units()))
        return Affine.of(value)

    def linear(self, symbol: Symbol) -> Symbol:
        """With the identity for its function: folded into the affine map, or stored."""
        function, affine = symbol.function, symbol.affine
        if function is IDENTITY or (symbol.index < 0).all():
            return replace(symbol, function=IDENTITY)
        if function.line is not None:
            slope, shift = function.line
            affine = affine.scaled(slope)
            if shift:
                affine = affine.plus(self.constant(affine, np.array(shift)))
            return replace(symbol, affine=affine, function=IDENTITY)
        symbol = self._used(symbol)
        if (earlier := self._kept(symbol)) is not None:
            return earlier
        form = normal_form(function)
        if form is None:
            raise self.refusal(
                "is a function of one number that is neither piecewise linear nor the exact GELU "
                "(SiLU, tanh, the approximate GELU, hard swish, squares, …), which the MLP of a "
                "vision transformer does not compute; take ReLU, ReLU6, LeakyReLU or exact GELU",
                symbol.line,
            )
        inner = symbol.affine.scaled(form.scale)
        if form.bias:
            inner = inner.plus(self.constant(inner, np.array(form.bias)))
        value = self.stored(inner, form.units)
        if form.outer != 1:
            value = value.scaled(form.outer)
        if form.shift:
            value = value.plus(self.constant(value, np.array(form.shift)))
        self.kept.append((symbol, replace(symbol, affine=value, function=IDENTITY)))
        return self.kept[-1][1]

    def _used(self, symbol: Symbol) -> Symbol:
        """Without the channels that stand nowhere."""
        channels = symbol.affine.channels
        used = np.unique(symbol.index[symbol.index >= 0] % channels)
        if len(used) == channels:
            return symbol
        rank = np.zeros(channels, np.int64)
        rank[used] = np.arange(len(used))
        index = renumbered(symbol.index, channels, len(used), rank)
        return replace(symbol, affine=symbol.affine.taken(used), index=index)

    def _kept(self, symbol: Symbol) -> Symbol | None:
        """What was stored before for the same function of the same numbers, at these places."""
        for earlier, stored in self.kept:
            if earlier.function is symbol.function and earlier.affine is symbol.affine:
                return replace(symbol, affine=stored.affine, function=IDENTITY)
        return None

    def pointwise(self, symbol: Symbol) -> Symbol:
        """Linear, and stored if it reads other points than its own."""
        symbol = self.linear(symbol)
        if symbol.affine.is_pointwise:
            return symbol
        if (earlier := self._kept(symbol)) is not None:
            return earlier
        value = replace(symbol, affine=self.stored(symbol.affine))
        self.kept.append((symbol, value))
        return value

    def whole(self, symbol: Symbol) -> Symbol:
        """With every point of its map at its place; a single point becomes a vector."""
        from convattn.compile.windows import at_its_places

        return at_its_places(self, symbol)

    def logits(self, output: Symbol) -> Affine:
        """The affine map of a vector of logits."""
        symbol = self.whole(output)
        affine, index = symbol.affine, symbol.index
        images = np.arange(IMAGES)[:, None] * affine.channels
        if affine.lattice is not None or not np.array_equal(
            np.where(index < 0, index, index - images)[1], index[0]
        ):
            raise NotCompiled(
                f"the logits {output.index.shape[1:]} are pixels of a map, or of several images, "
                "but expected a vector [batch, classes] of each; average over rows and columns, or "
                "apply a linear classifier"
            )
        zero = replace(affine, channels=1, terms={})
        return concatenated([affine, zero]).taken(index[0]).simplified()

    def lowest(self, affine: Affine) -> np.ndarray:
        """A number below each channel of an affine map."""
        ranges = {node.value: node.units.range for node in self.nodes}
        total = np.zeros(affine.channels)
        for (value, _), taps in affine.terms.items():
            low, high = (1.0, 1.0) if value.is_one else ranges.get(value, (-np.inf, np.inf))
            for where, matrix in taps.items():
                if where not in (CENTRE, MEAN):  # a neighbour may be a zero beyond the border
                    low, high = min(low, 0.0), max(high, 0.0)
                least = np.zeros(matrix.shape)
                least[matrix > 0] = (matrix * low)[matrix > 0] if np.isfinite(low) else -np.inf
                least[matrix < 0] = (matrix * high)[matrix < 0] if np.isfinite(high) else -np.inf
                total = total + least.sum(0)
        return total


def _place(equation: Any) -> str | None:
    """The file and line of the function's own code that an equation comes from."""
    traceback = equation.source_info.traceback
    folders = tuple(
        str(Path(file).parent) + "/"
        for name in _PACKAGES
        if (file := getattr(sys.modules.get(name), "__file__", None)) is not None
    )
    for frame in [] if traceback is None else traceback.frames:
        if not frame.file_name.startswith((*folders, "<")):
            return f"{frame.file_name}:{frame.line_num}"
    return None
