"""Sharded inputs: the attention of a function runs where the function would."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]


@pytest.mark.slow
def test_eight_devices():
    script = Path(__file__).with_name("devices_process.py")
    paths = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": paths, "JAX_PLATFORMS": "cpu"},
    )
    numbers = json.loads(done.stdout)
    assert numbers["devices"] == 8
    assert all(difference <= numbers["bound"] < 1e-10 for difference in numbers["differences"])
    assert numbers["gradient"] < 1e-10
