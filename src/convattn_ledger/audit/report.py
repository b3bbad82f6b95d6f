"""One audit of the default device: everything it measured, as data and as tables."""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jax.typing import DTypeLike

from convattn_ledger.audit.float_format import available_formats, float_format
from convattn_ledger.audit.matmul_precision import MatmulPrecision, measure_matmul_precision
from convattn_ledger.audit.printed_score import PrintedScore, measure_printed_scores
from convattn_ledger.audit.saturation import (
    BiasSaturation,
    QuadraticSaturation,
    Saturation,
    measure_bias_saturation,
    measure_quadratic_saturation,
)
from convattn_ledger.audit.subnormals import Subnormals, measure_subnormals
from convattn_ledger.environment import device_environment, host_environment

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SCHEMA = 1
_SATURATION = ("max = 1 from", "predicted", "one-hot from", "flushed / kept")
_PRINTED = ("printed: argmax", "weight < 1", "safe below", "centred: argmax", "weight < 1")


@dataclass(frozen=True)
class AuditReport:
    """What a device's arithmetic does.

    Attributes:
        environment: Versions, backend, device, whether 64-bit types are on.
        quadratic: The least α of the quadratic encoding.
        bias: The least M of the relative bias.
        subnormals: Which operations keep subnormal numbers.
        matmul: How many bits float32 products keep.
        printed: Where C20's eq. 9 as printed loses its target.
    """

    environment: dict[str, Any]
    quadratic: tuple[QuadraticSaturation, ...]
    bias: tuple[BiasSaturation, ...]
    subnormals: tuple[Subnormals, ...]
    matmul: tuple[MatmulPrecision, ...]
    printed: tuple[PrintedScore, ...]

    def as_dict(self) -> dict[str, Any]:
        """Dictionaries, lists, strings, finite numbers, booleans and None: ready for JSON."""
        return {"schema": SCHEMA, **json.loads(json.dumps(dataclasses.asdict(self)))}

    def render(self, console: "Console") -> None:
        """Print the tables."""
        named = ("jax", "jaxlib", "backend", "device", "x64", "default_matmul_precision")
        parts = [f"{name} {self.environment.get(name)}" for name in named]
        console.print(", ".join(parts), highlight=False)
        console.print(
            _table(
                "Quadratic encoding: least alpha (C20, eq. 9 and the remark on alpha = 46)",
                ("scores", "softmax", "grid", *_SATURATION, "rival at 46"),
                (
                    _row(row, "32" if row.axes == 1 else "32 x 32", row.alpha, row.rival_at_claimed)
                    for row in self.quadratic
                ),
            ),
            _table(
                "Relative bias: least M, wherever the target stands (L21, Lemma 2 and M = 40)",
                ("scores", "softmax", "keys", *_SATURATION, "1 - max at 40"),
                (_row(row, str(row.keys), row.logit, row.deficit_at_claimed) for row in self.bias),
            ),
            _table(
                "Subnormal numbers",
                ("dtype", "inputs", "add", "multiply", "divide", "exp", "exp(-x) = 0 from"),
                (
                    (row.dtype, *_flags(row), _decimals(row.exp_zero_from))
                    for row in self.subnormals
                ),
            ),
            _table(
                "float32 matrix products: bits of significand, of 24",
                ("precision", "left", "right", "accumulator", "amounts to"),
                (tuple(map(str, dataclasses.astuple(row))) for row in self.matmul),
            ),
            _table(
                "C20 eq. 9: least image side that loses the target, corner to corner",
                ("scores", "axes", "alpha", *_PRINTED),
                map(_printed, self.printed),
            ),
        )


def run_audit(dtypes: Sequence[DTypeLike] | None = None) -> AuditReport:
    """Measure what the default device's arithmetic does; a few seconds on a CPU.

    Args:
        dtypes: Which of float64, float32, bfloat16 and float16 to measure; None for all of them,
            float64 only if 64-bit types are on.

    Raises:
        ValueError: For other dtypes, for none at all, and for float64 while 64-bit types are off.

    >>> report = run_audit(["float16"])
    >>> {row.dtype for row in report.quadratic}
    {'float16'}
    """
    formats = available_formats() if dtypes is None else tuple(map(float_format, dtypes))
    if not formats:
        raise ValueError("dtypes is empty, but expected at least one; leave it out for all")
    return AuditReport(
        environment={**host_environment(), **device_environment()},
        quadratic=tuple(row for each in formats for row in measure_quadratic_saturation(each)),
        bias=tuple(row for each in formats for row in measure_bias_saturation(each)),
        subnormals=tuple(measure_subnormals(each) for each in formats),
        matmul=measure_matmul_precision(),
        printed=tuple(row for each in formats for row in measure_printed_scores(each)),
    )


def _table(title: str, columns: Sequence[str], rows: Iterable[tuple[str, ...]]) -> "Table":
    from rich.table import Table

    table = Table(*columns, title=title, title_justify="left", title_style="bold")
    for row in rows:
        table.add_row(*row)
    return table


def _row(
    row: QuadraticSaturation | BiasSaturation, size: str, least: Saturation, claimed: float
) -> tuple[str, ...]:
    return (
        row.dtype,
        row.softmax_dtype,
        size,
        _decimals(least.rounds_to_one),
        " .. ".join(map(_decimals, least.rounds_to_one_predicted)),
        _decimals(least.one_hot),
        " / ".join(map(_decimals, least.one_hot_predicted)),
        f"{claimed:.3g}",
    )


def _flags(row: Subnormals) -> Iterable[str]:
    flags = (row.inputs_kept, row.add_kept, row.multiply_kept, row.divide_kept, row.exp_kept)
    return ("kept" if flag else "flushed" for flag in flags)


def _printed(row: PrintedScore) -> tuple[str, ...]:
    sides = (row.printed.argmax, row.printed.weight, row.centred.argmax, row.centred.weight)
    *printed, argmax, weight = ("none" if side is None else str(side) for side in sides)
    safe = f"{row.argmax_safe_below} / {row.weight_safe_below}"
    return (row.dtype, str(row.axes), f"{row.alpha:.6g}", *printed, safe, argmax, weight)


def _decimals(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"
