"""What no reader may do with an input, whatever the input is.

A finding is an exception that is no documented refusal, a message that is empty or too long, too
much time or memory, a printed traceback, a file that a refusal leaves behind or that is written
outside the reader's folder, a program started, a connection, or an object of a pickle.
"""

import contextlib
import faulthandler
import io
import os
import re
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SECONDS, WAITING = 5.0, 100.0  # of the processor, and in all, that an input may take
MAX_MESSAGE = 4000  # characters
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
DANGER = re.compile(
    r"subprocess\.Popen|os\.(system|exec|fork|forkpty|posix_spawn|spawn)|pty\.spawn|"
    r"socket\.(connect|bind|sendto)|pickle\.find_class|ctypes\.dlopen|webbrowser\.open"
)
CHANGES = re.compile(r"os\.(mkdir|rmdir|remove|rename|link|symlink|truncate|chmod|chown|utime)")


class Finding(Exception):
    """What is wrong with the way in which an input was read."""


class Forbidden(BaseException):
    """What no reader may do; no `except Exception` hides it."""


def require_documented(
    reader: Any, problem: BaseException | None, left: Sequence[str], printed: str
) -> None:
    """Raise a `Finding` unless a reader took an input, or refused it as it documents.

    Args:
        reader: A `Reader`.
        problem: What it raised.
        left: The files in its folder afterwards.
        printed: What it wrote to standard error.
    """
    if "Traceback (most recent" in printed:
        raise Finding(f"printed {printed[:2000]}") from problem
    if problem is None:
        return
    if not isinstance(problem, reader.refusals) or _of_memory(problem):
        raise Finding(f"{type(problem).__name__}: {str(problem)[:300]}") from problem
    if surplus := [name for name in left if not name.startswith("given")]:
        raise Finding(f"left {', '.join(surplus)}") from problem
    if not 0 < len(str(problem).strip()) <= MAX_MESSAGE:
        raise Finding(f"a message of {len(str(problem))} characters") from problem


def _of_memory(problem: BaseException | None) -> bool:
    """Whether memory ended, also where something else was said of it."""
    while problem is not None:
        if isinstance(problem, MemoryError) or "RESOURCE_EXHAUSTED" in str(problem)[:1000]:
            return True
        problem = problem.__cause__ or problem.__context__
    return False


class Watch:
    """Reads inputs in this process, and raises a `Finding` for what no reader may do.

    Args:
        reader: A `Reader`.
        folder: Where it may write; it is emptied after each input.
        seconds: Of the processor that an input may take.
    """

    def __init__(self, reader: Any, folder: Path, seconds: float = SECONDS) -> None:
        self.reader, self.folder, self.seconds = reader, folder.resolve(), seconds
        self.active, self.forbidden = False, ""
        sys.addaudithook(self._hear)
        signal.signal(signal.SIGPROF, self._took_too_long)

    def __call__(self, content: bytes) -> None:
        """Read one input."""
        self.active, self.forbidden, printed = True, "", io.StringIO()
        signal.setitimer(signal.ITIMER_PROF, self.seconds)
        faulthandler.dump_traceback_later(WAITING, exit=True, file=sys.__stderr__)
        problem: BaseException | None = None
        try:
            with contextlib.redirect_stderr(printed):
                self.reader.call(content, self.folder)
        except BaseException as raised:
            problem = raised
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            faulthandler.cancel_dump_traceback_later()
            self.active = False
        left = self.emptied()
        if self.forbidden:
            raise Finding(self.forbidden) from problem
        require_documented(self.reader, problem, left, printed.getvalue())

    def emptied(self) -> list[str]:
        """What was in the folder, which is empty now."""
        left = sorted(os.listdir(self.folder))
        for path in (self.folder / name for name in left):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        return left

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.active or event in self.reader.allowed:
            return
        paths = [args[0]] if event == "open" else args[: 2 if event == "os.rename" else 1]
        writes = event == "open" and isinstance(args[2], int) and args[2] & WRITES
        outside = (writes or CHANGES.fullmatch(event)) and not all(map(self._may_change, paths))
        if outside or DANGER.fullmatch(event):
            self.forbidden = self.forbidden or f"{event} {str(args)[:200]}"
            raise Forbidden(self.forbidden)

    def _may_change(self, path: Any) -> bool:
        if isinstance(path, int) or os.fsdecode(path) == os.devnull:
            return True
        return Path(os.path.realpath(os.fsdecode(path))).is_relative_to(self.folder)

    def _took_too_long(self, *_: object) -> None:
        self.forbidden = f"more than {self.seconds:g} s of the processor"
        raise Forbidden(self.forbidden)
