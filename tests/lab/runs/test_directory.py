"""The folder of a run: what is written is read, and what is no run is refused."""

import numpy as np
import pytest

from convattn.lab.runs.directory import RESULT, RunDirectory
from convattn.lab.runs.settings import RunSettings


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
    with pytest.raises(ValueError, match="holds no JSON object"):
        run.read_settings()
