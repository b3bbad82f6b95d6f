"""The plan of training on, its starts, and what is printed."""

import json
import os
import signal
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from initialization_comparison.run import trial_images
from initialization_comparison.trials import SEEDS, TUNING_SEED, Trial
from rich.console import Console
from trained_on_comparison import compiling, network, trials
from trained_on_comparison.command import main
from trained_on_comparison.compiling import Starts, Stopped
from trained_on_comparison.network import PATCH, SmallCNN
from trained_on_comparison.table import print_networks, read_networks

from convattn.compile import size
from convattn.data.cifar10_slice import Images
from convattn.data.datasets import Dataset, read_dataset
from convattn.nnx.vision_transformer.state_dict import state_dict
from convattn_lab.models.sizes import parameter_count
from convattn_lab.runs.images import make_model
from convattn_lab.training import trainer


def test_the_plan():
    tried, exact = trials.tuning(), trials.exact()
    assert len(tried) == 12
    assert {trial.seed for trial in (*tried, exact)} == {TUNING_SEED}
    rates = dict.fromkeys(trials.LEARNING_RATES, 0.001)
    for images, available, steps in ((1_600, 2_000, 160), (4_000, 50_000, 400)):
        compared = trials.comparison(rates, images)
        assert len(compared) == 20
        assert {trial.seed for trial in compared} == set(SEEDS)
        chosen = compared[0].settings(available)
        others = available * (1 - chosen.images.validation)
        assert round(chosen.images.share * others) == images
        assert images // chosen.training.batch_size * chosen.training.epochs == steps


@pytest.mark.slow
def test_the_network_compiles_into_the_vision_transformer_of_the_plan():
    cnn = SmallCNN(10, nnx.Rngs(0))
    assert parameter_count(cnn) == 3_334
    compiled_size = size(cnn, jax.ShapeDtypeStruct((1, 32, 32, 3), jnp.float32), patch_size=PATCH)
    settings = trials.NETWORK
    assert (compiled_size.width, compiled_size.num_heads, compiled_size.head_dim) == (144, 9, 16)
    assert (settings.width, settings.heads, settings.head_width) == (144, 9, 16)
    assert (compiled_size.blocks, compiled_size.hidden) == (settings.depth, settings.inner)
    model = make_model(trials.exact().settings(2_000), read_dataset())
    assert parameter_count(model) == compiled_size.parameters == 521_722


def test_few_test_images_are_named():
    images = Images(np.zeros((10_000, 2, 2, 3), np.uint8), np.zeros(10_000, np.uint8), ("a",))
    reduced = trials.with_few_tests(Dataset("CIFAR-10", images, images, "note"))
    assert (len(reduced.train), len(reduced.test)) == (10_000, 2_000)
    assert reduced.title == "CIFAR-10, 2,000 test images (note)"
    assert trials.with_few_tests(read_dataset()) is not None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no --data"),
        (["--table"], "holds no results"),
        (["--table", "--data", "x"], "--table beside --data"),
        (["--data", "nowhere"], "nowhere"),
    ],
)
def test_wrong_use(words, message, tmp_path, capsys):
    assert main([*words, "--output-dir", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def record(seed, accuracy):
    kind = {
        "constants": {"norm": 300.0, "slope": 20.0, "sharpness": 9.5, "epsilon": 1e-6},
        "accuracy": accuracy - 0.01,
        "same_class": 0.98,
        "difference": 0.5,
        "largest": 12.0,
        "construction": 100.0,
        "gradient": 200.0,
    }
    return {"schema": 1, "seed": seed, "accuracy": accuracy, **dict.fromkeys(compiling.KINDS, kind)}


def test_records_of_networks_are_read_and_damaged_ones_named(tmp_path):
    folder = tmp_path / "networks"
    folder.mkdir()
    (folder / "3.json").write_text(json.dumps(record(3, 0.4)))
    assert read_networks(tmp_path) == {3: record(3, 0.4)}
    for damaged in ("{", '{"schema": 2, "seed": 1}', "[]", "[" * 10**5, "9" * 10**5):
        (folder / "4.json").write_text(damaged)
        with pytest.raises(ValueError, match=r"4\.json is no record"):
            read_networks(tmp_path)


def test_gains_are_printed_seed_by_seed(capsys):
    shot = SimpleNamespace(distance=(0.0, 0.9))
    row = SimpleNamespace(
        initializer="compiled",
        accuracies={0: 0.42, 1: 0.46},
        results=[SimpleNamespace(snapshots=[shot, shot])] * 2,
    )
    print_networks({0: record(0, 0.41), 1: record(1, 0.43)}, [row], Console(width=200))
    output = capsys.readouterr().out
    assert "the CNN: 42.0 ±" in output
    assert "trained on less before: +3.0 ±" in output
    assert "trained on less the CNN: +2.0 ±" in output
    assert "layer 2: 0.90 → 0.90" in output


@pytest.fixture
def noise(monkeypatch):
    """A hundred images of noise, and one epoch of the CNN."""
    monkeypatch.setattr(network, "EPOCHS", {40: 2})
    rng = np.random.default_rng(0)

    def random_images(count):
        pixels = rng.integers(256, size=(count, 32, 32, 3), dtype=np.uint8)
        return Images(pixels, (np.arange(count) % 10).astype(np.uint8), tuple("abcdefghij"))

    return Dataset("noise", random_images(100), random_images(20))


@pytest.mark.slow
def test_a_compiled_start_is_measured_once_and_goes_on_after_a_signal(noise, tmp_path, monkeypatch):
    trial = Trial("compiled", 40, 1e-5, 0, trials.TASK)
    images, starts = trial_images(trial, noise), Starts(tmp_path)
    model = make_model(trial.settings(100), noise)
    ending = trainer._Session._end_epoch

    def stopping(self, speed):
        os.kill(os.getpid(), signal.SIGTERM)
        return ending(self, speed)

    with monkeypatch.context() as patch:
        patch.setattr(trainer._Session, "_end_epoch", stopping)
        with pytest.raises(Stopped):
            starts(trial, model, images)
    assert not (tmp_path / "networks" / "0.json").exists()
    initial = starts(trial, model, images)
    usual = state_dict(model)
    assert {name: array.shape for name, array in initial.items()} == {
        name: array.shape for name, array in usual.items()
    }
    record = read_networks(tmp_path)[0]
    assert record["compiled"]["within"]
    assert record["compiled, exact"]["same_class"] == 1.0
    assert record["compiled, exact"]["gradient"] > 1e6 * record["compiled"]["gradient"]
    exact = starts(replace(trial, initializer="compiled, exact"), model, images)
    weight, theirs = (parameters["blocks.0.norm1.weight"] for parameters in (initial, exact))
    assert (weight == 0).sum() == 2
    assert (theirs == 0).sum() == 0
    write = (tmp_path / "networks" / "0.json").stat().st_mtime_ns
    starts(trial, model, images)
    assert (tmp_path / "networks" / "0.json").stat().st_mtime_ns == write
