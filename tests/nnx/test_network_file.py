"""Converted checkpoints as files, and as StableHLO."""

import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from flax import nnx
from nnx.test_checkpoint import state_dict

import convattn as ca
from convattn.files import write_file
from convattn.networks import Linear, Mean, save_network
from convattn.networks.weights.files import read_weights
from convattn.networks.weights.formats import write_safetensors
from convattn.nnx import checkpoint, export_network, fold_batch_norms, to_attention
from convattn.nnx.architectures import ARCHITECTURES, Identity, MobileNetV2, ResNet
from convattn.nnx.network_file import model_bytes, normalised

SMALL = {
    "small/resnet": partial(ResNet, (1, 1, 1, 1), False),
    "small/mobilenet": MobileNetV2,
}
IMAGES = jnp.asarray(np.random.default_rng(1).normal(size=(2, 32, 33, 3)))


@pytest.fixture(autouse=True)
def _small_ones(monkeypatch):
    for name, made in SMALL.items():
        monkeypatch.setitem(ARCHITECTURES, name, made)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The file of a small ResNet, and its logits as attention and as convolutions."""
    path = tmp_path_factory.mktemp("model") / "net.safetensors"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ARCHITECTURES, "small/resnet", SMALL["small/resnet"])
        model = checkpoint.from_state_dict(state_dict("small/resnet"), "small/resnet")
    attention, _ = to_attention(fold_batch_norms(model), IMAGES)
    write_file(path, model_bytes(attention, "small/resnet", 10, exact=True, head_dim=None))
    return path, attention(IMAGES), model(IMAGES)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_folding_leaves_the_function_and_no_batch_norm(name):
    model = checkpoint.from_state_dict(state_dict(name), name)
    pairs = len(list(normalised(model)))
    norms = [m for _, m in nnx.iter_graph(model) if isinstance(m, nnx.BatchNorm)]
    assert pairs == len(norms) > 0
    folded = fold_batch_norms(model)
    assert not [m for _, m in nnx.iter_graph(folded) if isinstance(m, nnx.BatchNorm)]
    assert len([m for _, m in nnx.iter_graph(folded) if isinstance(m, Identity)]) >= pairs
    expected, found = (
        jax.jit(partial(type(each).__call__, each))(IMAGES) for each in (model, folded)
    )
    assert jnp.abs(found - expected).max() <= 1e-12 * jnp.abs(expected).max()
    assert jnp.abs(found - expected).max() < jnp.abs(expected - expected.mean()).max()


@pytest.mark.slow
def test_a_file_runs_without_naming_the_architecture(file):
    path, attention, convolutions = file
    model = ca.load_network(path)
    assert_equal(model(IMAGES), attention)
    assert jnp.abs(attention - convolutions).max() < 1e-12 * jnp.abs(convolutions).max()
    assert jnp.ptp(convolutions) > 0.1  # and they do depend on the images
    assert jnp.abs(convolutions[0] - convolutions[1]).max() > 1e-3


def test_a_negative_variance_names_the_batch_norm():
    model = ARCHITECTURES["torchvision/resnet18"](classes=2, rngs=nnx.Rngs(0))
    model.layer2[1].bn2.var[...] = model.layer2[1].bn2.var[...].at[3].set(-1.0)
    with pytest.raises(ValueError, match=r"layer2\.1\.bn2: variance has the entry -1\.0"):
        fold_batch_norms(model)


def test_a_file_of_steps_is_a_function_too(tmp_path):
    steps = (Mean(), Linear(jnp.ones((3, 2)), jnp.zeros(2)))
    save_network(steps, tmp_path / "net.safetensors")
    network = ca.load_network(tmp_path / "net.safetensors")
    assert network(jnp.ones((1, 4, 4, 3))).tolist() == [[3, 3]]


@pytest.mark.slow
def test_stablehlo_runs_without_this_library(file, tmp_path):
    path, attention, _ = file
    content = export_network(ca.load_network(path), IMAGES.shape, IMAGES.dtype)
    (tmp_path / "net.hlo").write_bytes(content)
    np.save(tmp_path / "images.npy", IMAGES)
    program = """
import jax, numpy, sys
jax.config.update("jax_enable_x64", True)
exported = jax.export.deserialize(bytearray(open("net.hlo", "rb").read()))
numpy.save("logits.npy", exported.call(numpy.load("images.npy")))
assert exported.platforms == ("cpu", "cuda", "tpu")
assert not [name for name in sys.modules if name.startswith(("convattn", "flax"))]
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    found = np.load(tmp_path / "logits.npy")
    assert np.abs(found - attention).max() <= 1e-12 * np.abs(attention).max()


@pytest.mark.slow
def test_float64_is_not_cut_while_64_bit_types_are_off(file):
    with jax.enable_x64(False), pytest.raises(ValueError, match="64-bit types are off"):
        ca.load_network(file[0])


NO_CLASSES = (
    '{"architecture": "torchvision/resnet18", "classes": 0, "exact": true, "head_dim": null}'
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"conv1.output": None}, "conv1.output is missing"),
        ({"conv9.output": np.ones(3)}, "conv9.output is unexpected"),
        ({"conv1.output": np.ones((2, 3))}, r"conv1.output has shape \(2, 3\), expected \(50, 3"),
        ({"fc.bias": np.full(10, np.nan)}, "10 non-finite entries"),
        ({"fc.bias": np.arange(10)}, "fc.bias.dtype=int64, but expected floats"),
        ({"model": '{"architecture": "x"}'}, "its description is damaged"),
        ({"model": "["}, "its description is damaged"),
        ({"model": NO_CLASSES}, "its description is damaged .ZeroDivisionError"),
        ({"version": "9"}, "holds no network of this library"),
    ],
)
def test_damaged_files_are_refused(file, tmp_path, change, message):
    whole = read_weights(file[0])
    arrays, text = dict(whole.arrays), dict(whole.metadata)
    for name, value in change.items():
        if isinstance(value, str):
            text[name] = value
        elif value is None:
            del arrays[name]
        else:
            arrays[name] = value
    write_file(tmp_path / "net.safetensors", write_safetensors(arrays, text))
    with pytest.raises(ValueError, match=message):
        ca.load_network(tmp_path / "net.safetensors")


def test_a_name_in_place_of_a_file_is_explained():
    with pytest.raises(FileNotFoundError, match=r"no such file, .*loaded from files, not by their"):
        ca.load_network("nope")
