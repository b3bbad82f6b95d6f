"""Runs of a tiny network on noise: stopped, diverged, held by another process."""

import os
import signal
from dataclasses import replace

import jax
import numpy as np
import pytest
from initialization_comparison import run, trials
from initialization_comparison.command import main
from initialization_comparison.results import read_results
from initialization_comparison.run import run_trial
from initialization_comparison.trials import INITIALIZERS, TUNING_SEED, Trial

from convattn.data import datasets
from convattn.data.cifar10_slice import Images
from convattn.data.datasets import Dataset
from convattn.files import lock_directory
from convattn_lab.training.optimizer import make_optimizer
from convattn_lab.training.state import initial_state
from convattn_lab.training.step import PICTURES, order_of_epoch, root_key

pytestmark = pytest.mark.slow
IMAGES = 40


@pytest.fixture
def noise(monkeypatch) -> Dataset:
    """A hundred images of ten classes and 4 × 4 tokens, and a network of one layer."""
    small = replace(trials.NETWORK, depth=1, width=24, inner=24, heads=3, head_width=8)
    monkeypatch.setattr(trials.CIFAR, "network", small)
    monkeypatch.setattr(trials.CIFAR, "epochs", {IMAGES: 2})
    rng, classes = np.random.default_rng(0), tuple("abcdefghij")

    def random_images(count: int) -> Images:
        pixels = rng.integers(256, size=(count, 16, 16, 3), dtype=np.uint8)
        return Images(pixels, (np.arange(count) % 10).astype(np.uint8), classes)

    return Dataset("noise", random_images(100), random_images(20))


def test_a_stopped_run_ends_as_one_that_was_not(noise, tmp_path, monkeypatch):
    """Also where the initial parameters would be others now, as on another machine."""
    trial = Trial("mimetic", IMAGES, 1e-3, 0)
    uninterrupted = run_trial(trial, noise, tmp_path / "whole", tmp_path / "whole.json")
    calls, right = [], run.compute_metrics

    def stopping(*args, **named):
        calls.append(args)
        if len(calls) == 2:  # after the first epoch of two
            os.kill(os.getpid(), signal.SIGTERM)
        return right(*args, **named)

    with monkeypatch.context() as patch:
        patch.setattr(run, "compute_metrics", stopping)
        where = tmp_path / "stopped", tmp_path / "stopped.json"
        assert run_trial(trial, noise, *where) is None
    assert not where[1].exists()
    monkeypatch.setitem(INITIALIZERS, "mimetic", INITIALIZERS["truncated normal"])
    resumed = run_trial(trial, noise, *where)
    assert replace(resumed, seconds=0.0) == replace(uninterrupted, seconds=0.0)
    assert [snapshot.epoch for snapshot in resumed.snapshots] == [0, 1, 2]
    assert read_results(tmp_path) == {"stopped": resumed, "whole": uninterrupted}


def test_a_run_that_broke_off_before_a_checkpoint_keeps_its_initial_parameters(
    noise, tmp_path, monkeypatch
):
    trial, where = (
        Trial("mimetic", IMAGES, 1e-3, TUNING_SEED),
        (tmp_path / "a", tmp_path / "a.json"),
    )

    def breaking(*args, **named):
        raise RuntimeError("broken off")

    with monkeypatch.context() as patch:
        patch.setattr(run, "compute_metrics", breaking)
        with pytest.raises(RuntimeError, match="broken off"):
            run_trial(trial, noise, *where)
    monkeypatch.setitem(INITIALIZERS, "mimetic", INITIALIZERS["truncated normal"])
    resumed = run_trial(trial, noise, *where)
    other = run_trial(trial, noise, tmp_path / "b", tmp_path / "b.json")
    assert resumed.snapshots[0] != other.snapshots[0]
    assert resumed.test_accuracy is None  # it tunes
    assert resumed.validation_loss > 0


def test_with_one_seed_all_initialisers_see_the_same_batches(noise, tmp_path, monkeypatch):
    recorded = []

    def caught(folder, settings, model, examples, *, initial, **named):
        training = settings.training
        state = initial_state(model, make_optimizer(training, 8), training.seed)[1]
        order = order_of_epoch(state, len(examples.train), 4).tolist()
        crops = jax.random.key_data(root_key(state, PICTURES)).tolist()
        recorded.append(((examples.identity(), order, crops), initial))
        raise RuntimeError

    monkeypatch.setattr(run, "begin_run", caught)
    for name, seed in (("truncated normal", 1), ("convolution, filters", 1), ("mimetic", 2)):
        with pytest.raises(RuntimeError):
            run_trial(Trial(name, IMAGES, 1e-3, seed), noise, tmp_path / name, tmp_path / "x.json")
    (usual, weights), (ours, others), (another, _) = recorded
    assert usual == ours
    assert all(one != two for one, two in zip(ours, another, strict=True))
    assert any(not np.array_equal(weights[name], others[name]) for name in weights)


def test_the_command_goes_on_past_runs_that_diverge_or_are_held(
    noise, tmp_path, monkeypatch, capsys
):
    def large(arrays, seed, image_range, heads):
        return {name: np.float32(1e20) * array for name, array in arrays.items()}

    monkeypatch.setattr(datasets, "read_dataset", lambda path: noise)
    monkeypatch.setattr(trials, "QUICK_IMAGES", IMAGES)
    for name in [*INITIALIZERS][3:]:
        monkeypatch.delitem(INITIALIZERS, name)
    monkeypatch.setitem(INITIALIZERS, "mimetic", large)
    first, diverging, locked = (trial.name for trial in trials.quick())
    words, folder = ["--quick", "--output-dir", str(tmp_path)], tmp_path / "quick"
    with lock_directory(folder / "runs" / first):
        assert main(words) == 0
    output = capsys.readouterr().out
    assert f"{first}: another process runs it" in output
    assert f"{diverging}: diverged" in output
    assert "runs of other processes: 1; repeat the command" in output
    assert read_results(folder).keys() == {diverging, locked}
    assert read_results(folder)[diverging].snapshots[0].score_gradient is None
    times = {path: path.stat().st_mtime_ns for path in folder.glob("*.json")}
    assert main(words) == 0
    assert "1 diverged" in capsys.readouterr().out
    assert read_results(folder).keys() == {first, diverging, locked}
    assert all(path.stat().st_mtime_ns == time for path, time in times.items())
    assert main([*words, "--table"]) == 0
    assert (folder / "figures" / f"{IMAGES}.svg").exists()
