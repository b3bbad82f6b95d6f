"""The message of a process that ends is said, and said once."""

import subprocess
import sys

import pytest

from convattn.lab.training.hosts import watchdog


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("os.abort()", "was lost\n"),
        ("dog.goodbye()", ""),
        ("dog.say(); os.abort()", "was lost\n"),
    ],
)
def test_the_message_is_said_once(end, said):
    """Even by a process that aborts, with no handler of Python's."""
    code = (
        f"import os, runpy; Watchdog = runpy.run_path({watchdog.__file__!r})['Watchdog']; "
        f"dog = Watchdog('first'); dog.change('was lost'); {end}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr == said
