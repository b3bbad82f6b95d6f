"""Being asked to stop: SIGTERM and SIGINT end a run after the call that is under way."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Whether a signal came, and which.

    >>> Interruption().signal is None
    True
    """

    def __init__(self) -> None:
        self.signal: str | None = None

    def __bool__(self) -> bool:
        return self.signal is not None


@contextmanager
def watch_signals() -> Iterator[Interruption]:
    """Note SIGTERM and SIGINT instead of dying of them; a second SIGINT interrupts at once.

    Works in the main thread; elsewhere signals are left alone.
    """
    seen = Interruption()

    def note(number: int, frame: FrameType | None) -> None:
        if seen and number == signal.SIGINT:
            raise KeyboardInterrupt
        seen.signal = signal.Signals(number).name

    before = {}
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, note)
    except ValueError:  # not the main thread
        pass
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
