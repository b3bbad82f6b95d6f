"""Two processes train one model as one process would, through whatever ends either of them."""

import json
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import jax
import numpy as np
import pytest
from lab.training.host_process import EPOCHS, STEPS_OF_EPOCH
from lab.training.tiny import metric_lines, process_environment

from convattn_lab.commands.hosts import HostArguments
from convattn_lab.training import hosts
from convattn_lab.training.failures import ProcessesDiffer
from convattn_lab.training.metrics import read_metrics

SCRIPT = Path(__file__).with_name("host_process.py")
LIMIT = 240.0
STEPS = EPOCHS * STEPS_OF_EPOCH


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *((options, "all three") for options in (("a:1", 2, None), (None, 2, 0))),
        *(((where, 2, 0), "HOST:PORT") for where in ("a", ":1", "a:x", "a:65536")),
        *((("a:1", 2, process), f"process={process} of 2") for process in (2, -1)),
        (("a:1", 0, 0), "process=0 of 0"),
    ],
)
def test_processes_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        hosts.start_processes(*arguments)


def test_options_that_cannot_be_are_refused():
    HostArguments().start()
    for arguments, message in (
        ({"process": 0, "distributed": True}, "--distributed"),
        ({"processes": 2}, "coordinator=None, processes=2, process=None"),
    ):
        with pytest.raises(ValueError, match=message):
            HostArguments(**arguments).start()


def test_a_taken_port_is_refused(monkeypatch):
    monkeypatch.setattr(jax.distributed, "initialize", pytest.fail)
    with socket.create_server(("127.0.0.1", 0)) as server:
        where = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ValueError, match=r"the port cannot be used here .*; take another"):
            hosts.start_processes(where, 2, 0)
    hosts.check_processes(where, 2, 0)  # now it is free


@pytest.fixture
def second_of_two(monkeypatch):
    """This process as one of two that trains with one like it; what the first gives is 0 or 1."""
    from jax.experimental import multihost_utils

    monkeypatch.setattr(jax, "process_count", lambda: 2)
    monkeypatch.setattr(jax, "process_index", lambda: 1)
    monkeypatch.setattr(jax.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(multihost_utils, "process_allgather", lambda own: np.stack([0 * own, own]))
    monkeypatch.setattr(hosts, "from_first", lambda value: {"a": 1, "b": 2})


def test_what_differs_is_named(second_of_two):
    hosts.check_equal({"b": 2, "a": 1})
    with pytest.raises(ProcessesDiffer, match="process 1 differs from process 0 in b, c; give"):
        hosts.check_equal({"a": 1, "b": 3, "c": 4})


def test_a_program_for_one_process_refuses_two(second_of_two):
    with pytest.raises(ValueError, match="2 processes, but a script"):
        hosts.one_process_alone("a script")


@contextmanager
def started(arguments):
    """The processes, one for each of these; they are killed at the end."""
    words = [[sys.executable, SCRIPT, json.dumps(options)] for options in arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(options, env=process_environment(), **pipes) for options in words]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def pair(cache, jobs):
    """Two processes that meet over the loopback device."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{probe.getsockname()[1]}"
    shared = {"coordinator": where, "cache": str(cache), "jobs": jobs}
    return started([{**shared, "index": index} for index in (0, 1)])


def ended(process):
    """The JSON lines that it wrote, its messages, its exit code."""
    output, problems = process.communicate(timeout=LIMIT)
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return lines, problems, process.returncode


def halted(folder, epoch, processes):
    """Return when a process waits after this epoch."""
    until = time.monotonic() + LIMIT
    while not (folder / f"waiting-{epoch}").exists():
        assert time.monotonic() < until
        for process in processes:
            assert process.poll() is None, ended(process)
        time.sleep(0.01)


def job(folder, by=None, **plant):
    return {"folder": str(folder), "plant": plant, "in": [] if by is None else [by]}


@pytest.fixture(scope="module")
def done(cache_folder, tmp_path_factory):
    """What both processes of a pair made of some jobs; in the last one the second is killed."""
    folder = tmp_path_factory.mktemp("hosts")
    jobs = {
        "whole": job(folder / "whole"),
        "share": job(folder / "share", 1, share=1),
        "settings": job(folder / "settings", 1, settings={"learning_rate": 0.2, "seed": 1}),
        "drift": job(folder / "drift", 1, drift=1),
    }
    with pair(cache_folder, [*jobs.values(), job(folder / "chain", 1, halt=1)]) as processes:
        halted(folder / "chain", 1, processes)
        processes[1].kill()
        result = [ended(process) for process in processes]
    for lines, problems, code in result:
        assert len(lines) == len(jobs), problems  # and the last job did not end
        assert code != 0
    return folder, {name: [lines[n] for lines, *_ in result] for n, name in enumerate(jobs)}


@pytest.mark.slow
def test_two_processes_train_to_the_bits_of_two_devices(cache_folder, done):
    """Also planted: what one process takes for its share of a batch is seen in the bits."""
    folder, result = done
    arguments = {"cache": str(cache_folder), "devices": 2, "jobs": [job(folder / "alone")]}
    with started([arguments]) as (process,):
        (alone,), problems, code = ended(process)
    assert code == 0, problems
    assert result["whole"] == [alone, alone]
    assert (alone["status"], alone["step"], len(alone["losses"])) == ("finished", STEPS, STEPS)
    assert result["share"][0]["arrays"] != alone["arrays"]


@pytest.mark.slow
def test_the_first_alone_writes(done):
    """One line for each epoch, one file of events: the other process has written nothing."""
    folder = done[0] / "whole"
    assert [line["epoch"] for line in read_metrics(folder)] == list(range(1, EPOCHS + 1))
    assert len(list((folder / "tensorboard").iterdir())) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("planted", "what"),
    [("settings", "learning_rate, seed"), ("drift", "the state after step ")],
)
def test_processes_that_differ_are_refused(done, planted, what):
    """In both; the one that differs says in what."""
    first, second = done[1][planted]
    assert first["error"].startswith("process 1 differs from process 0; its message says in what")
    assert second["error"].startswith(f"process 1 differs from process 0 in {what}")


@pytest.mark.slow
def test_what_was_killed_and_stopped_ends_with_the_same_bits(cache_folder, done):
    """After the kill, a signal to either stops both; then they go on to the end."""
    folder, uninterrupted = done[0] / "chain", done[1]["whole"][0]
    jobs = [job(folder, 1, halt=2), job(folder, 0, halt=3), job(folder)]
    with pair(cache_folder, jobs) as processes:
        for victim, epoch in ((1, 2), (0, 3)):
            halted(folder, epoch, processes)
            processes[victim].send_signal(signal.SIGTERM)
            (folder / f"go-{epoch}").touch()
        result = [ended(process) for process in processes]
    for lines, problems, code in result:
        assert code == 0, problems
        assert [line["status"] for line in lines] == ["stopped", "stopped", "finished"]
        assert 2 * STEPS_OF_EPOCH < lines[0]["step"] < lines[1]["step"] < lines[2]["step"] == STEPS
        assert all(lines[-1][name] == uninterrupted[name] for name in ("test", "arrays"))
        losses = [loss for line in lines for loss in line["losses"]]
        assert losses == uninterrupted["losses"][-len(losses) :]
    assert metric_lines(folder) == metric_lines(done[0] / "whole")
