"""`train`: what it refuses, how it goes on, and what it leaves behind."""

import math
import os
import shutil
import signal

import numpy as np
import pytest
from comparison import assert_equal
from flax import nnx
from lab.training.test_metrics import scalars
from lab.training.tiny import (
    Dense,
    Normalized,
    assert_same_arrays,
    metric_lines,
    run,
    settings,
    training_images,
)
from rich.console import Console

from convattn.data.cifar10_slice import Images
from convattn.files import DirectoryLockedError
from convattn_lab.training.checkpoints import (
    CheckpointStore,
    DamagedCheckpoint,
    OtherModel,
    digest,
)
from convattn_lab.training.failures import NonFiniteLoss, NoWholeCheckpoint
from convattn_lab.training.metrics import read_metrics
from convattn_lab.training.snapshots import read_snapshot, snapshot_epochs
from convattn_lab.training.state import named_arrays

SELDOM = {"checkpoint_minutes": 60.0}
OTHERWISE = {"steps_per_call": None, "checkpoint_minutes": 9.0, "keep_checkpoints": 1}


def parameters(outcome):
    return digest(named_arrays(nnx.state(outcome.model)))


def kernel(model):
    return {"kernel": np.asarray(model.last.dense.kernel[...])}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The folder and outcome of a run that nothing interrupted."""
    folder, model = tmp_path_factory.mktemp("whole"), Normalized()
    before = named_arrays(nnx.state(model))
    outcome = run(folder, snapshot=kernel, model=model)
    assert_same_arrays(named_arrays(nnx.state(model)), before)  # the caller's is left as it is
    return folder, outcome


def assert_as_expected(folder, outcome, expected):
    assert outcome.status == "finished"
    assert metric_lines(folder) == metric_lines(expected[0])
    assert parameters(outcome) == parameters(expected[1])
    assert outcome.test_loss == expected[1].test_loss
    assert outcome.test_accuracy == expected[1].test_accuracy


def modification_times(folder):
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return {path: path.stat().st_mtime_ns for path in files}


class Interrupt:
    """A snapshot function that sends its process a signal at one epoch."""

    def __init__(self, at, number=signal.SIGTERM):
        self.at, self.number, self.calls = at, number, 0

    def __call__(self, model):
        if self.calls == self.at:
            os.kill(os.getpid(), self.number)
        self.calls += 1
        return kernel(model)


def test_a_run_learns_and_records_what_it_did(expected):
    """Three epochs of four steps."""
    folder, outcome = expected
    assert (outcome.status, outcome.step, outcome.steps) == ("finished", 12, 12)
    first, second, last = read_metrics(folder)
    epochs = [(line["step"], line["epoch"]) for line in (first, second, last)]
    assert epochs == [(4, 1), (8, 2), (12, 3)]
    assert last["train_loss"] < first["train_loss"]
    assert last["test_accuracy"] == outcome.test_accuracy
    assert last["test_loss"] == outcome.test_loss
    assert 0 < first["seconds"] < second["seconds"] < last["seconds"] <= outcome.seconds
    assert sorted(os.listdir(folder / "checkpoints")) == ["11", "12"]


def test_a_finished_run_trains_nothing(expected):
    folder, outcome = expected
    before = modification_times(folder / "checkpoints")
    again = run(folder, snapshot=kernel)
    assert_as_expected(folder, again, expected)
    assert again.seconds == outcome.seconds
    assert modification_times(folder / "checkpoints") == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("SIGTERM", SELDOM, SELDOM), ("SIGINT", {"steps_per_call": 3}, OTHERWISE)],
)
def test_a_signal_saves_and_the_run_goes_on(tmp_path, expected, capsys, name, before, after):
    """Also with other settings, of those that do not decide what is trained."""
    interrupt = Interrupt(1, getattr(signal, name))
    first = run(tmp_path, settings(**before), snapshot=interrupt, console=Console())
    assert (first.status, first.step, first.test_accuracy) == ("stopped", 4, None)
    assert f"stopped by {name} at step 4 of 12" in " ".join(capsys.readouterr().out.split())
    second = run(tmp_path, settings(**after), snapshot=kernel, console=Console())
    assert "checkpoint of step 4" in capsys.readouterr().out
    assert_as_expected(tmp_path, second, expected)
    assert second.seconds > first.seconds


@pytest.mark.slow
def test_a_damaged_checkpoint_costs_its_steps_alone(tmp_path, expected):
    chosen = settings(steps_per_call=2)
    run(tmp_path, chosen, snapshot=Interrupt(2))
    (tmp_path / "checkpoints" / "8" / "record" / "metadata").write_text("")
    with pytest.warns(DamagedCheckpoint, match="step 8"):
        again = run(tmp_path, chosen, snapshot=kernel)
    assert_as_expected(tmp_path, again, expected)


@pytest.mark.slow
def test_when_all_checkpoints_are_damaged_the_run_is_left_as_it_is(tmp_path, expected):
    """Its metrics too; once `checkpoints/` is removed it begins again."""
    folder = shutil.copytree(expected[0], tmp_path / "run")
    for step in (11, 12):
        (folder / "checkpoints" / str(step) / "record" / "metadata").write_text("")
    before = modification_times(folder)
    with pytest.raises(NoWholeCheckpoint):
        run(folder, snapshot=kernel)
    assert modification_times(folder) == before
    shutil.rmtree(folder / "checkpoints")
    assert_as_expected(folder, run(folder, snapshot=kernel), expected)


@pytest.mark.slow
def test_a_run_that_died_in_its_first_epoch_begins_again(tmp_path, monkeypatch, capsys):
    """It says so, and TensorBoard holds the losses before each checkpoint."""
    save, complete = CheckpointStore.save, []

    def record_and_save(store, step, arrays, record):
        if "identity" in record:
            steps = {step for step, name in scalars(tmp_path) if name == "loss"}
            complete.append(steps == set(range(1, step + 1)))
        save(store, step, arrays, record)

    (tmp_path / "metrics.jsonl").write_text("")
    monkeypatch.setattr(CheckpointStore, "save", record_and_save)
    run(tmp_path, settings(epochs=1), console=Console())
    assert complete == [True] * 4
    assert "no checkpoint was written" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "images", "model", "name"),
    [
        ({"learning_rate": 0.1, "seed": 1}, {}, None, "learning_rate, seed;"),
        ({}, {"count": 71}, None, "training images;"),
        ({}, {"augmentation": None}, None, "augmentation;"),
        ({}, {"std": np.full(3, 0.5)}, None, "std;"),
        ({}, {}, Normalized(dropout=0.75), "differs in model;"),
        ({}, {}, Dense(), "another model or optimiser"),
    ],
)
def test_other_settings_images_or_models_are_refused(expected, changes, images, model, name):
    before = metric_lines(expected[0])
    with pytest.raises(OtherModel, match=name):
        run(expected[0], settings(**changes), images=training_images(**images), model=model)
    assert metric_lines(expected[0]) == before


EMPTY = Images(np.zeros((0, 4, 4, 3), np.uint8), np.zeros(0, np.uint8), tuple("abc"))


@pytest.mark.parametrize(
    ("changes", "images", "message"),
    [
        ({"batch_size": 71}, {}, "batch-size 71, .* 70"),
        ({"select": "best"}, {}, "none are split off"),
        ({}, {"test": EMPTY}, "no test images"),
        ({}, {"validation": EMPTY}, "no validation images"),
    ],
)
def test_what_cannot_be_trained_is_refused(tmp_path, changes, images, message):
    with pytest.raises(ValueError, match=message):
        run(tmp_path / "new", settings(**changes), images=training_images(**images))
    assert not (tmp_path / "new").exists()


def test_two_runs_in_one_folder_are_refused(tmp_path):
    def within(model):
        with pytest.raises(DirectoryLockedError, match=f"process {os.getpid()} "):
            run(tmp_path)
        raise StopIteration

    with pytest.raises(StopIteration):
        run(tmp_path, snapshot=within)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 1e30}, r"^the loss of step \d+ is (nan|inf) at learning rate .*e\+"),
        ({"learning_rate": 1e39, "steps_per_call": 4}, r"^the loss of step 2 is (nan|inf)"),
        ({"learning_rate": 1e39}, "^the parameters or the optimiser after step 1 overflow"),
    ],
)
def test_what_is_not_finite_stops_the_run(tmp_path, changes, message):
    """With the step and what to try; nothing of it was saved or logged."""
    chosen = settings(**{"warmup": 0.0, **changes})
    with pytest.raises(NonFiniteLoss, match=message + ".*learning_rate") as first:
        run(tmp_path, chosen)
    newest = next(iter(CheckpointStore(tmp_path / "checkpoints").steps()), None)
    assert first.value.saved == newest
    assert ("no checkpoint" in str(first.value)) == (newest is None)
    assert all(math.isfinite(line["train_loss"]) for line in read_metrics(tmp_path))
    with pytest.raises(NonFiniteLoss) as again:  # what was saved is finite, so it comes again
        run(tmp_path, chosen)
    assert (again.value.step, str(again.value)) == (first.value.step, str(first.value))


@pytest.mark.slow
def test_snapshots_and_evaluations_are_made_when_they_are_due(tmp_path, expected):
    assert snapshot_epochs(expected[0]) == [0, 1, 2, 3]
    chosen = settings(snapshot_every=2, evaluate_every=2, **SELDOM)
    run(tmp_path, chosen, snapshot=kernel)
    assert snapshot_epochs(tmp_path) == [0, 2, 3]
    first = Normalized().last.dense.kernel[...]
    assert_equal(read_snapshot(tmp_path, 0)["kernel"], first)
    assert_equal(read_snapshot(tmp_path, 3)["kernel"], expected[1].model.last.dense.kernel[...])
    assert ["test_loss" in line for line in read_metrics(tmp_path)] == [False, True, True]
