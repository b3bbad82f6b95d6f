"""Two processes cannot train in one folder; a dead one leaves no lock."""

import subprocess
import sys

import pytest

from convattn.lab.training.failures import FolderInUse
from convattn.lab.training.lock import lock_folder

HOLD = """
import sys, time
from pathlib import Path
from convattn.lab.training.lock import lock_folder
with lock_folder(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_another_process_is_refused_until_it_dies(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        try:
            assert holder.stdout.readline() == "held\n"
            message = f"process {holder.pid} is training in .*; wait for its end"
            with pytest.raises(FolderInUse, match=message), lock_folder(tmp_path):
                pass
        finally:
            holder.kill()
    with lock_folder(tmp_path):
        pass


def test_the_lock_ends_with_the_call(tmp_path):
    for _ in range(2):
        again = lock_folder(tmp_path / "new")
        with lock_folder(tmp_path / "new"), pytest.raises(FolderInUse), again:
            pass
