"""Being told to end: a command that has started processes must end them first."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NAMES = ("SIGTERM", "SIGHUP")


@contextmanager
def termination_raises() -> Iterator[None]:
    """Raise `SystemExit` on SIGTERM and SIGHUP meanwhile, as SIGINT raises `KeyboardInterrupt`.

    A signal that is ignored or handled already is left so; outside the main thread, all are.
    """
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    changed = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    try:
        for number in changed:
            signal.signal(number, _end)
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
