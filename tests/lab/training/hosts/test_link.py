"""Links say what is said, and notice an end that is gone, silent or strange."""

import socket
import threading
from contextlib import contextmanager

import pytest

from convattn.lab.training.hosts import Link, LinkLost
from convattn.lab.training.hosts.link import LENGTH


@contextmanager
def ends(silence=None):
    """A link, and the bare connection at its other end."""
    one, other = socket.socketpair()
    link = Link(one, silence)
    try:
        yield link, other
    finally:
        link.end()
        other.close()


def test_a_silent_end_is_lost():
    """As long as it beats it is not, however long nothing else is said."""
    with ends(0.3) as (waiting, other):
        beating, ended = Link(other, 0.3), threading.Event()
        beating.attend(lambda message: None, lambda problem: ended.set())
        heard, lost = [], threading.Event()
        waiting.attend(heard.append, lambda problem: (heard.append(problem), lost.set()))
        assert not lost.wait(1.0)
        beating._done.set()  # its thread stops, and its connection stays open
        assert lost.wait(5.0)
        assert heard == ["it has said nothing for 0 s"]
        assert ended.wait(5.0)


def test_an_end_that_closes_without_goodbye_is_lost():
    with ends() as (link, other):
        other.close()
        with pytest.raises(LinkLost, match="its connection ended"):
            link.receive()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "is none of a run's"),
        *[
            (LENGTH.pack(len(content)) + content, "what is no message")
            for content in (b"nonsense", b"\xff\xff", b"[1, 2]", b'{"value": 1}')
        ],
    ],
    ids=["http", "text", "bytes", "list", "kindless"],
)
def test_a_stranger_who_says_nonsense_is_lost(said, message):
    with ends() as (link, other):
        other.sendall(said)
        with pytest.raises(LinkLost, match=message):
            link.receive()
