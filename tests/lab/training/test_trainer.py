"""`train`: what it refuses, how it goes on, what it chooses, and what it leaves behind."""

import math
import os
import shutil
import signal
from dataclasses import replace

import numpy as np
import pytest
from comparison import assert_equal
from flax import nnx
from lab.training.test_metrics import scalars
from lab.training.tiny import Dense, Normalized, pictures, run, settings, training_images
from rich.console import Console

from convattn.data.cifar10_slice import Images
from convattn.files import InUse
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
TIMES = ("seconds", "images_per_second")


def lines(folder):
    """The metrics without times."""
    found = read_metrics(folder)
    return [{name: line[name] for name in line if name not in TIMES} for line in found]


def parameters(outcome):
    return digest(named_arrays(nnx.state(outcome.model)))


def judged(**changes):
    """Images with a validation part."""
    return training_images(validation=pictures(24, 2), **changes)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The folder and outcome of a run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, run(folder, snapshot=kernel)


def kernel(model):
    return {"kernel": np.asarray(model.last.dense.kernel[...])}


def assert_as_expected(folder, outcome, expected):
    assert outcome.status == "finished"
    assert lines(folder) == lines(expected[0])
    assert parameters(outcome) == parameters(expected[1])
    assert outcome.test_loss == expected[1].test_loss
    assert outcome.test_accuracy == expected[1].test_accuracy


def test_a_run(expected):
    """Three epochs of four steps: it learns something, and says what it did."""
    folder, outcome = expected
    assert (outcome.status, outcome.step, outcome.steps) == ("finished", 12, 12)
    found = read_metrics(folder)
    assert [(line["step"], line["epoch"]) for line in found] == [(4, 1), (8, 2), (12, 3)]
    assert found[-1]["train_loss"] < found[0]["train_loss"]
    assert found[-1]["test_accuracy"] == outcome.test_accuracy
    assert found[-1]["test_loss"] == outcome.test_loss
    assert 0 < found[0]["seconds"] < found[1]["seconds"] < found[2]["seconds"] <= outcome.seconds
    assert sorted(os.listdir(folder / "checkpoints")) == ["11", "12"]


def test_the_model_given_is_left_as_it_is(tmp_path):
    model = Normalized()
    before = named_arrays(nnx.state(model))
    run(tmp_path, settings(epochs=1, **SELDOM), model=model)
    for name, array in named_arrays(nnx.state(model)).items():
        assert_equal(array, before[name], name)


def test_a_finished_run_trains_nothing(expected):
    folder, outcome = expected
    before = {path: path.stat().st_mtime_ns for path in (folder / "checkpoints").rglob("*")}
    again = run(folder, snapshot=kernel)
    assert_as_expected(folder, again, expected)
    assert again.seconds == outcome.seconds
    assert before == {path: path.stat().st_mtime_ns for path in (folder / "checkpoints").rglob("*")}


class Interrupt:
    """A snapshot function that sends its process a signal at one epoch."""

    def __init__(self, at, number=signal.SIGTERM):
        self.at, self.number, self.calls = at, number, 0

    def __call__(self, model):
        if self.calls == self.at:
            os.kill(os.getpid(), self.number)
        self.calls += 1
        return kernel(model)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_saves_and_the_run_goes_on(tmp_path, expected, name, capsys):
    given = settings(checkpoint_minutes=60.0)
    first = run(tmp_path, given, snapshot=Interrupt(1, getattr(signal, name)), console=Console())
    assert (first.status, first.step, first.test_accuracy) == ("stopped", 4, None)
    told = " ".join(capsys.readouterr().out.split())
    assert (
        f"stopped by {name} at step 4 of 12; the next training session goes on from there" in told
    )
    second = run(tmp_path, given, snapshot=kernel, console=Console())
    assert "going on from the checkpoint of step 4" in capsys.readouterr().out
    assert_as_expected(tmp_path, second, expected)
    assert second.seconds > first.seconds


def test_a_run_without_a_checkpoint_says_that_it_begins_anew(tmp_path, capsys):
    """As after kill -9 in the first epoch."""
    (tmp_path / "metrics.jsonl").write_text("")
    run(tmp_path, settings(epochs=1), snapshot=kernel, console=Console())
    assert "no checkpoint was written before the run ended" in capsys.readouterr().out


@pytest.mark.slow
def test_a_damaged_checkpoint_costs_its_steps_alone(tmp_path, expected):
    given = settings(steps_per_call=2)
    run(tmp_path, given, snapshot=Interrupt(2))
    (tmp_path / "checkpoints" / "8" / "record" / "metadata").write_text("")
    with pytest.warns(DamagedCheckpoint, match="step 8"):
        again = run(tmp_path, given, snapshot=kernel)
    assert_as_expected(tmp_path, again, expected)


@pytest.mark.slow
def test_when_no_checkpoint_is_whole_the_run_is_left_as_it_is(tmp_path, expected):
    """Its metrics too; once `checkpoints/` is removed it begins anew."""
    folder = tmp_path / "run"
    shutil.copytree(expected[0], folder)
    for step in (11, 12):
        (folder / "checkpoints" / str(step) / "record" / "metadata").write_text("")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != "lock"}
    with pytest.raises(NoWholeCheckpoint, match=r"none of the checkpoints of .*run is whole"):
        run(folder, snapshot=kernel)
    after = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != "lock"}
    assert {path: at for path, at in after.items() if path.is_file()} == {
        path: at for path, at in before.items() if path.is_file()
    }
    shutil.rmtree(folder / "checkpoints")
    assert_as_expected(folder, run(folder, snapshot=kernel), expected)


def test_tensorboard_holds_the_losses_before_their_checkpoint(tmp_path, monkeypatch):
    save, seen = CheckpointStore.save, []

    def look(store, step, arrays, record):
        if "identity" in record:
            found = {step for step, name in scalars(tmp_path) if name == "loss"}
            seen.append(found == set(range(1, step + 1)))
        save(store, step, arrays, record)

    monkeypatch.setattr(CheckpointStore, "save", look)
    run(tmp_path, settings(epochs=1))
    assert seen == [True] * 4


@pytest.mark.slow
def test_settings_that_do_not_decide_may_change(tmp_path, expected):
    run(tmp_path, settings(steps_per_call=3), snapshot=Interrupt(1))
    changed = settings(steps_per_call=None, checkpoint_minutes=9.0, keep_checkpoints=1)
    assert_as_expected(tmp_path, run(tmp_path, changed, snapshot=kernel), expected)


@pytest.mark.parametrize(
    ("changes", "images", "names"),
    [
        ({"learning_rate": 0.1, "seed": 1}, {}, "learning_rate, seed"),
        ({}, {"count": 71}, "training images"),
        ({}, {"augmentation": None}, "augmentation"),
        ({}, {"std": np.full(3, 0.5)}, "std"),
    ],
)
def test_other_settings_or_images_are_refused(expected, changes, images, names):
    before = lines(expected[0])
    with pytest.raises(OtherModel, match=f"holds a run that differs in {names}; take what it"):
        run(expected[0], settings(**changes), images=training_images(**images))
    assert lines(expected[0]) == before


def test_another_model_is_refused(expected):
    with pytest.raises(OtherModel, match="another model or optimiser"):
        run(expected[0], model=Dense())
    before = lines(expected[0])
    with pytest.raises(OtherModel, match="holds a run that differs in model; take"):
        run(expected[0], model=Normalized(dropout=0.75))
    assert lines(expected[0]) == before


def test_what_cannot_be_trained_is_refused(tmp_path):
    empty = Images(np.zeros((0, 4, 4, 3), np.uint8), np.zeros(0, np.uint8), tuple("abc"))
    for given, images, message in (
        (settings(batch_size=71), training_images(), "batch-size 71, but there are only 70"),
        (
            settings(select="best"),
            training_images(),
            "none are split off; give --images",
        ),
        (settings(), training_images(test=empty), "there are no test images"),
        (settings(), training_images(validation=empty), "there are no validation images"),
    ):
        with pytest.raises(ValueError, match=message):
            run(tmp_path / "new", given, images=images)
    assert not (tmp_path / "new").exists()


def test_two_runs_in_one_folder_are_refused(tmp_path):
    def within(model):
        with pytest.raises(InUse, match=f"process {os.getpid()} is at work in"):
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
    given = settings(**{"warmup": 0.0, **changes})
    with pytest.raises(NonFiniteLoss, match=message + ".*; try a lower learning_rate") as told:
        run(tmp_path, given)
    saved = told.value.saved
    newest = max(
        [int(name) for name in os.listdir(tmp_path / "checkpoints") if name.isdigit()]
        if (tmp_path / "checkpoints").is_dir()
        else [],
        default=None,
    )
    assert saved == newest
    assert ("no checkpoint" in str(told.value)) == (saved is None)
    assert all(math.isfinite(line["train_loss"]) for line in read_metrics(tmp_path))
    with pytest.raises(NonFiniteLoss) as again:  # what was saved is finite, so it comes again
        run(tmp_path, given)
    assert (again.value.step, str(again.value)) == (told.value.step, str(told.value))


@pytest.mark.slow
def test_the_best_is_chosen_by_validation_alone(tmp_path):
    """Exchanging the test images' labels changes the figure, and not the choice."""
    given = settings(select="best", epochs=5, learning_rate=1.0, **SELDOM)
    images = judged()
    outcome = run(tmp_path / "one", given, images=images)
    found = read_metrics(tmp_path / "one")
    best = max(found, key=lambda line: line["validation_accuracy"])  # the first of equal ones
    assert outcome.test_accuracy == best["test_accuracy"]
    assert outcome.test_loss == best["test_loss"]
    assert sorted(os.listdir(tmp_path / "one" / "best")) == [str(best["step"])]
    assert best["step"] < outcome.step == 20  # or nothing was chosen
    permuted = replace(images.test, labels=(images.test.labels + 1) % 3)
    other = run(tmp_path / "other", given, images=replace(images, test=permuted))
    assert parameters(other) == parameters(outcome)
    assert other.test_loss != outcome.test_loss
    last = run(tmp_path / "last", replace(given, select="last"), images=images)
    assert parameters(last) != parameters(outcome)
    again = run(tmp_path / "one", given, images=images)
    assert parameters(again) == parameters(outcome)


@pytest.mark.slow
def test_a_best_one_that_was_damaged_is_not_replaced_by_another(tmp_path):
    """Neither after the end of the run nor amid it."""
    given = settings(select="best", epochs=2, **SELDOM)
    for name, status, options in (
        ("ended", "finished", {}),
        ("amid", "stopped", {"snapshot": Interrupt(1)}),
    ):
        folder = tmp_path / name
        assert run(folder, given, images=judged(), **options).status == status
        (step,) = CheckpointStore(folder / "best").steps()
        (folder / "best" / str(step) / "record" / "metadata").write_text("")
        before = lines(folder)
        with pytest.raises(ValueError, match=r"the best parameters, .*, are damaged or gone"):
            run(folder, given, images=judged())
        assert lines(folder) == before


def test_snapshots_are_taken_when_they_are_due(tmp_path, expected):
    assert snapshot_epochs(expected[0]) == [0, 1, 2, 3]
    run(tmp_path, settings(snapshot_every=2, **SELDOM), snapshot=kernel)
    assert snapshot_epochs(tmp_path) == [0, 2, 3]
    begun = Normalized().last.dense.kernel[...]
    assert_equal(read_snapshot(tmp_path, 0)["kernel"], begun)
    assert_equal(read_snapshot(tmp_path, 3)["kernel"], expected[1].model.last.dense.kernel[...])


def test_evaluations_are_made_when_they_are_due(tmp_path):
    run(tmp_path, settings(evaluate_every=2, **SELDOM))
    assert ["test_loss" in line for line in read_metrics(tmp_path)] == [False, True, True]
