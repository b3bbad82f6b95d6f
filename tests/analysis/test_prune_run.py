import json
from dataclasses import replace

import jax
import numpy as np
import pytest
from analysis.synthetic_runs import write_run
from flax import nnx
from runs.tiny_runs import tiny_settings, write_pictures

from convattn.analysis import figures, image_attention
from convattn.analysis.curves import accuracy_curves
from convattn.analysis.degenerate_heads import Thresholds
from convattn.analysis.prune_run import prune_run, pruned_settings
from convattn.analysis.pruning import attention_part, pruned_parameters
from convattn.analysis.restored_run import restore_run
from convattn.data.datasets import read_dataset
from convattn.models.settings import EncoderSettings
from convattn.runs.directory import RunDirectory
from convattn.runs.launch import launch, make_model
from convattn.runs.settings import RunSettings
from convattn.training.state import named_arrays

MODEL = EncoderSettings("gaussian", heads=(1, 3), width=4, inner=4, dropout=0.0)


def parameters(model):
    return named_arrays(nnx.state(model, nnx.Param))


@pytest.fixture(scope="module", autouse=True)
def quick_compilation():
    """The programs run for milliseconds, so that optimising them is most of the time."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run with degenerate heads, and the model that it ended with.

    The first layer's head began with a stripe, and the second of the second layer's with nothing.
    """
    folder = tmp_path_factory.mktemp("trained")
    settings = tiny_settings(write_pictures(folder / "pictures"))
    training = replace(settings.training, learning_rate=1e-5)
    settings = replace(settings, model=MODEL, training=training)
    initial = parameters(make_model(settings, read_dataset(settings.images.source)))
    for name, array in initial.items():
        if attention_part(name) == (0, "spreads"):
            array[0] = np.diag([1, 0])
        if attention_part(name) == (1, "spreads"):
            array[1] = 1e-4 * np.eye(2)
    outcome = launch(settings, folder / "run", command="a command", initial=initial)
    return folder / "run", outcome


def test_the_newest_checkpoint_is_restored(trained) -> None:
    path, outcome = trained
    found = restore_run(path)
    assert (found.step, found.epoch) == (2, 1)
    expected = parameters(outcome.model)
    for name, array in parameters(found.model).items():
        assert np.array_equal(array, expected[name])


def test_heads_go_the_rest_is_trained_on_and_all_is_said(trained, tmp_path) -> None:
    path, outcome = trained
    removed = [np.array([True]), np.array([False, True, False])]
    given = {"command": "prune it", "epochs": 2}
    found = prune_run(path, tmp_path / "pruned", **given)
    assert found.removed == (1, 1)
    new = RunDirectory(tmp_path / "pruned")
    settings = new.read_settings()
    assert settings.model == replace(MODEL, heads=(0, 2))
    assert settings.training.learning_rate == 1e-5 / 10
    assert settings.training.epochs == 2
    assert settings.images == RunDirectory(path).read_settings().images
    expected = pruned_parameters(parameters(outcome.model), removed)
    initial = new.read_initial()
    assert initial.keys() == expected.keys()
    assert all(np.array_equal(initial[name], expected[name]) for name in expected)
    assert new.read_facts()["command"] == "prune it"
    assert found.before == outcome.test_accuracy
    assert found.after == new.read_result()["test_accuracy"]
    assert 0 <= found.pruned <= 1
    assert (found.epochs_before, found.test_images) == (1, 2)
    stored = json.loads((new.path / "pruning.json").read_text())
    assert stored == json.loads(json.dumps(found.to_json()))
    # The same again has nothing left to do.
    assert prune_run(path, tmp_path / "pruned", **given) == found
    assert len(figures.draw_all(new.path)) == 10
    assert accuracy_curves(new.path).train[:, 0].tolist() == [2, 3]


def test_the_default_is_a_tenth_of_the_rate_and_of_the_epochs() -> None:
    settings = RunSettings(EncoderSettings("gaussian"))
    removed = [np.arange(9) < count for count in (2, 4, 1, 2, 6, 0)]
    found = pruned_settings(settings, removed, None)
    assert found.model.heads == (7, 5, 8, 7, 3, 9)
    assert (found.training.epochs, found.training.learning_rate) == (30, 0.01)


def test_without_degenerate_heads_nothing_is_done(trained, tmp_path) -> None:
    thresholds = Thresholds(eigenvalue=1e-300, condition=np.inf)
    assert prune_run(trained[0], tmp_path / "new", command="", thresholds=thresholds) is None
    assert not (tmp_path / "new").exists()


def test_what_cannot_be_pruned_is_refused(trained, tmp_path) -> None:
    learned = write_run(tmp_path / "learned", EncoderSettings("learned", heads=(2,), width=8))
    with pytest.raises(ValueError, match="'learned', which has no centres"):
        prune_run(learned, tmp_path / "new", command="")
    with pytest.raises(ValueError, match="the run itself; give the new run a new folder"):
        prune_run(trained[0], trained[0], command="")


def test_maps_of_test_images_come_from_the_checkpoint(trained) -> None:
    path, _ = trained
    run = restore_run(path)
    pictures = image_attention.image_figures(path, run, (0, 1), (1, 0))
    assert list(pictures) == [1, 0]
    average = image_attention.average_figure(path, run, None, 2)
    assert "averaged over 2 test images, step 2" in average.get_suptitle()
    assert "test image 1, step 2" in pictures[1].get_suptitle()
    assert "test image 1: cat" in [axes.get_title() for axes in pictures[1].axes]
    with pytest.raises(ValueError, match="--image 2, but test images have indices 0 to 1"):
        image_attention.image_figures(path, run, None, (2,))
    with pytest.raises(ValueError, match="--average 3, but expected 1 to 2"):
        image_attention.average_figure(path, run, None, 3)


def test_a_run_without_checkpoints_is_refused(tmp_path) -> None:
    settings = tiny_settings(write_pictures(tmp_path / "pictures"))
    RunDirectory(tmp_path / "run").write_settings(settings)
    with pytest.raises(ValueError, match="holds no whole checkpoint"):
        restore_run(tmp_path / "run")
