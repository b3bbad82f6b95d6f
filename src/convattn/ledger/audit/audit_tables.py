"""The tables of an audit's report."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.table import Table

from convattn.ledger.audit.saturation import Saturation

if TYPE_CHECKING:
    from convattn.ledger.audit.audit_report import AuditReport

SATURATION_COLUMNS = ("max = 1 from", "predicted", "one-hot from", "flushed / kept")


def tables(report: "AuditReport") -> Iterator[Table]:
    """One table for each measurement, in the order of the report's fields."""
    yield quadratic_table(report)
    yield bias_table(report)
    yield subnormals_table(report)
    yield matmul_table(report)
    yield printed_table(report)


def quadratic_table(report: "AuditReport") -> Table:
    """The least α."""
    table = _table(
        "Quadratic encoding: least alpha (C20, eq. 9 and the remark on alpha = 46)",
        ("scores", "softmax", "grid", *SATURATION_COLUMNS, "rival at 46"),
    )
    for row in report.quadratic:
        grid = "32" if row.axes == 1 else "32 x 32"
        rival = f"{row.rival_at_claimed:.3g}"
        table.add_row(row.dtype, row.softmax_dtype, grid, *_saturation(row.alpha), rival)
    return table


def bias_table(report: "AuditReport") -> Table:
    """The least M."""
    table = _table(
        "Relative bias: least M, wherever the target stands (L21, Lemma 2 and M = 40)",
        ("scores", "softmax", "keys", *SATURATION_COLUMNS, "1 - max at 40"),
    )
    for row in report.bias:
        deficit = f"{row.deficit_at_claimed:.3g}"
        keys = str(row.keys)
        table.add_row(row.dtype, row.softmax_dtype, keys, *_saturation(row.logit), deficit)
    return table


def subnormals_table(report: "AuditReport") -> Table:
    """What becomes of subnormal numbers."""
    table = _table(
        "Subnormal numbers",
        ("dtype", "inputs", "add", "multiply", "divide", "exp", "exp(-x) = 0 from"),
    )
    for row in report.subnormals:
        flags = (
            row.inputs_kept,
            row.add_kept,
            row.multiply_kept,
            row.divide_kept,
            row.exp_kept,
        )
        words = ("kept" if flag else "flushed" for flag in flags)
        table.add_row(row.dtype, *words, _figure(row.exp_zero_from))
    return table


def matmul_table(report: "AuditReport") -> Table:
    """What a float32 product keeps of its operands."""
    table = _table(
        "float32 matrix products: bits of significand, of 24",
        ("precision", "left", "right", "accumulator", "amounts to"),
    )
    for row in report.matmul:
        bits = (str(row.left_bits), str(row.right_bits), str(row.accumulator_bits))
        table.add_row(row.precision, *bits, row.name)
    return table


def printed_table(report: "AuditReport") -> Table:
    """Where eq. 9 fails as printed and where it does centred."""
    table = _table(
        "C20 eq. 9: least image side that loses the target, corner to corner",
        (
            "scores",
            "axes",
            "alpha",
            "printed: argmax",
            "weight < 1",
            "safe below",
            "centred: argmax",
            "weight < 1",
        ),
    )
    for row in report.printed:
        safe = f"{row.argmax_safe_below} / {row.weight_safe_below}"
        printed = (_side(row.printed.argmax), _side(row.printed.weight))
        centred = (_side(row.centred.argmax), _side(row.centred.weight))
        table.add_row(row.dtype, str(row.axes), f"{row.alpha:.6g}", *printed, safe, *centred)
    return table


def _table(title: str, columns: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column)
    return table


def _figure(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def _side(value: int | None) -> str:
    return "none" if value is None else str(value)


def _saturation(row: Saturation) -> tuple[str, str, str, str]:
    return (
        _figure(row.rounds_to_one),
        " .. ".join(map(_figure, row.rounds_to_one_predicted)),
        _figure(row.one_hot),
        " / ".join(map(_figure, row.one_hot_predicted)),
    )
