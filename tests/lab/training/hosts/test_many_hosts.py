"""Two processes that train one model: as one would, and through whatever ends either of them.

The processes are real, and meet over the loopback device. None outlives its test: each has a hard
limit of time and is killed at the end.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from comparison import assert_within, gamma
from lab.training.hosts.host_process import BATCH, EPOCHS, MOVED, STEPS_OF_EPOCH
from lab.training.tiny import SIDE

from convattn.lab.training.metrics import read_metrics

SCRIPT = Path(__file__).with_name("host_process.py")
LIMIT = 240.0
SOON = 30.0  # to notice a lost process; the machine may be busy
STEPS = EPOCHS * STEPS_OF_EPOCH
ROUNDINGS = 4 * (BATCH + 3 * SIDE**2)
TIMES = ("seconds", "images_per_second")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def started(given):
    """The processes, one for each of these; they are killed at the end."""
    paths = [str(SCRIPT.parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    environment.pop("JAX_ENABLE_X64", None)
    processes = []
    try:
        for each in given:
            processes.append(
                subprocess.Popen(
                    [sys.executable, SCRIPT, json.dumps(each)],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    env=environment,
                )
            )
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def pair(cache, jobs, **given):
    where = f"127.0.0.1:{free_port()}"
    shared = {"coordinator": where, "processes": 2, "cache": str(cache), "jobs": jobs, **given}
    return started([{**shared, "index": index} for index in (0, 1)])


def ended(process, limit=LIMIT):
    """The JSON lines that it wrote, its messages, its exit code."""
    told, problems = process.communicate(timeout=limit)
    lines = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    return lines, problems, process.returncode


def halted(folder, epoch, processes):
    """Return when a process waits after this epoch."""
    until = time.monotonic() + LIMIT
    while not (folder / f"waiting-{epoch}").exists():
        assert time.monotonic() < until
        for process in processes:
            assert process.poll() is None, ended(process)
        time.sleep(0.01)


def job(folder, halt=None, by=(), **plant):
    if halt is not None:
        plant["halt"] = halt
    return {"folder": str(folder), "plant": plant, "in": list(by)}


@pytest.fixture(scope="module")
def alone(cache_folder):
    """The losses of one process."""
    with started([{"cache": str(cache_folder), "devices": 2}]) as (process,):
        (found,), problems, code = ended(process)
    assert code == 0, problems
    return found


def kill(processes, victim, folder, epoch):
    """One of the processes, after this epoch: its number, what it said, and what the other said."""
    halted(folder, epoch, processes)
    processes[victim].send_signal(signal.SIGKILL)
    other = ended(processes[1 - victim], SOON)
    (folder / f"waiting-{epoch}").unlink()
    return processes[victim].pid, ended(processes[victim]), other


@pytest.fixture(scope="module")
def began(cache_folder, tmp_path_factory):
    """A pair of processes that did several jobs, one after the other; in the last one is killed."""
    folder = tmp_path_factory.mktemp("hosts")
    jobs = {
        "whole": job(folder / "whole"),
        "share": job(folder / "share", by=[1], share=1),
        "settings": job(folder / "settings", by=[1], settings={"learning_rate": 0.2, "seed": 1}),
        "images": job(folder / "images", by=[0], images=141),
        "drift": job(folder / "drift", by=[1], drift=1),
        "full": job(folder / "full", by=[0], full=2),
    }
    last = job(folder / "chain", 1, by=[1])
    with pair(cache_folder, [*jobs.values(), last]) as processes:
        pid, second, first = kill(processes, 1, folder / "chain", 1)
    found = first, second
    for lines, problems, _ in found:
        assert len(lines) == len(jobs), problems  # and the last job did not end
    told = {name: [lines[number] for lines, *_ in found] for number, name in enumerate(jobs)}
    return folder, told, (pid, second, first)


@pytest.fixture(scope="module")
def done(began):
    """The folder, and what both processes made of each job."""
    return began[:2]


def bound(alone):
    """As for several devices of one process: see `test_eight_devices.py`."""
    one = np.array(alone["1"])
    amplification = max(np.abs(np.array(moved) - one).max() for moved in alone["moved"]) / MOVED
    assert amplification > 1e-3  # or nothing was measured
    return 8 * STEPS * gamma(ROUNDINGS, "float64") * amplification


def test_two_processes_train_as_one(alone, done):
    first, second = done[1]["whole"]
    assert first == second  # the same bits in both
    assert (first["status"], first["step"], len(first["losses"])) == ("finished", STEPS, STEPS)
    assert first["losses"][-1] < first["losses"][0]
    for devices in "12":
        message = f"two processes against {devices} devices of one"
        assert_within(first["losses"], alone[devices], bound(alone), message)


def test_other_shares_are_seen(alone, done):
    """Planted: one process takes other examples for its share of each batch."""
    first, _ = done[1]["share"]
    with pytest.raises(AssertionError, match="too far"):
        assert_within(first["losses"], alone["1"], 1e4 * bound(alone), "planted")
    assert first["arrays"] != done[1]["whole"][0]["arrays"]


def test_the_first_alone_writes(done):
    """One line for each epoch, one file of events: the other process has written nothing."""
    folder = done[0] / "whole"
    assert [line["epoch"] for line in read_metrics(folder)] == list(range(1, EPOCHS + 1))
    assert len(list((folder / "tensorboard").iterdir())) == 1


@pytest.mark.parametrize(
    ("planted", "message"),
    [
        ("settings", "differs from process 0 in learning_rate, seed"),
        ("images", "differs from process 0 in training images"),
        ("drift", f"differs from process 0 in the state after step {STEPS_OF_EPOCH}"),
    ],
)
def test_processes_that_differ_are_refused(done, planted, message):
    """In both, with the same words."""
    first, second = done[1][planted]
    assert first == second
    assert first["error"] == "ProcessesDiffer"
    assert message.rstrip("4") in first["message"]
    assert "process 1 of 2 (pid " in first["message"]


def test_a_failure_of_the_first_ends_both(done):
    first, second = done[1]["full"]
    assert (first["error"], second["error"]) == ("OSError", "OtherProcessFailed")
    assert second["message"].startswith("process 0 of 2 (pid ")
    assert second["message"].endswith(" failed: no space left on device")


@pytest.fixture(scope="module")
def chain(cache_folder, began):
    """A run that is killed twice and stopped twice: its folder, and how the processes ended."""
    folder, killed = began[0] / "chain", {1: began[2]}
    with pair(cache_folder, [job(folder, 2, by=[0])]) as processes:
        killed[0] = kill(processes, 0, folder, 2)
    assert not killed[0][2][0]  # the job did not end
    halts = ((1, 2), (0, 3))
    jobs = [job(folder, epoch, by=[victim]) for victim, epoch in halts]
    with pair(cache_folder, [*jobs, job(folder)]) as processes:
        for victim, epoch in halts:
            halted(folder, epoch, processes)
            processes[victim].send_signal(signal.SIGTERM)
            (folder / f"go-{epoch}").touch()
        stopped = [ended(process) for process in processes]
    return folder, killed, stopped


@pytest.mark.parametrize("victim", [1, 0])
def test_either_is_killed(chain, victim):
    """The other ends soon, says which was lost and how to go on, and its code is not 0."""
    pid, (_, own, _), (_, problems, code) = chain[1][victim]
    assert code != 0
    (message,) = [line for line in problems.splitlines() if line.startswith("convattn: ")]
    named = f"process {victim} of 2 (pid {pid} on " in message
    # JAX itself ends those who lose the first, and may be quicker than the thread that says so.
    assert named or (victim == 0 and "by JAX because another process was lost" in message)
    assert "start all of them again in the same folder" in message
    assert "was ended from outside" in own


def test_a_signal_to_either_stops_both(chain):
    """They save, and the same processes go on where they were stopped."""
    for lines, problems, code in chain[2]:
        assert code == 0, problems
        assert [line["status"] for line in lines] == ["stopped", "stopped", "finished"]
    first, second = ([line["step"] for line in lines] for lines, _, _ in chain[2])
    assert first == second
    assert 2 * STEPS_OF_EPOCH < first[0] < first[1] < first[2] == STEPS


def test_what_was_killed_and_stopped_ends_with_the_same_bits(chain, done):
    """As a pair that nothing interrupted, in each process, and its metrics."""
    whole = done[1]["whole"][0]
    for lines, _, _ in chain[2]:
        for name in ("status", "step", "test", "arrays"):
            assert lines[-1][name] == whole[name], name
        found = [loss for line in lines for loss in line["losses"]]
        assert 0 < len(found) < STEPS
        assert found == whole["losses"][-len(found) :]
    one, other = (
        [{name: line[name] for name in line if name not in TIMES} for line in read_metrics(each)]
        for each in (chain[0], done[0] / "whole")
    )
    assert one == other


def test_not_all_come(tmp_path):
    """The message says who waited, where and how long; nothing hangs."""
    where = f"127.0.0.1:{free_port()}"
    given = {"coordinator": where, "processes": 2, "index": 0, "jobs": [], "patience": 0.5}
    with started([{**given, "cache": str(tmp_path)}]) as (process,):
        lines, problems, code = ended(process)
    assert (lines, code) == ([], 1)
    assert f"process 0 of 2 waited 0 s at {where}, and not all processes came" in problems
