"""`experiments/similarity.py` at a small scale."""

import json
from pathlib import Path

import pytest
from image_similarity.command import main

WORDS = (
    "--channels 2 --depth 1 --heads 1 --key-features 2 --scales 1 --pairs.limit 40 "
    "--pairs.rounds 1 --training.epochs 1 --training.batch-size 10 --training.devices 1"
)
TINY = WORDS.split()


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert main([*TINY, "--output-dir", str(folder)]) == 0
    return folder


@pytest.mark.slow
def test_a_run_says_how_many_it_gets_right(run, capsys):
    result = json.loads((run / "result.json").read_text())
    assert result["test_pairs"] == 20
    assert result["test_right"] == round(20 * result["test_accuracy"])
    low, high = result["interval"]
    z, fraction = 1.959963984540054, result["test_right"] / 20
    for end in (low, high):  # Wilson's: the ends p solve (share - p)² = z² p(1 - p)/count
        assert abs((fraction - end) ** 2 - z**2 * end * (1 - end) / 20) < 2.0**-45
    assert low < fraction < high
    assert main([*TINY, "--output-dir", str(run)]) == 0
    assert f"right: {result['test_right']} of 20 test pairs" in capsys.readouterr().out


@pytest.mark.slow
def test_the_record_says_which_pairs_there_were(run):
    data = json.loads((run / "run.json").read_text())["data"]
    assert data["pairs"] == {"train": 20, "test": 20}
    assert data["name"].startswith("CIFAR-10")


@pytest.mark.slow
def test_wrong_use_is_refused_with_the_reason(run, capsys):
    for words, message in (
        ([*TINY, "--attention", "own", "--output-dir", str(run)], "segments='add' with attention="),
        ([*TINY, "--segments", "none", "--output-dir", str(run)], "differ in model"),
        ([*TINY, "--training.select", "best"], "--pairs.validation 0.1"),
        ([*TINY, "--pairs.limit", "3"], "have no pairs of one class"),
        ([*TINY, "--training.batch-size", "21"], "there are only 20 training pairs"),
    ):
        assert main(words) == 2
        assert message in capsys.readouterr().err
