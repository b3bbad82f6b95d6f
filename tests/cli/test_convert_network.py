"""``convattn convert network``: a network in, a network of attention layers out, if it is right."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from lab.analysis.synthetic_runs import write_run
from lab.runs.tiny_runs import tiny_settings, write_pictures

import convattn as ca
from convattn.cli import convert_network as command
from convattn.cli.named_network import NamedNetwork
from convattn.cli.network_origin import compared
from convattn.networks.named import own_network
from convattn.networks.transformation import network_file
from convattn.networks.transformation.attention import ConversionOptions
from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
from convattn_lab.models.settings import (
    EncoderSettings,
    ResNetSettings,
    SelfAttentiveResNetSettings,
)
from convattn_lab.runs.launch import launch

pytestmark = pytest.mark.usefixtures("unchecked")  # jaxtyping knows no symbols
OWN = """
import jax, jax.numpy as jnp, numpy as np
rng = np.random.default_rng(0)
STEM, LAST = rng.normal(size=(3, 3, 3, 4)), rng.normal(size=(1, 1, 4, 5))

def network(scale=1.0, volume=False):
    def logits(images):
        for name, kernel, stride in (("stem", STEM, 2), ("last", LAST, 1)):
            with jax.named_scope(name):
                images = jax.lax.conv_general_dilated(
                    images, jnp.asarray(scale * kernel, images.dtype), (stride, stride), "SAME",
                    dimension_numbers=("NHWC", "HWIO", "NHWC"))
            images = jax.nn.relu(images)
        return images.mean((1, 2))
    return logits

def overflowing():
    return network(1e25)

def needs_values():
    return lambda images: images if float(images.sum()) else -images

def plain():
    return lambda images: images.mean((1, 2))

def of_one_size():
    return lambda images: images.reshape(5, 5)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    np.save(tmp_path / "images.npy", np.random.default_rng(1).normal(size=(2, 8, 9, 3)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def logits(images, name="own.py:network"):
    return np.asarray(own_network(name)(np.asarray(images, np.float32)))


@pytest.mark.slow
def test_a_function_becomes_a_file_that_needs_no_code(folder, convattn_command) -> None:
    options = ("--images", "images.npy", "--stablehlo", "net.hlo", "--json", "net.json")
    done = convattn_command("convert", "network", "own.py:network", *options)
    assert done.code == 0, done.err
    assert "own.py:network on images (2, 8, 9, 3) from images.npy" in done.out
    assert "2 of 2 convolutions -> attention layers of 2 and 10 heads" in done.out
    assert "the same classes" in done.out
    assert "each of 2 layers is within its derived bound" in done.out
    said = json.loads((folder / "net.json").read_text())
    assert said["written"]
    assert said["passed"]
    assert said["bound"] < 1e-2
    assert all(layer["difference"] <= layer["bound"] for layer in said["layers"].values())
    images = np.load("images.npy").astype(np.float32)
    expected = logits(images)
    (folder / "own.py").unlink()
    network = ca.load_network("network.attention.safetensors")
    assert list(network.layers) == ["stem", "last"]
    fixed = jax.export.deserialize(bytearray(Path("net.hlo").read_bytes()))
    for outputs in (network(images), fixed.call(images)):
        assert np.abs(outputs - expected).max() < 1e-5 * np.abs(expected).max()
    other = np.ones((5, 8, 9, 3), np.float32)
    assert network(other).shape == (5, 5)


@pytest.mark.parametrize(("expected", "said"), [(False, 1), (True, 0)])
@pytest.mark.quick(1)
def test_that_only_names_and_shapes_of_weights_were_checked_is_said(
    folder, monkeypatch, expected, said
) -> None:
    """Unless the outputs that the weights should give are given."""
    built = NamedNetwork(own_network("own.py:network"))
    monkeypatch.setattr("convattn.cli.named_network.named_network", lambda *_: built)
    np.save("outputs.npy", logits(np.load("images.npy")))
    converted = command.ConvertNetwork(
        "timm/resnet18",
        weights=folder / "w.pth",
        images=folder / "images.npy",
        expected=folder / "outputs.npy" if expected else None,
    )
    lines = "\n".join(command.converted(converted).lines)
    assert lines.count("only names and shapes were checked") == said
    assert lines.count("such as resnetblur18 of timm,") == said


@pytest.mark.slow
def test_pointwise_the_limit_and_float64(folder, convattn_command) -> None:
    size = ("--image-size", "8")
    done = convattn_command("convert", "network", "own.py:network", *size, "--pointwise", "keep")
    assert done.code == 0, done.err
    assert "1 of 2 convolutions" in done.out
    assert "pointwise='keep'" in done.out
    done = convattn_command("convert", "network", "own.py:network", *size, "--form", "limit")
    assert done.code == 0, done.err
    assert "2 of 2 layers have no derived bound" in done.out
    program = (
        "import sys; from convattn.cli.__main__ import main; "
        "sys.exit(main(['convert', 'network', 'own.py:network', '--image-size', '8', "
        "'--dtype', 'float64', '--output', 'wide.safetensors']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "float64, the outputs differ by" in done.stdout
    assert ca.load_network("wide.safetensors").layers["stem"].dtype == np.float64


@pytest.mark.slow
def test_the_outputs_of_another_network_fail(folder, convattn_command) -> None:
    images = np.load("images.npy")
    blurred = (images + np.roll(images, 1, 1)) / 2
    names = ("own.py:network", "--images", "images.npy", "--expected", "logits.npy")
    for inputs, code, line in ((images, 0, "(at most"), (blurred, 1, "ANOTHER NETWORK")):
        np.save("logits.npy", logits(inputs))
        done = convattn_command("convert", "network", *names, "--json", "net.json")
        assert done.code == code, done.err
        assert line in done.out
        figures = json.loads(Path("net.json").read_text())
        assert figures["expected"]["passed"] == figures["written"] == (code == 0)
    assert "FAILED: nothing written" in done.out


@pytest.mark.slow
def test_nothing_is_written_where_the_program_of_the_file_differs(
    folder, convattn_command, monkeypatch
) -> None:
    right = network_file.restore_network

    def wrong(file):
        network = right(file)
        return lambda *arrays: jax.tree.map(lambda x: x + 1, network(*arrays))

    monkeypatch.setattr(network_file, "restore_network", wrong)
    done = convattn_command("convert", "network", "own.py:network", "--images", "images.npy")
    assert done.code == 1
    assert "the program of the file differs by 1 of" in done.out
    assert not list(folder.glob("*.safetensors"))


def test_nothing_is_written_where_a_layer_is_wrong(folder, convattn_command, monkeypatch) -> None:
    original = ConversionOptions.layer

    def wrong(self, convolution, kernel):
        layer = original(self, convolution, kernel)
        return replace(layer, output=layer.output.at[0].multiply(1 + 2.0**-8))

    monkeypatch.setattr(ConversionOptions, "layer", wrong)
    names = ("own.py:network", "--images", "images.npy", "--stablehlo", "net.hlo")
    done = convattn_command("convert", "network", *names)
    assert done.code == 1
    assert "NOT WITHIN their derived bounds: stem, last" in done.out
    assert "FAILED: nothing written" in done.out
    assert sorted(path.suffix for path in folder.iterdir() if path.is_file()) == [".npy", ".py"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("own.py:network", "--stride", "2"), "--stride"),
        (("own.py:network", "--output", "net.npz"), "expected a name in .safetensors"),
        (("own.py:network", "--output", "no/net.safetensors"), "does not exist"),
        (("own.py:network", "--image-size", "0"), "--image-size got"),
        (("own.py:network", "--image-size", "8", "--images", "images.npy"), "have their own size"),
        (("own.py:network", "--expected", "images.npy"), "--expected needs --images"),
        (("own.py:network", "--seed", "-1"), "--seed got -1"),
        (("own.py:network", "--image-size", "8", "--uniform-weight", "1.5"), "uniform_weight=1.5"),
        (("own.py:overflowing", "--image-size", "8"), "expected finite numbers"),
        (("own.py:needs_values", "--image-size", "8"), "cannot be traced"),
        (("own.py:plain", "--image-size", "8"), "no convolution that becomes attention"),
        (("own.py:of_one_size",), "of_one_size on images (1, 224, 224, 3)"),
        (("own.py:network", "--images", "own.py"), "own.py"),
        (("nowhere",), "but expected one of torchvision/NAME"),
        ((), "required"),
    ],
)
def test_wrong_use_is_refused(folder, convattn_command, words, message) -> None:
    done = convattn_command("convert", "network", *words)
    assert done.code == 2
    assert message in done.err
    assert not list(folder.glob("*.safetensors"))


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((2, 8, 8, 3), np.uint8), "it holds one array of uint8 (2, 8, 8, 3); scale bytes"),
        (np.zeros((0, 8, 8, 3)), "expected one array of floats"),
        (np.full((1, 8, 8, 3), np.nan), "non-finite"),
    ],
)
def test_other_images_are_refused(folder, convattn_command, images, message) -> None:
    np.save("images.npy", images)
    done = convattn_command("convert", "network", "own.py:network", "--images", "images.npy")
    assert done.code == 2
    assert message in done.err


def test_other_outputs_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(2, 4\), but expected \(2, 5\)"):
        compared(np.zeros((2, 5)), np.zeros((2, 4)))


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


@pytest.mark.slow
def test_a_run_becomes_a_file_that_needs_no_run(run, tmp_path, convattn_command) -> None:
    target, figures = tmp_path / "net.safetensors", tmp_path / "figures.json"
    options = ("--output", target, "--json", figures, "--uniform-weight", "0.25")
    done = convattn_command("convert", "network", run, *options)
    assert done.code == 0, done.err
    assert "6 of 6 convolutions -> attention layers of 2 and 10 heads" in done.out
    assert "one function, as far as float64 can tell" in done.out
    said = json.loads(figures.read_text())
    assert said["written"]
    assert said["float64"]["bound"] < 1e-6 * said["bound"]
    assert said["test"]["same_class"] == said["test"]["images"] == 4
    assert said["test"]["correct"] / 4 == said["test"]["recorded_accuracy"]
    other = run.rename(run.with_name("other"))
    network = ca.load_network(target)
    assert [layer.heads for layer in network.layers.values()] == [10, 10, 10, 10, 10, 2]
    assert network(np.zeros((1, *network.arguments[0].shape[1:]), np.uint8)).shape == (1, 2)
    done = convattn_command("convert", "network", other, "--uniform-weight", "1.5")
    assert done.code == 2
    assert "uniform_weight" in done.err
    done = convattn_command("convert", "network", other, "--head-dim", "3")
    assert done.code == 2
    assert "--head-dim does not go with the folder of a run" in done.err
    done = convattn_command("compile", other, "--output", tmp_path / "vit.safetensors")
    assert done.code == 0, done.err
    assert "4 of 4 images have the same class" in done.out
    assert "on its 4 test images" in done.out


@pytest.mark.slow
def test_a_run_without_a_whole_checkpoint_is_refused(run, convattn_command) -> None:
    for path in (run / "checkpoints").rglob("*"):
        if path.is_file() and path.stat().st_size:
            path.write_bytes(b"\0" * path.stat().st_size)
    done = convattn_command("convert", "network", run)
    assert done.code == 2
    assert "checkpoint" in done.err
    shutil.rmtree(run / "checkpoints")
    done = convattn_command("convert", "network", run)
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
    done = convattn_command("convert", "network", run)
    assert done.code == 2
    assert message in done.err
    assert ("expected a run of a ResNet" in done.err) == finished
    assert not list(run.glob("*.safetensors"))
