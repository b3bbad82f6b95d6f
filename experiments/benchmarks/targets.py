"""The targets, each with the figure that was measured.

A ratio is met where its median over the turns is at most the limit. Where the median is above but a
quarter of the turns are not, the difference is within the noise of the run, and it says so.
"""

from collections.abc import Iterable
from typing import NamedTuple

from benchmarks.growth import Growth
from benchmarks.rows import Row, by_group, ratio
from benchmarks.settings import GIB

FREE = {16: 1.25, 32: 1.4, 48: 1.5, 64: 1.5}
ON_GRID = {16: 1.05, 32: 1.15, 64: 1.25}
WIDE, NARROW = 400, 64
SPEED_UP = 12.0
LARGEST_MEMORY = 2 * GIB
LARGEST_SIDE = 224
LARGEST_EXPONENT = 1.6
FINITE = ((32, 64), (14, 768))
LINEAR_TIME = ("auto", "grid")


class Target(NamedTuple):
    """One target: what is asked, what was measured, and `"met"`, `"missed"`, …"""

    asked: str
    measured: str
    verdict: str


def targets(rows: Iterable[Row], growth: Iterable[Growth], batch: int) -> list[Target]:
    """All targets, those that this run did not measure included."""
    groups = by_group(row for row in rows if row.skipped is None)

    def row_of(case: str, features: int, side: int, name: str) -> Row | None:
        return groups.get((case, features, batch, side), {}).get(name)

    listed = []
    sides = sorted({side for case, d, _, side in groups if (case, d) == ("quadratic", WIDE)})
    for side in sides or [0]:
        auto = row_of("quadratic", WIDE, side, "auto")
        dense = fastest(row_of("quadratic", WIDE, side, name) for name in ("dense", "plain dense"))
        size = f" at {side}²" if side else " at any size"
        listed.append(
            at_most(f"free centres: auto never slower than dense{size}", auto, dense, 1.0)
        )
    for side, limit in FREE.items():
        auto, floor = (row_of("quadratic", WIDE, side, name) for name in ("auto", "lax.conv"))
        listed.append(
            at_most(f"free centres: auto ≤ {limit}× lax.conv at {side}²", auto, floor, limit)
        )
    auto = row_of("quadratic", WIDE, 64, "auto")
    dense = fastest(row_of("quadratic", WIDE, 64, name) for name in ("dense", "plain dense"))
    listed.append(
        speed_up(f"free centres: auto ≥ {SPEED_UP:.0f}× faster than dense at 64²", auto, dense)
    )
    for side, limit in ON_GRID.items():
        grid, floor = (row_of("quadratic", WIDE, side, name) for name in ("grid", "lax.conv"))
        listed.append(
            at_most(f"centres on a grid ≤ {limit}× lax.conv at {side}²", grid, floor, limit)
        )
    listed += [
        memory(name, row_of("quadratic", NARROW, LARGEST_SIDE, name)) for name in LINEAR_TIME
    ]
    for side, features in FINITE:
        shift, floor = (row_of("finite", features, side, name) for name in ("shift", "lax.conv"))
        asked = f"shift ≤ 1.0× lax.conv at {side}², D = {features}"
        listed.append(at_most(asked, shift, floor, 1.0))
    known = {(g.features, g.contestant): g for g in growth if g.case == "quadratic"}
    listed += [
        slope(features, name, known.get((features, name)))
        for features in (WIDE, NARROW)
        for name in LINEAR_TIME
    ]
    return listed


def fastest(rows: Iterable[Row | None]) -> Row | None:
    """The row with the least median time among those that were measured."""
    measured = [row for row in rows if row is not None]
    return min(measured, key=lambda row: row.backward_seconds) if measured else None


def at_most(asked: str, row: Row | None, other: Row | None, limit: float) -> Target:
    """Row's time over the other's is at most the limit; a program is not slower than itself."""
    if row is None or other is None:
        return Target(asked, "", "not measured")
    if row.chose == other.contestant:
        return Target(asked, f"auto is {other.contestant}", "met")
    low, middle, high = ratio(row, other)
    measured = f"{middle:.2f} (quartiles {low:.2f} to {high:.2f}) of {other.contestant}"
    return Target(asked, measured, verdict(middle <= limit, low <= limit))


def speed_up(asked: str, row: Row | None, other: Row | None) -> Target:
    """The other's time over row's is at least `SPEED_UP`."""
    if row is None or other is None:
        return Target(asked, "", "not measured")
    low, middle, high = ratio(other, row)
    measured = f"{middle:.1f} (quartiles {low:.1f} to {high:.1f}) than {other.contestant}"
    return Target(asked, measured, verdict(middle >= SPEED_UP, high >= SPEED_UP))


def memory(name: str, row: Row | None) -> Target:
    """XLA's figure, and the resident one where it is known, are under `LARGEST_MEMORY`."""
    asked = f"{name}: {LARGEST_SIDE}², D = {NARROW}, forward and backward, under 2 GiB"
    if row is None or row.memory is None:
        return Target(asked, "", "not measured")
    sizes = {"XLA": row.memory.total}
    if row.resident is not None:
        sizes["resident"] = row.resident
    measured = ", ".join(f"{size / GIB:.2f} GiB ({kind})" for kind, size in sizes.items())
    met = max(sizes.values()) < LARGEST_MEMORY
    return Target(asked, measured, verdict(met, met))


def slope(features: int, name: str, growth: Growth | None) -> Target:
    """Time grows with pixels with an exponent of at most `LARGEST_EXPONENT`."""
    asked = f"{name}: exponent ≤ {LARGEST_EXPONENT} from 32² to {LARGEST_SIDE}², D = {features}"
    if growth is None or (growth.first_side, growth.last_side) != (32, LARGEST_SIDE):
        return Target(asked, "", "not measured")
    met = growth.exponent <= LARGEST_EXPONENT
    return Target(asked, f"{growth.exponent:.2f}", verdict(met, met))


def verdict(met: bool, near: bool) -> str:
    """In words."""
    return "met" if met else "missed, within the noise" if near else "missed"
