"""`experiments/twins.py`: wrong use, and what is written already."""

import builtins
import json

import pytest
import twins
from verifier_twins import command, writing
from verifier_twins.catalogue import PAIRS
from verifier_twins.writing import FILES, is_written


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
        (("--json", "new/01-edges/pair.json"), "--json got new/01-edges/pair.json, but expected"),
        (("--json", "new"), "--json got new, but expected a name outside of new"),
        (("--json", "."), "--json got ., but expected"),
        (("--json", "missing/file"), "does not exist"),
        (("--verify", "new"), "--verify got new/marabou, but expected a name outside of new"),
        (("--verify", "v", "--json", "v/marabou/x"), "outside of v/marabou"),
        (("--output-dir", "file/new"), "file is a file"),
        (("--verify", "file"), "file is a file"),
    ],
)
def test_wrong_use_is_a_line_before_any_work(tmp_path, capsys, monkeypatch, words, named):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert twins.main(["--output-dir", "new", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert named in line
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_missing_package_is_named_with_all_that_is_needed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command, "find_spec", lambda package: None)
    assert twins.main(["--output-dir", str(tmp_path)]) == 2
    message = "jax2onnx is not installed; pip install 'convattn[cli,onnx]'"
    assert message in capsys.readouterr().err

    load = builtins.__import__

    def without_tyro(name, *args, **options):
        if name == "verifier_twins.command":
            raise ModuleNotFoundError("No module named 'tyro'", name="tyro")
        return load(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without_tyro)
    assert twins.main([]) == 2
    message = "twins.py: tyro is not installed; pip install 'convattn[cli,onnx]'"
    assert message in capsys.readouterr().err


@pytest.fixture
def without_packages(monkeypatch):
    monkeypatch.setattr(command, "PACKAGES", ())


def test_a_folder_of_something_else_is_refused(tmp_path, capsys, without_packages):
    (tmp_path / "thesis.txt").write_text("mine")
    assert twins.main(["--output-dir", str(tmp_path)]) == 2
    assert "holds 'thesis.txt'" in capsys.readouterr().err


def test_verifiers_want_whole_pairs(tmp_path, capsys, without_packages):
    words = ["--output-dir", str(tmp_path), "--verify", str(tmp_path.with_name("v"))]
    assert twins.main([*words, "--pair", "01"]) == 2
    assert "holds no whole pair" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        '{"verifier": "marabou", "pair": "01-ed',
        "[]",
        "{}",
        '{"verifier": 1, "pair": "", "network": "", "verdict": "not run", "message": ""}',
        '{"verifier": "a", "pair": "b", "network": "cnn", "verdict": "yes", "message": ""}',
        "\xff",
    ],
)
def test_a_damaged_line_of_verdicts_is_refused(
    tmp_path, capsys, monkeypatch, without_packages, line
):
    monkeypatch.setattr("verifier_twins.writing.is_written", lambda folder: True)
    row = {"verifier": "a", "pair": "", "network": "", "verdict": "not run", "message": ""}
    results = tmp_path / "twins" / command.RESULTS
    results.parent.mkdir()
    content = f"{json.dumps(row)}\n{line}\n".encode("latin-1")
    results.write_bytes(content)
    words = ["--output-dir", str(results.parent), "--verify", str(tmp_path / "v")]
    assert twins.main(words) == 2
    (message,) = capsys.readouterr().err.splitlines()
    assert f"line 2 of {results} is " in message
    assert "remove the line" in message
    assert results.read_bytes() == content


DIGESTS = dict.fromkeys(FILES, "0")
WHOLE = {
    "schema": 1,
    "box": {"radius": 0.5, "lower": [0.0]},
    "bound": {"total": [0.1, 0.2]},
    "largest_difference": [0.0, 0.1],
    "room": 3.5,
    "classes": 2,
    "expected": "holds",
    "counterexample_if_any": ["Y_0 <= Y_1"],
    "sha256": DIGESTS,
}


def test_a_pair_with_a_changed_file_is_not_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "digest", lambda path: "0")
    assert not is_written(tmp_path)
    (tmp_path / "pair.json").write_text(json.dumps(WHOLE))
    assert is_written(tmp_path)
    for changed in (
        {"sha256": DIGESTS | {"cnn.onnx": "1"}},
        {"sha256": {"cnn.onnx": "0"}},
        {"bound": 1},
        {"bound": {"total": ["much", 0.2]}},
        {"largest_difference": []},
        {"room": None},
        {"box": []},
        {"expected": 0},
        {"schema": 2},
    ):
        (tmp_path / "pair.json").write_text(json.dumps(WHOLE | changed))
        assert not is_written(tmp_path), changed
    (tmp_path / "pair.json").write_text(json.dumps(WHOLE)[:-9])
    assert not is_written(tmp_path)
