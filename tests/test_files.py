"""Two processes cannot work in one folder, and no link leads out of one."""

import os
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from full_files import full_files

from convattn.files import DirectoryLockedError, lock_directory, parse_json, read_file, write_inside
from convattn_lab.training.metrics import MetricsLog

HOLD = """
import subprocess, sys, time
from pathlib import Path
from convattn.files import lock_directory
with lock_directory(Path(sys.argv[1]), inherited=True):
    child = subprocess.Popen(["sleep", "600"], close_fds=False, stdout=subprocess.DEVNULL)
    print(child.pid, flush=True)
    time.sleep(600)
"""


def test_another_run_is_refused_until_it_and_what_it_has_started_end(tmp_path):
    words = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as holder:
        child = int(holder.stdout.readline())
        try:
            with (
                pytest.raises(DirectoryLockedError, match=str(holder.pid)),
                lock_directory(tmp_path),
            ):
                pass
            holder.kill()
            holder.wait()
            with (
                pytest.raises(DirectoryLockedError, match=str(holder.pid)),
                lock_directory(tmp_path),
            ):
                pass
        finally:
            holder.kill()
            subprocess.run(["kill", "-KILL", str(child)], check=True)
    eventually_free(tmp_path)


def eventually_free(folder):
    end = time.monotonic() + 20
    while True:
        try:
            with lock_directory(folder):
                return
        except DirectoryLockedError:
            assert time.monotonic() < end
            time.sleep(0.05)


def test_the_lock_ends_with_the_call(tmp_path):
    for _ in range(2):
        again = lock_directory(tmp_path)
        with lock_directory(tmp_path), pytest.raises(DirectoryLockedError), again:
            pass


def test_a_lock_that_cannot_be_written_is_named(tmp_path):
    with (
        pytest.raises(OSError, match="File too large") as caught,
        full_files(),
        lock_directory(tmp_path),
    ):
        pass
    assert caught.value.filename == str(tmp_path / "lock")


@pytest.mark.parametrize("closed", [False, True])  # it tries again what was not written
@pytest.mark.parametrize(
    ("write", "name"),
    [
        (lambda log: log.write({"step": 1}), "metrics.jsonl"),
        (lambda log: log.losses(1, [0.5] * 10_000), "tensorboard"),  # more than a buffer holds
        (lambda log: (log.losses(1, [0.5]), log.flush()), "tensorboard"),
    ],
)
def test_metrics_that_cannot_be_written_are_named(tmp_path, write, name, closed):
    log = MetricsLog(tmp_path, 0)
    log.flush()
    closing = log if closed else nullcontext()
    with pytest.raises(OSError, match="File too large") as caught, full_files(), closing:
        write(log)
    assert caught.value.filename == str(tmp_path / name)


def test_a_lock_may_hold_anything(tmp_path):
    with lock_directory(tmp_path):
        (tmp_path / "lock").write_bytes(b"\xff" * 1000)
        with (
            pytest.raises(DirectoryLockedError, match=r"process \ufffd{20} is at work"),
            lock_directory(tmp_path),
        ):
            pass


@pytest.mark.parametrize("name", ["lock", "metrics.jsonl", "config.json"])
@pytest.mark.parametrize("kind", ["file", "missing", "folder", "pipe"])
def test_what_leads_out_of_a_folder_is_not_written_to(tmp_path, name, kind):
    target, run = tmp_path / "target", tmp_path / "run"
    run.mkdir()
    if kind == "file":
        target.write_text("precious\n")
    if kind == "folder":
        target.mkdir()
    if kind == "pipe":
        os.mkfifo(run / name)
    else:
        (run / name).symlink_to(target)
    opened = {"lock": lock_directory, "metrics.jsonl": lambda run: MetricsLog(run, 0)}
    write = opened.get(name, lambda run: nullcontext(write_inside(run / name, b"{}")))
    with pytest.raises(ValueError, match="expected a file of the folder itself"), write(run):
        pass
    assert target.exists() == (kind in ("file", "folder"))
    assert kind != "file" or target.read_text() == "precious\n"


@pytest.mark.parametrize("place", ["best", "checkpoints/3", "figures/curves.png"])
def test_a_folder_in_which_something_leads_out_is_not_held(tmp_path, place):
    target, run = tmp_path / "target", tmp_path / "run"
    target.mkdir()
    (run / place).parent.mkdir(parents=True)
    (run / place).symlink_to(target)
    with pytest.raises(ValueError, match="is a symbolic link, but expected"), lock_directory(run):
        pass
    assert not (run / "lock").exists()


def test_a_lock_that_is_another_file_too_is_not_written_to(tmp_path):
    (tmp_path / "precious").write_text("precious\n")
    (tmp_path / "run").mkdir()
    os.link(tmp_path / "precious", tmp_path / "run" / "lock")
    with (
        pytest.raises(ValueError, match="is one of several names of its file"),
        lock_directory(tmp_path / "run"),
    ):
        pass
    assert (tmp_path / "precious").read_text() == "precious\n"


def test_pipes_and_devices_are_not_read(tmp_path):
    pipe, file, link = tmp_path / "pipe", tmp_path / "file", tmp_path / "link"
    os.mkfifo(pipe)
    file.write_bytes(b"content")
    link.symlink_to(file)
    assert (read_file(link), read_file(link, 3)) == (b"content", b"con")
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(OSError, match=rf"is a pipe or a device, .*: '{path}'"):
            read_file(path)
    with pytest.raises(IsADirectoryError):
        read_file(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "none")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[" * 100_000, "nest too deep"),
        ('{"width": ' + "7" * 21 + "}", "an integer of 21 digits, expected up to 20"),
        ("1" * 5000, "an integer of 5000 digits"),
        ("{", "Expecting"),
    ],
)
def test_json_that_no_file_of_ours_holds_is_refused(content, problem):
    with pytest.raises(ValueError, match=problem):
        parse_json(content)
    assert parse_json("[18446744073709551615, -1, 1e3]") == [2**64 - 1, -1, 1000.0]
