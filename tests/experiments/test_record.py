"""`experiments/record.py`: what it prints, and with which code it refuses."""

import importlib.util
import shutil
from pathlib import Path

import pytest
from lab.records.test_record import finished

ROOT = Path(__file__).parents[2]


@pytest.fixture
def main(tmp_path):
    """The command, on a copy of one proof file."""
    (tmp_path / "proofs" / "cordonnier2020").mkdir(parents=True)
    shutil.copy(ROOT / "proofs/cordonnier2020/quadratic.py", tmp_path / "proofs/cordonnier2020")
    spec = importlib.util.spec_from_file_location("_record", ROOT / "experiments" / "record.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda *words: module.main([str(word) for word in words], proofs=tmp_path / "proofs")


def test_it_says_which_verdict_is_supported(main, tmp_path, capsys) -> None:
    run = finished(tmp_path / "run", "C20.quadratic", 0.94)
    assert main(run, "C20.quadratic") == 0
    out = capsys.readouterr().out
    assert "it supports the verdict: reproduced\n" in out
    assert "convattn verify --claim C20.quadratic" in out
    other = finished(tmp_path / "other", "C20.quadratic", 0.5)
    assert main(other, "C20.quadratic") == 2
    assert "give --replace" in capsys.readouterr().err
    assert main(other, "C20.quadratic", "--replace") == 0
    assert "verdict: not reproduced" in capsys.readouterr().out


def test_what_does_not_support_a_row_is_wrong_use(main, tmp_path, capsys) -> None:
    run = finished(tmp_path / "run", "C20.quadratic", test_images=500)
    assert main(run, "C20.quadratic") == 2
    output = capsys.readouterr().err
    assert "does not count for C20.quadratic: result.test_images=500" in output
    assert main(run, "C20.lemma1") == 2
    assert main(tmp_path, "C20.quadratic") == 2
    assert not list(tmp_path.glob("proofs/*/*.json"))
