"""Everything an audit measured, as data and as tables."""

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from convattn.ledger.audit.bias_saturation import BiasSaturation
from convattn.ledger.audit.matmul_precision import MatmulPrecision
from convattn.ledger.audit.printed_score import PrintedScore
from convattn.ledger.audit.quadratic_saturation import QuadraticSaturation
from convattn.ledger.audit.subnormals import Subnormals

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = 1


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
        return {"schema": SCHEMA, **_plain(dataclasses.asdict(self))}

    def render(self, console: "Console") -> None:
        """Print the tables."""
        from convattn.ledger.audit.audit_tables import tables

        named = ("jax", "jaxlib", "backend", "device", "x64", "default_matmul_precision")
        parts = [f"{name} {self.environment.get(name)}" for name in named]
        console.print(", ".join(parts), highlight=False)
        for table in tables(self):
            console.print(table)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
