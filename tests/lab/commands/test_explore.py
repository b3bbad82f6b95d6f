"""``convattn explore``: what is refused before anything is served."""

import importlib.util

import numpy as np
import pytest

import convattn as ca
from convattn_lab.commands import explore


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    (folder / "text.npy").write_text("no model")
    (folder / "empty").mkdir()
    np.save(folder / "maps.npy", np.full((1, 1, 4, 4), 0.25))
    np.save(folder / "negative.npy", np.full((1, 1, 4, 4), [0.5, 1, -1, 0.5]))
    ca.save_layer(ca.conv_to_attention(np.ones((3, 3, 1, 1))), folder / "layer.npz")
    return folder


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.npy"], "cannot read missing.npy: No such file or directory"),
        (["text.npy"], "starts with b'no model', which is neither"),
        (["maps.npy", "--rotary", "timm", "turns=3"], "rotary='timm turns=3', but expected timm"),
        (["maps.npy", "--port", "65536"], "--port 65536"),
        (["maps.npy", "--count", "0"], "expected 1 or more"),
        (["maps.npy", "--std", "0"], "--std got (0.0,), but expected one number or three"),
        (["maps.npy", "--std", "nan"], "--std got (nan,), but expected one number or three, fin"),
        (["maps.npy", "--mean", "0", "inf", "0"], "--mean got (0.0, inf, 0.0), but expected"),
        (["maps.npy", "--image-size", "3", "7"], "the 3 × 7 tokens of the grid"),
        (["negative.npy"], "negative.npy, its array, shape (1, 1, 4, 4): attention[0, 0, 0] has"),
        (["maps.npy", "--heads", "9"], "heads=9, but expected none"),
        (["maps.npy", "--mean", "3", "--std", "1"], "--mean and --std were given, but maps.npy"),
        (["layer.npz", "--heads", "9"], "heads=9, but expected none"),
        (["layer.npz", "--std", "9"], "--std was given, but layer.npz"),
        (["maps.npy", "--image-size", "0"], "--image-size got (0,)"),
        (["layer.npz", "--images", "nowhere"], "--images got nowhere"),
        (["layer.npz", "--images", "gone.tar"], "--images got gone.tar"),
        (["layer.npz", "--images", "maps.npy"], "maps.npy: "),
        (["layer.npz", "--images", "empty"], "empty"),
        (["maps.npy", "--images", "empty"], "--images was given, but maps.npy"),
        (["."], "a run; expected one that a script of experiments/ has written\n"),
    ],
)
def test_wrong_use_is_refused(files, monkeypatch, convattn_command, words, message) -> None:
    monkeypatch.chdir(files)
    done = convattn_command("explore", *words)
    assert done.code == 2
    assert message in done.err, done.err


def test_what_is_not_installed_is_named(monkeypatch, convattn_command) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        explore, "find_spec", lambda name: None if name in ("uvicorn", "PIL") else real(name)
    )
    done = convattn_command("explore", "any.npy")
    assert done.code == 2
    assert "uvicorn and pillow not installed" in done.err
    assert "pip install 'convattn[explore]'" in done.err
