"""Who has no token cannot hold connections for long, nor fill the log."""

import contextlib
import socket
import subprocess
import sys
import textwrap
import time

import pytest

from convattn_lab.explorer import connections

HALF = b"GET / HTTP/1.1\r\nHo"
HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"


@pytest.fixture(autouse=True)
def nothing_logged(monkeypatch) -> None:
    monkeypatch.setattr(connections, "_logged", {})


@pytest.mark.parametrize(
    ("sent", "trickle"),
    [(b"", False), (HALF, False), (HALF, True), (HEAD, True)],
    ids=["nothing", "half a head", "a byte now and then", "a body a byte now and then"],
)
@pytest.mark.quick(2)
def test_a_request_that_does_not_arrive_is_closed(
    served, monkeypatch, caplog, sent, trickle
) -> None:
    monkeypatch.setattr(connections, "SECONDS_FOR_HEAD", 0.3)
    clients = [socket.create_connection(("127.0.0.1", served.port), timeout=10) for _ in range(3)]
    began = time.monotonic()
    for client in clients:
        client.sendall(sent)
    with contextlib.suppress(ConnectionError):  # a TimeoutError is none
        while trickle and time.monotonic() - began < 5:
            for client in clients:
                client.sendall(b"x")
            time.sleep(0.05)
        for client in clients:
            while client.recv(2**16):
                pass
    assert time.monotonic() - began < 4
    for client in clients:
        client.close()
    assert not [record for record in caplog.records if record.exc_info]
    lines = [record.getMessage() for record in caplog.records]
    assert len([line for line in lines if "to arrive; closed" in line]) <= 1
    assert served.ask("api/model").code == 200


def test_connections_are_bounded(served, monkeypatch, caplog) -> None:
    monkeypatch.setattr(connections, "bounds", lambda: (5, 128))
    clients = [socket.create_connection(("127.0.0.1", served.port), timeout=10) for _ in range(40)]
    closed = 0
    for client in clients[8:]:  # the first five stay open; what was there before may take more
        try:
            closed += client.recv(1) == b""
        except ConnectionResetError:
            closed += 1
    for client in clients:
        client.close()
    assert closed == 32
    lines = [record.getMessage() for record in caplog.records]
    assert lines == ["more than 5 connections at once; further ones are closed"]


@pytest.mark.slow
def test_few_descriptors_and_many_half_open_requests_leave_one_line() -> None:
    """In a process of its own: the limit of descriptors is the process's."""
    code = """
        import resource, threading, time
        from convattn_lab.explorer.run import Server, configured, listening
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        async def application(scope, receive, send): pass
        held = listening()
        server = Server(configured(application))
        threading.Thread(target=server.run, args=([held],), daemon=True).start()
        while not server.started: time.sleep(0.01)
        print(held.getsockname()[1], flush=True)
        input()
    """
    words = [sys.executable, "-c", textwrap.dedent(code)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(words, text=True, **pipes)
    port, clients = int(process.stdout.readline()), []
    for _ in range(120):
        client = socket.create_connection(("127.0.0.1", port), timeout=10)
        clients.append(client)
        try:
            client.sendall(HALF)
        except ConnectionError:
            continue
    time.sleep(1.5)
    _, err = process.communicate("\n", timeout=20)
    for client in clients:
        client.close()
    assert "Traceback" not in err
    assert err == "ERROR:    more than 18 connections at once; further ones are closed\n"
