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

In all other cases the rank of one fixed kernel of integers is computed modulo a prime. That kernel
has at least this rank: what is computed is a proof for it, though no proof for all sizes. If it
equals the upper bound min(c, nD), it is the generic rank.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import ceil, prod
from random import Random

import flint

from convattn.bounds.residue_blocks import AxisBlock, axis_blocks

PRIME = 2**61 - 1
Block = tuple[AxisBlock, ...]
Tap = tuple[int, ...]


@dataclass(frozen=True)
class GenericRank:
    """What is known of the rank of F for the worst kernel.

    **Fields:**

    - `offsets`: T, the number of columns.
    - `least`, `most`: the worst kernel has a rank from `least` to `most`; as a rule they agree.
    - `proved`: whether `least` holds by the proof above; else it is a fixed kernel's, computed.
    - `balanced`: a rank that some kernel reaches, or exceeds, whose row space holds no nonzero
      nonnegative vector; 0 if none was looked for. `balanced_proved`: whether by case 2, in which
      the sum of every row can be made zero at no loss of rank; else it is computed.
    - `one_hot`: whether the row space of every kernel of the largest rank holds a one-hot row.
    """

    offsets: int
    least: int
    most: int
    proved: bool
    balanced: int
    balanced_proved: bool
    one_hot: bool


@lru_cache(maxsize=256)
def generic_rank(
    kernel_size: tuple[int, ...], patch_size: tuple[int, ...], dilation: tuple[int, ...], pairs: int
) -> GenericRank:
    """The rank of F for the worst kernel with D = `pairs` channel pairs.

    **Arguments:** sizes for each of one or two axes, all at least 1.

    **Returns:** `GenericRank`.

    **Source:** S.heads of this project's ledger.

    >>> rank = generic_rank((5, 5), (2, 2), (1, 1), 1)
    >>> rank.offsets, rank.least, rank.proved
    (9, 9, True)
    >>> generic_rank((9, 9), (2, 2), (1, 1), 2).proved  # 18 of 25, by a computation
    False
    """
    axes = [axis_blocks(*sizes) for sizes in zip(kernel_size, patch_size, dilation, strict=True)]
    blocks: list[Block] = list(product(*axes))
    widths = [prod(len(axis.columns) for axis in block) for block in blocks]
    offsets = sum(widths)
    bounds = [
        min(width, _height(block, pairs)) for block, width in zip(blocks, widths, strict=True)
    ]
    proofs = [_is_proved(block, pairs) for block in blocks]
    most, proved = sum(bounds), all(proofs)
    kernel = _Kernel(kernel_size, balanced=False)
    found = [
        bound if proof else _computed(block, pairs, kernel)
        for block, bound, proof in zip(blocks, bounds, proofs, strict=True)
    ]
    one_hot = any(rank == width for rank, width in zip(found, widths, strict=True))
    balanced = 0
    if not one_hot:
        zero_sums = _Kernel(
            kernel_size, balanced=True, periods=[axis[0].patch_size for axis in axes]
        )
        balanced = sum(
            bound if _has_single_rows(block) else _computed(block, pairs, zero_sums)
            for block, bound in zip(blocks, bounds, strict=True)
        )
    single = all(map(_has_single_rows, blocks))
    return GenericRank(offsets, sum(found), most, proved, balanced, single, one_hot)


def _height(block: Block, pairs: int) -> int:
    return pairs * prod(len(axis.rows) for axis in block)


def _has_single_rows(block: Block) -> bool:
    return all(len(axis.rows) == 1 for axis in block)


def _is_proved(block: Block, pairs: int) -> bool:
    """Whether one of the cases above applies."""
    if pairs >= prod(len(axis.columns) for axis in block) or _has_single_rows(block):
        return True
    long = [axis for axis in block if len(axis.rows) > 1 or len(axis.columns) > 1]
    if not all(axis.whole for axis in long):
        return False
    if len(long) == 1:
        return True
    windows = [len(axis.columns) / axis.window for axis in long]
    return pairs >= prod(map(ceil, windows)) or pairs <= prod(map(int, windows))


class _Kernel:
    """Fixed integers for every tap of every channel pair, drawn when they are asked for.

    A balanced kernel has the sum zero over the taps of each residue modulo P', so that F·1 = 0 and
    every vector of F's row space has the sum zero: none is nonnegative but 0.
    """

    def __init__(self, size: tuple[int, ...], balanced: bool, periods: list[int] | None = None):
        self.taps = list(product(*map(range, size)))
        self.balanced, self.periods = balanced, periods or [1] * len(size)
        self.draws, self.pairs = Random("a fixed kernel"), list[dict[Tap, int]]()

    def pair(self, number: int) -> dict[Tap, int]:
        while len(self.pairs) <= number:
            weights = {tap: self.draws.getrandbits(30) for tap in self.taps}
            if self.balanced:
                last: dict[Tap, Tap] = {}
                sums: dict[Tap, int] = {}
                for tap in self.taps:
                    residue = tuple(t % p for t, p in zip(tap, self.periods, strict=True))
                    last[residue] = tap
                    sums[residue] = sums.get(residue, 0) + weights[tap]
                for residue, tap in last.items():
                    weights[tap] -= sums[residue]
            self.pairs.append(weights)
        return self.pairs[number]


def _computed(block: Block, pairs: int, kernel: _Kernel) -> int:
    """The rank of this kernel's block modulo the prime: no more than its rank over the rationals.

    With more pairs the rank does not fall, so a few are tried before all of them.
    """
    width = prod(len(axis.columns) for axis in block)
    each = prod(len(axis.rows) for axis in block)
    rank = 0
    for used in sorted({min(pairs, width, 2 * width // each + 1), min(pairs, width)}):
        entries = [entry for number in range(used) for entry in _rows(block, kernel.pair(number))]
        matrix = flint.nmod_mat(used * each, width, entries, PRIME)
        rank = int(matrix.rank())
        if rank == min(width, pairs * each):
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
