import io
import json
import math
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

import convattn
from convattn.cli import main


@dataclass(frozen=True)
class Part:
    table: numpy.ndarray
    absent: numpy.ndarray | None = None
    size: tuple[int, ...] = field(default=(2, 3), metadata={"static": True})


@dataclass(frozen=True)
class Layer:
    encoding: Part
    value: numpy.ndarray
    stride: int = field(default=1, metadata={"static": True})
    heads = 10


@pytest.fixture
def library(monkeypatch):
    """A library whose layer gives what ``offset`` says besides the convolution."""
    jax = pytest.importorskip("jax")
    for cls, fields in ((Part, ["table", "absent"]), (Layer, ["encoding", "value"])):
        if cls not in _registered:
            static = ["size"] if cls is Part else ["stride"]
            jax.tree_util.register_dataclass(cls, fields, static)
            _registered.add(cls)
    fake = SimpleNamespace(offset=0.25, arguments=None, refusal=None)

    def conv_to_attention(kernel, bias, **arguments):
        if fake.refusal:
            raise ValueError(fake.refusal)
        fake.arguments = (kernel.shape, None if bias is None else bias.shape, arguments)
        return Layer(Part(numpy.ones((10, 5), numpy.float32)), numpy.zeros((10, 4)))

    monkeypatch.setattr(convattn, "conv_to_attention", conv_to_attention)
    monkeypatch.setattr(convattn, "conv", lambda images, *a, **k: images + 1)
    monkeypatch.setattr(
        convattn,
        "apply_attention",
        lambda layer, images: images + 1 + fake.offset,
    )
    return fake


_registered: set[type] = set()


def save(path, array):
    numpy.save(path, array)
    return path


def test_convert_saves_the_layer_and_compares(convattn_command, library, tmp_path):
    kernel = save(tmp_path / "k.npy", numpy.ones((3, 5, 2, 4), numpy.float32))
    bias = save(tmp_path / "b.npy", numpy.ones(4, numpy.float32))
    words = "--patch-size 2 3 --encoding scalar --exact --leak 0.25 --groups 3 --head-dim 4"
    target, figures = tmp_path / "layer.npz", tmp_path / "figures.json"
    options = ("--bias", bias, "--output", target, "--json", figures, "--stride", 2)
    done = convattn_command("convert", kernel, *options, "--dilation", 2, 1, *words.split())
    assert done.code == 0
    assert library.arguments == (
        (3, 5, 2, 4),
        (4,),
        {
            "patch_size": (2, 3),
            "encoding": "scalar",
            "exact": True,
            "leak": 0.25,
            "stride": 2,
            "dilation": (2, 1),
            "groups": 3,
            "head_dim": 4,
        },
    )
    assert "kernel (3, 5, 2, 4) -> 10 heads" in done.out
    assert "encoding.table  (10, 5)  float32" in done.out
    with numpy.load(target, allow_pickle=False) as archive:
        assert sorted(archive.files) == ["encoding.table", "metadata", "value"]
        assert archive["encoding.table"].shape == (10, 5)
        metadata = json.loads(str(archive["metadata"]))
    assert metadata["arguments"]["encoding"] == "scalar"
    assert metadata["layer"] == {
        "class": "Layer",
        "encoding": {"class": "Part", "absent": None, "size": [2, 3]},
        "stride": 1,
    }
    document = json.loads(figures.read_text())
    assert document["heads"] == 10
    assert document["arrays"]["value"] == {"shape": [10, 4], "dtype": "float64"}
    assert document["comparison"]["image"] == [1, 6, 9, 6]
    assert document["comparison"]["max_abs_difference"] == pytest.approx(0.25, abs=1e-6)


def test_convert_by_default(convattn_command, library, tmp_path):
    kernel = save(tmp_path / "k.npy", numpy.ones((3, 1, 1), numpy.float16))
    library.offset = math.nan
    done = convattn_command("convert", kernel, "--no-exact")
    assert done.code == 1  # not finite
    assert library.arguments[2]["exact"] is False
    assert library.arguments[1:] == (None, {**library.arguments[2]})
    assert (tmp_path / "k.npz").exists()
    convattn_command("convert", kernel)
    assert library.arguments[2]["exact"] is None
    assert library.arguments[2]["patch_size"] == 1


def test_wrong_use_of_convert_exits_2_with_one_line(convattn_command, library, tmp_path):
    kernel = save(tmp_path / "k.npy", numpy.ones((3, 3, 1, 1), numpy.float32))
    buffer = io.BytesIO()
    numpy.savez(buffer, a=1)
    (tmp_path / "archive.npy").write_bytes(buffer.getvalue())
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "empty.npy").touch()
    numpy.save(tmp_path / "object.npy", numpy.array([{}]), allow_pickle=True)
    save(tmp_path / "names.npy", numpy.array(["a"]))
    save(tmp_path / "flat.npy", numpy.ones(3))
    for words, message in [
        ([tmp_path / "absent.npy"], "No such file"),
        ([tmp_path / "archive.npy"], "expected one .npy array"),
        ([tmp_path / "text.npy"], "is not a .npy file"),
        ([tmp_path / "empty.npy"], "is not a .npy file"),
        ([tmp_path / "object.npy"], "is not a .npy file"),
        ([tmp_path / "names.npy"], "expected one .npy array of numbers"),
        ([tmp_path / "flat.npy"], "has shape (3,)"),
        ([kernel, "--bias", tmp_path / "absent.npy"], "--bias: cannot read"),
        ([kernel, "--output", "/nowhere/x.npz"], "--output got /nowhere/x.npz"),
        ([kernel, "--json", "/nowhere/x.json"], "--json got /nowhere/x.json"),
        ([kernel, "--exact", "--no-exact"], "exclude each other"),
        ([kernel, "--stride", 1, 2, 3], "--stride got (1, 2, 3)"),
        ([kernel, "--patch-size", 0], "--patch-size got (0,)"),
    ]:
        done = convattn_command("convert", *words)
        assert done.code == 2, words
        (line,) = done.err.splitlines()
        assert message in line
    library.refusal = "leak=7, but should be between 0 and 1"
    done = convattn_command("convert", kernel)
    assert (done.code, done.err) == (2, "convattn convert: leak=7, but should be between 0 and 1\n")
    assert not (tmp_path / "k.npz").exists()


def test_convert_with_the_library_itself(tmp_path):
    jax = pytest.importorskip("jax")
    weights = numpy.random.default_rng(1).integers(-4, 5, (3, 3, 2, 4)).astype(numpy.float32)
    kernel = save(tmp_path / "k.npy", weights)
    words = ["convert", str(kernel), "--patch-size", "2", "--json", str(tmp_path / "f.json")]
    assert main(words) == 0
    expected = convattn.conv_to_attention(weights, patch_size=2)
    with numpy.load(tmp_path / "k.npz", allow_pickle=False) as archive:
        saved = {name: archive[name] for name in archive.files}
    metadata = json.loads(str(saved.pop("metadata")))
    leaves = [numpy.asarray(leaf) for leaf in jax.tree_util.tree_leaves(expected)]
    assert len(saved) == len(leaves)
    for leaf, array in zip(leaves, saved.values(), strict=True):
        assert leaf.dtype == array.dtype
        assert numpy.array_equal(leaf, array)
    assert metadata["layer"]["patch_size"] == [2, 2]
    figures = json.loads((tmp_path / "f.json").read_text())
    assert figures["heads"] == expected.heads == 10
    images = numpy.random.default_rng(0).standard_normal(figures["comparison"]["image"])
    images = images.astype(numpy.float32)
    gap = convattn.apply_attention(expected, images) - convattn.conv(images, weights)
    assert figures["comparison"]["max_abs_difference"] == float(abs(gap).max())


def test_a_kernel_in_64_bits_is_converted_in_64_bits(tmp_path):
    kernel = save(tmp_path / "k.npy", numpy.ones((3, 1, 2)))
    words = ["-m", "convattn.cli", "convert", str(kernel), "--json", str(tmp_path / "f.json")]
    subprocess.run([sys.executable, *words], check=True)
    figures = json.loads((tmp_path / "f.json").read_text())
    assert figures["comparison"]["dtype"] == "float64"
    assert {array["dtype"] for array in figures["arrays"].values()} == {"float64"}


@pytest.mark.parametrize("clash", [("--output", "k.npy"), ("--output", "o.npz", "--json", "o.npz")])
def test_one_file_is_not_read_and_written(tmp_path, monkeypatch, capsys, clash):
    monkeypatch.chdir(tmp_path)
    numpy.save("k.npy", numpy.ones((3, 3, 1, 1), numpy.float32))
    before = Path("k.npy").read_bytes()
    assert main(["convert", "k.npy", *clash]) == 2
    assert "one would overwrite the other" in capsys.readouterr().err
    assert Path("k.npy").read_bytes() == before
    assert not Path("o.npz").exists()


def test_a_directory_is_no_kernel(tmp_path, capsys):
    assert main(["convert", str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err
