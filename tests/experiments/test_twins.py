"""`experiments/twins.py`: wrong use, and what is written already."""

import pytest
import twins
from verifier_twins.catalogue import PAIRS
from verifier_twins.writing import is_written


def test_there_are_twenty_pairs_of_both_kinds_and_both_properties():
    assert len({pair.name for pair in PAIRS}) == 20
    assert sum(pair.twin == "transformer" for pair in PAIRS) > 10
    assert 8 <= sum(pair.expected == "holds" for pair in PAIRS) <= 12
    assert {pair.asks for pair in PAIRS} == {"class", "threshold"}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--pair", "99"), "--pair got 99"),
        (("--verifier", "nnv"), "--verifier got nnv"),
        (("--seconds", "0"), "--seconds got 0"),
    ],
)
def test_wrong_use_is_a_line(tmp_path, capsys, words, named):
    assert twins.main(["--output-dir", str(tmp_path / "new"), *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert named in line


def test_a_missing_package_is_named(tmp_path, capsys, monkeypatch):
    def missing(package):
        raise ModuleNotFoundError(f"{package} is not installed", name=package)

    monkeypatch.setattr(twins, "require", missing)
    assert twins.main(["--output-dir", str(tmp_path)]) == 2
    assert "jax2onnx is not installed" in capsys.readouterr().err


def test_a_folder_of_something_else_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(twins, "require", lambda package: None)
    (tmp_path / "thesis.txt").write_text("mine")
    assert twins.main(["--output-dir", str(tmp_path)]) == 2
    assert "holds 'thesis.txt'" in capsys.readouterr().err
    assert twins.main(["--output-dir", str(tmp_path / "thesis.txt")]) == 2
    assert "is a file" in capsys.readouterr().err


def test_verifiers_want_whole_pairs(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(twins, "require", lambda package: None)
    words = ["--output-dir", str(tmp_path), "--verify", str(tmp_path / "v"), "--pair", "01"]
    assert twins.main(words) == 2
    assert "holds no whole pair" in capsys.readouterr().err


def test_a_pair_with_a_changed_file_is_not_whole(tmp_path):
    assert not is_written(tmp_path)
    (tmp_path / "pair.json").write_text('{"sha256": {"cnn.onnx": "0"}}')
    assert not is_written(tmp_path)
