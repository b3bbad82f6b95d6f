"""crash.py notices what is planted, and finds nothing in what is right."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no /proc")
SCRIPT = Path(__file__).with_name("planted_writers.py")
COLUMNS = ("trials", "runs", "damaged", "lost", "not resumed", "left over", "unclear")


def crash(writer, *words):
    """The exit code, and by part what the table says."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), writer, *words],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr == "", done.stderr
    rows = [line.split()[1:9] for line in done.stdout.splitlines() if line.startswith("planted")]
    named = {part: dict(zip(COLUMNS, map(int, row), strict=True)) for part, *row in rows}
    return done.returncode, named


def test_a_writer_that_is_right_passes():
    code, rows = crash("right", "--parts", "calls", "moments", "--times", "6")
    assert code == 0
    assert rows["moments"]["trials"] == 6
    # Before and after each of two openings, half written, whole, access, name, and a name removed:
    # with and without an output before.
    assert rows["calls"]["trials"] == 2 * 9
    for row in rows.values():
        assert row["runs"] > 0
        assert [row[name] for name in COLUMNS[2:]] == [0] * 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("writer", "kind"),
    [
        ("in_place", "damaged"),
        ("forgetful", "lost"),
        ("littering", "left over"),
        ("stubborn", "not resumed"),
    ],
)
def test_a_planted_error_is_noticed(writer, kind):
    code, rows = crash(writer, "--parts", "calls")
    assert code == 1
    assert rows["calls"][kind] > 0
    others = {"damaged", "lost", "left over"} - {kind}
    assert [rows["calls"][name] for name in others] == [0] * len(others)


def test_wrong_words_exit_2():
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "right", "--times", "0"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2
    assert "TIMES above 0" in done.stderr
