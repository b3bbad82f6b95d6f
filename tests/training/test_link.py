"""Links say what is said, and notice an end that is gone or silent; the last word is said once."""

import socket
import subprocess
import sys
import threading

import pytest

from convattn.training import processes as processes_module
from convattn.training.failures import OtherProcessFailed, ProcessesDiffer
from convattn.training.link import Link, LinkLost
from convattn.training.processes import Processes


def test_a_silent_end_is_lost():
    """As long as it beats it is not, however long nothing else is said."""
    one, other = socket.socketpair()
    waiting, ended = Link(one, 0.3), threading.Event()
    beating = Link(other, 0.3)
    beating.attend(lambda message: None, lambda problem: ended.set())
    heard, lost = [], threading.Event()
    waiting.attend(heard.append, lambda problem: (heard.append(problem), lost.set()))
    assert not lost.wait(1.0)
    beating._done.set()  # its thread stops, and its connection stays open
    assert lost.wait(5.0)
    assert heard == ["it has said nothing for 0 s"]
    other.close()


def test_an_end_that_closes_without_goodbye_is_lost():
    one, other = socket.socketpair()
    other.close()
    with pytest.raises(LinkLost, match="its connection ended"):
        Link(one).receive()


def test_a_stranger_who_says_nonsense_is_lost():
    one, other = socket.socketpair()
    other.sendall(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(LinkLost, match="is none of a run's"):
        Link(one).receive()
    other.close()


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
    monkeypatch.setattr(processes_module, "PAUSE", 0.0)

    def work(processes):
        if processes.index == failing:
            raise OSError("the disk is full")
        return processes.agree("call", 1)

    found = together(work, work)
    assert isinstance(found[failing], OSError)
    assert isinstance(found[1 - failing], OtherProcessFailed)
    assert f"process {failing} of 2" in str(found[1 - failing])
    assert str(found[1 - failing]).endswith("failed: the disk is full")


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("os.abort()", "was lost\n"),
        ("word.goodbye()", ""),
        ("word.say(); os.abort()", "was lost\n"),
    ],
)
def test_the_last_word_is_said_once(end, said):
    """Even by a process that aborts, with no handler of Python's."""
    code = (
        "import os; from convattn.training.last_word import LastWord; "
        f"word = LastWord('first'); word.change('was lost'); {end}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr == said
