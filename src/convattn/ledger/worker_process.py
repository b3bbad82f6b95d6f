"""The parent's side of a worker process."""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator

from convattn.ledger.worker import Ready, Result, Task, serve

_SPAWN = multiprocessing.get_context("spawn")


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class WorkerProcess:
    """A spawned worker: what it is doing, since when, and how to talk to it.

    Attributes:
        ready: Whether it has started.
        index: The number of the task it is on; ``None`` if it has none.
        since: When it was started or was given that task.
    """

    def __init__(self, preload: tuple[str, ...], threads: int) -> None:
        """Start a worker that imports ``preload`` and uses so many threads."""
        self.ready = False
        self.index: int | None = None
        self.since = time.perf_counter()
        self.connection, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=serve, args=(theirs, preload, threads), daemon=True)
        with _interrupt_ignored():
            self._process.start()
        theirs.close()

    @property
    def seconds(self) -> float:
        """Seconds since it was started or was given its task."""
        return time.perf_counter() - self.since

    @property
    def awaited(self) -> bool:
        """Whether it owes an answer."""
        return not self.ready or self.index is not None

    def assign(self, index: int, task: Task) -> None:
        """Give it a task."""
        self.index, self.since = index, time.perf_counter()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(task)  # if it is dead, that shows when its answer is awaited

    def receive(self) -> Ready | Result:
        """Its next message.

        Raises:
            EOFError: If it has died.
        """
        try:
            return self.connection.recv()
        except OSError as error:
            raise EOFError from error

    def dismiss(self) -> None:
        """Ask it to end if it is idle, make it end if it is not."""
        if self.awaited:
            self._process.kill()
            return
        with contextlib.suppress(OSError):
            self.connection.send(None)

    def kill(self) -> None:
        """Make it end now."""
        self._process.kill()

    def join(self) -> str:
        """Wait until it has ended, for a second at most if it does not, and say how it ended."""
        self._process.join(1)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self.connection.close()
        code = self._process.exitcode or 0
        if code >= 0:
            return f"the worker process died with exit code {code}"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        hint = " (often: out of memory)" if name == "SIGKILL" else ""
        return f"the worker process died with exit code {code}: {name}{hint}"


@contextlib.contextmanager
def _interrupt_ignored() -> Iterator[None]:
    """Let a child start with interrupts ignored, since the parent answers for all of them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
