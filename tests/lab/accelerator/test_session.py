"""Stages run within their minutes; what was done is kept, whatever ends a session."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from convattn.cli.running import UsageError
from convattn_lab.accelerator import probe, session
from convattn_lab.accelerator.session import (
    FILE_NAME,
    Ended,
    read_session,
    reason_of,
    run_session,
)
from convattn_lab.accelerator.stages import Stage

ENVIRONMENT = {"backend": "cpu", "device": "cpu", "devices": 1, "memory": None}


def stage(name, code, *, share=1.0, grace=1.0):
    return Stage(name, name, lambda options: ["-c", code, str(options.folder)], share, grace)


WRITES = "import sys, pathlib; pathlib.Path(sys.argv[1], 'ran').open('a').write('x')"


@pytest.fixture(autouse=True)
def _probed(monkeypatch):
    monkeypatch.setattr(session, "probed", lambda: dict(ENVIRONMENT))
    monkeypatch.setattr(session, "RESERVE", 0.0)
    monkeypatch.setattr(session, "MIN_SECONDS", 0.0)


def run(folder, *stages, minutes=1.0, data=None):
    lines = []
    result = run_session(folder, minutes, data, lines.append, stages)
    return result, lines


def test_what_is_done_is_not_done_again(tmp_path):
    folder = tmp_path / "new" / "folder"
    run(folder, stage("one", WRITES))
    result, lines = run(folder, stage("one", WRITES), stage("two", WRITES))
    assert (folder / "ran").read_text() == "xx"
    assert lines[1] == "one: done before"
    statuses = {name: ended.status for name, ended in result.stages.items()}
    assert statuses == {"one": "done", "two": "done"}
    assert len(result.sessions) == 2
    assert read_session(folder) == result


def test_a_failure_costs_its_stage_alone_and_is_tried_again(tmp_path):
    result, _ = run(tmp_path / "a", stage("one", "raise ValueError('words')"), stage("two", WRITES))
    assert result.stages["one"].status == "failed"
    assert result.stages["one"].reason == "ValueError: words"
    assert result.stages["two"].status == "done"
    result, _ = run(tmp_path / "a", stage("one", WRITES))
    assert result.stages["one"].reason == ""
    assert result.stages["one"].status == "done"


@pytest.mark.slow
def test_who_is_over_time_is_told_and_then_ended_with_all_that_it_started(tmp_path):
    code = (
        "import pathlib, signal, subprocess, sys, time\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "signal.signal(signal.SIGTERM, lambda *_: folder.joinpath('told').touch())\n"
        "child = subprocess.Popen(['sleep', '60'])\n"
        "folder.joinpath('child').write_text(str(child.pid))\n"
        "time.sleep(60)"
    )
    result, _ = run(tmp_path / "a", stage("one", code, grace=0.5), minutes=2.5 / 60)
    assert (result.stages["one"].status, result.stages["one"].reason) == ("stopped", "")
    assert 1 < result.stages["one"].seconds < 10
    assert (tmp_path / "a" / "told").exists()
    child = int((tmp_path / "a" / "child").read_text())
    assert waits_until(lambda: not is_running(child))


def waits_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def is_running(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_stage_is_not_begun_with_too_few_seconds(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "MIN_SECONDS", 1000.0)
    result, lines = run(tmp_path / "a", stage("one", WRITES))
    assert result.stages["one"] == Ended()
    assert "too few; the next session goes on with it" in lines[-1]
    assert not (tmp_path / "a" / "ran").exists()


def test_a_lost_device_ends_the_session_and_keeps_what_was_done(tmp_path, monkeypatch):
    answers = iter([dict(ENVIRONMENT)])

    def probed():
        try:
            return next(answers)
        except StopIteration:
            raise UsageError("JAX does not start here") from None

    monkeypatch.setattr(session, "probed", probed)
    fails = "import sys; sys.exit('CUDA_ERROR_LAUNCH_FAILED')"
    with pytest.raises(UsageError, match="device is lost"):
        run(tmp_path / "a", stage("one", WRITES), stage("two", fails), stage("three", WRITES))
    stored = read_session(tmp_path / "a")
    assert [ended.status for ended in stored.stages.values()] == ["done", "failed"]
    assert stored.stages["two"].reason.startswith("the device was lost")


def test_a_failure_without_words_has_its_exit_code():
    assert reason_of(3, "") == "exit code 3"


def test_other_folders_devices_and_images_are_refused(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("")
    with pytest.raises(UsageError, match="something else than a session"):
        run(tmp_path / "other")
    run(tmp_path / "a", data=tmp_path / "one")
    with pytest.raises(UsageError, match=r"images: .*one, but now: the bundled ones"):
        run(tmp_path / "a")
    monkeypatch.setattr(session, "probed", lambda: {**ENVIRONMENT, "device": "another"})
    with pytest.raises(UsageError, match="device: cpu, but now: another"):
        run(tmp_path / "a", data=tmp_path / "one")


@pytest.mark.parametrize(
    "damage", [lambda text: text[: len(text) // 2], lambda text: "[]", lambda text: '{"schema": 9}']
)
def test_a_damaged_file_is_named(tmp_path, damage):
    run(tmp_path / "a")
    path = tmp_path / "a" / FILE_NAME
    path.write_text(damage(path.read_text()))
    with pytest.raises(UsageError, match=r"session\.json is damaged"):
        run(tmp_path / "a")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_stage_ends_with_the_session_however_that_ends(tmp_path, number):
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from convattn.cli.running import termination_raises\n"
        "from convattn_lab.accelerator import session\n"
        "from convattn_lab.accelerator.stages import Stage\n"
        f"session.probed = lambda: {ENVIRONMENT!r}\n"
        'code = \'import os, sys, time; open(sys.argv[1] + "/pid", "w").write(str(os.getpid())); '
        "time.sleep(60)'\n"
        "stage = Stage('one', 'one', lambda options: ['-c', code, str(options.folder)], 1.0, 1.0)\n"
        "with termination_raises():\n"
        "    session.run_session(Path(sys.argv[1]), 1.0, None, print, [stage])\n"
    )
    folder = tmp_path / "a"
    parent = subprocess.Popen([sys.executable, "-c", program, str(folder)])
    written = folder / "pid"
    assert waits_until(lambda: written.exists() and written.read_text())
    child = int(written.read_text())
    os.kill(parent.pid, number)
    parent.wait(30)
    assert waits_until(lambda: not is_running(child))
    result, _ = run(folder, stage("one", WRITES))  # the folder is free, and whole
    assert result.stages["one"].status == "done"
    assert len(result.sessions) == 2


def test_a_machine_whose_gpu_jax_does_not_know_is_told(tmp_path, monkeypatch):
    process = subprocess.CompletedProcess([], 0, json.dumps(ENVIRONMENT) + "\n", "")
    monkeypatch.setattr(probe.subprocess, "run", lambda *args, **options: process)
    monkeypatch.setattr(probe, "NVIDIA", tmp_path / "none")
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    assert probe.probed() == ENVIRONMENT
    (tmp_path / "none").write_text("")
    with pytest.raises(UsageError, match=r"pip install\s'jax\[cuda12\]'"):
        probe.probed()
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert probe.probed() == ENVIRONMENT


@pytest.mark.slow
def test_jax_that_does_not_start_is_told_in_a_line(monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "nonsense")
    with pytest.raises(UsageError, match="JAX_PLATFORMS=cpu") as caught:
        probe.probed()
    assert "\n" not in str(caught.value)
