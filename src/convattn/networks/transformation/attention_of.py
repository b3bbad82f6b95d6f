"""`attention_of`: the attention layers of a function, the function of them, and a report."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from typing import Any, NamedTuple

import jax
from jax import Array

from convattn.encodings.layer import AttentionLayer
from convattn.networks.transformation.attention import AttentionOptions
from convattn.networks.transformation.convolution import Convolution
from convattn.networks.transformation.deviation import Path
from convattn.networks.transformation.evaluation import (
    RULES,
    Place,
    inner_jaxprs,
    is_convolution,
)
from convattn.networks.transformation.recording import Call, Recording
from convattn.networks.transformation.report import LayerReport, Report, output_difference
from convattn.networks.transformation.with_attention import Attending, Traced

UNNAMED = "convolution"


class Attention(NamedTuple):
    """Unpacks as `layers, apply, report`.

    Attributes:
        layers: By the names of the convolutions; a pytree. Before its own axes a layer has one for
            each scan between whose steps its kernel differs.
        apply: The function with these layers, or others of their structure:
            `apply(layers, *arguments)`.
        report: How it compares with the function on the example.
    """

    layers: dict[str, AttentionLayer]
    apply: Callable[..., Any]
    report: Report


def attention_of(function: Callable[..., Any], *example: Any, **options: Any) -> Attention:
    """The attention layers that take the place of a function's convolutions.

    A convolution whose kernel does not depend on the arguments has a layer of its own, which can be
    trained and saved. One whose kernel is computed from them (a filter that follows the image, or
    parameters that are arguments) is attention made from that kernel at each call; so is one in a
    loop without a fixed number of steps, a branch that the example does not take, or a function
    with a derivative of its own. A kernel that is read at two places has two layers, which training
    tells apart.

    Args:
        function: Takes and gives pytrees of arrays. Parameters that are to be layers stand in it,
            as in `lambda images: model.apply(parameters, images)`.
        example: What it is called with. The two runs are compared on it.
        options: As for `with_attention`.

    Raises:
        ValueError: As `with_attention` does, and for a function of which no convolution is
            converted.

    Source: S.finite, S.pad, S.network of this project's ledger.

    >>> import jax, jax.numpy as jnp
    >>> kernel = jnp.ones((3, 3, 1, 2)) / 9
    >>> def features(images):
    ...     padding, order = "SAME", ("NHWC", "HWIO", "NHWC")
    ...     with jax.named_scope("blur"):
    ...         return jax.lax.conv_general_dilated(
    ...             images, kernel, (2, 2), padding, dimension_numbers=order
    ...         )
    >>> layers, apply, report = attention_of(features, jnp.ones((1, 8, 8, 1)))
    >>> layers["blur"].heads, report.passed, report.difference < 1e-6
    (10, True, True)
    >>> apply(layers, jnp.ones((4, 8, 8, 1))).shape
    (4, 4, 4, 2)
    """
    if not callable(function):
        raise ValueError(f"function={function!r}, but expected a function of arrays")
    known = list(inspect.signature(AttentionOptions).parameters)
    if unknown := [name for name in options if name not in known]:
        raise ValueError(f"{unknown[0]}=…, but expected options among {', '.join(known)}")
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(example)):
        raise ValueError(
            "example holds a ShapeDtypeStruct, but expected arrays, on which the runs are "
            "compared; for shapes alone call it inside jax.eval_shape"
        )
    chosen = AttentionOptions(**options)
    traced = Traced.of(function, example, {})
    recording = Recording(chosen, names_of(traced.jaxpr.jaxpr))
    values = recording.closed(traced.jaxpr, [*map(recording.argument, traced.arrays)], Place())
    if not recording.calls and not recording.apart:
        raise ValueError(
            "the function has no convolution that becomes attention"
            + "".join(f"; {line}" for line in recording.left)
        )
    layers = {}
    for name, calls in recording.calls.items():
        layer = recording.layer(name, calls)
        if layer is not None:
            layers[name] = layer
    depths = {name: frozenset(map(len, recording.loops(name))) for name in layers}
    expected = traced.output([value.left for value in values])
    result = traced.output([value.right for value in values])
    lines = tuple(reported(name, calls) for name, calls in recording.calls.items())
    difference, most, same = output_difference(expected, result) or (None, None, None)
    bounds = () if difference is None else recording.tape.bounds(values)
    without_rule = bounds if isinstance(bounds, str) else None
    columns = () if isinstance(bounds, str) else [column.tolist() for column in bounds]
    report = Report(
        lines,
        difference,
        most,
        same,
        tuple(recording.left),
        tuple(zip(*columns, strict=True)),
        without_rule,
    )

    def apply(layers: Mapping[str, AttentionLayer], *args: Any, **kwargs: Any) -> Any:
        """The function with these layers.

        Raises:
            ValueError: If they are not those of the names that `attention_of` gave, or the function
                has none of that name on these arguments.
        """
        traced = Traced.of(function, args, kwargs)
        names = names_of(traced.jaxpr.jaxpr)
        own = list(layers) if isinstance(layers, Mapping) else type(layers).__name__
        if not isinstance(layers, Mapping) or set(layers) != set(depths):
            raise ValueError(
                f"layers={own}, but expected a dictionary of layers {sorted(depths)}; give what "
                "attention_of returned, or layers of the same names"
            )
        unused = set(layers) - set(names.values())
        if unused:
            raise ValueError(
                f"the function has no convolutions {sorted(unused)} on these arguments, but "
                "expected those of the example; make its layers with an example like them"
            )
        evaluation = WithLayers(chosen, names, dict(layers), depths)
        return traced.output(evaluation.closed(traced.jaxpr, traced.arrays, Place()))

    return Attention(layers, apply, report)


def reported(name: str, calls: list[Call]) -> LayerReport:
    """The line of a report for a convolution and all its calls."""
    differences = [call.difference for call in calls if call.difference is not None]
    bounds = [call.bound for call in calls if call.bound is not None]
    whole = len(bounds) == len(calls)
    return LayerReport(
        name,
        calls[0].layer.heads,
        calls[0].groups,
        max(differences) if differences else None,
        max(bounds) if whole else None,
    )


def names_of(jaxpr: Any) -> dict[Path, str]:
    """A name for each convolution that can be converted, by where it stands; all different."""
    names: dict[Path, str] = {}
    counts: dict[str, int] = {}
    for name, path in paths_of(jaxpr, Place()):
        name = name or UNNAMED
        counts[name] = counts.get(name, 0) + 1
        names[path] = name if counts[name] == 1 else f"{name}:{counts[name]}"
    return names


def paths_of(jaxpr: Any, place: Place) -> Iterator[Place]:
    """Where the convolutions of a jaxpr stand."""
    for equation in jaxpr.eqns:
        if is_convolution(equation, place.name):
            yield place.inside(equation)
        elif equation.primitive.name in RULES:
            for inner in inner_jaxprs(equation):
                yield from paths_of(inner, place.inside(equation))


class WithLayers(Attending):
    """Given layers in place of convolutions, and attention made from its kernel without one.

    Attributes:
        names: Of the convolutions, by path.
        layers: By name.
        depths: Of the scans that each layer has an axis for: how many equations hold their bodies.
    """

    def __init__(
        self,
        options: AttentionOptions,
        names: Mapping[Path, str],
        layers: Mapping[str, Any],
        depths: Mapping[str, frozenset[int]],
    ) -> None:
        super().__init__(options)
        self.names, self.layers, self.depths = names, layers, depths

    def convolve(self, place: Place, equation: Any, images: Array, kernel: Array) -> Array:
        """The outputs of the layer of that name."""
        name = self.names.get(place.inside(equation).path)
        layer = None if name is None else self.layers.get(name)
        if layer is None:
            return super().convolve(place, equation, images, kernel)
        return self.options.outputs(Convolution.of(equation, place.name), layer, images)

    def rows(self, place: Place) -> dict[str, Any]:
        """The layers of the convolutions in a scan, one for each step."""
        depth = len(place.path)
        return {
            name: self.layers[name]
            for path, name in self.names.items()
            if path[:depth] == place.path and depth in self.depths.get(name, ())
        }

    def with_rows(self, rows: Mapping[str, Any]) -> "WithLayers":
        """With those of one step."""
        inside = copy(self)
        inside.layers = {**self.layers, **rows}
        return inside
