"""Bounds on connections: how many there are, and how long a client may take over its request.

Who has no token may still connect. Without a bound on the connections, a process runs out of
descriptors, and asyncio then logs a traceback for each connection that waits, every second. Uvicorn
has a deadline for the next request of a connection, but none for a head that was begun.
"""

import asyncio
import errno
import logging
import time
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 256
BACKLOG = 128  # asyncio accepts as many at a time, before any of them can be closed
RESERVED_DESCRIPTORS = 64  # of the process, for all but connections
SECONDS_FOR_HEAD = 10.0
SECONDS_BETWEEN_LINES = 60.0
LOG = logging.getLogger("uvicorn.error")


def bounds() -> tuple[int, int]:
    """How many connections are held, and how many wait, within the process's descriptors."""
    try:
        import resource
    except ImportError:  # no POSIX system
        return MAX_CONNECTIONS, BACKLOG
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS, BACKLOG
    half = max(4, (limit - RESERVED_DESCRIPTORS) // 2)
    return min(MAX_CONNECTIONS, half), min(BACKLOG, half)


class BoundedConnection(H11Protocol):
    """A connection that is closed if it is one too many, or its request does not arrive."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Take the connection, or close it."""
        super().connection_made(transport)
        limit = bounds()[0]
        if len(self.connections) > limit:
            _log_once(f"more than {limit} connections at once; further ones are closed")
            transport.abort()
            return
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        """Go on with the request; what belongs to it must arrive before the deadline."""
        super().data_received(data)
        ours, theirs = self.conn.our_state, self.conn.their_state
        if theirs is h11.IDLE or (ours is h11.DONE and theirs is h11.SEND_BODY):
            self._set_deadline()
        else:
            self._clear_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the deadline with the connection."""
        self._clear_deadline()
        super().connection_lost(exc)

    def _set_deadline(self) -> None:
        """Only once: a byte now and then does not put it off."""
        if self._deadline is None:
            self._deadline = self.loop.call_later(SECONDS_FOR_HEAD, self._close)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close(self) -> None:
        _log_once(f"a request took more than {SECONDS_FOR_HEAD:g} seconds to arrive; closed")
        self.transport.abort()


def without_traceback(record: logging.LogRecord) -> bool:
    """For a logger: one line, now and then, if the process has no descriptor left."""
    problem = record.exc_info[1] if record.exc_info else None
    if isinstance(problem, OSError) and problem.errno in (errno.EMFILE, errno.ENFILE):
        _log_once("no more files or connections can be opened; close some, or raise ulimit -n")
        return False
    return True


def _log_once(message: str) -> None:
    """Log a line, unless it was logged less than a minute ago."""
    now = time.monotonic()
    if now - _logged.get(message, -SECONDS_BETWEEN_LINES) >= SECONDS_BETWEEN_LINES:
        _logged[message] = now
        LOG.error(message)


_logged: dict[str, float] = {}
