"""``convattn convert --network``: a run in, a network of attention layers out, if it is right."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from lab.analysis.synthetic_runs import write_run
from lab.runs.tiny_runs import tiny_settings, write_pictures

from convattn.lab.analysis import resnet_comparison as comparison
from convattn.lab.models.settings import (
    EncoderSettings,
    ResNetSettings,
    SelfAttentiveResNetSettings,
    VisionTransformerSettings,
)
from convattn.lab.runs.launch import launch
from convattn.networks import apply_network, load_network, mixing_steps


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("data") / "pictures", test=4)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, pictures) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "resnet"
    settings = replace(tiny_settings(pictures), model=ResNetSettings((3, 4), (1, 1)))
    with jax.enable_x64(False):
        launch(settings, folder, command="test")
    return folder


@pytest.fixture
def run(finished, tmp_path) -> Path:
    """A copy that may be damaged."""
    return Path(shutil.copytree(finished, tmp_path / "resnet"))


@pytest.fixture(scope="module")
def untrained(tmp_path_factory) -> Path:
    """The folder of a run without checkpoints, only to be read."""
    return write_run(tmp_path_factory.mktemp("untrained") / "resnet", ResNetSettings())


@pytest.mark.slow
def test_a_run_becomes_a_file_that_needs_no_run(run, tmp_path, convattn_command) -> None:
    target, figures = tmp_path / "net.safetensors", tmp_path / "figures.json"
    done = convattn_command(
        "convert", "--network", run, "--output", target, "--json", figures, "--leak", "0.25"
    )
    assert done.code == 0, done.err
    assert "6 convolutions -> attention layers of 2 and 10 heads, leak 0.25" in done.out
    said = json.loads(figures.read_text())
    assert said["written"]
    assert said["float32"]["passed"]
    assert said["float64"]["passed"]
    assert said["float64"]["certain"] == said["float64"]["images"] == 4
    assert said["float64"]["bound"] < 1e-6 * said["float32"]["bound"]
    assert said["test"]["same_class"] == said["test"]["images"] == 4
    assert said["test"]["correct"] / 4 == said["test"]["recorded_accuracy"]
    other = run.rename(run.with_name("other"))
    network = load_network(target)
    assert [step.layer.heads for step in mixing_steps(network)] == [10, 10, 10, 10, 10, 2]
    logits = apply_network(network, np.zeros((1, 6, 8, 3), np.uint8))
    assert logits.shape == (1, 2)
    done = convattn_command("convert", "--network", other, "--leak", "1.5")
    assert done.code == 2
    assert "leak" in done.err


@pytest.mark.slow
def test_nothing_is_written_where_a_layer_is_wrong(run, convattn_command, monkeypatch) -> None:
    original = comparison.attention_layers

    def wrong(network):
        layers = original(network)
        stem = layers["stem"]
        return {**layers, "stem": replace(stem, output=stem.output.at[0].multiply(-1))}

    monkeypatch.setattr(comparison, "attention_layers", wrong)
    done = convattn_command("convert", "--network", run)
    assert done.code == 1
    assert "NOT WITHIN" in done.out
    assert "(stem)" in done.out
    assert not list(run.glob("*.safetensors"))


@pytest.mark.slow
def test_a_run_without_a_whole_checkpoint_is_refused(run, convattn_command) -> None:
    for path in (run / "checkpoints").rglob("*"):
        if path.is_file() and path.stat().st_size:
            path.write_bytes(b"\0" * path.stat().st_size)
    done = convattn_command("convert", "--network", run)
    assert done.code == 2
    assert "checkpoint" in done.err
    shutil.rmtree(run / "checkpoints")
    done = convattn_command("convert", "--network", run)
    assert done.code == 2
    assert "holds no whole checkpoint" in done.err
    assert not list(run.glob("*.safetensors"))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ResNetSettings(), "only a finished run is converted"),
        (EncoderSettings(heads=(2,), width=4, inner=4), "encoder"),
        (SelfAttentiveResNetSettings(), "selfattentiveresnet"),
        (VisionTransformerSettings(), "visiontransformer"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_run_that_cannot_be_converted_is_refused(
    tmp_path, convattn_command, model, message
) -> None:
    finished = not isinstance(model, ResNetSettings)
    run = write_run(tmp_path / "run", model, finished=finished, snapshots={})
    done = convattn_command("convert", "--network", run)
    assert done.code == 2
    assert message in done.err
    assert ("--network takes a run of a ResNet" in done.err) == finished
    assert not list(run.glob("*.safetensors"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--network", "{run}", "--stride", "2"), "--stride does not go with --network"),
        (("--network", "{run}", "--layer", "stem"), "--layer does not go with --network"),
        (("kernel.npy", "--network", "{run}"), "WEIGHTS does not go with --network"),
        (("--network", "{run}/nowhere"), "which is no folder"),
        (("--network", "{run}", "--output", "{run}/a.npz"), "expected a name in .safetensors"),
        (("--network", "{run}", "--output", "{run}/no/a.safetensors"), "does not exist"),
        (("--network", "{folder}"), "is not the folder of a run"),
        (("--network", "{run}"), "images"),
        ((), "expected WEIGHTS, a file, or --network"),
    ],
)
def test_wrong_use_is_refused(untrained, tmp_path, convattn_command, words, message) -> None:
    given = (word.format(run=untrained, folder=tmp_path) for word in words)
    done = convattn_command("convert", *given)
    assert done.code == 2
    assert message in done.err
