"""`convattn compile`: networks of functions, what is written, and what is refused."""

import json
from functools import partial

import numpy as np
import pytest

from convattn import known_answers
from convattn.compile.transformer import CompiledTransformer
from convattn.known_answers import NETWORKS, write_suite
from convattn.networks.named import own_network
from convattn.networks.weights.files import read_weights

OWN = """
import jax, jax.numpy as jnp, numpy as np

def network():
    kernel = np.random.default_rng(0).normal(size=(3, 3, 3, 4)).astype("float32")
    def logits(x):
        order = ("NHWC", "HWIO", "NHWC")
        x = jax.lax.conv_general_dilated(x, kernel.astype(x.dtype), (1, 1), "SAME",
                                         dimension_numbers=order, precision="highest")
        return jax.nn.relu(x).mean((1, 2))
    return logits

def smooth():
    return lambda x: jax.nn.silu(x).mean((1, 2))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(OWN)
    np.save("images.npy", np.random.default_rng(1).normal(size=(3, 6, 6, 3)))
    np.save("gray.npy", np.zeros((3, 6, 6, 1)))
    np.save("half.npy", np.zeros((3, 4), np.float16))
    return tmp_path


@pytest.mark.slow
def test_a_network_is_written_with_the_constructors_arguments(folder, convattn_command):
    words = ("--images", "images.npy", "--patch-size", 2, "--json", "out.json")
    done = convattn_command("compile", "own.py:network", *words)
    assert done.code == 0
    numbers = json.loads((folder / "out.json").read_text())
    assert (numbers["passed"], numbers["written"], numbers["same_class"]) == (True, True, 3)
    assert numbers["ratio"] > 1
    file = read_weights(folder / "network.vit.safetensors")
    arguments = json.loads(file.metadata["arguments"])
    assert arguments == numbers["arguments"]
    assert file.arrays["pos_embed"].shape == (1, 10, arguments["embed_dim"])
    assert "3 of 3 images have the same class" in done.out
    assert "is within its derived bound" in done.out


@pytest.mark.parametrize(("moved", "code", "line"), [(0, 0, "(at most"), (1, 1, "ANOTHER NETWORK")])
def test_the_network_is_compared_with_the_logits_it_should_have(
    folder, convattn_command, moved, code, line
):
    network = own_network("own.py:network")
    np.save("logits.npy", network(np.load("images.npy").astype(np.float32)) + moved)
    words = ("--images", "images.npy", "--expected", "logits.npy", "--json", "out.json")
    done = convattn_command("compile", "own.py:network", *words)
    assert done.code == code
    assert line in done.out
    assert (folder / "network.vit.safetensors").exists() == (code == 0)
    assert json.loads((folder / "out.json").read_text())["expected"]["passed"] == (code == 0)


def test_constants_for_training(folder, convattn_command):
    words = ("--images", "images.npy", "--for-training", "--json", "out.json")
    done = convattn_command("compile", "own.py:network", *words)
    assert done.code == 0
    numbers = json.loads((folder / "out.json").read_text())
    assert numbers["constants"]["norm"] < 1e3
    assert 1e-6 < numbers["difference"] <= numbers["construction"] + numbers["rounding"]
    assert (folder / "network.vit.safetensors").exists()


def test_the_size_alone(folder, convattn_command):
    words = ("--image-size", 32, "--size-only", "--json", "out.json", "--num-heads", 3)
    done = convattn_command("compile", "own.py:network", *words)
    assert done.code == 0
    assert "4 blocks" in done.out
    assert json.loads((folder / "out.json").read_text())["num_heads"] == 3
    assert not (folder / "network.vit.safetensors").exists()


def test_nothing_is_written_where_a_logit_is_outside_its_bound(
    folder, convattn_command, monkeypatch
):
    right = CompiledTransformer._streams

    def wrong(self, rows):
        streams = right(self, rows)
        return streams._replace(logits=streams.logits + 1)

    monkeypatch.setattr(CompiledTransformer, "_streams", wrong)
    done = convattn_command("compile", "own.py:network", "--images", "images.npy")
    assert done.code == 1
    assert "is NOT within" in done.out
    assert "FAILED: nothing written" in done.out
    assert not (folder / "network.vit.safetensors").exists()


WRONG = {
    "a function that is not computed": (["own.py:smooth", "--image-size", 6], "SiLU"),
    "training on noise": (["own.py:network", "--image-size", 6, "--for-training"], "on noise"),
    "training and size": (["own.py:network", "--size-only", "--for-training"], "changes no size"),
    "no network": (["resnet"], "but expected one of"),
    "patches": (["own.py:network", "--image-size", 6, "--patch-size", 4], "does not divide"),
    "size": (["own.py:network"], "tokens, but expected at most 4,096"),
    "both": (["own.py:network", "--images", "images.npy", "--image-size", 6], "is of noise"),
    "logits": (["own.py:network", "--expected", "images.npy"], "--expected needs --images"),
    "half": (
        ["own.py:network", "--images", "images.npy", "--expected", "half.npy"],
        "--expected got half.npy, but expected one array of floats [batch, ...], float32",
    ),
    "channels": (["own.py:network", "--images", "gray.npy"], "6, 6, 1) (--images and"),
    "name": (["own.py:network", "-o", "vit.pt"], "expected a name in .safetensors"),
    "no file": (["own.py:network", "--images", "gone.npy"], "cannot read gone.npy"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_is_refused(name, folder, convattn_command):
    words, message = WRONG[name]
    before = sorted(path.name for path in folder.iterdir())
    done = convattn_command("compile", *words)
    assert done.code == 2
    assert message in done.err
    assert sorted(path.name for path in folder.iterdir() if path.suffix) == before


@pytest.mark.slow
def test_the_suite_is_written_and_compared_with_the_recorded_digests(
    folder, convattn_command, monkeypatch
):
    monkeypatch.setattr(known_answers, "write_suite", partial(write_suite, networks=NETWORKS[:1]))
    done = convattn_command("compile", "--suite", "suite", "--json", "out.json")
    assert done.code == 0
    assert "2 of 2 files have the recorded digest" in done.out
    assert json.loads((folder / "out.json").read_text())["recorded"] == 2
    assert (folder / "suite" / "index.html").is_file()


def test_numbers_are_not_written_among_the_files_of_the_suite(folder, convattn_command):
    suite = folder / "suite"
    suite.mkdir()
    (suite / "suite.json").write_text("kept")
    (folder / "link").symlink_to(suite)
    (folder / "other.json").symlink_to(suite / "suite.json")
    for json_file in ("suite/suite.json", "suite/new.json", "link/../suite/x", "other.json"):
        done = convattn_command("compile", "--suite", "link", "--json", json_file)
        assert done.code == 2
        assert f"--json got {json_file}, but expected a name outside of link" in done.err
        assert len(done.err.splitlines()) == 1
    assert [path.name for path in suite.iterdir()] == ["suite.json"]
    assert (suite / "suite.json").read_text() == "kept"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--suite", "suite", "own.py:network"), "no NETWORK"),
        (("--suite", "suite", "--patch-size", "2"), "no --patch-size"),
        (("--suite", "."), "holds "),
        (("--suite", "own.py"), "own.py is a file"),
        (("--suite", ""), "--suite got '', but expected a directory"),
        (("--suite", "suite", "--json", "suite"), "a name outside of suite"),
        (("--suite", "suite", "--json", "suite/suite.json"), "a name outside of suite"),
        (("--suite", "suite/own", "--json", "suite"), "a name outside of suite/own"),
        ((), "no NETWORK and no --suite"),
    ],
)
def test_wrong_use_of_the_suite_is_refused(folder, convattn_command, words, message):
    done = convattn_command("compile", *words)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.splitlines()) == 1
    assert not (folder / "suite").exists()
