import io
import json

import jax
import numpy as np
import pytest
from rich.console import Console

from convattn_ledger.audit.report import AuditReport, run_audit


@pytest.fixture(scope="module")
def report():
    with jax.enable_x64(False):
        return run_audit(["bfloat16"])


@pytest.mark.slow
def test_every_measurement_is_there_for_the_dtypes_asked_for(report) -> None:
    assert isinstance(report, AuditReport)
    for rows in (report.quadratic, report.bias, report.subnormals, report.printed):
        assert {row.dtype for row in rows} == {"bfloat16"}
    assert [row.precision for row in report.matmul] == ["unspecified", "DEFAULT", "HIGH", "HIGHEST"]


def test_environment_names_versions_device_and_switch(report) -> None:
    environment = report.environment
    assert environment["jax"] == jax.__version__
    assert environment["jaxlib"]
    assert environment["backend"] == jax.default_backend()
    assert environment["device"] == jax.devices()[0].device_kind
    assert environment["x64"] in (True, False)


def test_dictionary_survives_json_unchanged(report) -> None:
    found = report.as_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["schema"] == 1
    assert found["quadratic"][0]["alpha"]["one_hot"] == report.quadratic[0].alpha.one_hot
    assert found["printed"][0]["printed"]["argmax"] == report.printed[0].printed.argmax


def test_tables_show_every_row(report) -> None:
    output = io.StringIO()
    report.render(Console(file=output, width=160))
    text = output.getvalue()
    for title in ("least alpha", "least M", "Subnormal", "matrix products", "eq. 9"):
        assert title in text
    rows = len(report.quadratic) + len(report.bias) + len(report.subnormals) + len(report.printed)
    assert sum("│ bfloat16 │" in line for line in text.splitlines()) == rows
    assert f"{report.quadratic[0].alpha.one_hot:.3f}" in text
    assert jax.__version__ in text


def test_wrong_dtypes_are_refused() -> None:
    with pytest.raises(ValueError, match="dtypes is empty"):
        run_audit([])
    with pytest.raises(ValueError, match="dtype=int8"):
        run_audit([np.int8])
    with jax.enable_x64(False), pytest.raises(ValueError, match="64-bit types are off"):
        run_audit(["float64"])
