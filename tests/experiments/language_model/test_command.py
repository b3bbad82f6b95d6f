"""`experiments/language.py` on a text that a model learns in seconds."""

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from comparison import assert_within
from language_model import command
from language_model.command import main

WORDS = (
    "--scales 1 --text.length 16 --width 8 --depth 1 --heads 1 --key-features 4 --inner 8 "
    "--training.epochs 3 --training.batch-size 16 --training.learning-rate 0.02 "
    "--training.devices 1"
)
TINY = WORDS.split()


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    """Words that are drawn: the letters of a word tell each other."""
    rng = np.random.default_rng(0)
    words = rng.choice(["alpha ", "beta ", "gamma ", "delta "], 3000)
    path = tmp_path_factory.mktemp("text") / "greek.txt"
    path.write_text("".join(words))
    return path


@pytest.fixture(scope="module")
def run(text, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert main([*TINY, "--text.source", str(text), "--output-dir", str(folder)]) == 0
    return folder


def result(folder: Path) -> dict:
    return json.loads((folder / "result.json").read_text())


@pytest.mark.slow
def test_the_model_beats_the_entropy_of_single_bytes(run, text):
    counts = Counter(text.read_bytes())
    total = counts.total()
    entropy = -sum(n / total * math.log2(n / total) for n in counts.values())
    bits = result(run)["test_bits_per_byte"]
    assert bits["model"]["mean"] < entropy
    assert bits["bigram"]["mean"] < entropy < bits["unigram"]["mean"]


@pytest.mark.slow
def test_the_bits_are_those_of_the_trainer(run):
    """Both are means of the same numbers, in two orders of float32 sums."""
    record = result(run)
    bits = record["test_bits_per_byte"]["model"]["mean"]
    assert_within(bits, record["test_loss"] / math.log(2), 1e-5 * bits)


@pytest.mark.slow
def test_the_record_says_what_was_read(run, text):
    record = json.loads((run / "run.json").read_text())
    assert record["data"]["bytes"] == len(text.read_bytes())
    assert sum(record["data"]["parts"].values()) == record["data"]["bytes"]
    assert record["command"].startswith("python experiments/language.py --scales 1 ")
    assert "--output-dir" not in record["command"]


@pytest.mark.slow
def test_wrong_use_is_refused_with_the_reason(run, text, tmp_path, capsys):
    source = ["--text.source", str(text)]
    stray = tmp_path / "stray"
    stray.mkdir()
    (stray / "file").touch()
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "config.json").write_text("{")
    for words, message in (
        ([*TINY, *source, "--scales", "2", "--output-dir", str(run)], "differ in model"),
        ([*TINY, *source, "--text.limit", "9999", "--output-dir", str(run)], "differ in text"),
        ([*TINY, *source, "--output-dir", str(text)], "is a file"),
        ([*TINY, *source, "--output-dir", str(stray)], "has no config.json"),
        ([*TINY, *source, "--output-dir", str(damaged)], "is no JSON"),
        (["--text.source", str(tmp_path / "none")], "cannot be read"),
        (["--text.source", str(text), "--text.limit", "50"], "fills no window"),
        (["--scales", "0"], "scales"),
        ([*TINY, *source, "--output-dir", str(text / "in")], "is a file"),
        ([*TINY, "--training.select", "best", "--text.validation", "0"], "--text.validation 0.1"),
    ):
        assert main(words) == 2
        captured = capsys.readouterr()
        assert message in captured.err


@pytest.mark.slow
def test_a_text_that_changed_is_refused(text, tmp_path, capsys, monkeypatch):
    copy, folder = tmp_path / "copy.txt", tmp_path / "run"
    copy.write_bytes(text.read_bytes()[:3000])
    words = [*TINY, "--text.source", str(copy), "--output-dir", str(folder)]

    def broken_off(*args, **named):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(command, "train", broken_off)
        assert main(words) != 0
    copy.write_bytes(text.read_bytes()[1:3001])
    assert main(words) == 2
    assert "the data are others now" in capsys.readouterr().err


@pytest.mark.slow
def test_a_loss_that_is_not_finite_ends_the_run_with_1(text, tmp_path, capsys):
    words = [*TINY, "--text.source", str(text), "--training.learning-rate", "1e30"]
    assert main([*words, "--output-dir", str(tmp_path / "run")]) == 1
    assert "learning rate" in capsys.readouterr().err
