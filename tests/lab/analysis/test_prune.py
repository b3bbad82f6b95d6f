import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from comparison import assert_equal
from flax import nnx
from lab.analysis.synthetic_runs import write_run
from lab.models.tiny import filled
from lab.runs.tiny_runs import tiny_settings, write_pictures
from lab.training.tiny import assert_same_arrays

from convattn.data.datasets import read_dataset
from convattn_lab.analysis import prune as module
from convattn_lab.analysis.attention import average_figure, image_figures
from convattn_lab.analysis.curves import run_curves
from convattn_lab.analysis.prune import (
    Thresholds,
    attention_parameter,
    degenerate_heads,
    prune_run,
    pruned_parameters,
    pruned_settings,
    spreads_of_layers,
)
from convattn_lab.analysis.restored_run import restore_run
from convattn_lab.analysis.run_summary import head_numbers
from convattn_lab.commands.analyse import main
from convattn_lab.models.settings import EncoderSettings
from convattn_lab.models.sizes import abstract_model
from convattn_lab.runs.directory import RUN, RunDirectory
from convattn_lab.runs.images import make_model
from convattn_lab.runs.launch import launch
from convattn_lab.runs.settings import RunSettings
from convattn_lab.training.images import test_accuracy as accuracy_of
from convattn_lab.training.state import named_arrays

MODEL = EncoderSettings("gaussian", heads=(3,), width=4, inner=4, dropout=0.0)
NEVER = Thresholds(eigenvalue=1e-300, condition=1e300)


def parameters(model):
    return named_arrays(nnx.state(model, nnx.Param))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run, and the model that it ended with.

    Its first head began with a stripe, the third with nothing: both are degenerate.
    """
    folder = tmp_path_factory.mktemp("trained")
    settings = tiny_settings(write_pictures(folder / "pictures"))
    training = replace(settings.training, learning_rate=1e-5)
    settings = replace(settings, model=MODEL, training=training)
    initial = parameters(make_model(settings, read_dataset(settings.images.source)))
    for name, array in initial.items():
        if attention_parameter(name) == (0, "spreads"):
            array[0], array[1], array[2] = np.diag([1, 1e-3]), np.eye(2), 1e-4 * np.eye(2)
    outcome = launch(settings, folder / "run", command="a command", initial=initial)
    return folder / "run", outcome


def fail(*args, **kwargs):
    raise AssertionError("not to be called")


@pytest.mark.slow
def test_the_newest_checkpoint_is_restored_and_judged_as_in_training(trained) -> None:
    path, outcome = trained
    result = restore_run(path)
    assert (result.step, result.epoch) == (2, 1)
    assert_same_arrays(parameters(result.model), parameters(outcome.model))
    assert result.when == "epoch 1"
    assert replace(result, further_steps=3).when == "epoch 1 and 3 steps"
    assert accuracy_of(result.model, result.images) == outcome.test_accuracy


@pytest.mark.slow
def test_heads_are_removed_the_rest_is_trained_on_and_all_is_recorded(
    trained, tmp_path, monkeypatch
) -> None:
    path, outcome = trained
    folder, options = tmp_path / "pruned", {"command": "prune it", "epochs": 2}
    new = RunDirectory(folder)

    def killed(*words, **more):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, "launch", killed)
        with pytest.raises(KeyboardInterrupt):
            prune_run(path, folder, **options)
    # What was pruned is on record before the training begins.
    pruning = new.read_pruning()
    assert pruning["after"] is None
    assert 0 <= pruning["pruned"] <= 1
    result = prune_run(path, folder, **options)
    assert result.to_json() == {
        "source": {
            "config": json.loads((path / "config.json").read_text()),
            "result": json.loads((path / "result.json").read_text()),
            "images_sha256": RunDirectory(path).read_metadata()["images"]["sha256"],
        },
        "thresholds": {"largest": 1e-5, "condition": 1e5},
        "kept": [[2]],
        "removed": [2],
        "epochs_before": 1,
        "before": outcome.test_accuracy,
        "pruned": pruning["pruned"],
        "after": new.read_result()["test_accuracy"],
    }
    assert new.read_pruning() == result.to_json()
    settings = new.read_settings()
    assert settings.model == replace(MODEL, heads=(1,))
    assert (settings.training.learning_rate, settings.training.epochs) == (1e-5 / 10, 2)
    assert settings.images == RunDirectory(path).read_settings().images
    expected = pruned_parameters(parameters(outcome.model), [np.array([True, False, True])])
    assert_same_arrays(new.read_initial(), expected)
    assert new.read_metadata()["command"] == "prune it"
    curves = run_curves(folder)
    assert curves.train[:, 0].tolist() == [2, 3]
    assert curves.test[0].tolist() == [1, result.pruned]
    assert head_numbers(folder) == [(2,)]
    # The same again has nothing left to do, and what was measured stands.
    monkeypatch.setattr(module, "test_accuracy", fail)
    assert prune_run(path, folder, **options) == result
    with pytest.raises(ValueError, match=r"pruned otherwise \(they differ in thresholds\)"):
        prune_run(path, folder, thresholds=Thresholds(condition=2e5), **options)


def test_the_default_is_a_tenth_of_the_rate_and_of_the_epochs() -> None:
    settings = RunSettings(EncoderSettings("gaussian"))
    removed = [np.arange(9) < count for count in (2, 4, 1, 2, 6, 0)]
    result = pruned_settings(settings, removed, None)
    assert result.model.heads == (7, 5, 8, 7, 3, 9)
    assert (result.training.epochs, result.training.learning_rate) == (30, 0.01)


@pytest.mark.slow
def test_without_degenerate_heads_nothing_is_done(trained, tmp_path, capsys) -> None:
    path, outcome = trained
    result = prune_run(path, tmp_path / "new", command="", thresholds=NEVER)
    assert (result.removed, result.kept, result.pruned) == ([0], [[1, 2, 3]], None)
    assert result.before == outcome.test_accuracy
    words = ["--threshold-eigenvalue", "1e-300", "--threshold-condition", "1e300"]
    numbers = tmp_path / "numbers.json"
    assert main(["prune", str(path), *words, "--json", str(numbers)]) == 0
    assert "no head is degenerate" in capsys.readouterr().out
    assert json.loads(numbers.read_text()) == result.to_json()
    assert list(tmp_path.iterdir()) == [numbers]
    assert not path.with_name("run-pruned").exists()


@pytest.mark.slow
def test_what_cannot_be_pruned_is_refused(trained, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(module, "test_accuracy", fail)
    path, _ = trained
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "thesis.tex").write_text("")
    learned = EncoderSettings("learned", heads=(2,), width=8)
    young = write_run(tmp_path / "young", finished=False, epochs=9)
    for run, folder, message in (
        (write_run(tmp_path / "learned", learned), tmp_path / "new", "'learned'"),
        (path, path, "the run itself"),
        (young, tmp_path / "new", "unfinished, epoch 4 of 9"),
        (path, tmp_path / "notes", r"has no config\.json"),
        (path, write_run(tmp_path / "other"), "other settings"),
    ):
        with pytest.raises(ValueError, match=message):
            prune_run(run, folder, command="")
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_other_images_and_a_run_without_checkpoints_are_refused(trained, tmp_path) -> None:
    path, _ = trained
    for name in ("config.json", "run.json"):
        shutil.copy(path / name, tmp_path)
    with pytest.raises(ValueError, match="holds no whole checkpoint"):
        restore_run(tmp_path)
    metadata = RunDirectory(tmp_path).read_metadata()
    metadata["images"]["sha256"] = "0" * 64
    RunDirectory(tmp_path).write(RUN, metadata)
    with pytest.raises(ValueError, match=r"saw other images .*put the old ones back"):
        restore_run(tmp_path)


@pytest.mark.slow
def test_maps_of_test_images_come_from_the_checkpoint(trained) -> None:
    path, _ = trained
    run = restore_run(path)
    pictures = image_figures(path, run, (0, 1), (1, 0))
    assert list(pictures) == [1, 0]
    average = average_figure(path, run, None, 2)
    assert "averaged over 2 test images, epoch 1 run" in " ".join(average.get_suptitle().split())
    assert "test image 1, epoch 1 run" in " ".join(pictures[1].get_suptitle().split())
    assert "test image 1: cat" in [axes.get_title() for axes in pictures[1].axes]
    with pytest.raises(ValueError, match="--image 2, but test images have indices 0 to 1"):
        image_figures(path, run, None, (2,))
    with pytest.raises(ValueError, match="--average 3, but expected 1 to 2"):
        average_figure(path, run, None, 3)


TURN = np.array([[0.6, -0.8], [0.8, 0.6]])


def root(largest: float, smallest: float) -> np.ndarray:
    """R such that Σ⁻¹ = RᵀR has these eigenvalues, in turned directions."""
    return np.diag([largest, smallest]) ** 0.5 @ TURN


CASES = {
    "round": (root(1, 1), False),
    "flat": (root(0.9e-5, 0.9e-5), True),
    "just not flat": (root(1.1e-5, 1.1e-5), False),
    "a stripe": (root(1, 0.9e-5), True),
    "just no stripe": (root(1, 1.1e-5), False),
    "singular": (root(1, 0), True),
    "nothing": (root(0, 0), True),
    "strong": (root(1e8, 1e4), False),
}


@pytest.mark.parametrize(
    ("thresholds", "right"),
    [
        (None, True),
        (Thresholds(eigenvalue=1e-5**0.5), False),  # of R in place of Σ⁻¹
        (Thresholds(condition=1e5**0.5), False),
        (Thresholds(condition=1e10), False),
        (Thresholds(eigenvalue=1e-10), False),
    ],
)
def test_the_criterion_is_the_papers(thresholds, right) -> None:
    """Others are planted."""
    degenerate = degenerate_heads(np.array([case for case, _ in CASES.values()]), thresholds)
    assert (degenerate.tolist() == [verdict for _, verdict in CASES.values()]) is right


def test_an_almost_singular_root_in_float32_has_its_own_condition() -> None:
    # The eigenvalues of a float32 RᵀR could not tell 10⁻⁶ from zero next to 10².
    roots = np.array([root(1e2, 1e-6), root(1e2, 1.2e-3)], np.float32)
    assert degenerate_heads(roots).tolist() == [True, False]
    assert degenerate_heads(np.zeros((0, 2, 2))).shape == (0,)


def test_numbers_that_are_not_finite_are_refused_by_head() -> None:
    roots = np.array([np.eye(2), np.full((2, 2), np.nan), np.full((2, 2), np.inf)])
    with pytest.raises(ValueError, match=r"not finite in heads \[2, 3\]"):
        degenerate_heads(roots)


REMOVED = [np.array([True, False, False]), np.array([True, True]), np.array([False])]


def parameters_of(encoding: str, heads: tuple[int, ...]):
    """Numbers that are all different, in the shapes of a model."""
    settings = EncoderSettings(encoding, heads=heads, width=4, inner=4)
    return parameters(filled(abstract_model(settings, classes=2, image_size=(4, 4))))


def test_kept_heads_and_all_else_stay_and_the_smaller_model_takes_them() -> None:
    for encoding in ("quadratic", "gaussian"):
        before = parameters_of(encoding, (3, 2, 1))
        after = pruned_parameters(before, REMOVED)
        smaller = parameters_of(encoding, (2, 0, 1))
        assert {name: array.shape for name, array in smaller.items()} == {
            name: array.shape for name, array in after.items()
        }
        for name, array in after.items():
            expected = before[name]
            if name.startswith("layers.0.attention.") and ".bias" not in name:
                expected = expected[1:]
            assert_equal(array, expected, name)
        gone = {name for name in before if name not in after}
        assert {name.split(".")[3] for name in gone} == {"value", "centers", "spreads"}
        assert all(name.startswith("layers.1.attention.") for name in gone)


def test_the_spreads_are_roots_of_the_precision() -> None:
    named = parameters_of("quadratic", (3, 0))
    name = next(name for name in named if "spreads" in name)
    first, second = spreads_of_layers(named, 2)
    assert second.shape == (0, 2, 2)
    for scale, root in zip(named[name], first, strict=True):
        assert np.array_equal(root, [[scale, 0], [0, scale]])
    named = parameters_of("gaussian", (3,))
    name = next(name for name in named if "spreads" in name)
    assert np.array_equal(spreads_of_layers(named, 1)[0], named[name])
