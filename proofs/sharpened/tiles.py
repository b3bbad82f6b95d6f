"""S.tiles: the head bound of S.heads holds where only sizes were checked, for K = 2Pm + 1.

Claimed. The number of heads in S.heads is necessary for almost every kernel if K is one more than a
multiple of 2P, where in part it had only been checked size by size.
True. It is, in the limit too, for heads that attend by position: shown here for two channel pairs
or more, so that with S.heads all such K are settled; for some other K the check size by size
remains.

Printed. Not from a paper: our own result.

Verified. For K = 2Pm + 1, m ≥ P ≥ 2 and D = D_in·D_out ≥ 2, a generic K × K kernel on patches
takes at least min((2m+1)², (2P-1)²·D) content-free heads, in the limit too: this is the rank of F
for all kernels but a null set. S.heads has D = 1, m ≤ P - 1 and P = 1, so that the formula is
proved for every K = 2Pm + 1. For other K with m ≥ P ≥ 2 and several channel pairs it is still
checked size by size where S.heads says so.

Nothing to repair.

Proof. *The idea:* a kernel with one tap for each residue class makes the rank a number of covered
cells.

A minor of F is a polynomial in the kernel, so one kernel of this rank is enough (S.heads).

Give each channel pair one tap t for each residue class modulo P on both axes, and no others. Row
(pair, s), |s_a| ≤ P - 1, has at column δ the tap Pδ + s, so its only entry is at δ = (t - s)/P for
the tap t ≡ s. A residue ρ ≠ 0 on an axis has the two rows s = ρ and s = ρ - P, and so the cells δ
and δ + 1; ρ = 0 has one. So the rows of a pair are unit vectors on

    (P-1)² squares of 2 × 2 cells, P - 1 horizontal and P - 1 vertical dominoes, and one cell

of the grid of (2m+1)² offsets. As the taps reach from -Pm to Pm, each of these can stand anywhere
in the grid. The rank is the number of cells that are covered.

There are a = D(P-1)² squares, b = D(P-1) dominoes of each sort and c = D ≥ 2 single cells, of total
area A = 4a + 4b + c = D(2P-1)². Let n = 2m + 1, cut into m² blocks 2 × 2, a row of m horizontal
dominoes, a column of m vertical ones, and a corner.

A ≤ n²: all can be laid disjointly, which gives rank A. √D(2P-1) ≤ 2m+1 gives a ≤ m²: lay squares on
blocks, and as many dominoes as fit on the row and the column. If b > m, a - m² + (b - m) ≤ (1-c)/4
< 0 by area, so b - m ≤ m² - a - 1, and 2⌈(b-m)/2⌉ ≤ b - m + 1 blocks are free for the other
dominoes, two of a sort to a block. Single cells go anywhere.

A ≥ n²: they can cover the grid. If a ≥ m², then b ≥ m²/(P-1) > m: the squares cover the blocks, the
dominoes the row and the column, a cell the corner. If a < m² and b < m, squares and dominoes lie
disjointly on blocks, row and column, and 4(m²-a) + 4(m-b) + 1 ≤ c cells are left. If a < m² and b ≥
m, the e = b - m other dominoes of each sort fill blocks in twos; if e is even, or two blocks are
left for the last two dominoes, nothing is wasted until all blocks are filled, and the single cells
cover what is left by area. If one block is left for them, they cover three of its cells; a single
cell covers the fourth and another one, as c ≥ 2, the corner. ∎
"""

from itertools import product

import numpy as np

from convattn.bounds.flattened_kernel import exact_rank
from convattn.bounds.generic_rank import generic_rank
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import certified
from convattn_ledger.evidence.head_floor import fewer_heads_fail
from convattn_ledger.evidence.printed_output_map import flattened_blocks, output_blocks

Cell = tuple[int, int]


def tiling(patch: int, reach: int, pairs: int) -> list[tuple[str, Cell]]:
    """The shapes of the proof and their first cells, in the grid that counts from 0."""
    m, squares, dominoes = reach, pairs * (patch - 1) ** 2, pairs * (patch - 1)
    blocks = [(2 * row, 2 * column) for row, column in product(range(m), repeat=2)]
    tiles = [("square", block) for block in blocks[:squares]]
    free = blocks[squares:]
    tiles += [("square", (0, 0))] * (squares - len(tiles))
    row = [("across", (2 * m, 2 * i)) for i in range(min(m, dominoes))]
    column = [("down", (2 * i, 2 * m)) for i in range(min(m, dominoes))]
    rest = max(0, dominoes - m)
    for shape, (down, right) in (("across", (1, 0)), ("down", (0, 1))):
        placed = []
        for number in range(rest):
            at = number // 2
            if number % 2 == 0 and at >= len(free):
                break
            block = free[at]
            second = number % 2
            placed.append((shape, (block[0] + down * second, block[1] + right * second)))
        used = (len(placed) + 1) // 2
        # The last two dominoes may share the last free block.
        free = free[used:] or free[-1:] if len(placed) % 2 else free[used:]
        tiles += placed
        tiles += [(shape, (0, 0))] * (rest - len(placed))
    tiles += row + column
    tiles += [("across", (0, 0))] * (dominoes - len(row) - rest)
    tiles += [("down", (0, 0))] * (dominoes - len(column) - rest)
    covered = {cell for shape, at in tiles for cell in cells(shape, at)}
    side = range(2 * m + 1)
    missing = [cell for cell in product(side, repeat=2) if cell not in covered]
    singles = [*missing, *[(0, 0)] * pairs][:pairs]
    return tiles + [("cell", at) for at in singles]


def cells(shape: str, at: Cell) -> list[Cell]:
    """What a shape covers."""
    steps = {"square": (2, 2), "across": (1, 2), "down": (2, 1), "cell": (1, 1)}[shape]
    return [(at[0] + i, at[1] + j) for i, j in product(*map(range, steps))]


def tilings(run: Run) -> str:
    """The shapes lie within the grid, are as many as F has, and cover as much as they can."""
    sizes = 0
    largest = 6 if run.quick else 9
    for patch in range(2, largest):
        for reach, pairs in product(range(patch, largest + 1), range(2, 3 + 2 * largest)):
            tiles = tiling(patch, reach, pairs)
            shapes = [shape for shape, _ in tiles]
            counts = [shapes.count(shape) for shape in ("square", "across", "down", "cell")]
            expected = [pairs * (patch - 1) ** 2, *[pairs * (patch - 1)] * 2, pairs]
            require(counts == expected, f"P = {patch}, m = {reach}, D = {pairs}: {counts} shapes")
            covered = {cell for shape, at in tiles for cell in cells(shape, at)}
            side = 2 * reach + 1
            if any(not (0 <= x < side and 0 <= y < side) for x, y in covered):
                raise EvidenceFailed(f"P = {patch}, m = {reach}, D = {pairs}: outside the grid")
            count = min(side**2, pairs * (2 * patch - 1) ** 2)
            if len(covered) != count:
                raise EvidenceFailed(
                    f"P = {patch}, m = {reach}, D = {pairs}: {len(covered)} cells of {count}"
                )
            sizes += 1
    return f"{sizes} sizes with P < {largest}, m ≤ {largest}: as many cells as the formula says"


def kernel_of(tiles: list[tuple[str, Cell]], patch: int, reach: int, pairs: int) -> np.ndarray:
    """One tap for each residue class and channel pair, so that F's rows lie on these shapes."""
    size = 2 * patch * reach + 1
    kernel = np.zeros((pairs, size, size), int)
    residues = range(1, patch)
    classes = {
        "square": list(product(residues, residues)),
        "across": [(0, right) for right in residues],
        "down": [(down, 0) for down in residues],
        "cell": [(0, 0)],
    }
    for shape, kinds in classes.items():
        places = [at for kind, at in tiles if kind == shape]
        for (pair, residue), at in zip(product(range(pairs), kinds), places, strict=True):
            # rows s = ρ and s = ρ - P stand at δ and δ + 1, where P·δ + ρ = t
            tap = [patch * (cell - reach) + rest for cell, rest in zip(at, residue, strict=True)]
            kernel[(pair, *(t + patch * reach for t in tap))] = 1
    return kernel


def ranks(run: Run) -> str:
    """The kernels that are read off the tilings have the rank of the formula."""
    summary = []
    for patch, reach, pairs in ((2, 2, 2), (2, 2, 3), (2, 3, 5), (2, 3, 6), (3, 3, 2), (3, 4, 3)):
        kernel = kernel_of(tiling(patch, reach, pairs), patch, reach, pairs)
        expected = min((2 * reach + 1) ** 2, pairs * (2 * patch - 1) ** 2)
        blocks = output_blocks(np.moveaxis(kernel, 0, 2)[..., None], patch)
        rank = exact_rank(flattened_blocks(blocks))
        require(rank == expected, f"P = {patch}, m = {reach}, D = {pairs}: rank {rank}, {expected}")
        said = generic_rank((2 * patch * reach + 1,) * 2, (patch,) * 2, (1, 1), pairs)
        require(
            said.least == expected and said.proved,
            f"P = {patch}, m = {reach}, D = {pairs}: the library says {said}",
        )
        summary.append(f"K = {2 * patch * reach + 1}, P = {patch}, D = {pairs}: {rank}")
    return "; ".join(summary)


CLAIM = Claim(
    id="S.tiles",
    source="this project, completing S.heads",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LOWER_BOUND,),
    evidence=(
        certified("S.tiles"),
        Evidence("tilings", Level.TESTED, tilings),
        Evidence("kernels of one tap for each residue", Level.TESTED, ranks),
        fewer_heads_fail("K = 9, P = 2: 24 of 25 heads on images", 9, patch_size=2, channels=1),
    ),
)
