"""The folder of a run: what is written is read, and what is no run is refused."""

import numpy as np
import pytest

from convattn_lab.runs.directory import CONVERSION, RESULT, RunDirectory
from convattn_lab.runs.settings import RunSettings


def test_what_is_written_is_read(tmp_path) -> None:
    run = RunDirectory(tmp_path / "new" / "run")
    run.write_initial({"a.b": np.arange(3.0)})
    assert run.read_initial()["a.b"].tolist() == [0, 1, 2]
    run.write_settings(RunSettings())
    assert run.read_settings() == RunSettings()
    assert run.read_result() is None
    run.write(RESULT, {"status": "finished"})
    assert run.read_result() == {"status": "finished"}
    assert RunDirectory(tmp_path).read_initial() is None


def test_what_is_no_run_is_refused(tmp_path) -> None:
    run = RunDirectory(tmp_path)
    with pytest.raises(ValueError, match=r"has no config\.json, so it is not the folder of a run"):
        run.read_settings()
    for content in (b'{"model": ', b"\xff\xfe"):
        (tmp_path / "config.json").write_bytes(content)
        with pytest.raises(ValueError, match=r"config\.json is no JSON .*; the file was damaged"):
            run.read_settings()
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(ValueError, match=r"is \[\], but expected an object; the file was damaged"):
        run.read_settings()


CONVERTED = {
    "source": {"config": {}},
    "conversion": {
        **{"kind": "limit", "logit": 40.0, "leak": 0.5, "content": "key", "border": "kept"},
        "heads": 9,
    },
    "check": {"images": 4, "seen": 0.1, "bound": 0.2},
    "test": {"images": 10, "changed": 0, "before": 0.5, "after": 0.5},
    "gradients": {"rest": {"norm": 1.0, "zeros": 0, "parameters": 3}},
}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("test", None, "test is None, but expected dict"),
        ("check", {"images": 4}, "check: seen is missing, but expected float"),
        ("gradients", {"rest": {"norm": "x"}}, "rest: norm is 'x', but expected float"),
        ("conversion", {}, "conversion: kind is missing"),
    ],
)
def test_a_damaged_record_of_a_conversion_is_refused(tmp_path, field, value, message) -> None:
    run = RunDirectory(tmp_path)
    run.write(CONVERSION, CONVERTED)
    assert run.read_conversion() == CONVERTED
    run.write(CONVERSION, {**CONVERTED, field: value})
    with pytest.raises(ValueError, match=rf"conversion\.json.*{message}"):
        run.read_conversion()
