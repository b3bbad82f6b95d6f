"""Processes agree, and hear of the failure of another."""

import socket
import threading
import time

import jax
import pytest

from convattn.lab.training.failures import OtherProcessFailed, ProcessesDiffer
from convattn.lab.training.hosts import Link, Processes, peers


def together(first, second):
    """Run both, each as one of two processes, in threads; what came of them."""
    ends, found = socket.socketpair(), [None, None]

    def take_part(index, work):
        processes = Processes(index, 2, {1 - index: Link(ends[index])})
        problem = None
        try:
            found[index] = work(processes)
        except Exception as error:
            found[index] = problem = error
        processes.leave(problem)

    threads = [threading.Thread(target=take_part, args=pair) for pair in enumerate((first, second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return found


def test_they_agree():
    def say(processes):
        return processes.agree("x", processes.index + 5), processes.from_first("y", processes.index)

    assert together(say, say) == [([5, 6], 0), ([5, 6], 0)]


def test_they_differ():
    found = together(
        lambda processes: processes.compare("settings", {"a": 1, "b": 2}),
        lambda processes: processes.compare("settings", {"a": 1, "b": 3, "c": 4}),
    )
    assert [type(problem) for problem in found] == [ProcessesDiffer] * 2
    assert "process 1 of 2" in str(found[0])
    assert "differs from process 0 in b, c;" in str(found[0])


def test_another_course_is_seen():
    """Planted: one asks about another thing than the other. Neither waits for ever."""
    found = together(
        lambda processes: processes.agree("call", 1), lambda processes: processes.agree("end", 1)
    )
    assert {*map(type, found)} <= {ProcessesDiffer, OtherProcessFailed}
    assert ProcessesDiffer in map(type, found)


@pytest.mark.parametrize("failing", [0, 1])
def test_a_failure_is_told(monkeypatch, failing):
    monkeypatch.setattr(peers, "PAUSE", 0.0)

    def work(processes):
        if processes.index == failing:
            raise OSError("the disk is full")
        return processes.agree("call", 1)

    found = together(work, work)
    assert isinstance(found[failing], OSError)
    assert isinstance(found[1 - failing], OtherProcessFailed)
    assert f"process {failing} of 2" in str(found[1 - failing])
    assert str(found[1 - failing]).endswith("failed: the disk is full")


def test_who_fails_waits_for_the_others(monkeypatch):
    """They may be busy, and JAX aborts them when its first process ends."""
    monkeypatch.setattr(peers, "PAUSE", 0.0)
    course = []
    leave = Processes.leave

    def leave_noting(processes, problem):
        if processes.index == 1:
            time.sleep(0.5)
            course.append(processes.index)
        leave(processes, problem)
        course.append(processes.index)

    monkeypatch.setattr(Processes, "leave", leave_noting)

    def work(processes):
        if processes.index == 0:
            raise OSError("the disk is full")
        return processes.agree("call", 1)

    together(work, work)
    assert course[0] == 1  # the first had not left when the other came to leave
    assert sorted(course) == [0, 1, 1]


def test_what_comes_of_another_failure_is_not_silent(monkeypatch, capfd):
    """JAX raises in the one because the other, which says that its disk is full, has ended."""
    monkeypatch.setattr(peers, "PAUSE", 0.5)

    def work(processes):
        if processes.index == 0:
            raise OSError("the disk is full")
        raise jax.errors.JaxRuntimeError("connection closed by peer")

    together(work, work)
    told = [line for line in capfd.readouterr().err.splitlines() if line.startswith("convattn: ")]
    assert len(told) == 1
    assert told[0].endswith("failed: the disk is full; process 1 ends too")
