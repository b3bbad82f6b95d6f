import base64
import json
import subprocess
import sys

import numpy as np
import pytest
from diagnosis.small_transformers import images, timm_dict

import convattn as ca
from convattn.diagnosis import diagnose
from convattn.diagnosis.models import measure_model
from convattn.files import write_file
from convattn.networks.weights.formats import write_safetensors


@pytest.fixture
def net(tmp_path):
    write_file(tmp_path / "net.safetensors", write_safetensors(timm_dict(), {}))
    np.save(tmp_path / "images.npy", images())
    return tmp_path / "net.safetensors"


@pytest.mark.slow
def test_numbers_tables_and_pictures(net, tmp_path, convattn_command):
    out = tmp_path / "new" / "pictures"
    options = ("--images", tmp_path / "images.npy", "--heads", 2, "--kernel-size", 1, 3)
    files = ("--json", tmp_path / "out.json", "--output-dir", out, "--query", 1, 2)
    files += ("--html", tmp_path / "page.html")
    done = convattn_command("diagnose", net, *options, *files)
    assert done.code == 0
    expected = diagnose(net, images(), heads=2, kernel_size=(1, 3)).as_dict()
    assert json.loads((tmp_path / "out.json").read_text()) == json.loads(json.dumps(expected))
    assert sorted(path.name for path in out.iterdir()) == [
        *("layer01.png", "layer01.svg", "layer02.png", "layer02.svg")
    ]
    assert "row 1, column 2" in (out / "layer01.svg").read_text()
    assert str(out / "layer02.png") in done.out
    page = (tmp_path / "page.html").read_text()
    for number in (1, 2):
        assert base64.b64encode((out / f"layer0{number}.svg").read_bytes()).decode() in page
    assert "1 × 3" in done.out
    assert "3 and 4" in " ".join(done.out.split())  # S.finite's numbers for three taps
    assert "Names: timm" in done.out


@pytest.mark.slow
def test_layers_keep_their_numbers(net, tmp_path, convattn_command):
    size = ("--image-size", 8, 12)
    done = convattn_command(
        "diagnose", net, "--heads", 2, *size, "--layer", 2, "--output-dir", tmp_path / "p"
    )
    assert done.code == 0
    assert {path.stem for path in (tmp_path / "p").iterdir()} == {"layer02"}
    assert "No images: one image of zeros" in done.out
    assert "layer 1 " not in done.out


def test_bytes_are_normalised(net, tmp_path, convattn_command, monkeypatch):
    pixels = np.random.default_rng(0).integers(0, 256, (5, 8, 12, 3)).astype(np.uint8)
    np.save(tmp_path / "bytes.npy", pixels)
    received = {}

    def spy(model, images, **options):
        received["images"] = images
        return measure_model(model, images, **options)

    monkeypatch.setattr("convattn.diagnosis.models.measure_model", spy)
    numbers = ("--mean", 0.1, 0.2, 0.3, "--std", 0.5, "--count", 4)
    done = convattn_command(
        "diagnose", net, "--images", tmp_path / "bytes.npy", "--heads", 2, *numbers
    )
    assert done.code == 0
    assert "with mean 0.1 0.2 0.3 and std 0.5" in done.out
    assert "4 images." in done.out
    assert np.array_equal(received["images"], (pixels[:4] / 255 - np.array([0.1, 0.2, 0.3])) / 0.5)


def test_a_folder_of_images_is_read(tmp_path, convattn_command):
    pillow = pytest.importorskip("PIL.Image")
    for name in ("train/cat/1", "train/dog/1", "test/cat/2", "test/dog/2"):
        path = tmp_path / "set" / f"{name}.png"
        path.parent.mkdir(parents=True)
        pillow.new("RGB", (12, 8), (1, 2, 3)).save(path)
    write_file(tmp_path / "net.safetensors", write_safetensors(timm_dict(), {}))
    words = ("--images", tmp_path / "set", "--heads", 2)
    assert convattn_command("diagnose", tmp_path / "net.safetensors", *words).code == 0


@pytest.mark.slow
def test_a_stored_layer_and_attention_maps(tmp_path, convattn_command):
    ca.save_layer(ca.conv_to_attention(np.ones((3, 3, 1, 1))), tmp_path / "layer.npz")
    done = convattn_command("diagnose", tmp_path / "layer.npz", "--image-size", 6)
    assert done.code == 0
    assert "Positions alone decide" in done.out
    np.save(tmp_path / "maps.npy", np.full((2, 3, 6, 6), 1 / 6))
    done = convattn_command("diagnose", tmp_path / "maps.npy", "--image-size", 2, 3)
    assert done.code == 0
    assert "without value maps" in done.out


@pytest.mark.slow
def test_a_layer_of_64_bits_is_read_where_these_are_off(tmp_path):
    ca.save_layer(ca.conv_to_attention(np.ones((3, 3, 1, 1))), tmp_path / "layer.npz")
    words = ["diagnose", tmp_path / "layer.npz", "--image-size", 4]
    words = [sys.executable, "-m", "convattn.cli", *map(str, words)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


NET = ("net.safetensors", "--heads", 2)
WRONG = {
    "no file": (["none.npz"], "cannot read"),
    "heads": (["net.safetensors", "--heads", 3], "heads=3, but expected a divisor of 8"),
    "rotary": ([*NET, "--rotary", "timms"], "rotary='timms', but expected timm, dinov3 or none"),
    "query alone": (["net.safetensors", "--query", 0, 0], "give --output-dir or --html too"),
    "count": (["net.safetensors", "--count", 0], "--count got 0"),
    "kernel": (["net.safetensors", "--kernel-size", 0], "--kernel-size got (0,)"),
    "channels first": ([*NET, "--images", "first.npy"], "images.transpose(0, 2, 3, 1)"),
    "integers": ([*NET, "--images", "int.npy"], "but expected floats, or bytes"),
    "mean": (
        [*NET, "--images", "bytes.npy", "--mean", 0.5, 0.5],
        "--mean and --std got 2 and 1 numbers, but expected one or 3",
    ),
    "std": ([*NET, "--images", "bytes.npy", "--std", 0], "expected numbers > 0"),
    "not finite": ([*NET, "--images", "bytes.npy", "--mean", "nan"], "and finite ones for both"),
    "count alone": (["net.safetensors", "--count", 3], "--count goes with --images only"),
    "mean alone": (["net.safetensors", "--mean", 0.3], "--mean goes with --images only"),
    "no images": ([*NET, "--images", "gone.tar.xz"], "but nothing is there"),
    "no file of images": ([*NET, "--images", "gone.npy"], "cannot read gone.npy"),
    "several arrays": ([*NET, "--images", "net.safetensors"], "expected one array"),
    "output over input": (["net.safetensors", "--json", "net.safetensors"], "would overwrite"),
    "page over input": (["net.safetensors", "--html", "net.safetensors"], "would overwrite"),
    "page over numbers": (["net.safetensors", "--html", "out.json"], "would overwrite"),
    "page in no folder": ([*NET, "--html", "gone/page.html"], "gone"),
    "output below a file": (["net.safetensors", "--output-dir", "net.pt/new"], "is a file"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_exits_2_and_leaves_nothing(name, net, tmp_path, convattn_command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.pt").write_bytes(b"\x80\x02}q\x00.")
    np.save("first.npy", images().transpose(0, 3, 1, 2))
    np.save("int.npy", np.zeros((1, 8, 12, 3), np.int32))
    np.save("bytes.npy", np.zeros((1, 8, 12, 3), np.uint8))
    words, said = WRONG[name]
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    json_file = [] if "--json" in words else ["--json", "out.json"]
    done = convattn_command("diagnose", *words, *json_file)
    assert done.code == 2
    assert done.err.startswith("convattn diagnose: ")
    assert said in done.err
    assert done.out == ""
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.slow
def test_nothing_is_written_if_drawing_fails(net, tmp_path, convattn_command, monkeypatch):
    from convattn.diagnosis import picture

    right, calls = picture.picture_bytes, []

    def third_fails(figure, file_format):
        calls.append(file_format)
        if len(calls) == 3:
            raise ValueError("drawing failed")
        return right(figure, file_format)

    monkeypatch.setattr(picture, "picture_bytes", third_fails)
    words = ("--heads", 2, "--image-size", 8, 12, "--output-dir", tmp_path / "new")
    files = ("--json", tmp_path / "out.json", "--html", tmp_path / "page.html")
    done = convattn_command("diagnose", net, *words, *files)
    assert (done.code, len(calls)) == (2, 3)
    assert not [
        path for path in tmp_path.iterdir() if path.name in ("new", "out.json", "page.html")
    ]


@pytest.mark.slow
def test_a_picture_that_is_a_link_is_refused(net, tmp_path, convattn_command):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "layer01.svg").symlink_to(net)
    words = ("--heads", 2, "--image-size", 8, 12, "--output-dir", tmp_path / "new")
    done = convattn_command("diagnose", net, *words, "--json", tmp_path / "out.json")
    assert done.code == 2
    assert "would overwrite" in done.err
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["layer01.svg"]


def test_names_are_no_markup(tmp_path, convattn_command):
    np.savez(tmp_path / "maps.npz", **{"a[/b]": np.full((1, 1, 4, 4), 0.25)})
    done = convattn_command("diagnose", tmp_path / "maps.npz")
    assert done.code == 0
    assert "a[/b]" in done.out
