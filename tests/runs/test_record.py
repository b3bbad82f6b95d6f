"""The record of a run for a row of the ledger."""

import json

import pytest
from ledger.proof_files import claim, write

from convattn.runs.directory import RunDirectory
from convattn.runs.record import record_of, record_path, write_record
from convattn.runs.settings import RunSettings


def finished(folder, status="finished"):
    run = RunDirectory(folder)
    run.write_settings(RunSettings())
    run.write_facts({"seed": 3})
    run.write_result({"status": status, "test_accuracy": 0.5})
    return folder


def test_a_record_lies_beside_the_proof_file(tmp_path) -> None:
    proofs = write(tmp_path / "proofs", cordonnier2020__quadratic=claim("C20.quadratic"))
    path = write_record(finished(tmp_path / "run"), "C20.quadratic", proofs)
    assert path == proofs / "cordonnier2020" / "quadratic.json"
    record = json.loads(path.read_text())
    assert record["claim"] == "C20.quadratic"
    assert record["config"]["training"]["epochs"] == 300
    assert record["run"] == {"seed": 3}
    assert record["result"]["test_accuracy"] == 0.5
    assert "pruning" not in record


def test_what_pruning_did_is_kept(tmp_path) -> None:
    folder = finished(tmp_path / "run")
    (folder / "pruning.json").write_text('{"removed": [1]}')
    assert record_of(folder, "C20.pruned")["pruning"] == {"removed": [1]}


def test_what_has_no_figure_is_refused(tmp_path) -> None:
    with pytest.raises(ValueError, match="not the folder of a run"):
        record_of(tmp_path, "C20.quadratic")
    stopped = finished(tmp_path / "stopped", "stopped")
    with pytest.raises(ValueError, match="not finished, so it has no figure; go on with it"):
        record_of(stopped, "C20.quadratic")
    (stopped / "result.json").unlink()
    with pytest.raises(ValueError, match="not finished"):
        record_of(stopped, "C20.quadratic")
    for name in ("C20.quadratics", "quadratic", "C20.*", ""):
        with pytest.raises(ValueError, match="expected one of the ledger"):
            record_path(name)
