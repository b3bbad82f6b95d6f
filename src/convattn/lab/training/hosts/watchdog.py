"""`Watchdog`: what is said for a process that ends without having said why.

When the process that began the others is lost, JAX ends the rest from within, by an abort that no
Python code sees; and a process that is killed says nothing at all. So a small process of its own
holds the message, and prints it to standard error if the end comes without a goodbye. It ends with
the process that started it, however that ends.
"""

import contextlib
import subprocess
import sys

GOODBYE = b"\0"
PATIENCE = 5.0  # seconds to print a line; standard error may be a pipe that nobody reads
# Lines: the latest is the message. A zero byte: nothing is to be said. Then the pipe's end.
HOLDER = r"""
import signal, sys
for name in ("SIGINT", "SIGTERM", "SIGHUP"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
word = b""
for line in sys.stdin.buffer:
    word = line
if word.strip(b"\n") != b"\0":
    sys.stderr.buffer.write(word)
    sys.stderr.buffer.flush()
"""


class Watchdog:
    """Says the message, should this process end before `goodbye`.

    Args:
        message: One line.

    >>> watchdog = Watchdog("convattn: this process was killed")
    >>> watchdog.goodbye()
    """

    def __init__(self, message: str) -> None:
        self._holder = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", HOLDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C is not for it
        )
        self.change(message)

    def change(self, message: str) -> None:
        """Say this instead."""
        self._write(" ".join(message.split()).encode())

    def goodbye(self) -> None:
        """Nothing is to be said; return when the holder has ended."""
        self._write(GOODBYE)
        self.say()

    def say(self) -> None:
        """Say it now; return when it is said."""
        assert self._holder.stdin is not None
        with contextlib.suppress(OSError):  # somebody has ended it
            self._holder.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._holder.wait(PATIENCE)

    def _write(self, line: bytes) -> None:
        assert self._holder.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it was ended, or has said it
            self._holder.stdin.write(line + b"\n")
            self._holder.stdin.flush()
