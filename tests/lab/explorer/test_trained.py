"""Runs of ours of every kind, as the explorer shows them."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_within
from lab.runs.tiny_runs import tiny_settings, write_pictures

from convattn.data.datasets import read_dataset
from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
from convattn_lab.analysis.attention import image_maps
from convattn_lab.analysis.restored_run import RestoredRun
from convattn_lab.explorer import trained
from convattn_lab.explorer.model import ExploredModel
from convattn_lab.models.settings import (
    EncoderSettings,
    ResNetSettings,
    SelfAttentiveResNetSettings,
)
from convattn_lab.runs.images import make_model, training_images
from convattn_lab.runs.launch import launch

VIT = {"depth": 2, "width": 12, "inner": 6, "patch_size": 2}
SMALL = {"channels": (2,), "blocks": (1,), "key_features": 2}
KINDS = {
    "quadratic": EncoderSettings(heads=(3, 2), width=4, inner=4),
    "content": EncoderSettings("content", heads=(2, 0), width=4, inner=4),
    "relative": VisionTransformerSettings(heads=2, **VIT),
    "class": VisionTransformerSettings(heads=2, position="absolute", pooling="class", **VIT),
    "first phase": VisionTransformerSettings("convolution", **VIT),
    "sac": SelfAttentiveResNetSettings("sac", heads=2, fine_keys=True, **SMALL),
    "msac": SelfAttentiveResNetSettings("msac", heads=1, **SMALL),
    "resnet": ResNetSettings((2, 3), (1, 1)),
}
LAYERS = {"content": 1, "sac": 2, "msac": 4, "resnet": 6}
CONVERTED = ("first phase", "resnet")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("data") / "pictures", test=4)


@pytest.fixture
def explore(pictures, monkeypatch):
    """The run of a kind, with the parameters that it began with."""

    def show(kind: str) -> tuple[ExploredModel, RestoredRun]:
        settings = replace(tiny_settings(pictures), model=KINDS[kind])
        dataset = read_dataset(pictures)
        fields = make_model(settings, dataset), 0, 0, 0, dataset, training_images(dataset, settings)
        run = RestoredRun(settings, *fields)
        monkeypatch.setattr(trained, "restore_run", lambda path: run)
        return ExploredModel(trained.of_run(pictures)), run

    return show


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_shown(explore, kind) -> None:
    with jax.enable_x64(False):
        model, run = explore(kind)
        assert len(model.layers) == LAYERS.get(kind, 2)
        assert len(model.samples) == 4
        assert (model.pixels("s0") == run.dataset.test.images[0]).all()
        model.measure()
        last = len(model.layers) - 1
        rows, columns = model.layers[last].grid
        first, second = (
            model.attention(sample, last, (rows - 1, columns - 1)) for sample in model.samples[:2]
        )
        sums = first.full.sum(axis=(1, 2)) + first.numbers["full"]["elsewhere"]
        assert_within(sums, np.ones_like(sums), 2e-6)
        depends = kind not in ("quadratic", *CONVERTED)
        assert (np.abs(first.full - second.full).max() > 0) == depends
        result = model.numbers(last)
        assert len(result["heads"]) == model.layers[last].heads == len(result["taps"])
        if kind in CONVERTED:
            assert result["convolution"]["relative_distance"] < 1e-6
            before, after = model.outputs("s0", last)
            assert np.abs(before - after).max() < 1e-5 < np.abs(before).max()
            assert np.abs(before - model.outputs("s1", last).after).max() > 1e-4
        if kind == "content":
            image = model.source.prepare(model.pixels("s1")[None])
            (expected, _) = image_maps(run.model, jnp.asarray(image), (1, 2))
            assert_within(model.attention("s1", 0, (1, 2)).full, expected[0], 1e-6)
            other = model.attention("s1", 0, (2, 1)).full
            assert np.abs(other - expected[0]).max() > 1e-5


def test_a_run_without_heads_is_refused(explore, monkeypatch) -> None:
    monkeypatch.setitem(KINDS, "none", EncoderSettings(heads=(0,), width=4, inner=4))
    with pytest.raises(ValueError, match="trained a Encoder without heads"):
        explore("none")


@pytest.mark.slow
def test_a_trained_run_is_read_from_its_folder(pictures, tmp_path) -> None:
    with jax.enable_x64(False):
        launch(tiny_settings(pictures), tmp_path / "pair" / "phase2", command="test")
        source = trained.of_run(tmp_path / "pair")
    assert (source.kind, source.name) == ("encoder, quadratic", "phase2, epoch 1")
    assert source.positional[0].grid == (4, 4)
