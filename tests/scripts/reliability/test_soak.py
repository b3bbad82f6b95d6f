"""soak.py: a planted failure is printed with its example; what holds is quiet."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "reliability" / "soak.py"
PROPERTY = """
from hypothesis import given, strategies as st

@given(st.integers())
def test_planted(number):
    assert number < {limit}
"""


def soak(folder, *words):
    command = [sys.executable, str(SCRIPT), *words, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "failed"), [("1000", True), ("float('inf')", False)])
def test_a_failure_is_printed_with_its_example_and_seed(tmp_path, limit, failed):
    (tmp_path / "test_planted.py").write_text(PROPERTY.format(limit=limit))
    done = soak(tmp_path, "--minutes=0.5")
    assert done.returncode == failed
    assert done.stdout.rstrip().endswith("; 0 failed") != failed
    assert ("number=1000" in done.stdout) == failed
    assert ("--hypothesis-seed=" in done.stdout) == failed


@pytest.mark.parametrize("words", [["--minutes=0"], ["--minutes=1"]], ids=" ".join)
def test_wrong_use_is_refused(tmp_path, words):
    done = soak(tmp_path, *words)
    assert done.returncode == 2
    assert "expected minutes above 0" in done.stderr
