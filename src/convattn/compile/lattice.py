"""Lattices of pixels, and where their points stand in the tokens of patches.

A feature map of a convolutional network has its entries at every d-th pixel, d the product of the
strides before it. Nothing is subsampled in a vision transformer: a map at stride d is read at those
pixels of the whole grid (à trous). With patches of P × P pixels, a token holds P/d points an axis
of the map if d ≤ P, and one point stands in every (d/P)-th token if d ≥ P.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

Pair = tuple[int, int]


@dataclass(frozen=True)
class Lattice:
    """The pixels step·(i, j), 0 ≤ i < count, on both axes.

    Attributes:
        step: Pixels from one point to the next.
        count: Points.
        patch: P, the pixels of a patch.
    """

    step: Pair
    count: Pair
    patch: Pair

    def __post_init__(self) -> None:
        for step, patch in zip(self.step, self.patch, strict=True):
            if step % patch and patch % step:
                raise ValueError(
                    f"patch_size={patch} with a map at every {step}th pixel, but expected a patch "
                    "that divides that stride, or is divided by it; take patch_size=1"
                )
        for points, held in zip(self.count, self.held, strict=True):
            if points % held:
                raise ValueError(
                    f"a map of {self.count[0]} × {self.count[1]} points, of which a token holds "
                    f"{self.held[0]} × {self.held[1]}, but expected whole tokens; take smaller "
                    "patches, such as patch_size=1"
                )

    @property
    def held(self) -> Pair:
        """The points of a token, on each axis."""
        rows, columns = (
            max(patch // step, 1) for step, patch in zip(self.step, self.patch, strict=True)
        )
        return rows, columns

    @property
    def apart(self) -> Pair:
        """The tokens from one that holds points to the next."""
        rows, columns = (
            max(step // patch, 1) for step, patch in zip(self.step, self.patch, strict=True)
        )
        return rows, columns

    @property
    def tokens(self) -> Pair:
        """The tokens that hold points, on each axis."""
        rows, columns = (points // held for points, held in zip(self.count, self.held, strict=True))
        return rows, columns

    @property
    def phases(self) -> int:
        """The points of a token."""
        return self.held[0] * self.held[1]

    def places(self) -> Iterator[Pair]:
        """The places of points within a token, row by row: the order of a token's features."""
        yield from product(*(range(held) for held in self.held))

    def strided(self, stride: Pair, count: Pair) -> "Lattice":
        """The lattice of every stride-th point."""
        step = self.step[0] * stride[0], self.step[1] * stride[1]
        return Lattice(step, count, self.patch)

    def stride_from(self, source: "Lattice") -> Pair:
        """How many points of a finer lattice there are from one of this to the next."""
        rows, columns = (step // finer for step, finer in zip(self.step, source.step, strict=True))
        return rows, columns

    def token_offset(self, source: "Lattice", place: Pair, offset: Pair) -> tuple[Pair, Pair]:
        """Where the point stride·i + offset of a finer lattice is, seen from point i of this.

        Args:
            source: The lattice that is read.
            place: Of point i in its token.
            offset: In points of `source`.

        Returns:
            The offset of its token, counted in the tokens that hold points of `source`, and its
            place there.

        >>> fine = Lattice((1, 1), (8, 8), (2, 2))
        >>> fine.token_offset(fine, (0, 1), (-1, 1))
        ((-1, 1), (1, 0))
        """
        tokens = []
        for axis, stride in enumerate(self.stride_from(source)):
            place_in_source = stride * place[axis] + offset[axis]
            tokens.append(divmod(place_in_source, source.held[axis]))
        (row, row_place), (column, column_place) = tokens
        return (row, column), (row_place, column_place)
