"""The first process knows the others among all that may come to its port."""

import socket
import threading

import pytest

from convattn.lab.training.hosts import Link, rendezvous
from convattn.lab.training.hosts.rendezvous import HELLO, _go_to_first, _receive, listening

WORD = "word"


def coming(server, word, index=1):
    """A connection to the server that says who it is."""
    link = Link(socket.create_connection(("127.0.0.1", server.getsockname()[1])), HELLO)
    link.send({"kind": "hello", "word": word, "index": index})
    return link


def test_strangers_are_turned_away():
    """One knows another word, one that is not even ASCII; the third is the one."""
    with listening() as server:
        strangers = [coming(server, "other"), coming(server, "ä")]
        where = {"host": socket.gethostname(), "addresses": [], "word": WORD}
        where["port"], found = server.getsockname()[1], []
        thread = threading.Thread(target=lambda: found.append(_go_to_first(1, where)))
        thread.start()
        links = _receive(server, WORD, 2)
        thread.join(HELLO)
    assert [*links] == [1]
    links[1].send({"kind": "said"})
    assert found[0].receive() == {"kind": "said"}
    for link in (*strangers, *links.values(), *found):
        link.end()


def test_who_does_not_come_is_named(monkeypatch):
    monkeypatch.setattr(rendezvous, "PATIENCE", 0.2)
    with listening() as server:
        stranger = coming(server, "other")
        with pytest.raises(TimeoutError, match="process 1, 2 of 3 did not come"):
            _receive(server, WORD, 3)
        stranger.end()


def test_a_first_process_that_cannot_be_reached_is_said():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    where = {"host": socket.gethostname(), "addresses": ["127.0.0.1"], "port": port, "word": WORD}
    with pytest.raises(TimeoutError, match=f"process 1 cannot reach process 0 at port {port}"):
        _go_to_first(1, where)
