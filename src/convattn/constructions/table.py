"""Every encoding with its construction: a new encoding needs one row here."""

from collections.abc import Callable
from typing import NamedTuple

from jax import Array

from convattn.constructions.cordonnier_theorem1 import quadratic_construction
from convattn.constructions.enumerated import enumerated_construction
from convattn.constructions.finite import finite_construction
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_theorem1 import bias_construction
from convattn.constructions.polygon import polygon_construction
from convattn.constructions.rotary import rotary_construction
from convattn.constructions.scalar import scalar_construction
from convattn.encodings.base import PositionalEncoding

Number = float | Array
Heads = tuple[PositionalEncoding, Array]  # the encoding, and the map of each head


class Construction(NamedTuple):
    """How an encoding expresses a convolution.

    Attributes:
        limit: From the token maps, the geometry and the parameter that goes to infinity, or None
            for the value that makes attention one-hot, to the heads of the limit form.
        exact: The form that is exact at finite parameters, or None where there is none; takes the
            uniform weight in place of that parameter.
        has_uniform_weight: Whether the exact form uses it.
        targeted: Whether each head reads one offset, but for the last of an exact form.
    """

    limit: Callable[[Array, ConvolutionGeometry, Number | None], Heads]
    exact: Callable[[Array, ConvolutionGeometry, Number], Heads] | None = None
    has_uniform_weight: bool = False
    targeted: bool = True


# By the name that `conv_to_attention(encoding=...)` takes.
CONSTRUCTIONS = {
    "bias": Construction(
        lambda maps, geometry, sharpness: bias_construction(maps, geometry, sharpness),
        lambda maps, geometry, uniform_weight: finite_construction(maps, geometry, uniform_weight),
        has_uniform_weight=True,
    ),
    "scalar": Construction(
        lambda maps, geometry, sharpness: scalar_construction(
            maps, geometry, sharpness, exact=False
        ),
        lambda maps, geometry, _: scalar_construction(maps, geometry),
        targeted=False,
    ),
    "quadratic": Construction(
        lambda maps, geometry, sharpness: quadratic_construction(maps, geometry, sharpness)
    ),
    "enumerated": Construction(
        lambda maps, geometry, sharpness: enumerated_construction(maps, geometry, sharpness)
    ),
    "polygon": Construction(
        lambda maps, geometry, sharpness: polygon_construction(maps, geometry, sharpness)
    ),
    "rotary": Construction(
        lambda maps, geometry, sharpness: rotary_construction(maps, geometry, sharpness)
    ),
}
