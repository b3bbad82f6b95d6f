"""The cases: a layer or a network, its sizes, and who competes on it."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from benchmarks import layers
from benchmarks.implementations import Implementation, layer_implementations
from benchmarks.networks import network_implementations
from benchmarks.settings import Settings

CONTENT_FEATURES = 64


class Case(NamedTuple):
    """One kind of layer or network.

    Attributes:
        name: Of the case, as `--cases` takes it.
        shapes: The pairs (side, features) that are timed, smaller sides first.
        implementations: Who competes on a side and a number of features, those who refuse included.
    """

    name: str
    shapes: Callable[[Settings], list[tuple[int, int]]]
    implementations: Callable[[int, int, Settings], list[Implementation]]


def all_shapes(settings: Settings) -> list[tuple[int, int]]:
    """Every size at every width."""
    return [(side, features) for features in settings.dims for side in sorted(settings.sizes)]


def narrow_shapes(settings: Settings) -> list[tuple[int, int]]:
    """Every size at the widths up to that of content attention."""
    return [shape for shape in all_shapes(settings) if shape[1] <= CONTENT_FEATURES]


def finite_shapes(settings: Settings) -> list[tuple[int, int]]:
    """Pixels, and patches with as many features as a vision transformer's."""
    return [(4, 32), (8, 16)] if settings.quick else [(14, 768), (32, 64)]


def network_shapes(settings: Settings) -> list[tuple[int, int]]:
    """Images of CIFAR-10, and the width of ResNet20's first stage."""
    return [(8, 4)] if settings.quick else [(32, 16)]


def layer_case(
    name: str, shapes: Callable[[Settings], list[tuple[int, int]]], baselines: tuple[str, ...]
) -> Case:
    """A layer of `benchmarks.layers`, by its name there, and who competes beside the back ends."""
    return Case(name, shapes, partial(layer_implementations, getattr(layers, name), baselines))


CASES = {
    case.name: case
    for case in (
        layer_case(
            "quadratic", all_shapes, ("grid", "plain dense", "lax.conv", "maps alone", "torch")
        ),
        layer_case("learned", all_shapes, ("plain dense", "lax.conv")),
        layer_case("gaussian", all_shapes, ("plain dense", "lax.conv")),
        layer_case("finite", finite_shapes, ("lax.conv",)),
        layer_case("content", narrow_shapes, ("plain dense", "lax.conv")),
        Case("resnet20", network_shapes, network_implementations),
    )
}
