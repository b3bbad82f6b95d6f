"""The cases: a layer, its sizes, and who competes on it besides the back ends."""

from collections.abc import Callable
from typing import NamedTuple

from benchmarks import layers
from benchmarks.layers import LayerMaker
from benchmarks.settings import Settings

CONTENT_FEATURES = 64


class Case(NamedTuple):
    """One kind of layer.

    Attributes:
        name: Of the case, as `--cases` takes it.
        layer: Makes the layer for a side, a number of features and the settings.
        shapes: The pairs (side, features) that are timed, smaller sides first.
        rivals: Who competes besides the back ends: `"grid"`, `"plain dense"`, `"lax.conv"`, `"maps
            alone"`, `"torch"`.
    """

    name: str
    layer: LayerMaker
    shapes: Callable[[Settings], list[tuple[int, int]]]
    rivals: tuple[str, ...]


def all_shapes(settings: Settings) -> list[tuple[int, int]]:
    """Every size at every width."""
    return [(side, features) for features in settings.dims for side in sorted(settings.sizes)]


def narrow_shapes(settings: Settings) -> list[tuple[int, int]]:
    """Every size at the widths up to that of content attention."""
    return [shape for shape in all_shapes(settings) if shape[1] <= CONTENT_FEATURES]


def finite_shapes(settings: Settings) -> list[tuple[int, int]]:
    """Pixels, and patches with as many features as a vision transformer's."""
    return [(4, 32), (8, 16)] if settings.quick else [(14, 768), (32, 64)]


CASES = {
    case.name: case
    for case in (
        Case(
            "quadratic",
            layers.quadratic,
            all_shapes,
            ("grid", "plain dense", "lax.conv", "maps alone", "torch"),
        ),
        Case("learned", layers.learned, all_shapes, ("plain dense", "lax.conv")),
        Case("gaussian", layers.gaussian, all_shapes, ("plain dense", "lax.conv")),
        Case("finite", layers.finite, finite_shapes, ("lax.conv",)),
        Case("content", layers.content, narrow_shapes, ("plain dense", "lax.conv")),
    )
}
