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
    assert report.environment["jax"] == jax.__version__
    assert report.environment["device"] == jax.devices()[0].device_kind
    assert {"jaxlib", "backend", "x64"} <= {*report.environment}


@pytest.mark.slow
def test_dictionary_survives_json_unchanged(report) -> None:
    document = report.as_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["schema"] == 1
    assert document["quadratic"][0]["alpha"]["one_hot"] == report.quadratic[0].alpha.one_hot
    assert document["printed"][0]["printed"]["argmax"] == report.printed[0].printed.argmax


@pytest.mark.slow
def test_tables_show_every_row(report) -> None:
    output = io.StringIO()
    report.render(Console(file=output, width=160))
    text = output.getvalue()
    rows = len(report.quadratic) + len(report.bias) + len(report.subnormals) + len(report.printed)
    assert sum("│ bfloat16 │" in line for line in text.splitlines()) == rows
    assert f"{report.quadratic[0].alpha.one_hot:.3f}" in text
    assert jax.__version__ in text


@pytest.mark.parametrize(
    ("dtypes", "message"),
    [([], "dtypes is empty"), ([np.int8], "dtype=int8"), (["float64"], "64-bit types are off")],
)
def test_wrong_dtypes_are_refused(dtypes, message) -> None:
    with jax.enable_x64(False), pytest.raises(ValueError, match=message):
        run_audit(dtypes)
