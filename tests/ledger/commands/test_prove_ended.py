"""A run that is told to end does so at once, and no coqc goes on: its makefile is Coq's."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ledger.coq.coq_tree import ONE, claim_file, needs_coq, theorem, write_sources
from ledger.proof_files import write

COQC = """#!/bin/sh
case "$1" in
-where) echo {place} ;;
--print-version) echo 8.16.1 4.13.1 ;;
--version) echo The Coq Proof Assistant, version 8.16.1 ;;
*) echo $$ >> {place}/started; exec sleep 600 ;;
esac
"""


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Three theorems, and a coqc that says who it is and never ends."""
    write_sources(tmp_path / "coq", p__one=ONE, p__two=theorem("two"), p__three=theorem("three"))
    write(tmp_path / "proofs", p__a=claim_file("S.a", "p/one.v"))
    for name, text in {"coqc": COQC.format(place=tmp_path), "coqdep": "#!/bin/sh\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    return tmp_path


def words(tree):
    options = {"coq": tree / "coq", "proofs": tree / "proofs", "output": tree / "out", "jobs": 1}
    return ["prove", *(word for name, value in options.items() for word in (f"--{name}", value))]


def started(tree):
    """The processes of coqc so far."""
    path = tree / "started"
    return [int(word) for word in path.read_text().split()] if path.exists() else []


def running(number):
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def awaited(condition):
    end = time.monotonic() + 60
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return value


def run(tree, number):
    """Send a running command a signal; its exit code."""
    command = [sys.executable, "-m", "convattn.cli", *map(str, words(tree))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            awaited(lambda: started(tree) or process.poll() is not None)
            process.send_signal(number)
            return process.wait(30)
        finally:
            process.kill()


@needs_coq
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
@pytest.mark.usefixtures("no_signal_is_ignored")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_run_the_queue_and_coqc(tree, number, code):
    assert run(tree, number) == code
    (child,) = started(tree)
    assert not running(child)
    assert json.loads((tree / "out" / "compiled.json").read_text())["files"] == {}
    assert not (tree / "out" / "report.json").exists()


@needs_coq
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
def test_the_folder_is_held_while_a_killed_run_has_left_a_coqc(tree, convattn_command):
    assert run(tree, signal.SIGKILL) == -signal.SIGKILL
    (child,) = started(tree)
    try:
        assert running(child)
        done = convattn_command(*words(tree))
    finally:
        os.kill(child, signal.SIGKILL)
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert "another convattn prove is running in it (process" in line
    assert "or name another folder" in line
