"""Every config: it describes itself, its command is its own, it is the paper's, and it trains."""

import re
import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from flax import nnx
from lab.runs.tiny_runs import shrunk, write_pictures

from convattn_lab.commands.cifar import read_arguments
from convattn_lab.models.build import build_model
from convattn_lab.models.settings import SelfAttentiveResNetSettings
from convattn_lab.models.sizes import parameter_count
from convattn_lab.records.experiments import differences, paper_settings
from convattn_lab.runs.configs import find_configs
from convattn_lab.runs.launch import launch
from convattn_lab.runs.settings import RunSettings
from convattn_lab.settings import to_json

FOLDER = Path(__file__).parents[2] / "experiments" / "configs"
CONFIGS = find_configs(FOLDER)
LABELS = ("Repeats", "Images", "Expected", "Hardware", "Time", "Command")
PAPER = {
    "quadratic": paper_settings("quadratic"),
    "gaussian": paper_settings("gaussian"),
    "learned": paper_settings("learned"),
    "content": paper_settings("content"),
    "heads16": paper_settings("quadratic", (16,) * 6),
}
SAC = ("sac", "msac", "sac_convolution", "sac_baseline")
BUNDLED = ("slice", "resnet_slice", *SAC)  # what needs no download
REDUCED = ("quadratic_reduced", "resnet_reduced")  # for two cores, on all images
TRANSFORMERS = ("cmhsa3_convolution", "cmhsa3_attention", "vit_base", "deit_small", "deit_base")
UNEQUAL = (3, 0)  # heads of each layer, as pruning leaves them


def labelled(description: str) -> dict[str, str]:
    return dict(re.findall(r"^ *([A-Z][a-z]+) {2,}(\S.*)$", description, re.MULTILINE))


def test_all_of_them_are_there() -> None:
    assert set(CONFIGS) == {*PAPER, "resnet18", *BUNDLED, *REDUCED, *TRANSFORMERS}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_opens_with_its_six_lines(name) -> None:
    lines = labelled(CONFIGS[name].description)
    assert tuple(lines) == LABELS
    assert CONFIGS[name].title.endswith((".", ": the default."))


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.quick(7)
def test_the_command_of_a_config_is_its_own(name) -> None:
    program, script, *words = shlex.split(labelled(CONFIGS[name].description)["Command"])
    assert (program, script) == ("python", "experiments/cifar.py")
    args = read_arguments(words, FOLDER)
    assert args.config == name
    assert args.settings == CONFIGS[name].load()
    archive = "cifar100-binary" if name in TRANSFORMERS else "cifar10-binary"
    assert args.download == (None if name in BUNDLED else archive)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_a_transformer_is_trained_as_long_as_both_phases_of_li_et_al(name) -> None:
    settings = CONFIGS[name].load()
    training, images = settings.training, settings.images
    assert (training.epochs, training.batch_size, training.optimizer) == (400, 128, "adamw")
    assert training.epochs * training.warmup == 5
    assert (training.beta1, training.beta2, training.epsilon) == (0.9, 0.999, 1e-8)
    assert training.learning_rate in (1e-4, 3e-4, 5e-4)
    assert images.resize == 224
    strong = (images.rand_augment, images.mixup, images.cutmix, images.erasing)
    assert strong == ((0, 0, 0, 0) if name == "vit_base" else (9, 0.8, 1, 0.25))


@pytest.mark.parametrize("name", PAPER)
def test_a_config_is_the_paper_s(name) -> None:
    settings = CONFIGS[name].load()
    assert differences(PAPER[name], to_json(settings)) == []
    changed = replace(settings, training=replace(settings.training, epochs=299))
    assert differences(PAPER[name], to_json(changed)) == ["training.epochs is 299, not 300"]


@pytest.mark.slow
def test_the_networks_of_sac_have_one_recipe_and_nearly_one_size() -> None:
    """Within a tenth of the baseline's parameters, and trained as `slice` is."""
    sizes = {}
    for name in SAC:
        settings = CONFIGS[name].load()
        assert settings.images == slice_config().images
        assert settings.training == slice_config().training
        sizes[name] = parameter_count(nnx.eval_shape(partial(make_model, settings.model)))
    for name in SAC:
        assert abs(sizes[name] / sizes["sac_baseline"] - 1) < 0.1


def test_the_reduced_models_have_one_recipe() -> None:
    first, second = (CONFIGS[name].load() for name in REDUCED)
    assert (first.images, first.training) == (second.images, second.training)


def make_model(model: SelfAttentiveResNetSettings) -> nnx.Module:
    return build_model(model, classes=10, image_size=(32, 32), rngs=nnx.Rngs(0))


def slice_config() -> RunSettings:
    return CONFIGS["slice"].load()


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("data") / "pictures")


def tiny(name: str, pictures: Path) -> RunSettings:
    """A small-scale config; `pruned` is the general one with heads that differ by layer."""
    settings = shrunk(CONFIGS["gaussian" if name == "pruned" else name].load(), pictures)
    if name == "pruned":
        return replace(settings, model=replace(settings.model, heads=UNEQUAL))
    return settings


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CONFIGS, "pruned"])
def test_a_config_trains_for_an_epoch(name, pictures, tmp_path) -> None:
    outcome = launch(tiny(name, pictures), tmp_path / "run", command="none")
    assert (outcome.status, outcome.step, outcome.steps) == ("finished", 2, 2)
    assert outcome.test_accuracy in (0.0, 0.5, 1.0)
    assert outcome.test_loss is not None
    assert outcome.test_loss > 0
