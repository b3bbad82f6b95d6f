"""The tables that the benchmark prints."""

from collections.abc import Iterable

from rich.console import Console, JustifyMethod
from rich.table import Table

from benchmarks.growth import Growth
from benchmarks.rows import Row, by_group, ratio
from benchmarks.targets import Target, fastest

MIB = 2**20
COLUMNS = (
    "contestant",
    "forward\nms",
    "forward +\nbackward ms",
    "×\nlax.conv",
    "× faster\nthan dense",
    "XLA\nMiB",
    "resident\nMiB",
)
COLOURS = {"met": "green", "missed": "red", "not measured": "dim"}


def round_table(rows: Iterable[Row]) -> Table:
    """The implementations of one case and size, the fastest first and those left out last."""
    members = list(rows)
    case, features, batch, side = members[0].group
    title = f"{case}, {side}² tokens, D = {features}" + (f", batch {batch}" if batch > 1 else "")
    table = Table(title=title, title_justify="left")
    for column in COLUMNS:
        justify: JustifyMethod = "left" if column == "contestant" else "right"
        table.add_column(column, justify=justify, no_wrap=True)
    measured = {row.contestant: row for row in members if row.skipped is None}
    floor = measured.get("lax.conv")
    dense = fastest(measured.get(name) for name in ("dense", "plain dense"))
    for row in sorted(measured.values(), key=lambda row: row.backward_seconds):
        name = row.contestant + (f" ({row.chose})" if row.chose else "")
        name += "" if len(row.backward) > 1 else ", one run"
        table.add_row(
            name,
            f"{row.forward_seconds * 1e3:.2f}",
            f"{row.backward_seconds * 1e3:.2f}",
            "" if floor is None else f"{ratio(row, floor)[1]:.2f}",
            "" if dense is None else f"{ratio(dense, row)[1]:.2f}",
            "" if row.memory is None else f"{row.memory.total / MIB:.1f}",
            "" if row.resident is None else f"{row.resident / MIB:.0f}",
        )
    return table


def print_round(console: Console, rows: Iterable[Row], reported: set[tuple[str, str, str]]) -> None:
    """The table of one case and size, and under it who was left out and why.

    Args:
        reported: Case, contestant and reason of what was printed and is not repeated; added to.
    """
    members = list(rows)
    console.print(round_table(members))
    for row in members:
        if row.skipped is not None and (row.case, row.contestant, row.skipped) not in reported:
            reported.add((row.case, row.contestant, row.skipped))
            line = f"  left out: {row.contestant}: {row.skipped}"
            console.print(line, highlight=False, markup=False)
    console.print()


def growth_table(growth: Iterable[Growth]) -> Table:
    """The exponents of time over pixels."""
    table = Table(title="time ~ pixels^exponent, forward and backward", title_justify="left")
    for column in ("case", "D", "contestant", "sizes", "exponent"):
        table.add_column(column, justify="right" if column in ("D", "exponent") else "left")
    for row in growth:
        sizes = f"{row.first_side}² to {row.last_side}²"
        table.add_row(row.case, str(row.features), row.contestant, sizes, f"{row.exponent:.2f}")
    return table


def target_table(targets: Iterable[Target]) -> Table:
    """The targets."""
    table = Table(title="targets", title_justify="left")
    for column in ("target", "measured", "verdict"):
        table.add_column(column)
    for target in targets:
        colour = COLOURS.get(target.verdict, "yellow")
        table.add_row(target.asked, target.measured, f"[{colour}]{target.verdict}[/{colour}]")
    return table


def print_summary(
    console: Console, rows: list[Row], growth: list[Growth], targets: list[Target]
) -> None:
    """Exponents, targets, and how many rows there were."""
    if growth:
        console.print(growth_table(growth))
    console.print(target_table(targets))
    timed = sum(row.skipped is None for row in rows)
    console.print(f"{timed} timed, {len(rows) - timed} left out, {len(by_group(rows))} rounds")
