"""Signals end a run after the call that is under way, and their handlers come back."""

import os
import signal
import threading

import pytest

from convattn.lab.training.session import watch_signals


def handlers():
    return [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_is_noted_and_the_handlers_come_back(name):
    before = handlers()
    with watch_signals() as seen:
        assert not seen
        assert handlers() != before
        os.kill(os.getpid(), getattr(signal, name))
        assert seen
        assert seen == [getattr(signal, name)]
    assert handlers() == before


def test_a_second_interrupt_does_not_wait():
    before = handlers()
    with pytest.raises(KeyboardInterrupt), watch_signals() as seen:  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        assert seen == [signal.SIGINT]
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("the second one was only noted")
    assert handlers() == before


def test_a_second_termination_changes_nothing():
    with watch_signals() as seen:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
    assert seen[0] == signal.SIGTERM


def test_other_threads_leave_signals_alone():
    before, found = handlers(), []

    def watch():
        with watch_signals() as seen:
            found.append((handlers() == before, bool(seen)))

    thread = threading.Thread(target=watch)
    thread.start()
    thread.join()
    assert found == [(True, False)]


def test_handlers_come_back_after_an_error():
    before = handlers()
    with pytest.raises(OSError, match="full"), watch_signals():
        raise OSError("full")
    assert handlers() == before
