"""A run from settings to its folder: what it records, that it goes on, that it can be repeated."""

import dataclasses
import json
import shlex
from pathlib import Path

import jax
import numpy as np
import pytest
from flax import nnx
from runs.tiny_runs import tiny_settings, write_pictures

from convattn.data.datasets import read_dataset
from convattn.runs.command import read_arguments, repeating_command, with_images
from convattn.runs.directory import RunDirectory
from convattn.runs.launch import launch, make_model
from convattn.training.metrics import read_metrics
from convattn.training.state import named_arrays

CONFIGS = Path(__file__).parents[2] / "experiments" / "configs"
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


def test_the_folder_holds_what_was_done(run, pictures) -> None:
    folder, outcome = run
    directory = RunDirectory(folder)
    assert directory.read_settings() == tiny_settings(pictures)
    facts = directory.read_facts()
    assert facts["command"] == COMMAND
    assert facts["seed"] == 0
    environment = facts["environment"]
    assert environment["jax"] == jax.__version__
    assert {"python", "flax", "optax", "orbax-checkpoint", "device", "cores"} <= environment.keys()
    assert facts["git"] is None or len(facts["git"]["commit"]) == 40
    images = facts["images"]
    assert images["name"] == "pictures, 4 + 2 images"
    assert (images["train"], images["validation"], images["test"]) == (4, 0, 2)
    pixels = read_dataset(pictures).train.images / 255
    assert images["mean"] == pytest.approx(pixels.mean((0, 1, 2)), abs=1e-12)
    assert len(facts["sittings"]) == 1
    assert facts["sittings"][0]["environment"] == environment
    result = directory.read_result()
    assert result["status"] == "finished"
    assert (result["step"], result["steps"], result["test_images"]) == (2, 2, 2)
    assert result["test_accuracy"] == outcome.test_accuracy
    assert result["images"] == images["name"]
    assert result["parameters"] == sum(array.size for array in parameters(outcome).values())
    assert [line["step"] for line in read_metrics(folder)] == [2]
    assert (folder / "checkpoints" / "2").is_dir()
    assert (folder / "snapshots" / "epoch-0000.npz").exists()


def test_a_finished_run_goes_on_to_where_it_is(run, pictures) -> None:
    folder, outcome = run
    again = launch(tiny_settings(pictures), folder, command="another command")
    assert again.test_loss == outcome.test_loss
    assert same(again, outcome)
    facts = RunDirectory(folder).read_facts()
    assert facts["command"] == COMMAND
    assert len(facts["sittings"]) == 2


def test_the_recorded_command_repeats_the_run(pictures, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(pictures.parent)
    words = ["--data", "pictures", "--model.heads", "2", "--model.width", "4", "--model.inner", "4"]
    words += ["--model.downsampling", "2", "--training.epochs", "1", "--training.batch-size", "2"]
    words += ["--training.seed", "7", "--output-dir", "somewhere"]
    outcomes = []
    for name in ("one", "two"):
        given = read_arguments(words, CONFIGS)
        command = repeating_command(words)
        settings = with_images(given.settings, given)
        outcomes.append(launch(settings, tmp_path / name, command=command))
        stored = RunDirectory(tmp_path / name).read_facts()["command"]
        program, script, *words = shlex.split(stored)
        assert (program, script) == ("python", "experiments/cifar.py")
        assert "--output-dir" not in words
        monkeypatch.chdir(tmp_path)  # the picture's path must not depend on where one stands
    assert same(*outcomes)
    first, second = (RunDirectory(tmp_path / name) for name in ("one", "two"))
    assert first.read_settings() == second.read_settings()
    assert first.read_settings().training.seed == 7
    assert first.read_facts()["command"] == second.read_facts()["command"]
    assert first.read_result()["test_loss"] == second.read_result()["test_loss"]


def test_another_seed_gives_another_model(pictures) -> None:
    settings = tiny_settings(pictures)
    other = dataclasses.replace(settings, training=dataclasses.replace(settings.training, seed=1))
    first, second = (
        named_arrays(nnx.state(make_model(each, read_dataset(pictures)), nnx.Param))
        for each in (settings, other)
    )
    assert any((first[name] != second[name]).any() for name in first)


def test_other_settings_are_refused_by_name(run, pictures) -> None:
    folder, _ = run
    settings = tiny_settings(pictures)
    changed = dataclasses.replace(
        settings,
        model=dataclasses.replace(settings.model, width=6),
        training=dataclasses.replace(settings.training, seed=1),
    )
    with pytest.raises(ValueError, match=r"differ in model\.width, training\.seed\)"):
        launch(changed, folder, command=COMMAND)


def test_other_images_under_the_same_path_are_refused(tmp_path) -> None:
    pictures = write_pictures(tmp_path / "pictures")
    settings = dataclasses.replace(
        tiny_settings(pictures),
        training=dataclasses.replace(tiny_settings(pictures).training, batch_size=4),
    )
    launch_without_training(settings, tmp_path / "run")
    image, other = sorted((pictures / "train").glob("*/*.png"))[:2]
    image.write_bytes(other.read_bytes())
    with pytest.raises(ValueError, match="but the images are others now; put the old ones back"):
        launch_without_training(settings, tmp_path / "run")


def launch_without_training(settings, folder) -> None:
    """Until the training would begin."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("convattn.runs.launch.train", stop)
        with pytest.raises(KeyboardInterrupt):
            launch(settings, folder, command=COMMAND)


def stop(*given, **named):
    raise KeyboardInterrupt


def test_a_run_may_begin_with_given_parameters(pictures, tmp_path, monkeypatch) -> None:
    settings = tiny_settings(pictures)
    drawn = named_arrays(nnx.state(make_model(settings, read_dataset(pictures)), nnx.Param))
    initial = {name: array + 1 for name, array in drawn.items()}
    seen = []

    def watch(model, *given, **named):
        seen.append(named_arrays(nnx.state(model, nnx.Param)))
        raise KeyboardInterrupt

    monkeypatch.setattr("convattn.runs.launch.train", watch)
    for given in (initial, initial, None):  # the last as --resume does it
        with pytest.raises(KeyboardInterrupt):
            launch(settings, tmp_path / "run", command=COMMAND, initial=given)
        assert all((seen[-1][name] == initial[name]).all() for name in initial)
    with pytest.raises(ValueError, match="began with other parameters"):
        launch(settings, tmp_path / "run", command=COMMAND, initial=drawn)
    with pytest.raises(ValueError, match="the arrays do not fit the model"):
        launch(settings, tmp_path / "new", command=COMMAND, initial={"a": np.zeros(2)})
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        (lambda path: path.write_text("a file"), "is a file, but the folder of a run was expected"),
        (lambda path: (path.mkdir(), (path / "x").touch()), "so it is not the folder of a run"),
        (
            lambda path: (path.mkdir(), (path / "config.json").write_text("{")),
            r"config\.json is no JSON",
        ),
    ],
)
def test_what_holds_something_else_is_refused(fill, message, pictures, tmp_path) -> None:
    fill(tmp_path / "run")
    with pytest.raises(ValueError, match=message):
        launch(tiny_settings(pictures), tmp_path / "run", command=COMMAND)


def test_an_empty_folder_will_do(pictures, tmp_path) -> None:
    (tmp_path / "run").mkdir()
    launch_without_training(tiny_settings(pictures), tmp_path / "run")
    assert json.loads((tmp_path / "run" / "config.json").read_text())["model"]["heads"] == [2]
