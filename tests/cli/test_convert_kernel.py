"""``convattn convert kernel`` and ``back``: only what was checked is written, in every layout."""

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import jax.numpy as jnp
import numpy as np
import pytest

import convattn
from convattn.cli.__main__ import main
from convattn.cli.convert_kernel import ConvertKernel
from convattn.constructions.table import CONSTRUCTIONS
from convattn.networks.weights import converted_layer
from convattn.networks.weights.convolution_layout import find_convolution
from convattn.networks.weights.files import read_weights
from convattn.networks.weights.formats import write_npz, write_safetensors

KERNEL = np.random.default_rng(1).integers(-4, 5, (3, 2, 1, 3)).astype(np.float32)
BIAS = np.arange(3, dtype=np.float32)


def save(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    path.write_bytes(write_safetensors(arrays, {}))
    return path


def test_the_command_takes_every_encoding_that_has_a_construction() -> None:
    assert set(get_args(get_type_hints(ConvertKernel)["encoding"])) == set(CONSTRUCTIONS)


@pytest.fixture
def weights(tmp_path):
    """A network in PyTorch's layout, with arrays that are no kernels."""
    return save(
        tmp_path / "net.safetensors",
        {
            "stem.conv.weight": np.ascontiguousarray(KERNEL.transpose(3, 2, 0, 1)),
            "stem.conv.bias": BIAS,
            "fc.weight": np.ones((3, 4), np.float32),
            "mask": np.full(2, -np.inf, np.float32),
        },
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "padding"),
    [
        (("--form", "limit", "--padding", "REFLECT"), "REFLECT"),
        (("--encoding", "enumerated", "--padding", "MEAN"), "MEAN"),
        (("--padding", "SAME", "--stride", 2), "SAME"),
        (("--padding", "SAME_TORCH", "--stride", 2), "SAME_TORCH"),
        (("--padding", "0,2", "0,1", "--patch-size", 2), ((0, 2), (0, 1))),
        (("--border", "register", "--padding", "SAME_TORCH"), "SAME_TORCH"),
    ],
)
def test_a_padding_is_converted(convattn_command, weights, tmp_path, words, padding):
    attention = tmp_path / "attention.npz"
    done = convattn_command(
        "convert", "kernel", weights, "--layer", "stem.conv", *words, "-o", attention
    )
    assert (done.code, done.err) == (0, "")
    layer, images = convattn.load_layer(attention), np.ones((1, 7, 6, 1), np.float32)
    images[:, 2:, 3:] = 4
    options = {"stride": layer.stride, "padding": padding}
    expected = convattn.conv(images, KERNEL, BIAS, **options)
    np.testing.assert_allclose(convattn.apply_attention(layer, images), expected, atol=1e-3)


@pytest.mark.slow
def test_a_causal_mask_is_converted(convattn_command, tmp_path):
    source, target = tmp_path / "taps.safetensors", tmp_path / "attention.npz"
    save(source, {"kernel": np.ascontiguousarray(KERNEL[:, 0])})
    words = ("--layer", "kernel", "--causal", "--padding", "CAUSAL", "-o", target)
    done = convattn_command("convert", "kernel", source, *words)
    assert (done.code, done.err) == (0, "")
    assert convattn.load_layer(target).causal


def test_what_is_no_padding_is_refused(convattn_command, weights):
    for words, message in (
        (("edge",), "write 'EDGE'"),
        (("1,x",), "--padding got '1,x', but expected a name"),
        (("9",), "wider than the kernel reaches"),
    ):
        done = convattn_command(
            "convert", "kernel", weights, "--layer", "stem.conv", "--padding", *words
        )
        assert done.code == 2
        assert message in " ".join(done.err.split())


@pytest.mark.slow
def test_there_and_back(convattn_command, weights, tmp_path):
    attention, figures = tmp_path / "attention.npz", tmp_path / "figures.json"
    words = ("--layer", "stem.conv", "--patch-size", 2, "-o", attention, "--json", figures)
    done = convattn_command("convert", "kernel", weights, *words)
    assert (done.code, done.err) == (0, "")
    assert "stem.conv.weight (3, 2, 1, 3), stored as oihw (told from the name 'weight')" in done.out
    assert "within the derived bound" in done.out
    layer = convattn.load_layer(attention)
    expected = convattn.conv_to_attention(KERNEL, BIAS, patch_size=2)
    np.testing.assert_array_equal(layer.output, expected.output)
    document = json.loads(figures.read_text())
    assert document["written"] is True
    (comparison,) = document["comparisons"]
    assert comparison["passed"]
    assert 0 <= comparison["error"] <= comparison["bound"] < 0.01
    back = tmp_path / "back.safetensors"
    words = ("--kernel-size", 3, 2, "-o", back, "--layout", "oihw")
    done = convattn_command(
        "convert", "back", attention, *words, "--layer", "stem.conv", "--json", figures
    )
    assert (done.code, done.err) == (0, "")
    document = json.loads(figures.read_text())
    assert document["written"] is True
    assert document["tolerance_is_derived"]
    assert 0 <= document["distance"] <= document["tolerance"] < 1e-3
    convolution = find_convolution(read_weights(back), "stem.conv")
    # Each entry is a mean of values that are off by less than the bound of a map entry.
    assert np.abs(convolution.kernel - KERNEL).max() <= document["tolerance"] * np.linalg.norm(
        KERNEL
    )
    np.testing.assert_array_equal(convolution.bias, BIAS)


@pytest.mark.slow
def test_a_one_hot_layer_goes_there_and_back_without_a_difference(convattn_command, tmp_path):
    kernel = tmp_path / "one.kernel.npy"
    np.save(kernel, KERNEL[:, 0])
    done = convattn_command(
        "convert", "kernel", kernel, "--form", "limit", "--encoding", "quadratic"
    )
    assert done.code == 0
    assert "largest difference 0, equal" in done.out
    layer = tmp_path / "one.kernel.attention.safetensors"
    done = convattn_command("convert", "back", layer, "--kernel-size", 3)
    assert done.code == 0
    back = read_weights(tmp_path / "one.kernel.attention.convolution.safetensors")
    np.testing.assert_array_equal(back["kernel"], KERNEL[:, 0], strict=True)


@pytest.mark.slow
def test_a_layer_with_heads_far_away_is_no_small_convolution(convattn_command, tmp_path):
    kernel = np.zeros((9, 1, 1), np.float32)
    kernel[[0, 3, 4, 5, 8], 0, 0] = [1, 2, 3, 4, 5]
    layer = convattn.conv_to_attention(kernel, form="limit")
    convattn.save_layer(layer, tmp_path / "far.safetensors")
    done = convattn_command("convert", "back", tmp_path / "far.safetensors", "--kernel-size", 3)
    assert done.code == 1
    assert "pixels: 0, bias 0, within" in done.out
    assert "heads look beyond the kernel" in done.out
    options = ("--kernel-size", 3, "--tolerance", 0.9)
    done = convattn_command("convert", "back", tmp_path / "far.safetensors", *options)
    assert done.code == 0


@pytest.mark.slow
@pytest.mark.parametrize("shift", [60, 10**5])
def test_heads_that_look_elsewhere_on_larger_images(convattn_command, tmp_path, monkeypatch, shift):
    """An entry for a shift of 60 pixels, and for one beyond all images that are looked at."""
    monkeypatch.setattr("convattn.networks.far_shifts.MAX_SCORES", 2**12)
    layer = convattn.conv_to_attention(KERNEL[:, 0], form="limit")
    scores: Any = layer.encoding
    far = jnp.zeros((3, 1)).at[1].set(2 * scores.values.max())
    changed = replace(
        scores, values=jnp.hstack([scores.values, far]), offsets=(*scores.offsets, (shift,))
    )
    convattn.save_layer(replace(layer, encoding=changed), tmp_path / "far.safetensors")
    figures = tmp_path / "figures.json"
    words = ("--kernel-size", 3, "--json", figures, *(("--tolerance", 1) if shift > 60 else ()))
    done = convattn_command("convert", "back", tmp_path / "far.safetensors", *words)
    sides = json.loads(figures.read_text())["judged_up_to"]
    assert (done.code, sides is None) == ((1, True) if shift == 60 else (0, False))
    assert ("pixels heads look where a convolution does not" in done.out) == (shift == 60)
    said = f"judged on images of up to {tuple(sides or ())} pixels alone"
    assert (said in done.out) == (shift > 60)


@pytest.mark.slow
def test_what_same_means_is_said_of_a_strided_kernel_of_pytorch(convattn_command, tmp_path):
    weights = save(tmp_path / "conv.safetensors", {"weight": np.ones((4, 3, 3, 3), np.float32)})
    command = ("convert", "kernel", weights, "--stride", 2, "--form", "limit")
    for more, said in (((), True), (("--padding", "SAME_TORCH"), False)):
        done = convattn_command(*command, *more)
        assert done.code == 0
        assert ("give --padding SAME_TORCH" in done.out) is said


@pytest.fixture(scope="module")
def layouts(tmp_path_factory):
    """By layout the command's exit code, what it printed, and the file that it wrote."""
    folder, results = tmp_path_factory.mktemp("layouts"), {}
    half = save(folder / "half.safetensors", {"kernel": KERNEL.astype(np.float16)})
    for layout in ("convattn", "flax", "torch"):
        target, printed = folder / f"{layout}.safetensors", io.StringIO()
        words = ["--form", "limit", "--format", layout, "--image-size", "3", "4", "-o", str(target)]
        with contextlib.redirect_stdout(printed):
            code = main(["convert", "kernel", str(half), *words])
        results[layout] = code, printed.getvalue(), target
    return results


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "route"),
    [("flax", "flax.nnx.MultiHeadAttention"), ("torch", "the formula of torch.nn.Multihead")],
)
def test_other_layouts_widen_half_kernels(layouts, write, route):
    code, printed, target = layouts[write]
    assert code == 0
    assert route in printed
    assert "equal" in printed
    assert {array.dtype for array in read_weights(target).arrays.values()} == {np.dtype("float32")}


def test_what_is_beside_a_kernel_is_ignored_only_by_name(convattn_command, tmp_path):
    weights = save(tmp_path / "net.safetensors", {"c.kernel": KERNEL, "c.gain": BIAS})
    done = convattn_command("convert", "kernel", weights, "--layer", "c")
    assert (done.code, "--ignore c.gain" in done.err) == (2, True)
    done = convattn_command("convert", "kernel", weights, "--layer", "c", "--ignore", "c.gain")
    assert (done.code, done.err) == (0, "")


@pytest.mark.slow
def test_a_kernel_that_looks_like_pytorchs_is_named_once(convattn_command, tmp_path):
    weights = save(tmp_path / "net.safetensors", {"kernel": np.ones((8, 1, 3, 3), np.float32)})
    done = convattn_command("convert", "kernel", weights, "--form", "limit")
    assert done.code == 0
    (line,) = [line for line in done.out.splitlines() if line.startswith("warning: ")]
    assert line.endswith("3 × 3 taps of 1 channels in and 8 out: then give --layout oihw")


@pytest.mark.slow
def test_a_kernel_of_mlx_comes_back(convattn_command, tmp_path):
    stored = np.ascontiguousarray(KERNEL.transpose(3, 0, 1, 2))
    weights, layer, back = (tmp_path / f"{name}.safetensors" for name in ("mlx", "layer", "back"))
    weights.write_bytes(write_safetensors({"c.weight": stored}, {"format": "mlx"}))
    assert convattn_command("convert", "kernel", weights, "-o", layer).code == 0
    words = ("--kernel-size", 3, 2, "--layout", "ohwi", "-o", back)
    assert convattn_command("convert", "back", layer, *words, "--layer", "c").code == 0
    file = read_weights(back)
    assert file.metadata["format"] == "mlx"
    np.testing.assert_allclose(file["c.weight"], stored, atol=1e-4)


def test_a_bias_from_another_file_settles_which_it_is(convattn_command, tmp_path):
    weights = save(tmp_path / "net.safetensors", {"c.w": KERNEL, "c.b": BIAS})
    other = tmp_path / "bias.npy"
    np.save(other, 2 * BIAS)
    done = convattn_command("convert", "kernel", weights, "--layout", "hwio", "--bias", other)
    assert (done.code, done.err) == (0, "")
    layer = convattn.load_layer(tmp_path / "net.attention.safetensors")
    np.testing.assert_array_equal(layer.bias, 2 * BIAS)


def test_a_layer_that_is_not_the_convolution_is_not_written(
    convattn_command, weights, tmp_path, monkeypatch
):
    """A construction with one wrong entry: exit 1, the figures say so, the file is as it was."""
    target, figures = tmp_path / "out.safetensors", tmp_path / "figures.json"
    target.write_bytes(b"old")
    right = converted_layer.conv_to_attention

    def wrong(kernel, *args, **options):
        changed = kernel.copy()
        changed[0, 0, 0, 0] += 0.01
        return right(changed, *args, **options)

    monkeypatch.setattr(converted_layer, "conv_to_attention", wrong)
    words = ("--layer", "stem.conv", "-o", target, "--json", figures)
    done = convattn_command("convert", "kernel", weights, *words)
    assert done.code == 1
    assert "NOT WITHIN the derived bound" in done.out
    assert "FAILED: nothing written" in done.out
    assert json.loads(figures.read_text())["written"] is False
    assert target.read_bytes() == b"old"


@pytest.mark.slow
def test_a_layer_that_is_no_convolution_is_written_only_when_asked(convattn_command, tmp_path):
    layer, target = tmp_path / "layer.npz", tmp_path / "conv.npz"
    convattn.save_layer(
        convattn.conv_to_attention(KERNEL[:, 0], encoding="quadratic", sharpness=0.5), layer
    )
    words = ("convert", "back", layer, "--kernel-size", 3, "-o", target)
    done = convattn_command(*words)
    assert done.code == 1
    assert "MORE THAN what rounding accounts for" in done.out
    assert not target.exists()
    done = convattn_command(*words, "--tolerance", 1)
    assert done.code == 0
    assert target.exists()


@pytest.mark.slow
def test_a_layer_whose_rounding_hides_all_is_written_only_when_asked(convattn_command, tmp_path):
    """A leak of 1 - 10⁻⁶ in float32, every map off by a third: 8 would be accounted for."""
    layer, target = tmp_path / "layer.npz", tmp_path / "conv.npz"
    leaky = convattn.conv_to_attention(KERNEL[:, 0], uniform_weight=0.999999)
    scales = np.random.default_rng(0).normal(1, 0.3, (len(leaky.output), 1, 1))
    convattn.save_layer(replace(leaky, output=leaky.output * scales.astype(np.float32)), layer)
    done = convattn_command("convert", "back", layer, "--kernel-size", 3, "-o", target)
    assert done.code == 2
    assert "rounding alone accounts for a distance of" in done.err
    assert not target.exists()


@pytest.mark.slow
def test_a_leak_that_large_images_show_is_no_convolution(convattn_command, tmp_path):
    """On the smallest image it is within what bfloat16 rounds; on 64 × 64 it is off by 0.4."""
    kernel = np.random.default_rng(1).normal(size=(3, 3, 2, 2))
    layer, target = tmp_path / "layer.safetensors", tmp_path / "conv.safetensors"
    words = ("convert", "back", layer, "--kernel-size", 3, 3, "-o", target)
    narrow = jnp.asarray(kernel, jnp.bfloat16)
    leaking: dict[str, Any] = {"form": "limit", "sharpness": 9.0}
    for options, code in ((leaking, 1), ({}, 0)):  # the exact form, whose uniform head cancels
        convattn.save_layer(convattn.conv_to_attention(narrow, **options), layer)
        done = convattn_command(*words)
        assert done.code == code
        assert "of the mean of all pixels" in done.out or not code
        assert "judged on images" not in done.out
    sharper = convattn.conv_to_attention(kernel.astype(np.float32), form="limit", sharpness=30.0)
    convattn.save_layer(sharper, layer)
    done = convattn_command(*words)
    assert done.code == 0
    assert "judged on images of up to" in done.out


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("standardized_conv2d", "standardised"),
        ("StdConv_0", "standardised"),
        ("ws_conv", "standardised"),
        ("ScaledWSConv", "standardised"),
        ("ConvTranspose_0", "transposed"),
    ],
)
def test_another_convolution_is_refused_by_its_name(convattn_command, tmp_path, name, kind):
    """Of the standardised ones, unless the layout is given."""
    source = tmp_path / "net.npz"
    np.savez(source, **{f"{name}.kernel": KERNEL})
    done = convattn_command("convert", "kernel", source, "--layer", name)
    assert done.code == 2
    assert f"is called a {kind} convolution" in done.err
    if name == "StdConv_0":
        done = convattn_command("convert", "kernel", source, "--layer", name, "--layout", "hwio")
        assert done.code == 0


@pytest.mark.slow
def test_wrong_use_exits_2_with_one_line_and_writes_nothing(
    convattn_command, weights, layouts, tmp_path
):
    np.save(tmp_path / "flat.weight.npy", np.ones(3))
    np.save(tmp_path / "plain.npy", KERNEL)
    scalar = tmp_path / "scalar.npz"
    convattn.save_layer(
        convattn.conv_to_attention(KERNEL[:, 0], encoding="scalar", form="limit"), scalar
    )
    ours = layouts["convattn"][-1]
    intact = tmp_path / "whole.npz"
    convattn.save_layer(convattn.conv_to_attention(KERNEL[:, 0]), intact)
    leaky, overflowing = tmp_path / "leaky.npz", tmp_path / "overflowing.npz"
    # Heads of the scalar encoding share their keys, so that their sum leaves float32.
    for path, source, name, value in [
        (leaky, intact, "encoding.leak", 1.5), (overflowing, scalar, "output", 3e38)
    ]:  # fmt: skip
        file = read_weights(source)
        arrays = {**file.arrays, name: np.full_like(file[name], value)}
        path.write_bytes(write_npz(arrays, dict(file.metadata)))
    text = np.array(json.dumps({"bfloat16 arrays": 5}))
    np.savez(tmp_path / "bits.npz", kernel=KERNEL, metadata=text)
    back = ("--kernel-size", 3, "back")
    conv = ("--layer", "stem.conv")
    before = sorted(tmp_path.iterdir())
    for words, message in [
        ([tmp_path / "absent.npy"], "cannot read"),
        ([tmp_path], "cannot read"),
        ([".", *back], "cannot read .: it is a directory"),
        ([ours], "is an attention layer of this library, not a conv"),
        ([leaky, *back], f"{leaky} describes no layer that works: encoding.uniform_weight=1.5"),
        ([overflowing, *back], f"{overflowing}: the nearest kernel of its layer has"),
        ([tmp_path / "bits.npz"], "metadata has 'bfloat16 arrays'=5, but expected a list of names"),
        ([tmp_path / "flat.weight.npy"], "has shape (3,)"),
        ([weights, "--layer", "fc"], "is it a dense layer"),
        ([weights, *conv, "--layout", "hwio"], "is the layout oihw or ohwi?"),
        ([weights, *conv, "--bias", tmp_path / "absent.npy"], "cannot read"),
        ([weights, *conv, "--bias", weights], "--bias got"),
        ([weights, *conv, "--bias", tmp_path / "plain.npy"], "bias.shape=(3, 2, 1, 3)"),
        ([weights, *conv, "--output", "/nowhere/x.npz"], "--output got /nowhere/x.npz"),
        ([weights, *conv, "--output", "x.pt"], "expected a name in .safetensors or .npz"),
        ([weights, *conv, "--json", "/nowhere/x.json"], "--json got /nowhere/x.json"),
        ([weights, *conv, "--stride", 1, 2, 3], "--stride got (1, 2, 3)"),
        ([weights, *conv, "--patch-size", 0], "--patch-size got (0,)"),
        ([weights, *conv, "--image-size", 0], "--image-size got (0,)"),
        ([weights, *conv, "--patch-size", 2, "--image-size", 3], "patch_size=(2, 2) divides"),
        ([weights, *conv, "--uniform-weight", 7], "uniform_weight=7.0, but expected"),
        ([weights, *conv, "--seed", -1], "--seed got -1, but expected an integer ≥ 0"),
        ([weights, *conv, "--format", "flax"], "--format flax needs --image-size"),
        ([scalar, *back], "no tolerance can be derived"),
        ([scalar, "--tolerance", -1, *back], "--tolerance got"),
        ([scalar, "--kernel-size", 0, "back"], "--kernel-size got (0,)"),
        ([weights, *back], "holds no layer of this library"),
    ]:
        command = "back" if words[-1] == "back" else "kernel"
        done = convattn_command("convert", command, *(word for word in words if word != "back"))
        assert done.code == 2, (words, done)
        (line,) = done.err.splitlines()
        assert message in line, line
    assert sorted(tmp_path.iterdir()) == before


def test_a_disk_that_fills_up_leaves_no_half_file(convattn_command, weights, tmp_path, monkeypatch):
    before = sorted(tmp_path.iterdir())

    def fails(source, destination):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fails)
    target = tmp_path / "out.npz"
    done = convattn_command("convert", "kernel", weights, "--layer", "stem.conv", "-o", target)
    assert done.code == 2
    assert "No space left" in done.err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.slow
def test_a_kernel_in_64_bits_is_converted_in_64_bits(tmp_path):
    np.save(tmp_path / "kernel.npy", np.ones((3, 1, 2)))
    words = ["kernel", tmp_path / "kernel.npy", "--json", tmp_path / "f.json"]
    command = [sys.executable, "-m", "convattn.cli", "convert", *map(str, words)]
    subprocess.run(command, check=True)
    figures = json.loads((tmp_path / "f.json").read_text())
    assert figures["comparisons"][0]["dtype"] == "float64"
    assert {array["dtype"] for array in figures["arrays"].values()} == {"float64"}


@pytest.mark.parametrize(
    "clash", [("--output", "kernel.npz"), ("--output", "o.npz", "--json", "o.npz")]
)
def test_one_file_is_not_read_and_written(tmp_path, monkeypatch, capsys, clash):
    monkeypatch.chdir(tmp_path)
    np.savez("kernel.npz", kernel=KERNEL)
    before = Path("kernel.npz").read_bytes()
    assert main(["convert", "kernel", "kernel.npz", *clash]) == 2
    assert "one would overwrite the other" in capsys.readouterr().err
    assert Path("kernel.npz").read_bytes() == before
    assert not Path("o.npz").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [(), ("--form", "limit", "--stride", 2, "--padding", "SAME_TORCH")]
)
def test_two_layers(weights, tmp_path, options):
    target = tmp_path / "two.safetensors"
    words = ["--layers", 2, "-o", target, "--layer", "stem.conv", *options]
    assert main([str(word) for word in ("convert", "kernel", weights, *words)]) == 0
    layers = convattn.load_layer(target)
    images = np.random.default_rng(0).normal(size=(1, 4, 6, 1)).astype(np.float32)
    stride = 2 if options else 1
    expected = convattn.conv(images, KERNEL, BIAS, stride=stride, padding="SAME_TORCH")
    assert np.allclose(layers(images), expected, atol=1e-3)
    assert layers.heads == ((3, 2) if options else (3, 3))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--stride", "2"), "give --padding SAME_TORCH"),
        (("--padding", "EDGE"), "--padding EDGE does not go with --layers 2"),
        (("--encoding", "scalar"), "--encoding does not go with --layers 2"),
    ],
)
def test_what_does_not_go_with_two_layers(weights, capsys, option, message):
    assert main(["convert", "kernel", str(weights), "--layers", "2", *option]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_the_script_that_converts_a_pickle_keeps_its_lines(tmp_path, convattn_command):
    path = tmp_path / "net.pth"
    path.write_bytes(b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n.")
    done = convattn_command("convert", "kernel", path)
    assert done.code == 2
    assert "this script:\n\nimport torch\nfrom safetensors.torch import save_file\n" in done.err
