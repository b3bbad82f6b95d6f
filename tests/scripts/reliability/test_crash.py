"""crash.py notices what is planted, and finds nothing in what is right."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no /proc")
SCRIPT = Path(__file__).with_name("planted_writers.py")


def crash(writer):
    """How many kills there were, and what was found."""
    command = [sys.executable, str(SCRIPT), writer]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    kills, *problems = done.stdout.splitlines()
    return int(kills), problems


def test_a_writer_that_is_right_passes():
    # Before and after each of two openings, access, name, and a name removed: with and without an
    # output before.
    assert crash("right") == (2 * 7, [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("writer", "kind"),
    [
        ("in_place", "damaged"),
        ("forgetful", "lost"),
        ("littering", "left over"),
        ("stubborn", "not resumed: exit code 2"),
    ],
)
def test_a_planted_error_is_noticed(writer, kind):
    _, problems = crash(writer)
    assert problems
    assert all(kind in problem for problem in problems)
