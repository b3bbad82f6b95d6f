"""``convattn explore``: what is refused before anything is served."""

import importlib.util

import numpy as np
import pytest

from convattn.cli import explore


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing.npy"], "cannot read missing.npy: No such file or directory"),
        (["text.npy"], "starts with b'no model', which is neither"),
        (["maps.npy", "--port", "65536"], "--port 65536"),
        (["maps.npy", "--count", "0"], "expected 1 or more"),
        (["maps.npy", "--std", "0"], "--std got (0.0,), but expected one number or three"),
        (["maps.npy", "--image-size", "0"], "--image-size got (0,)"),
        (["maps.npy", "--images", "nowhere"], "--images got nowhere, but nothing is there"),
        (["maps.npy", "--images", "gone.tar"], "--images got gone.tar, but nothing is there"),
        (["maps.npy", "--images", "maps.npy"], "maps.npy: "),
        (["maps.npy", "--images", "empty"], "empty"),
        (["."], "has no config.json, so it is not the folder of a run"),
    ],
)
def test_wrong_use_is_refused(tmp_path, monkeypatch, convattn_command, words, said) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.npy").write_text("no model")
    (tmp_path / "empty").mkdir()
    np.save(tmp_path / "maps.npy", np.full((1, 1, 4, 4), 0.25))
    done = convattn_command("explore", *words)
    assert done.code == 2
    assert said in done.err, done.err


def test_what_is_not_installed_is_named(monkeypatch, convattn_command) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        explore, "find_spec", lambda name: None if name in ("uvicorn", "PIL") else real(name)
    )
    done = convattn_command("explore", "any.npy")
    assert done.code == 2
    assert "uvicorn and pillow not installed" in done.err
    assert "pip install 'convattn[explore]'" in done.err
