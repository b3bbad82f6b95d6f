"""Two processes cannot work in one folder; one that has ended leaves no lock."""

import subprocess
import sys
import time

import pytest

from convattn.files import InUse, hold_folder

HOLD = """
import subprocess, sys, time
from pathlib import Path
from convattn.files import hold_folder
with hold_folder(Path(sys.argv[1]), inherited=True):
    child = subprocess.Popen(["sleep", "600"], close_fds=False, stdout=subprocess.DEVNULL)
    print(child.pid, flush=True)
    time.sleep(600)
"""


def test_another_run_is_refused_until_it_and_what_it_has_started_end(tmp_path):
    words = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as holder:
        child = int(holder.stdout.readline())
        try:
            with pytest.raises(InUse, match=str(holder.pid)), hold_folder(tmp_path):
                pass
            holder.kill()
            holder.wait()
            with pytest.raises(InUse, match=str(holder.pid)), hold_folder(tmp_path):
                pass
        finally:
            holder.kill()
            subprocess.run(["kill", "-KILL", str(child)], check=True)
    eventually_free(tmp_path)


def eventually_free(folder):
    end = time.monotonic() + 20
    while True:
        try:
            with hold_folder(folder):
                return
        except InUse:
            assert time.monotonic() < end
            time.sleep(0.05)


def test_the_lock_ends_with_the_call(tmp_path):
    for _ in range(2):
        again = hold_folder(tmp_path)
        with hold_folder(tmp_path), pytest.raises(InUse), again:
            pass
