"""One audit of the default device."""

from collections.abc import Sequence

from jax.typing import DTypeLike

from convattn.ledger.audit.audit_report import AuditReport
from convattn.ledger.audit.bias_saturation import measure_bias_saturation
from convattn.ledger.audit.float_format import available_formats, float_format
from convattn.ledger.audit.matmul_precision import measure_matmul_precision
from convattn.ledger.audit.printed_score import measure_printed_scores
from convattn.ledger.audit.quadratic_saturation import measure_quadratic_saturation
from convattn.ledger.audit.subnormals import measure_subnormals
from convattn.ledger.environment import device_environment, host_environment


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
        raise ValueError("dtypes is empty, but at least one was expected; leave it out for all")
    return AuditReport(
        environment={**host_environment(), **device_environment()},
        quadratic=tuple(row for each in formats for row in measure_quadratic_saturation(each)),
        bias=tuple(row for each in formats for row in measure_bias_saturation(each)),
        subnormals=tuple(measure_subnormals(each) for each in formats),
        matmul=measure_matmul_precision(),
        printed=tuple(row for each in formats for row in measure_printed_scores(each)),
    )
