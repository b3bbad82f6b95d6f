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
    Place,
    Rule,
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
        seen: dict[str, Array] = {}
        return self._evaluated(layers, args, kwargs, seen), seen

    def _evaluated(
        self, layers: Layers, args: Any, kwargs: Any, seen: dict[str, Array] | None
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
        evaluation = WithLayers(self, names, dict(layers), seen)
        return traced.output(evaluation.closed(traced.jaxpr, traced.arrays, Place()))


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
    found = list(_paths_of(jaxpr, Place()))
    taken = {name for name, _ in found}
    counts: dict[str, int] = {}
    for name, path in found:
        own = name = name or _UNNAMED
        counts[name] = counts.get(name, 0) + 1
        while counts[name] > 1 and (own := f"{name}:{counts[name]}") in taken:
            counts[name] += 1
        names[path] = own
    return names


def _paths_of(jaxpr: Any, place: Place) -> Iterator[Place]:
    """Where the convolutions of a jaxpr stand."""
    for equation in jaxpr.eqns:
        if is_convolution(equation, place.name):
            yield place.inside(equation)
        elif equation.primitive.name in RULES:
            for inner in inner_jaxprs(equation):
                yield from _paths_of(inner, place.inside(equation))


class WithLayers(Attending):
    """Given layers in place of convolutions, and attention made from its kernel without one.

    Attributes:
        whole: The application, which knows the example's convolutions.
        names: Of the convolutions, by path.
        layers: By name.
        seen: What the images that each layer is given are put in, where that is asked for.
    """

    def __init__(
        self,
        whole: Application,
        names: Mapping[Path, str],
        layers: Mapping[str, Any],
        seen: dict[str, Array] | None = None,
    ) -> None:
        super().__init__(whole.options)
        self.whole, self.names, self.layers, self.seen = whole, names, layers, seen

    @property
    def rules(self) -> Mapping[str, Rule]:
        """As for all; what is in loops and branches is not seen."""
        return APART

    def convolve(self, place: Place, equation: Any, images: Array, kernel: Array) -> Array:
        """The outputs of the layer of that name."""
        name = self.names.get(place.inside(equation).path)
        layer = None if name is None else self.layers.get(name)
        if name is None or layer is None:
            return super().convolve(place, equation, images, kernel)
        convolution = Convolution.of(equation, place.name)
        if convolution.form != self.whole.forms[name]:
            raise ValueError(
                f"{name}: kernel shape, dilation, groups and order of axes are {convolution.form} "
                f"on these arguments, but expected {self.whole.forms[name]}, those of the example; "
                "make its layers with an example like them"
            )
        if self.seen is not None:
            self.seen[name] = convolution.images(images)
        sizes = convolution.kernel_size, convolution.dilation, convolution.stride
        outside = read_padding(convolution.padding, *sizes)
        layer = replace(  # the padding of "SAME" depends on the size of the images
            layer,
            stride=convolution.stride,
            padding=None if outside.is_zero_ring else outside,
        )
        return self.options.outputs(convolution, layer, images)

    def rows(self, place: Place) -> dict[str, Any]:
        """The layers of the convolutions in a scan, one for each step."""
        depth = len(place.path)
        return {
            name: self.layers[name]
            for path, name in self.names.items()
            if path[:depth] == place.path and depth in self.whole.depths.get(name, ())
        }

    def with_rows(self, rows: Mapping[str, Any]) -> "WithLayers":
        """With those of one step."""
        inside = copy(self)
        inside.layers = {**self.layers, **rows}
        return inside


def _apart(rule: Rule) -> Rule:
    """A rule that keeps nothing of what it sees, since that has no value outside."""

    def evaluated(evaluation: WithLayers, equation: Any, values: Values, place: Place) -> Values:
        inside = copy(evaluation)
        inside.seen = None
        return rule(inside, equation, values, place)

    return evaluated


APART = {name: rule if name in IN_PLACE else _apart(rule) for name, rule in RULES.items()}
