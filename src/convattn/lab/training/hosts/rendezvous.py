"""How the processes of a run find each other: the first listens, the others come to it.

The first listens at a port that is free, and tells the others through JAX where, and a word by
which it knows them.
"""

import errno
import json
import os
import secrets
import socket
import time
from typing import Any

import numpy as np

from convattn.lab.training.hosts.broadcast import broadcast_arrays
from convattn.lab.training.hosts.link import Link, LinkLost

PATIENCE = 60.0  # seconds until all must have come
HELLO = 5.0  # seconds for one to say who it is, or to answer
ROOM = 1024


def name_of_this_process() -> str:
    """Which process of which machine this is."""
    return f"pid {os.getpid()} on {socket.gethostname()}"


def meet(index: int, count: int) -> dict[int, Link]:
    """Links from the first process to the others, and from each of them to the first.

    Raises:
        TimeoutError: If one does not come, or cannot reach the first.
    """
    if index:
        return {0: _go_to_first(index, _told({}))}
    with listening() as server:
        where = {
            "host": socket.gethostname(),
            "addresses": _addresses(),
            "port": server.getsockname()[1],
            "word": secrets.token_hex(16),
        }
        _told(where)
        return _receive(server, where["word"], count)


def _told(where: dict[str, Any]) -> dict[str, Any]:
    """What the first process gives, in all of them."""
    room = np.zeros(ROOM, np.uint8)
    content = np.frombuffer(json.dumps(where).encode(), np.uint8)
    room[: len(content)] = content
    [found] = broadcast_arrays([room])
    return json.loads(found.tobytes().rstrip(b"\0"))


def listening(port: int = 0) -> socket.socket:
    """A server at all addresses of this machine.

    Args:
        port: Any free one if 0.

    Raises:
        OSError: If the port is taken.

    >>> listening().close()
    """
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError as problem:
            if problem.errno == errno.EADDRINUSE:
                raise
            # else there is no IPv6 here
    return socket.create_server(("", port))


def _addresses() -> list[str]:
    """The names and numbers under which other machines may know this one, the likeliest first."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: it only chooses a way out
            found.append(probe.getsockname()[0])
        except OSError:
            pass
    return [*found, socket.getfqdn()[:200], socket.gethostname()[:200]]


def _receive(server: socket.socket, word: str, count: int) -> dict[int, Link]:
    links: dict[int, Link] = {}
    until = time.monotonic() + PATIENCE
    while len(links) < count - 1:
        server.settimeout(max(0.01, until - time.monotonic()))
        try:
            connection, _ = server.accept()
        except TimeoutError:
            missing = sorted({*range(1, count)} - {*links})
            raise TimeoutError(
                f"process {', '.join(map(str, missing))} of {count} did not come to process 0 "
                f"within {PATIENCE:.0f} s; see its messages, and whether the machines can open "
                "connections to each other"
            ) from None
        try:
            hello = Link(connection, HELLO).receive() or {}
        except LinkLost:
            hello = {}
        if secrets.compare_digest(str(hello.get("word")).encode(), word.encode()):
            link = Link(connection)
            link.send({"kind": "welcome"})
            links[int(hello["index"])] = link
        else:
            connection.close()
    return links


def _go_to_first(index: int, where: dict[str, Any]) -> Link:
    here = where["host"] == socket.gethostname()
    tried = []
    for address in dict.fromkeys([*["127.0.0.1"] * here, *where["addresses"], "127.0.0.1"]):
        try:
            connection = socket.create_connection((address, where["port"]), HELLO)
        except OSError as problem:
            tried.append(f"{address}: {problem}")
            continue
        asking = Link(connection, 2 * HELLO)
        try:
            asking.send({"kind": "hello", "word": where["word"], "index": index})
            if (asking.receive() or {}).get("kind") == "welcome":
                return Link(connection)
            tried.append(f"{address}: somebody else answers")
        except LinkLost as problem:
            tried.append(f"{address}: {problem}")
        asking.end()
    raise TimeoutError(
        f"process {index} cannot reach process 0 at port {where['port']} ({'; '.join(tried)}); the "
        "machines must be able to open connections to each other at any port"
    )
