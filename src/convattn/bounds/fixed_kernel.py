"""One fixed kernel of integers, and the ranks of the blocks of its F.

A rank modulo a prime is no more than the rank over the rationals, and the rank of one kernel no
more than that of all but a null set: what is computed here is a proof for its size.
"""

from itertools import product
from math import prod
from random import Random

import flint

from convattn.bounds.residue_blocks import AxisBlock

PRIME = 2**61 - 1
MOST_ENTRIES = 250_000  # of all matrices of one question: under half a second
Block = tuple[AxisBlock, ...]
Tap = tuple[int, ...]


class TooLargeError(ValueError):
    """The matrices have more than `MOST_ENTRIES` numbers."""


class FixedKernel:
    """Fixed integers for every tap of every channel pair, drawn when they are asked for.

    With `periods` it is balanced: it has the sum zero over the taps of each residue modulo P', so
    that F·1 = 0 and every vector of F's row space has the sum zero: none is nonnegative but 0.
    """

    def __init__(self, size: tuple[int, ...], periods: list[int] | None = None):
        self.size, self.periods = size, periods
        self.draws, self.pairs = Random("a fixed kernel"), list[dict[Tap, int]]()
        self.left = MOST_ENTRIES

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

        Raises:
            TooLargeError: Where more than `MOST_ENTRIES` numbers would be needed.
        """
        width = prod(len(axis.columns) for axis in block)
        each = prod(len(axis.rows) for axis in block)
        rank = 0
        for used in sorted({min(pairs, width, 2 * width // each + 1), min(pairs, width)}):
            self.left -= used * (each * width + prod(self.size))
            if self.left < 0:
                raise TooLargeError(
                    "the rank of F is not known in closed form for these sizes, and the matrices "
                    f"to compute it have more than {MOST_ENTRIES} numbers; take a smaller kernel "
                    "or fewer channels"
                )
            entries = [entry for number in range(used) for entry in _rows(block, self.pair(number))]
            rank = int(flint.nmod_mat(used * each, width, entries, PRIME).rank())
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
