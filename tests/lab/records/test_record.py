"""The record of a run for a row of the ledger."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from proofs.cordonnier2020_records import full_record

from convattn_lab.records.record import ROWS, experiment_row, record_of, write_record
from convattn_lab.runs.directory import PRUNING, RESULT, RUN, RunDirectory
from convattn_lab.runs.settings import settings_from_json

ROOT = Path(__file__).parents[3]
RUNS = [claim.removeprefix("C20.") for claim in ROWS if claim.startswith("C20.")]


@pytest.fixture
def proofs(tmp_path):
    """The six rows, where records can be written."""
    for row in RUNS:
        path = tmp_path / "proofs" / "cordonnier2020" / f"{row}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "proofs" / "cordonnier2020" / f"{row}.py", path)
    return tmp_path / "proofs"


def finished(folder, claim, accuracy=0.5, **result):
    """The folder of a whole run for a row."""
    record = full_record(experiment_row(claim).experiment(), accuracy)
    run = RunDirectory(folder)
    run.write_settings(settings_from_json(json.loads(json.dumps(record["config"]))))
    if record["pruning"] is not None:
        run.write(PRUNING, record["pruning"])
        run.write_initial({"a": np.zeros(2)})
    run.write(RUN, {**record["run"], "initial": run.initial_digest()})
    run.write(RESULT, {**record["result"], **result})
    return folder


@pytest.mark.parametrize("row", RUNS)
def test_a_record_lies_beside_the_proof_file(row, proofs, tmp_path) -> None:
    run = finished(tmp_path / "run", f"C20.{row}")
    record, check = write_record(run, f"C20.{row}", proofs)
    assert check.path == proofs / "cordonnier2020" / f"{row}.json"
    assert json.loads(check.path.read_text()) == json.loads(json.dumps(record))
    assert record["claim"] == f"C20.{row}"
    assert record["result"]["test_accuracy"] == 0.5
    pruned = row == "pruned"
    assert (record["pruning"] is not None, record["initial"] is not None) == (pruned, pruned)


def test_the_rows_are_those_that_a_run_can_support() -> None:
    actual = {
        path.stem
        for path in (ROOT / "proofs").glob("*/*.py")
        if re.search(r"experiment_claim\(|BackingRun\(", path.read_text("utf-8"))
    }
    assert actual == {claim.split(".")[1] for claim in ROWS}
    assert [experiment_row(claim).experiment().claim for claim in ROWS] == [*ROWS]
    for name in ("C20.quadratics", "C20.lemma1", "quadratic", "C20.*", "S.quadratic", ""):
        with pytest.raises(ValueError, match=r"expected a row .*: C20\.quadratic, C20\.learned"):
            experiment_row(name)


def test_a_run_that_does_not_support_the_row_is_not_put_on_record(proofs, tmp_path) -> None:
    run = finished(tmp_path / "run", "C20.quadratic", step=500)
    for claim, message in (
        ("C20.quadratic", r"C20\.quadratic: result\.step=500, but expected 150000"),
        ("C20.learned", r"config\.model\.encoding is quadratic, not learned; result\.step"),
    ):
        with pytest.raises(ValueError, match=message):
            write_record(run, claim, proofs)
    assert not list(proofs.glob("*/*.json"))


def test_another_run_is_not_replaced_silently(proofs, tmp_path) -> None:
    first, second = (
        finished(tmp_path / name, "C20.quadratic", accuracy)
        for name, accuracy in (("first", 0.5), ("second", 0.6))
    )
    path = write_record(first, "C20.quadratic", proofs)[1].path
    write_record(first, "C20.quadratic", proofs)  # the same again changes nothing
    before = path.read_bytes()
    with pytest.raises(ValueError, match="of another run; look at it, and give --replace"):
        write_record(second, "C20.quadratic", proofs)
    assert path.read_bytes() == before
    write_record(second, "C20.quadratic", proofs, replace=True)
    assert json.loads(path.read_text())["result"]["test_accuracy"] == 0.6


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("initial.npz", "initial.npz is not"),
        ("pruning.json", "no pruning.json"),
    ],
)
def test_a_pruned_run_without_what_it_began_with_is_refused(name, message, tmp_path) -> None:
    run = finished(tmp_path / "run", "C20.pruned")
    (run / name).unlink()
    with pytest.raises(ValueError, match=message):
        record_of(run, "C20.pruned")


def test_what_has_no_figure_is_refused(tmp_path) -> None:
    with pytest.raises(ValueError, match="not the folder of a run"):
        record_of(tmp_path, "C20.quadratic")
    stopped = finished(tmp_path / "stopped", "C20.quadratic", status="stopped")
    with pytest.raises(ValueError, match="not finished"):
        record_of(stopped, "C20.quadratic")
    (stopped / "result.json").unlink()
    with pytest.raises(ValueError, match="not finished"):
        record_of(stopped, "C20.quadratic")
