"""Ctrl-C while modules are being loaded.

An exception that is raised amid the loading of JAX comes up in initialisers written in C++, which
crash, report another error or go on as if nothing had been. So while a module is being loaded, the
process is ended there and then; at all other times `KeyboardInterrupt` is raised as usual.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

INTERRUPTED, STANDARD_ERROR = 130, 2
IMPORTER = "<frozen importlib._bootstrap>"


@contextmanager
def loading_can_be_interrupted(command: str) -> Iterator[None]:
    """End the process on SIGINT while a module is being loaded, with a message.

    A signal that is ignored or handled already is left so; outside the main thread, all are.

    Args:
        command: How the message calls it.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        caller = frame
        while caller is not None:
            if caller.f_code.co_filename == IMPORTER:
                with suppress(OSError):
                    os.write(STANDARD_ERROR, message)
                os._exit(INTERRUPTED)
            caller = caller.f_back
        raise KeyboardInterrupt

    message = f"{command}: interrupted\n".encode(errors="backslashreplace")
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
