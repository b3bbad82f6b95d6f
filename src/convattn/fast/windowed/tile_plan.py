"""How the windowed back end cuts its work: which heads read the same keys, how large tiles are.

A tile of t queries with a window of w shifts reads t + w - 1 keys on an axis. Products per query
grow with t, and the copies of each token, (t + w - 1)/t on each axis, fall; `tile_sizes` takes the
sizes that the cost model prices least.
"""

from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

import jax

from convattn.fast.backend import Work
from convattn.fast.cost_model import seconds
from convattn.fast.options import Window
from convattn.fast.windowed.tiles import Tiles, cut_tiles
from convattn.operators.shifts import TokenGrid

_TILE_SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)


class HeadGroup(NamedTuple):
    """Heads whose windows are so alike that they read the same keys.

    Attributes:
        heads, windows: Which heads, and the window of each.
        reach: The smallest window that holds all of these.
        sizes: Queries of a tile on each axis.
    """

    heads: tuple[int, ...]
    windows: tuple[Window, ...]
    reach: Window
    sizes: tuple[int, ...]

    @property
    def products_per_query(self) -> int:
        """The keys of a tile: what each query, head and channel is multiplied with."""
        return prod(
            size + high - low for size, (low, high) in zip(self.sizes, self.reach, strict=True)
        )


@lru_cache(maxsize=256)
def plan_groups(
    windows: tuple[Window, ...], plane: TokenGrid, batch: int, width: int
) -> tuple[HeadGroup, ...]:
    """Groups of heads and their tiles.

    A head joins a group if reading the keys of all together costs at most a quarter more than
    apart.

    Args:
        windows: Of each head, within the shifts that occur.
        plane: A grid of two axes.
        width: How many channels are mixed.

    >>> plane = TokenGrid((32, 32), ((0, 0), (0, 0)))
    >>> near, far = ((-4, 4), (-4, 5)), ((-31, -20), (0, 8))
    >>> [group.heads for group in plan_groups((near, far, near), plane, 1, 8)]
    [(0, 2), (1,)]
    """
    groups: list[list[int]] = []
    for head, window in enumerate(windows):
        for group in groups:
            together = join([windows[member] for member in group])
            joined = (len(group) + 1) * area(join([together, window]))
            if joined <= 1.25 * (len(group) * area(together) + area(window)):
                group.append(head)
                break
        else:
            groups.append([head])
    plans = []
    for group in groups:
        reach = join([windows[head] for head in group])
        sizes = tile_sizes(plane, reach, len(group), batch, width)
        plans.append(HeadGroup(tuple(group), tuple(windows[h] for h in group), reach, sizes))
    return tuple(plans)


def join(windows: list[Window]) -> Window:
    """The smallest window that holds all of these.

    >>> join([((-1, 1), (0, 2)), ((0, 3), (1, 2))])
    ((-1, 3), (0, 2))
    """
    return tuple(
        (min(low for low, _ in axis), max(high for _, high in axis))
        for axis in zip(*windows, strict=True)
    )


def area(window: Window) -> int:
    """The keys that a tile of four queries on each axis reads."""
    return prod(high - low + 4 for low, high in window)


def tile_sizes(
    plane: TokenGrid, window: Window, heads: int, batch: int, width: int
) -> tuple[int, ...]:
    """Queries of a tile on each axis, so that the expected time is least.

    A quarter of a window is the least: a smaller tile is put together from many pieces.

    >>> plane = TokenGrid((4, 1), ((0, 0), (0, 0)))
    >>> tile_sizes(plane, ((-3, 3), (0, 0)), 1, 1, 8)[1]
    1
    """
    candidates = [
        sorted(
            {size for size in _TILE_SIZES if high - low < 4 * size < 4 * queries}
            | {min(queries, max(48, high - low))}
        )
        for queries, (low, high) in zip(plane.queries, window, strict=True)
    ]
    platform = jax.default_backend()
    return min(
        product(*candidates),
        key=lambda sizes: seconds(tile_work(plane, window, heads, batch, width, sizes), platform),
    )


def tile_work(
    plane: TokenGrid, window: Window, heads: int, batch: int, width: int, sizes: tuple[int, ...]
) -> Work:
    """The weights of the tiles that differ, and the products of all tiles.

    >>> plane = TokenGrid((8, 1), ((0, 0), (0, 0)))
    >>> tile_work(plane, ((0, 0), (0, 0)), 1, 1, 3, (8, 1)).products
    192.0
    """
    rows, columns = plane_tiles(plane, window, sizes)
    shifts = prod(high - low + 1 for low, high in window)
    products = moved = exponentials = 0
    for down, across in product(rows, columns):
        queries, keys = down.size * across.size, down.keys * across.keys
        tiles = batch * down.number * across.number
        kinds = prod(1 if tiles.alike else tiles.number for tiles in (down, across))
        products += tiles * heads * queries * keys * width
        moved += 4 * tiles * keys * width + 2 * tiles * heads * queries * width
        moved += 6 * kinds * heads * queries * (shifts + keys)
        exponentials += kinds * heads * queries * shifts
    calls = 24 * len(rows) * len(columns)
    return Work(float(products), float(moved), float(exponentials), float(calls))


def plane_tiles(
    plane: TokenGrid, window: Window, sizes: tuple[int, ...]
) -> tuple[list[Tiles], list[Tiles]]:
    """The tiles on the two axes.

    Inner rows are apart from those at the border; the columns stay together, so that the program is
    short: a few more weights are computed for that.
    """
    (height, breadth), (beside, above) = plane.queries, plane.ring
    rows = cut_tiles(height, beside, window[0], sizes[0])
    return rows, cut_tiles(breadth, above, window[1], sizes[1], together=True)
