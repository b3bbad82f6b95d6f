"""A function of JAX applied with given attention layers in place of its convolutions."""

from collections.abc import Callable, Collection, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from jax import Array

from convattn.encodings.layer import AttentionLayer
from convattn.networks.transformation.attention import ConversionOptions
from convattn.networks.transformation.contents import inner_jaxprs, is_convolution
from convattn.networks.transformation.convolution import Convolution
from convattn.networks.transformation.deviation import Path
from convattn.networks.transformation.evaluation import (
    IN_PLACE,
    RULES,
    Rule,
    Scope,
    Values,
)
from convattn.networks.transformation.provenance import kernel_digests
from convattn.networks.transformation.with_attention import Attending, Traced
from convattn.operators.padding import read_padding

_UNNAMED = "convolution"
Layers = Mapping[str, AttentionLayer]


@dataclass(frozen=True, eq=False)
class Application:
    """`apply(layers, *arguments)`.

    Attributes:
        function: Whose convolutions the layers stand for.
        options: Of the attention of those that have no layer.
        depths: Of each layer the scans that it has an axis for: how many equations hold their
            bodies.
        names: Of all convolutions, on the example.
        forms: Of the convolutions that layers stand for, by name.
        digests: What their kernels are made of there (`provenance.py`).
    """

    function: Callable[..., Any]
    options: ConversionOptions
    depths: Mapping[str, frozenset[int]]
    names: frozenset[str]
    forms: Mapping[str, tuple[Any, ...]]
    digests: Mapping[str, str | None]

    def __call__(self, layers: Layers, *args: Any, **kwargs: Any) -> Any:
        """The function with these layers."""
        return self._evaluated(layers, args, kwargs, None)

    def inputs(self, layers: Layers, *args: Any, **kwargs: Any) -> dict[str, Array]:
        """By layer its images `[batch, *space, channels]`, but for those in loops and branches."""
        return self.outputs_and_inputs(layers, *args, **kwargs)[1]

    def outputs_and_inputs(
        self, layers: Layers, *args: Any, **kwargs: Any
    ) -> tuple[Any, dict[str, Array]]:
        """Both."""
        inputs: dict[str, Array] = {}
        return self._evaluated(layers, args, kwargs, inputs), inputs

    def _evaluated(
        self, layers: Layers, args: Any, kwargs: Any, inputs: dict[str, Array] | None
    ) -> Any:
        traced = Traced.of(self.function, args, kwargs)
        names = names_of(traced.jaxpr.jaxpr)
        require_layers(layers, self.depths)
        own = set(names.values())
        if own != self.names:
            raise ValueError(
                f"on these arguments the function has no convolutions {sorted(self.names - own)} "
                f"and other ones, {sorted(own - self.names)}, but expected those of the example; "
                "make its layers with an example like them"
            )
        digests = kernel_digests(traced.jaxpr, names)
        for name in layers:
            if self.digests[name] != digests[name]:
                raise ValueError(
                    f"{name}: another kernel on these arguments than on the example, whose layer "
                    "would take its place; make the layers with an example like these arguments"
                )
        evaluation = WithLayers(self, names, dict(layers), inputs)
        return traced.output(evaluation.closed(traced.jaxpr, traced.arrays, Scope()))


def require_layers(layers: Any, names: Collection[str]) -> None:
    """Refuse layers that are not those of these names."""
    own = list(layers) if isinstance(layers, Mapping) else type(layers).__name__
    if not isinstance(layers, Mapping) or set(layers) != set(names):
        raise ValueError(
            f"layers={own}, but expected a dictionary of layers {sorted(names)}; give what "
            "attention_of or load_network returned, or layers of the same names"
        )


def names_of(jaxpr: Any) -> dict[Path, str]:
    """A name for each convolution that can be converted, by where it stands; all different."""
    names: dict[Path, str] = {}
    scopes = list(_paths_of(jaxpr, Scope()))
    taken = {name for name, _ in scopes}
    counts: dict[str, int] = {}
    for name, path in scopes:
        own = name = name or _UNNAMED
        counts[name] = counts.get(name, 0) + 1
        while counts[name] > 1 and (own := f"{name}:{counts[name]}") in taken:
            counts[name] += 1
        names[path] = own
    return names


def _paths_of(jaxpr: Any, scope: Scope) -> Iterator[Scope]:
    """Where the convolutions of a jaxpr stand."""
    for equation in jaxpr.eqns:
        if is_convolution(equation, scope.name):
            yield scope.inside(equation)
        elif equation.primitive.name in RULES:
            for inner in inner_jaxprs(equation):
                yield from _paths_of(inner, scope.inside(equation))


class WithLayers(Attending):
    """Given layers in place of convolutions, and attention made from its kernel without one.

    Attributes:
        application: The application, which knows the example's convolutions.
        names: Of the convolutions, by path.
        layers: By name.
        inputs: Receives the images of each layer; None to leave them out.
    """

    def __init__(
        self,
        application: Application,
        names: Mapping[Path, str],
        layers: Mapping[str, Any],
        inputs: dict[str, Array] | None = None,
    ) -> None:
        super().__init__(application.options)
        self.application, self.names, self.layers, self.inputs = application, names, layers, inputs

    @property
    def rules(self) -> Mapping[str, Rule]:
        """As for all; what is in loops and branches is not seen."""
        return RULES_WITHOUT_INPUTS

    def convolve(self, scope: Scope, equation: Any, images: Array, kernel: Array) -> Array:
        """The outputs of the layer of that name."""
        name = self.names.get(scope.inside(equation).path)
        layer = None if name is None else self.layers.get(name)
        if name is None or layer is None:
            return super().convolve(scope, equation, images, kernel)
        convolution = Convolution.of(equation, scope.name)
        if convolution.form != self.application.forms[name]:
            raise ValueError(
                f"{name}: kernel shape, dilation, groups and order of axes are {convolution.form} "
                f"on these arguments, but expected {self.application.forms[name]}, those of the "
                "example; make its layers with an example like them"
            )
        if self.inputs is not None:
            self.inputs[name] = convolution.images(images)
        sizes = convolution.kernel_size, convolution.dilation, convolution.stride
        padding = read_padding(convolution.padding, *sizes)
        layer = replace(  # the padding of "SAME" depends on the size of the images
            layer,
            stride=convolution.stride,
            padding=None if padding.is_zero_ring else padding,
        )
        return self.options.outputs(convolution, layer, images)

    def rows(self, scope: Scope) -> dict[str, Any]:
        """The layers of the convolutions in a scan, one for each step."""
        depth = len(scope.path)
        return {
            name: self.layers[name]
            for path, name in self.names.items()
            if path[:depth] == scope.path and depth in self.application.depths.get(name, ())
        }

    def with_rows(self, rows: Mapping[str, Any]) -> "WithLayers":
        """With those of one step."""
        nested = copy(self)
        nested.layers = {**self.layers, **rows}
        return nested


def _without_inputs(rule: Rule) -> Rule:
    """A rule that records no inputs: they are tracers, which have no value outside."""

    def evaluated(evaluation: WithLayers, equation: Any, values: Values, scope: Scope) -> Values:
        nested = copy(evaluation)
        nested.inputs = None
        return rule(nested, equation, values, scope)

    return evaluated


RULES_WITHOUT_INPUTS = {
    name: rule if name in IN_PLACE else _without_inputs(rule) for name, rule in RULES.items()
}
