"""What this device's arithmetic does: measured, beside what IEEE 754 predicts.

Importing this loads no JAX; the first use of a name does.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convattn.ledger.audit.report import AuditReport as AuditReport
    from convattn.ledger.audit.report import run_audit as run_audit

__all__ = ["AuditReport", "run_audit"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from convattn.ledger.audit import report

    return getattr(report, name)
