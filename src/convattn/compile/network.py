"""What is compiled: values in their order, each an affine map of earlier ones and a function."""

from dataclasses import dataclass

from convattn.compile.affine import Affine, Value
from convattn.compile.lattice import Pair
from convattn.compile.scalar import Units


class NotCompiled(ValueError):
    """What a vision transformer of this construction does not compute; says what and where."""


@dataclass(frozen=True, eq=False)
class Node:
    """A value that is stored.

    Attributes:
        value: It.
        affine: Of earlier values.
        units: The function of each number of `affine`.
    """

    value: Value
    affine: Affine
    units: Units


@dataclass(frozen=True, eq=False)
class Network:
    """A function of images.

    Attributes:
        image: The pixels, a value on the lattice of all of them.
        nodes: In their order.
        logits: The output, an affine map to a vector.
    """

    image: Value
    nodes: tuple[Node, ...]
    logits: Affine

    @property
    def image_size(self) -> Pair:
        """Rows and columns of pixels."""
        assert self.image.lattice is not None
        return self.image.lattice.count
