"""`Link`: a connection between two processes of a run, over which they say short things.

A message is its length in four bytes and its JSON. One thread at each end says every few seconds
that it is there; an end that has said nothing for `SILENCE` seconds is lost, as is one whose
connection ends without a `bye`. The connection of a process that is killed ends at that moment; the
silence is for a machine that is cut off or turned off, and for a process that was halted.
"""

import json
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

SILENCE = 60.0  # less than JAX's own patience, which is 100 s
BEATS = 6  # in a silence
LENGTH = struct.Struct(">I")
LONGEST = 2**26
BEAT, BYE = "beat", "bye"

Message = dict[str, Any]


class LinkLost(ConnectionError):
    """The other end is gone, or says nothing any more."""


class Link:
    """One end.

    Args:
        connection: An open stream; this takes it over.
        silence: After how many seconds without a word the other end is lost.

    >>> one, other = (Link(end) for end in socket.socketpair())
    >>> one.send({"kind": "said", "value": [1, "two"]})
    >>> other.receive()
    {'kind': 'said', 'value': [1, 'two']}
    >>> one.close()
    >>> other.receive() is None
    True
    >>> one.end(), other.end()
    (None, None)
    """

    def __init__(self, connection: socket.socket, silence: float | None = None) -> None:
        self._silence = SILENCE if silence is None else silence
        connection.settimeout(self._silence)
        if connection.family != getattr(socket, "AF_UNIX", None):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection, self._sending = connection, threading.Lock()
        self._done, self._parted = threading.Event(), threading.Event()

    def send(self, message: Message) -> None:
        """Say something.

        Raises:
            LinkLost: As described above.
        """
        content = json.dumps(message).encode()
        try:
            with self._sending:
                self._connection.sendall(LENGTH.pack(len(content)) + content)
        except OSError as problem:
            raise LinkLost(str(problem)) from problem

    def receive(self) -> Message | None:
        """What the other end says next; None once it has said goodbye.

        Raises:
            LinkLost: As described above.
        """
        while True:
            (length,) = LENGTH.unpack(self._exactly(LENGTH.size))
            if length > LONGEST:
                raise LinkLost(f"a message of {length} bytes is none of a run's")
            message = read_message(self._exactly(length))
            if message["kind"] == BYE:
                return None
            if message["kind"] != BEAT:
                return message

    def attend(self, heard: Callable[[Message], None], ended: Callable[[str | None], None]) -> None:
        """From now on, in threads: hear what comes, and say that this end is there.

        Args:
            heard: Is given each message.
            ended: Is given what was wrong; None if the other end said goodbye.
        """
        for work in (lambda: self._listen(heard, ended), self._beat):
            threading.Thread(target=work, daemon=True).start()

    def close(self) -> None:
        """Say goodbye; what comes is still heard until the other end has said it too."""
        self._done.set()
        try:
            self.send({"kind": BYE})
            self._connection.shutdown(socket.SHUT_WR)
        except OSError:  # it has gone before
            pass
        self._parted.set()

    def end(self) -> None:
        """Break off."""
        self._done.set()
        self._connection.close()

    def _listen(
        self, heard: Callable[[Message], None], ended: Callable[[str | None], None]
    ) -> None:
        try:
            while (message := self.receive()) is not None:
                heard(message)
        except LinkLost as problem:
            ended(str(problem))
        else:
            ended(None)
            self._parted.wait()  # until this end has said goodbye too
        self.end()

    def _beat(self) -> None:
        while not self._done.wait(self._silence / BEATS):
            try:
                self.send({"kind": BEAT})
            except LinkLost:  # whoever listens notices
                return

    def _exactly(self, size: int) -> bytes:
        parts, missing = [], size
        while missing:
            try:
                part = self._connection.recv(missing)
            except TimeoutError:
                raise LinkLost(f"it has said nothing for {self._silence:.0f} s") from None
            except OSError as problem:
                raise LinkLost(problem.strerror or str(problem)) from problem
            if not part:
                raise LinkLost("its connection ended")
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)


def read_message(content: bytes) -> Message:
    """A message from its JSON.

    Raises:
        LinkLost: If it is none: nothing that follows could be understood.
    """
    try:
        message = json.loads(content)
    except ValueError:  # no JSON, or no UTF-8
        message = None
    if not isinstance(message, dict) or "kind" not in message:
        raise LinkLost("it says what is no message of a run")
    return message
