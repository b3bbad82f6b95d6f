"""What this device's arithmetic really does: measured, beside what IEEE 754 predicts.

Importing this loads no JAX; the first use of a name does.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convattn.ledger.audit.audit_report import AuditReport as AuditReport
    from convattn.ledger.audit.run import run_audit as run_audit

__all__ = ["AuditReport", "run_audit"]


def __getattr__(name: str) -> Any:
    if name == "AuditReport":
        from convattn.ledger.audit.audit_report import AuditReport

        return AuditReport
    if name == "run_audit":
        from convattn.ledger.audit.run import run_audit

        return run_audit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
