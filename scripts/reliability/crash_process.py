"""Runs of a command that are killed: in forks of a process that has loaded everything, or whole.

A fork costs no imports. It is sound as long as this process has one thread, and JAX has not begun
to compute; whatever computes, also a check of what was written, runs in a fork of its own.
"""

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

OPENING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = ("rename", "remove", "rmdir", "mkdir", "chmod", "truncate", "link", "symlink")
LONGEST = 300.0  # seconds that a run may take on a busy machine
POLL = 0.001


@dataclass(frozen=True)
class Program:
    """How a command is run.

    Attributes:
        call: Words → exit code, in this process.
        start: What stands before the words in a process of its own.
        ready: What it says when it only waits for SIGTERM; None if it ends by itself.
    """

    call: Callable[[list[str]], int]
    start: tuple[str, ...]
    ready: str | None = None


@dataclass(frozen=True)
class Place:
    """Where a command runs: it writes below the root; what it has for a while, to `temporary`."""

    root: Path
    temporary: Path

    @classmethod
    def make(cls, root: Path) -> "Place":
        """The folders; they may be there."""
        made = cls(root, root / "tmp")
        for folder in (made.out, made.temporary):
            folder.mkdir(parents=True, exist_ok=True)
        return made

    @property
    def out(self) -> Path:
        """What is written."""
        return self.root / "out"


class Run:
    """A run that has been started, the leader of its process group."""

    def __init__(self, number: int, outputs: tuple[Any, Any]) -> None:
        self.number, (self.said, self.errors) = number, outputs
        self.began = time.monotonic()
        self.code: int | None = None

    def ended(self) -> bool:
        """Whether it has ended; its exit code then stands in `code`, negative for a signal."""
        if self.code is None:
            number, status = os.waitpid(self.number, os.WNOHANG)
            if number:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def wait(self, moment: Callable[[], bool] = lambda: False, ready: str | None = None) -> bool:
        """Wait for the moment, or the end; one that says that it is ready is told to end.

        Returns:
            Whether it has ended.
        """
        while not self.ended() and not moment():
            if ready is not None and ready in self.output():
                os.kill(self.number, signal.SIGTERM)
                ready = None
            if time.monotonic() - self.began > LONGEST:
                self.kill()
                raise TimeoutError(f"a run took more than {LONGEST:g} s: {self.output()}")
            time.sleep(POLL)
        return self.ended()

    def kill(self) -> None:
        """Kill all that is of its group, and wait for it."""
        with suppress(ProcessLookupError):
            os.killpg(self.number, signal.SIGKILL)
        while not self.ended():
            time.sleep(POLL)

    def output(self) -> str:
        """What it has said so far, errors last."""
        return "".join(
            os.pread(file.fileno(), 1 << 20, 0).decode(errors="replace")
            for file in (self.said, self.errors)
        )

    def error(self) -> str:
        """What it has said on standard error."""
        return os.pread(self.errors.fileno(), 1 << 20, 0).decode(errors="replace")


def two_files() -> tuple[Any, Any]:
    """For what a run says on standard output and on standard error; in memory, on no disk."""
    first, second = (os.fdopen(os.memfd_create(name), "wb") for name in ("said", "errors"))
    return first, second


def start_fork(
    program: Program, words: Sequence[str], place: Place, stop: int = 0, told: Path | None = None
) -> Run:
    """Run in a fork of this process.

    Args:
        program: What to run.
        words: Its arguments.
        place: Where.
        stop: At which of the calls that change files it kills itself; 0: at none.
        told: Where it writes in the end how many such calls there were.
    """
    outputs = two_files()
    sys.stdout.flush()
    number = os.fork()
    if number:
        return _followed(Run(number, outputs))
    code = 99
    try:
        os.setsid()
        os.chdir(place.root)
        sys.modules["__main__"] = ModuleType("__main__")  # worker processes would load ours
        os.environ["TMPDIR"], tempfile.tempdir = str(place.temporary), None
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for descriptor, file in enumerate(outputs, 1):
            os.dup2(file.fileno(), descriptor)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
        changes = Changes((place.out, place.temporary), stop)
        changes.watch()
        code = program.call(list(words))
        sys.stdout.flush()
        if told is not None:
            told.write_text(json.dumps(changes.names))
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def start_process(program: Program, words: Sequence[str], place: Place) -> Run:
    """Run as a user does."""
    outputs = two_files()
    process = subprocess.Popen(
        [*program.start, *words],
        cwd=place.root,
        stdin=subprocess.DEVNULL,
        stdout=outputs[0],
        stderr=outputs[1],
        env={**os.environ, "TMPDIR": str(place.temporary)},
        start_new_session=True,
    )
    process.returncode = 0  # `Run` waits for it
    return _followed(Run(process.pid, outputs))


def _followed(run: Run) -> Run:
    """The run, once it leads its own group, so that all of it can be killed at any moment."""
    while not run.ended():
        try:
            if os.getpgid(run.number) == run.number:
                break
        except ProcessLookupError:
            break
    return run


class Changes:
    """Counts the calls by which Python changes files, and kills the process group at one of them.

    Of a call that opens a file to write there are two moments, before it and after it: then it is
    empty. Of one that brings a file to the disk there are two as well: half of its content there,
    and all. Of the others there is the moment before; the one after is before the next.
    """

    def __init__(self, folders: Sequence[Path], stop: int) -> None:
        self.folders = tuple(f"{folder.resolve()}{os.sep}" for folder in folders)
        self.stop, self.names, self.within = stop, list[str](), False

    def watch(self) -> None:
        """From now on, in this process."""
        sync = os.fsync

        def halved(descriptor: int) -> None:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            if self._inside(path):
                size = os.fstat(descriptor).st_size // 2
                self._moment(f"half of {path}", lambda: os.ftruncate(descriptor, size))
                self._moment(f"fsync {path}")
            sync(descriptor)

        os.fsync = halved  # type: ignore[assignment]
        sys.addaudithook(self._heard)

    def _heard(self, event: str, given: tuple[Any, ...]) -> None:
        kind = event.removeprefix("os.")
        if self.within or (kind not in CHANGES and event != "open"):
            return
        if event == "open" and (isinstance(given[0], int) or not int(given[2] or 0) & OPENING):
            return
        folder = -1 if event == "open" else given[-1]
        paths = [_path(each, folder) for each in given[: 2 if kind in ("rename", "link") else 1]]
        if not any(map(self._inside, paths)):
            return
        self._moment(f"{kind} {' '.join(paths)}")
        if event == "open":
            flags = given[2]
            self._moment(f"opened {paths[0]}", lambda: os.open(given[0], flags, 0o666))

    def _moment(self, name: str, act: Callable[[], Any] = lambda: None) -> None:
        self.names.append(name)
        if len(self.names) == self.stop:
            self.within = True
            with suppress(OSError):  # then it would have failed
                act()
            os.kill(0, signal.SIGKILL)

    def _inside(self, path: str) -> bool:
        return path.startswith(self.folders)


def _path(given: Any, folder: Any) -> str:
    """A path of an audit event, which may be a descriptor, or be meant within one."""
    try:
        if isinstance(given, int):
            return os.readlink(f"/proc/self/fd/{given}")
        path = os.fsdecode(given)
        if not os.path.isabs(path) and isinstance(folder, int) and folder >= 0:
            path = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), path)
        return os.path.abspath(path)
    except (OSError, TypeError):
        return ""


def apart(work: Callable[..., Any], *given: Any) -> Any:
    """What a function returns, computed in a fork.

    Raises:
        RuntimeError: With the traceback, if it raises.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    number = os.fork()
    if not number:
        try:
            os.close(reading)
            try:
                answer = (True, work(*given))
            except BaseException:
                answer = (False, traceback.format_exc())
            with os.fdopen(writing, "wb") as file:
                pickle.dump(answer, file)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        content = file.read()
    os.waitpid(number, 0)
    right, found = pickle.loads(content) if content else (False, "it ended without an answer")
    if not right:
        raise RuntimeError(found)
    return found
