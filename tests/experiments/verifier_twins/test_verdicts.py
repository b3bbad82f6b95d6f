"""Verifiers that are stood in for by small scripts: rows, resumption, and what is called wrong."""

import json
import sys

import numpy as np
import pytest
from verifier_twins import verdicts
from verifier_twins.verdicts import Verifier, contradictions, run_verifiers, table

ANSWER = """
import json, sys, time
network = sys.argv[1].rpartition("/")[2]
said = {said!r}[network]
if said == "slow":
    time.sleep(60)
if said == "error":
    raise NotImplementedError("Operation Erf not implemented")
print("some words")
print(json.dumps({{"verdict": said, "counterexample": None}}))
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    folder = tmp_path / "twins" / "01-edges"
    folder.mkdir(parents=True)
    pair = {"expected": "holds", "box": {"lower": [0.0], "radius": 0.5}, "image": [1, 1, 1]}
    (folder / "pair.json").write_text(json.dumps(pair | {"counterexample_if_any": ["Y_0 <= Y_1"]}))
    for name in ("cnn", "twin"):
        (folder / f"{name}.onnx").write_text(name)
    adapters = tmp_path / "adapters"
    adapters.mkdir()
    python = tmp_path / "verifiers" / "stub" / "bin"
    python.mkdir(parents=True)
    (python / "python").symlink_to(sys.executable)
    (python.parent / "installed.txt").write_text("installed")
    monkeypatch.setattr(verdicts, "ADAPTERS", adapters)
    monkeypatch.setattr(verdicts, "VERIFIERS", (Verifier("stub", ()),))
    return tmp_path


def rows_of(place, said, seconds=5):
    (place / "adapters" / "with_stub.py").write_text(ANSWER.format(said=said))
    folders = [place / "twins" / "01-edges"]
    results = place / "twins" / "verdicts.jsonl"
    return list(run_verifiers(folders, place / "verifiers", results, (), seconds))


def test_a_verdict_that_is_none_is_an_error(place):
    rows = rows_of(place, {"cnn.onnx": "yes", "twin.onnx": ["holds"]})
    assert [row["verdict"] for row in rows] == ["error", "error"]
    assert rows[0]["message"] == "the verdict 'yes'"
    assert table(rows)[2] == "| stub | cnn | 0 | 0 | 0 | 0 | 1 |"


def test_a_contradiction_is_wrong_on_one_side_and_told(place):
    rows = rows_of(place, {"cnn.onnx": "holds", "twin.onnx": "violated"})
    assert [row["wrong"] for row in rows] == [False, True]
    assert contradictions(rows) == [("stub", "01-edges")]
    lines = table(rows)
    assert lines[2] == "| stub | cnn | 1 | 0 | 0 | 0 | 0 |"
    assert lines[3] == "| stub | twin | 0 | 1 | 0 | 0 | 0 |"
    assert lines[-1] == "CONTRADICTION: stub on 01-edges"


def test_errors_are_rows_and_what_is_there_is_not_run_again(place):
    rows = rows_of(place, {"cnn.onnx": "unknown", "twin.onnx": "error"})
    assert [row["verdict"] for row in rows] == ["unknown", "error"]
    assert rows[1]["message"] == "NotImplementedError: Operation Erf not implemented"
    again = rows_of(place, {"cnn.onnx": "holds", "twin.onnx": "holds"})
    assert again == rows
    assert not contradictions(rows)


@pytest.mark.slow
def test_a_call_that_takes_too_long_is_ended(place, monkeypatch):
    monkeypatch.setattr(verdicts, "_BEGINNING", 0.0)
    rows = rows_of(place, {"cnn.onnx": "slow", "twin.onnx": "slow"}, seconds=1)
    assert [row["verdict"] for row in rows] == ["timeout", "timeout"]


def test_what_is_not_installed_is_a_row(place, monkeypatch):
    (place / "verifiers" / "stub" / "installed.txt").write_text("failed: no such wheel")
    rows = rows_of(place, {})
    assert [row["verdict"] for row in rows] == ["not run"]
    assert table(rows)[-1] == "stub: failed: no such wheel"


def test_counterexamples_are_evaluated(place, monkeypatch):
    pair = json.loads((place / "twins" / "01-edges" / "pair.json").read_text())
    logits = {"first": [0.0, 1.0], "second": [1.0, 0.0], "third": [1.0, 0.99]}
    pair["bound"] = {"total": [0.01, 0.02]}
    expected = zip(
        logits, ("confirmed", "none in onnxruntime", "a tie, within the bound"), strict=True
    )
    for name, said in expected:
        monkeypatch.setattr(verdicts, "run_network", lambda *_, own=name: np.array([logits[own]]))
        assert verdicts._judged(pair, place, [0.75]) == said
    assert verdicts._judged(pair, place, [1.5]) == "outside the box"
