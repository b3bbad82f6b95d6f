"""A run from settings to its folder: what it records, that it goes on, that it can be repeated."""

import hashlib
import io
import json
import shlex
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from flax import nnx
from lab.runs.tiny_runs import tiny_settings, write_pictures
from rich.console import Console

from convattn.data.datasets import read_dataset
from convattn_lab.commands.cifar import PROGRAM, read_arguments
from convattn_lab.commands.experiment import repeating_command, with_images
from convattn_lab.records.record import experiment_row, record_of
from convattn_lab.runs.directory import PRUNING, RunDirectory
from convattn_lab.runs.images import archive_md5, make_model
from convattn_lab.runs.launch import launch
from convattn_lab.training.metrics import read_metrics
from convattn_lab.training.state import named_arrays

CONFIGS = Path(__file__).parents[3] / "experiments" / "configs"
COMMAND = "python experiments/cifar.py --training.seed 0"


@pytest.fixture(scope="module")
def run(pictures, tmp_path_factory):
    """A finished run, and how it ended."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    return folder, launch(tiny_settings(pictures), folder, command=COMMAND)


def parameters(outcome) -> dict[str, np.ndarray]:
    return named_arrays(nnx.state(outcome.model, nnx.Param))


def same(first, second) -> bool:
    left, right = parameters(first), parameters(second)
    return left.keys() == right.keys() and all((left[n] == right[n]).all() for n in left)


@pytest.mark.slow
def test_the_folder_holds_what_was_done(run, pictures) -> None:
    folder, outcome = run
    directory = RunDirectory(folder)
    assert directory.read_settings() == tiny_settings(pictures)
    metadata = directory.read_metadata()
    assert metadata["command"] == COMMAND
    assert metadata["seed"] == 0
    environment = metadata["environment"]
    assert environment["jax"] == jax.__version__
    assert {"python", "flax", "optax", "orbax-checkpoint", "device", "cores"} <= environment.keys()
    assert metadata["git"] is None or len(metadata["git"]["commit"]) == 40
    images = metadata["images"]
    assert images["name"] == "pictures, 4 + 2 images"
    assert images["archive_md5"] is None
    assert metadata["initial"] is None
    assert (images["train"], images["validation"], images["test"]) == (4, 0, 2)
    pixels = read_dataset(pictures).train.images / 255
    assert images["mean"] == pytest.approx(pixels.mean((0, 1, 2)), abs=1e-12)
    assert len(metadata["sittings"]) == 1
    assert metadata["sittings"][0]["environment"] == environment
    result = directory.read_result()
    assert result["status"] == "finished"
    assert (result["step"], result["steps"], result["test_images"]) == (2, 2, 2)
    assert result["test_accuracy"] == outcome.test_accuracy
    assert result["images"] == images["name"]
    assert result["parameters"] == sum(array.size for array in parameters(outcome).values())
    assert [line["step"] for line in read_metrics(folder)] == [2]
    assert (folder / "checkpoints" / "2").is_dir()
    assert (folder / "snapshots" / "epoch-0000.npz").exists()


@pytest.mark.slow
def test_the_record_of_a_run_has_all_that_a_row_asks_for(run) -> None:
    """Too small for any row, but for no other reason: nothing is missing."""
    record = json.loads(json.dumps(record_of(run[0], "C20.gaussian")))
    row = experiment_row("C20.gaussian").experiment()
    reasons = "; ".join(row.reasons_against(record))
    assert "run.images.archive_md5=" in reasons
    assert "result.test_images=2," in reasons
    assert "missing" not in reasons


@pytest.mark.slow
def test_a_finished_run_goes_on_to_where_it_is(run, pictures) -> None:
    folder, outcome = run
    console = Console(file=io.StringIO())
    again = launch(tiny_settings(pictures), folder, command="another command", console=console)
    assert "this run is finished" in console.file.getvalue()
    assert again.test_loss == outcome.test_loss
    assert same(again, outcome)
    metadata = RunDirectory(folder).read_metadata()
    assert metadata["command"] == COMMAND
    assert len(metadata["sittings"]) == 2


@pytest.mark.slow
def test_the_recorded_command_repeats_the_run(pictures, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(pictures.parent)
    words = ["--data", "pictures", "--model.heads", "2", "--model.width", "4", "--model.inner", "4"]
    words += ["--model.downsampling", "2", "--training.epochs", "1", "--training.batch-size", "2"]
    words += ["--training.seed", "7", "--output-dir", "somewhere"]
    outcomes = []
    for name in ("one", "two"):
        arguments = read_arguments(words, CONFIGS)
        command = repeating_command(words, PROGRAM)
        settings = with_images(arguments.settings, arguments)
        outcomes.append(launch(settings, tmp_path / name, command=command))
        stored = RunDirectory(tmp_path / name).read_metadata()["command"]
        program, script, *words = shlex.split(stored)
        assert (program, script) == ("python", "experiments/cifar.py")
        assert "--output-dir" not in words
        monkeypatch.chdir(tmp_path)  # the picture's path must not depend on where one stands
    assert same(*outcomes)
    first, second = (RunDirectory(tmp_path / name) for name in ("one", "two"))
    assert first.read_settings() == second.read_settings()
    assert first.read_settings().training.seed == 7
    assert first.read_metadata()["command"] == second.read_metadata()["command"]
    assert first.read_result()["test_loss"] == second.read_result()["test_loss"]


@pytest.mark.slow
def test_other_settings_are_refused_by_name(run, pictures) -> None:
    folder, _ = run
    settings = tiny_settings(pictures)
    model, training = replace(settings.model, width=6), replace(settings.training, seed=1)
    changed = replace(settings, model=model, training=training)
    with pytest.raises(ValueError, match=r"differ in model\.width, training\.seed\)"):
        launch(changed, folder, command=COMMAND)


@pytest.mark.slow
def test_other_images_under_the_same_path_are_refused(tmp_path) -> None:
    pictures = write_pictures(tmp_path / "pictures")
    settings = tiny_settings(pictures)
    settings = replace(settings, training=replace(settings.training, batch_size=4))
    launch_without_training(settings, tmp_path / "run")
    image, other = sorted((pictures / "train").glob("*/*.png"))[:2]
    image.write_bytes(other.read_bytes())
    with pytest.raises(ValueError, match="images are others now"):
        launch_without_training(settings, tmp_path / "run")


def launch_without_training(settings, folder, initial=None) -> None:
    """Until the training would begin."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("convattn_lab.runs.launch.train", stop)
        with pytest.raises(KeyboardInterrupt):
            launch(settings, folder, command=COMMAND, initial=initial)


def stop(*args, **kwargs):
    raise KeyboardInterrupt


@pytest.mark.slow
def test_a_run_may_begin_with_given_parameters(pictures, tmp_path, monkeypatch) -> None:
    settings = tiny_settings(pictures)
    parameters = named_arrays(nnx.state(make_model(settings, read_dataset(pictures)), nnx.Param))
    initial = {name: array + 1 for name, array in parameters.items()}
    starts = []

    def watch(_training, _images, model, *args, **kwargs):
        starts.append(named_arrays(nnx.state(model, nnx.Param)))
        raise KeyboardInterrupt

    monkeypatch.setattr("convattn_lab.runs.launch.train", watch)
    for arrays in (initial, initial, None):  # the last as --resume does it
        with pytest.raises(KeyboardInterrupt):
            launch(settings, tmp_path / "run", command=COMMAND, initial=arrays)
        assert all((starts[-1][name] == initial[name]).all() for name in initial)
    with pytest.raises(ValueError, match="began with other parameters"):
        launch(settings, tmp_path / "run", command=COMMAND, initial=parameters)
    with pytest.raises(ValueError, match="the arrays do not fit the model"):
        launch(settings, tmp_path / "new", command=COMMAND, initial={"a": np.zeros(2)})
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["lock"]
    launch_without_training(settings, tmp_path / "new")  # so that it will do for another run
    initial_file = tmp_path / "run" / "initial.npz"
    digest = RunDirectory(tmp_path / "run").read_metadata()["initial"]
    assert digest == hashlib.sha256(initial_file.read_bytes()).hexdigest()
    assert RunDirectory(tmp_path / "new").read_metadata()["initial"] is None
    RunDirectory(tmp_path / "run").write_initial(parameters)
    with pytest.raises(ValueError, match=r"initial\.npz is not the file with which the run began"):
        launch(settings, tmp_path / "run", command=COMMAND)


def test_a_run_killed_before_it_began_does_not_stand_in_the_way(pictures, tmp_path) -> None:
    settings, run = tiny_settings(pictures), RunDirectory(tmp_path / "run")
    parameters = named_arrays(nnx.state(make_model(settings, read_dataset(pictures)), nnx.Param))
    run.write(PRUNING, {"after": None})
    run.write_initial({name: array + 2 for name, array in parameters.items()})
    (run.path / ".config.json.0a1b2c3d.part").write_text("{")
    with pytest.raises(ValueError, match=r"initial\.npz and pruning\.json of a run that was"):
        launch(settings, run.path, command=COMMAND)
    launch_without_training(settings, run.path, parameters)
    assert all(
        np.array_equal(array, parameters[name]) for name, array in run.read_initial().items()
    )


@pytest.mark.slow
def test_what_pruning_did_is_completed_when_the_run_is(pictures, tmp_path) -> None:
    """As `prune` leaves it, killed while training, and gone on with by --resume."""
    settings, run = tiny_settings(pictures), RunDirectory(tmp_path / "run")
    parameters = named_arrays(nnx.state(make_model(settings, read_dataset(pictures)), nnx.Param))
    run.write(PRUNING, {"removed": [1], "after": None})
    launch_without_training(settings, run.path, parameters)
    assert run.read_pruning() == {"removed": [1], "after": None}
    outcome = launch(settings, run.path, command=COMMAND)
    assert run.read_pruning() == {"removed": [1], "after": outcome.test_accuracy}
    assert run.read_result()["test_accuracy"] == outcome.test_accuracy


def test_the_archive_that_was_read_is_on_record(pictures, tmp_path) -> None:
    assert archive_md5(str(pictures)) is None
    (tmp_path / "archive").write_bytes(b"abc")
    assert archive_md5(str(tmp_path / "archive")) == "900150983cd24fb0d6963f7d28e17f72"


@pytest.mark.parametrize(
    ("name", "message"),
    [(None, "is a file"), ("x", "not the folder of a run"), ("config.json", r"config\.json is no")],
)
def test_what_holds_something_else_is_refused(name, message, pictures, tmp_path) -> None:
    path = tmp_path / "run"
    if name:
        path.mkdir()
        path = path / name
    path.write_text("{")
    with pytest.raises(ValueError, match=message):
        launch(tiny_settings(pictures), tmp_path / "run", command=COMMAND)
