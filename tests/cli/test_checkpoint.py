"""``convattn convert --network FILE --architecture NAME``."""

import json
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nnx.test_checkpoint import state_dict

import convattn as ca
from convattn.cli import checkpoint as command
from convattn.files import write_file
from convattn.networks.weights.formats import write_safetensors
from convattn.nnx import network_file
from convattn.nnx.architectures import ARCHITECTURES, ResNet
from convattn.nnx.checkpoint import from_state_dict

NAME = "small/resnet18"


@pytest.fixture(autouse=True)
def _small_one(monkeypatch):
    monkeypatch.setitem(ARCHITECTURES, NAME, partial(ResNet, (1, 1, 1, 1), False))


@pytest.fixture
def file(tmp_path):
    arrays = {name: array.astype(np.float32) for name, array in state_dict(NAME).items()}
    write_file(tmp_path / "net.safetensors", write_safetensors(arrays, {}))
    np.save(tmp_path / "images.npy", np.random.default_rng(0).normal(size=(2, 32, 33, 3)))
    return tmp_path / "net.safetensors"


@pytest.mark.slow
def test_a_checkpoint_becomes_a_file_and_stablehlo(file, convattn_command):
    folder = file.parent
    images, other, figures = (folder / name for name in ("images.npy", "net.hlo", "net.json"))
    options = ("--images", images, "--stablehlo", other, "--json", figures)
    done = convattn_command("convert", "--network", file, "--architecture", NAME, *options)
    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == (
        f"{file} as {NAME}: kernels [out, in, K, K]; strides and paddings are small's; checked on "
        f"2 images of 32 x 33 pixels from {images}"
    )
    assert "only names and shapes were checked" in done.out.splitlines()[1]
    assert "12 convolutions -> attention layers of 2 and 10 and 50 heads, leak 0.5" in done.out
    assert "each of 12 layers is within its derived bound" in done.out
    said = json.loads(figures.read_text())
    assert said["written"]
    assert said["same_class"]
    assert all(layer["difference"] <= layer["bound"] for layer in said["layers"].values())
    seen = jnp.asarray(np.load(images), jnp.float32)
    arrays = {name: array.astype(np.float32) for name, array in state_dict(NAME).items()}
    expected = from_state_dict(arrays, NAME)(seen)
    network = ca.load_network(folder / "net.attention.safetensors")
    for found in (network(seen), jax.export.deserialize(bytearray(other.read_bytes())).call(seen)):
        assert jnp.abs(found - expected).max() < 1e-5 * jnp.abs(expected).max()


@pytest.mark.slow
def test_the_logits_of_another_network_with_the_same_tensors_fail(file, convattn_command):
    folder = file.parent
    names = ("--network", file, "--architecture", NAME, "--images", folder / "images.npy")
    arrays = {name: array.astype(np.float32) for name, array in state_dict(NAME).items()}
    network = from_state_dict(arrays, NAME)
    images = jnp.asarray(np.load(folder / "images.npy"), jnp.float32)
    right = np.asarray(network(images))
    # As timm's resnetblur18: the same tensors, and a mean over pixels more.
    blurred = np.asarray(network((images + jnp.roll(images, 1, 1)) / 2))
    for logits, code, line in (
        (right, 0, "(at most"),
        (blurred, 1, "ANOTHER NETWORK with the same"),
    ):
        np.save(folder / "logits.npy", logits)
        options = ("--expected", folder / "logits.npy", "--json", folder / "net.json")
        done = convattn_command("convert", *names, *options)
        assert done.code == code, done.err
        assert line in done.out
        assert "only names and shapes were checked" not in done.out
        figures = json.loads((folder / "net.json").read_text())
        assert figures["expected"]["passed"] == figures["written"] == (code == 0)
    difference = np.abs(right - blurred).max()
    assert figures["expected"]["difference"] == pytest.approx(difference, rel=1e-3)
    assert "FAILED: nothing written" in done.out


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        (np.zeros((2, 2, 2)), "but expected one array of floats [images, classes]"),
        (np.zeros((2, 5), np.int32), "but expected one array of floats [images, classes]"),
        (np.zeros((3, 5)), "but expected 2 rows, one for each of --images"),
        (np.full((2, 5), np.nan), "non-finite"),
    ],
)
def test_other_logits_are_refused(file, convattn_command, logits, message):
    folder = file.parent
    np.save(folder / "logits.npy", logits)
    names = ("--network", file, "--architecture", NAME, "--expected", folder / "logits.npy")
    done = convattn_command("convert", *names, "--images", folder / "images.npy")
    assert (done.code, message in done.err) == (2, True), done.err
    done = convattn_command("convert", *names)
    assert "--expected needs --images" in done.err


def test_a_prefix_is_named(file, convattn_command):
    arrays = {f"module.{name}": array for name, array in state_dict(NAME).items()}
    write_file(file, write_safetensors(arrays, {}))
    options = ("--architecture", NAME, "--leak", "1.5", "--image-size", "8")  # refused at once
    done = convattn_command("convert", "--network", file, *options)
    assert "every name begins with 'module.', which is left out" in done.out


def test_networks_with_the_same_tensors_are_named():
    for library in ("torchvision", "timm"):
        assert "resnetaa50 and resnetblur50" in command.unchecked(f"{library}/resnet50")
        assert "resnetblur18" in command.unchecked(f"{library}/resnet18")
    assert "names and shapes" in command.unchecked("torchvision/vgg11_bn")
    with pytest.raises(ValueError, match=r"shape .2, 4., but expected .2, 5."):
        command.compared(np.zeros((2, 5)), np.zeros((2, 4)))


@pytest.mark.slow
def test_nothing_is_written_where_a_layer_is_wrong(file, convattn_command, monkeypatch):
    right = command.share
    monkeypatch.setattr(command, "share", lambda layer: 1e9 * right(layer))
    folder, images = file.parent, file.parent / "images.npy"
    names = ("--network", file, "--architecture", NAME, "--images", images)
    done = convattn_command("convert", *names, "--stablehlo", folder / "net.hlo")
    assert done.code == 1
    assert "NOT WITHIN its derived bound" in done.out
    assert "FAILED: nothing written" in done.out
    assert sorted(path.name for path in folder.iterdir()) == ["images.npy", "net.safetensors"]


@pytest.mark.slow
def test_logits_that_overflow_and_a_wrong_fold_are_refused(file, convattn_command, monkeypatch):
    arrays = {name: array.astype(np.float32) for name, array in state_dict(NAME).items()}
    overflowing = arrays | {"fc.weight": arrays["fc.weight"] * np.float32(1e38)}
    names = ("--network", file, "--architecture", NAME, "--images", file.parent / "images.npy")
    write_file(file, write_safetensors(overflowing, {}))
    done = convattn_command("convert", *names, "--json", file.parent / "net.json")
    assert done.code == 2
    assert "expected finite numbers" in done.err
    write_file(file, write_safetensors(arrays, {}))
    fold = network_file.fold_batch_norm
    wrong = lambda *parts: fold(*parts[:5], parts[5] + 0.01, *parts[6:])  # noqa: E731
    monkeypatch.setattr(network_file, "fold_batch_norm", wrong)
    done = convattn_command("convert", *names)
    assert done.code == 1
    assert "MORE THAN" in done.out
    assert sorted(path.name for path in file.parent.iterdir()) == ["images.npy", "net.safetensors"]


@pytest.mark.slow
def test_the_limit_form_says_that_it_has_no_bound(file, convattn_command):
    names = ("--network", file, "--architecture", NAME, "--images", file.parent / "images.npy")
    done = convattn_command("convert", *names, "--no-exact")
    assert done.code == 0, done.err
    assert "12 of 12 layers have no derived bound" in done.out


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((2, 3, 8, 8)), "these look like [batch, 3, height, width]: transpose"),
        (np.zeros((8, 8, 3)), "add the batch axis"),
        (np.zeros((2, 8, 8, 3), np.uint8), "expected floats, normalised"),
        (np.zeros((0, 8, 8, 3)), "expected [batch, height, width, 3]"),
        (np.full((1, 8, 8, 3), np.nan), "non-finite"),
    ],
)
def test_other_images_are_refused(file, convattn_command, images, message):
    np.save(file.parent / "images.npy", images)
    options = ("--images", file.parent / "images.npy")
    done = convattn_command("convert", "--network", file, "--architecture", NAME, *options)
    assert done.code == 2
    assert message in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "needs --architecture NAME, but none was given"),
        (("--architecture", "resnet18"), "did you mean torchvision/resnet18 or"),
        (("--architecture", "torchvision/resnet50"), "are not those of torchvision/resnet50"),
        (("--architecture", NAME, "--stride", "2"), "--stride does not go with --network"),
        (("--architecture", NAME, "--output", "net.npz"), "expected a name in .safetensors"),
        (("--architecture", NAME, "--image-size", "0"), "--image-size got"),
        (("--architecture", NAME, "--leak", "1.5", "--image-size", "8"), "conv1: leak=1.5, but"),
        (("--architecture", NAME, "--exact", "--no-exact"), "exclude each other"),
    ],
)
def test_wrong_options_are_refused(file, convattn_command, options, message):
    done = convattn_command("convert", "--network", file, *options)
    assert done.code == 2
    assert message in done.err
    assert not (file.parent / "net.attention.safetensors").exists()


def test_a_cut_file_and_a_pickle_are_refused(file, convattn_command):
    cut, pickled = file.with_name("cut.safetensors"), file.with_name("net.pt")
    cut.write_bytes(file.read_bytes()[:100_000])
    pickled.write_bytes(b"\x80\x04cposix\nsystem\n")
    for path, message in ((cut, "interrupted"), (pickled, "pickle"), (file.parent, "a folder")):
        done = convattn_command("convert", "--network", path, "--architecture", NAME)
        assert done.code == 2
        assert message in done.err
