"""The rank of the flattened kernel F for all kernels but a null set, which no kernel exceeds.

Let T be the number of token offsets and D = D_in·D_out, so that F stacks D kernels of one channel
pair. F falls into blocks (`convattn.bounds.residue_blocks`), and its rank for a generic kernel is
the sum of theirs. A block of c columns and n rows for each channel pair has a rank of at most
min(c, nD), and reaches it in the following cases; each kernel named has the rank on some square
minor, so that all kernels but the zeros of a polynomial have it.

1. *D ≥ c.* Pair k is the one-tap kernel of a tap in column k: there its row is one-hot.
2. *n = 1.* No tap occurs twice, so the entries are independent numbers. P = 1 is this case.
3. *Whole blocks, by windows.* A whole block of an axis has T offsets, and either T < 2P - 1 or not.

   (a) One axis, one pair. Give the tap t the weight z^(t²) and look at columns δ and rows s(δ)
   that fall as δ grows. The product of the entries at (s(δ), δ) is z to the power of
   Σ (Pδ + s(δ))² = Σ P²δ² + Σ s² + 2P Σ δ s(δ), and by the rearrangement inequality every other
   matching of these rows and columns has a larger power: the minor is a polynomial in z with that
   one lowest monomial, not zero. It is left to see that the entries are taps. Let the taps be
   -a, …, b, the offsets -m, …, n, m = ⌈a/P⌉, n = ⌈b/P⌉. If m + n + 1 ≤ 2P - 1, take all
   columns, s(0) = 0, s(δ) = -(P-1) + n - δ for δ > 0 and s(δ) = (P-1) - m - δ for δ < 0: they
   fall strictly, as m, n ≤ P - 1, and 0 ≤ Pδ + s(δ) ≤ P(n-1) + 1 ≤ b for δ > 0, likewise for
   δ < 0. If T ≥ 2P - 1, take all 2P - 1 rows and the columns δ = -s: then
   abs(Pδ + s) ≤ (P-1)², which is at most a and b.

   (b) One axis, a window. The kernel z^(t²) on abs(t) ≤ (P-1)² alone has nonzero entries in the
   columns abs(δ) ≤ P - 1 only, as (P-1)² < P(P-1) + 1, and there it is nonsingular by (a). Shifted
   by Pc it does the same around c, and every window of 2P - 1 consecutive offsets can be had:
   Pc - (P-1)² = -Pm + P - 1 ≥ -a for the first one.

   (c) Several axes, several pairs. Products of windows are windows, the block being the Kronecker
   product. D disjoint windows, as ∏⌊T/(2P-1)⌋ ≥ D allows, give the full row rank nD. D windows
   that cover all columns, as ∏⌈T/(2P-1)⌉ ≤ D allows, give the full column rank: let each answer
   for the columns that no earlier one has; the block is triangular. An axis with T < 2P - 1 counts
   as one window for the cover, by (a). One axis alone reaches min(T, (2P-1)D) always: disjoint
   windows from the left, a last one at the right end.

4. *K = 2Pm + 1 on two like axes, m ≥ P, D ≥ 2.* S.tiles: kernels of one tap for each residue class
   modulo P; squares, dominoes and cells that pack or cover the grid of offsets.

In all other cases the rank of one fixed kernel is computed (`convattn.bounds.generic_rank`). That
kernel has at least this rank: what is computed is a proof for it, though no proof for all sizes. If
it equals an upper bound it is the generic rank. Upper bounds are min(c, nD) and, where zeros keep
the rank below that, the term rank (`convattn.bounds.term_rank`).

One fixed kernel of integers, and the ranks of the blocks of its F.

A rank modulo a prime is no more than the rank over the rationals, and the rank of one kernel no
more than that of all but a null set: what is computed here is a proof for its size.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import ceil, prod
from random import Random

import flint

from convattn.bounds.residue_blocks import AxisBlock, axis_blocks
from convattn.bounds.term_rank import term_rank

PRIME = 2**61 - 1
MAX_ENTRIES = 250_000  # of all matrices of one question: under half a second
Block = tuple[AxisBlock, ...]
Tap = tuple[int, ...]


class TooLargeError(ValueError):
    """The matrices have more than `MAX_ENTRIES` numbers."""


class FixedKernel:
    """Fixed integers for every tap of every channel pair, drawn when they are asked for.

    With `periods` it is balanced: it has the sum zero over the taps of each residue modulo P', so
    that F·1 = 0 and every vector of F's row space has the sum zero: none is nonnegative but 0.
    """

    def __init__(self, size: tuple[int, ...], periods: list[int] | None = None):
        self.size, self.periods = size, periods
        self.draws, self.pairs = Random("a fixed kernel"), list[dict[Tap, int]]()
        self.left = MAX_ENTRIES

    def pair(self, number: int) -> dict[Tap, int]:
        """The weights of a channel pair by their taps, which count from 0."""
        while len(self.pairs) <= number:
            weights = {tap: self.draws.getrandbits(30) for tap in product(*map(range, self.size))}
            if self.periods is not None:
                last: dict[Tap, Tap] = {}
                sums: dict[Tap, int] = {}
                for tap, weight in weights.items():
                    residue = tuple(t % p for t, p in zip(tap, self.periods, strict=True))
                    last[residue] = tap
                    sums[residue] = sums.get(residue, 0) + weight
                for residue, tap in last.items():
                    weights[tap] -= sums[residue]
            self.pairs.append(weights)
        return self.pairs[number]

    def rank(self, block: Block, pairs: int) -> int:
        """The rank of this kernel's block modulo the prime.

        With more pairs the rank does not fall, so a few are tried before all of them.
        """
        width = prod(len(axis.columns) for axis in block)
        rows_per_pair = prod(len(axis.rows) for axis in block)
        rank = 0
        for used in sorted({min(pairs, width, 2 * width // rows_per_pair + 1), min(pairs, width)}):
            self.left -= used * (rows_per_pair * width + prod(self.size))
            if self.left < 0:
                raise TooLargeError(
                    "the rank of F is not known in closed form for these sizes, and the matrices "
                    f"to compute it have more than {MAX_ENTRIES} numbers; take a smaller kernel "
                    "or fewer channels"
                )
            entries = [entry for number in range(used) for entry in _rows(block, self.pair(number))]
            rank = int(flint.nmod_mat(used * rows_per_pair, width, entries, PRIME).rank())
            if rank == min(width, pairs * rows_per_pair):
                break
        return rank


def _rows(block: Block, weights: dict[Tap, int]) -> list[int]:
    """The entries of one pair's rows, row by row."""
    tables = [
        [[axis.tap(row, column) for column in axis.columns] for row in axis.rows] for axis in block
    ]
    entries = []
    for lines in product(*tables):
        for taps in product(*lines):
            entries.append(0 if None in taps else weights[taps] % PRIME)  # type: ignore[index]
    return entries


_MAX_BLOCKS = 2500
Sizes = tuple[int, ...]


@dataclass(frozen=True)
class GenericRank:
    """What is known of the rank of F for the worst kernel.

    Attributes:
        offsets: T, the number of columns.
        least, most: The worst kernel has a rank from `least` to `most`; as a rule they agree.
        proved: Whether `least` holds by the proof above; else it is a fixed kernel's, computed.
        balanced: A rank that some kernel reaches, or exceeds, whose row space holds no nonzero
            nonnegative vector; 0 if none was looked for, or the matrices are too large.
        balanced_proved: Whether by case 2, in which the sum of every row can be made zero at no
            loss of rank; else it is computed.
        one_hot: Whether the row space of every kernel of the largest rank holds a one-hot row.
    """

    offsets: int
    least: int
    most: int
    proved: bool
    balanced: int
    balanced_proved: bool
    one_hot: bool


@lru_cache(maxsize=256)
def generic_rank(kernel_size: Sizes, patch_size: Sizes, dilation: Sizes, pairs: int) -> GenericRank:
    """The rank of F for the worst kernel with D = `pairs` channel pairs.

    Args:
        Sizes for each of one or two axes, all at least 1.

    Returns:
        `GenericRank`.

    Source: S.heads of this project's ledger.

    >>> rank = generic_rank((5, 5), (2, 2), (1, 1), 1)
    >>> rank.offsets, rank.least, rank.proved
    (9, 9, True)
    >>> generic_rank((7, 7), (2, 2), (1, 1), 2).proved  # 18 of 25, by a computation
    False
    """
    axes = [axis_blocks(*sizes) for sizes in zip(kernel_size, patch_size, dilation, strict=True)]
    if prod(map(len, axes)) > _MAX_BLOCKS:
        raise ValueError(
            f"dilation={dilation} with patch_size={patch_size} splits F into "
            f"{prod(map(len, axes))} blocks, but expected at most {_MAX_BLOCKS}; take a smaller "
            "dilation or patch, or one that divides the other"
        )
    blocks: list[Block] = list(product(*axes))
    widths = [prod(len(axis.columns) for axis in block) for block in blocks]
    bounds = [
        min(width, _height(block, pairs)) for block, width in zip(blocks, widths, strict=True)
    ]
    proofs = [_is_proved(block, pairs) for block in blocks]
    kernel = FixedKernel(kernel_size)
    ranks = [
        bound if proof else kernel.rank(block, pairs)
        for block, bound, proof in zip(blocks, bounds, proofs, strict=True)
    ]
    most = sum(
        bound if rank == bound else term_rank(_nonzero_rows(block), pairs)
        for block, bound, rank in zip(blocks, bounds, ranks, strict=True)
    )
    one_hot = any(rank == width for rank, width in zip(ranks, widths, strict=True))
    balanced = 0 if one_hot else _balanced(kernel_size, blocks, bounds, pairs)
    return GenericRank(
        offsets=sum(widths),
        least=sum(ranks),
        most=most,
        proved=all(proofs),
        balanced=balanced,
        balanced_proved=all(map(_has_single_rows, blocks)),
        one_hot=one_hot,
    )


def _balanced(kernel_size: Sizes, blocks: list[Block], bounds: list[int], pairs: int) -> int:
    kernel = FixedKernel(kernel_size, periods=[axis.patch_size for axis in blocks[0]])
    try:
        return sum(
            bound if _has_single_rows(block) else kernel.rank(block, pairs)
            for block, bound in zip(blocks, bounds, strict=True)
        )
    except TooLargeError:
        return 0


def _nonzero_rows(block: Block) -> list[list[int]]:
    """For each column of a block, the rows in which it has a tap."""
    axes = [_axis_nonzero_rows(axis) for axis in block]
    heights = [len(axis.rows) for axis in block]
    columns = []
    for lines in product(*axes):
        rows = [0]
        for line, height in zip(lines, heights, strict=True):
            rows = [row * height + index for row in rows for index in line]
        columns.append(rows)
    return columns


def _axis_nonzero_rows(axis: AxisBlock) -> list[list[int]]:
    return [
        [index for index, row in enumerate(axis.rows) if axis.tap(row, column) is not None]
        for column in axis.columns
    ]


def _height(block: Block, pairs: int) -> int:
    return pairs * prod(len(axis.rows) for axis in block)


def _has_single_rows(block: Block) -> bool:
    return all(len(axis.rows) == 1 for axis in block)


def _tiles(axes: list[AxisBlock]) -> bool:
    """Whether both axes are alike, with taps -Pm, …, Pm for some m ≥ P (S.tiles)."""
    first = axes[0]
    reach = first.taps.stop - 1
    alike = all((axis.patch_size, axis.taps) == (first.patch_size, first.taps) for axis in axes)
    square = alike and first.taps.start == -reach and reach % first.patch_size == 0
    return square and reach >= first.patch_size**2


def _is_proved(block: Block, pairs: int) -> bool:
    """Whether one of the cases above applies."""
    if pairs >= prod(len(axis.columns) for axis in block) or _has_single_rows(block):
        return True
    long = [axis for axis in block if len(axis.rows) > 1 or len(axis.columns) > 1]
    if not all(axis.complete for axis in long):
        return False
    if _tiles(long):  # of one pair as well: a window fits
        return True
    windows = [len(axis.columns) / axis.window for axis in long]
    # On one axis every number of pairs is one or the other.
    return pairs >= prod(map(ceil, windows)) or pairs <= prod(map(int, windows))
