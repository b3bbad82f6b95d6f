import json
import sys

import pytest
import training_hours
from training_hours import CONFIGS, IMAGES, RUNS, hours

from convattn_lab.models.settings import EncoderSettings
from convattn_lab.runs.configs import find_configs
from convattn_lab.runs.settings import RunSettings


def test_every_run_has_its_config() -> None:
    assert set(RUNS) <= set(find_configs(CONFIGS))


def test_hours() -> None:
    assert hours(300, IMAGES / 3600) == 300.0


@pytest.mark.slow
def test_a_step_is_timed_and_written(tmp_path, monkeypatch, capsys) -> None:
    small = RunSettings(model=EncoderSettings(heads=(3,), width=16, inner=24))
    monkeypatch.setattr(training_hours, "SIDE", 8)
    monkeypatch.setattr(
        training_hours, "get_config", lambda *_: type("Config", (), {"load": lambda self: small})()
    )
    path = tmp_path / "hours.json"
    monkeypatch.setattr(
        sys, "argv", ["training_hours.py", "--quick", "--batch", "3", "--json", str(path)]
    )
    training_hours.main()
    (row,) = json.loads(path.read_text())["rows"]
    assert (row["batch"], row["claims"]) == (3, "C20.quadratic")
    assert row["hours"] == hours(row["epochs"], row["images_per_second"])
    assert row["command"] in capsys.readouterr().out
