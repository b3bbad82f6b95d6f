"""F of one axis falls into blocks, one for each residue class of token offsets.

On one axis F has a row for each difference s = q - p of an input and an output pixel, |s| ≤ P - 1,
a column for each token offset δ, and the tap t of the kernel where Pδ + s = t·d. Write g for the
greatest common divisor of P and d, P = gP', d = gd'. A row whose s is not a multiple of g is zero.
For s = gs' the equation is P'δ + s' = t·d', so that δ has the residue c = -s'/P' modulo d': rows
and columns of different residues do not meet. Within a class write δ = c + d'ε and
u = (P'c + s')/d', an integer; then

    t = P'ε + u,

which is an undilated F again, on patches of P' pixels, with as many of its rows as s' has values in
the class. The values of u are consecutive. With d' = 1 there is one block, that of P' pixels.

On several axes a block is a block of each axis: its rows and columns are the products of theirs.
"""

from dataclasses import dataclass
from math import gcd


@dataclass(frozen=True)
class AxisBlock:
    """One residue class of an axis; rows and columns without a tap are left out.

    Attributes:
        `patch_size` P'; `taps`, those of the kernel; `rows`, the values of u; `columns`, the values
        of ε; `complete`, whether it is the only class, so that no row of F is missing.
    """

    patch_size: int
    taps: range
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    complete: bool

    def tap(self, row: int, column: int) -> int | None:
        """The index of the tap at a row and a column, or none.

        >>> block = axis_blocks(3, 2, 1)[0]
        >>> [[block.tap(u, e) for e in block.columns] for u in block.rows]
        [[None, 0, 2], [None, 1, None], [0, 2, None]]
        """
        tap = self.patch_size * column + row
        return tap - self.taps.start if tap in self.taps else None

    @property
    def window(self) -> int:
        """2P' - 1, the number of offsets that one window of a whole block has."""
        return 2 * self.patch_size - 1


def axis_blocks(kernel_size: int, patch_size: int, dilation: int) -> tuple[AxisBlock, ...]:
    """The blocks of one axis, by their first row.

    >>> [len(block.columns) for block in axis_blocks(5, 2, 1)]
    [3]
    >>> [(block.rows, block.columns) for block in axis_blocks(3, 2, 3)]  # offsets -2, -1, 0, 1, 2
    [((1,), (-1, 0)), ((0,), (0,)), ((1,), (-1, 0))]
    """
    common = gcd(patch_size, dilation)
    patch, step = patch_size // common, dilation // common
    before = (kernel_size - 1) // 2
    taps = range(-before, kernel_size - before)
    classes: dict[int, list[int]] = {}
    for difference in range(1 - patch, patch):
        residue = -difference * pow(patch, -1, step) % step
        classes.setdefault(residue, []).append((patch * residue + difference) // step)
    blocks = []
    for rows in classes.values():
        reach = range((taps.start - max(rows)) // patch, (taps.stop - min(rows)) // patch + 1)
        columns = tuple(e for e in reach if any(patch * e + u in taps for u in rows))
        nonempty = tuple(u for u in rows if any(patch * e + u in taps for e in columns))
        if nonempty:
            blocks.append(AxisBlock(patch, taps, nonempty, columns, step == 1))
    return tuple(blocks)
