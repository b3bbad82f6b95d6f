"""Signals end a run after the call that is under way, and their handlers come back."""

import os
import signal

import pytest

from convattn_lab.training.trainer import watch_signals


def handlers():
    return [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_noted_and_the_handlers_come_back(number):
    before = handlers()
    with watch_signals() as received:
        assert not received
        assert handlers() != before
        os.kill(os.getpid(), number)
        assert received == [number]
    assert handlers() == before


def test_a_second_interrupt_does_not_wait():
    before = handlers()
    with pytest.raises(KeyboardInterrupt), watch_signals():  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("the second one was only noted")
    assert handlers() == before
