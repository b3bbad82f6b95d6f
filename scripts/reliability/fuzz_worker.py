"""The process of `fuzz.py` that reads: what it may do is bounded, and what it does is watched."""

import faulthandler
import functools
import gc
import importlib.util
import json
import mmap
import os
import re
import resource
import shutil
import signal
import sys
import time
import traceback
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, NoReturn, TextIO

from fuzz_mutations import mutated

ROOT = Path(__file__).resolve().parents[2]
WAITING = 20  # times the processor's time that one input may take, in all
MEMORY = 2**30  # bytes beyond what the process holds after the seeds
GROWN = 2**29  # bytes more in memory, and another worker takes its place
LONGEST_MESSAGE = 4000
GUIDED = 2000  # inputs that are traced, at most a fifth of all
TRIES = 2000  # to make a finding smaller
DANGER = re.compile(
    r"subprocess\.Popen|os\.(system|exec|fork|forkpty|posix_spawn|spawn|startfile)|pty\.spawn|"
    r"socket\.(connect|bind|sendto)|pickle\.find_class|ctypes\.dlopen|webbrowser\.open"
)
PLACES = re.compile(
    r"os\.(mkdir|rmdir|remove|rename|link|symlink|truncate|chmod|chown|utime)|"
    r"shutil\.(rmtree|move|copyfile|copytree|unpack_archive)"
)
# What runs code without its being the data's: imports, named tuples, dataclasses, literals.
OURS = (
    "collections/__init__.py",
    "dataclasses.py",
    "ast.py",
    "enum.py",
    "functools.py",
    "typing.py",
)
TRACEBACK = re.compile(r"Traceback \(most recent|Exception (in|ignored)")
TRUSTED = tuple({sys.prefix, sys.base_prefix, str(ROOT), "<frozen"})


class Forbidden(BaseException):
    """What no reader may do; no `except Exception` hides it."""


@dataclass(frozen=True)
class Finding:
    """What went wrong with one input.

    Attributes:
        kind: exception, message, hang, memory, end, printed, written, left or executed.
        name: Of the input.
        detail: The exception and its place, or what was done.
    """

    kind: str
    name: str
    detail: str

    @property
    def cause(self) -> str:
        """The same for findings of one cause, more or less."""
        place = self.detail.rpartition(" at ")[2] or self.detail
        return f"{self.kind}: {re.sub('[0-9]+', '#', place)[:200]}"


@functools.cache
def table(path: Path) -> dict[str, Any]:
    """The readers of a Python file, by their names."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"--table got {path}, but expected a Python file with READERS")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module.READERS


def drawn(reader: Any, name: str) -> tuple[Random, bool, int]:
    """The random numbers of an input, whether it takes a parent if there are any, and which."""
    seed, index = name.partition(":")[0], name.rpartition(":")[2].rpartition(".")[2]
    rng = Random(f"{reader.name} {seed} {index}")
    return rng, rng.random() < 0.5, rng.randrange(2**32)


def made(reader: Any, name: str, parents: dict[str, bytes] | None = None) -> bytes:
    """The input of that name; `parents` are those that were made already."""
    rng, _, choice = drawn(reader, name)
    parent, dot, _ = name.rpartition(".")
    if dot:
        content = (parents or {}).get(parent) or made(reader, parent)
    else:
        content = reader.seeds[choice % len(reader.seeds)]
    return mutated(content, reader.seeds, rng, reader.folder)


def name_of(reader: Any, seed: int, index: int, parents: Sequence[str]) -> str:
    """What an input is called, where these can be its parents."""
    _, wants, choice = drawn(reader, f"{seed}:{index}")
    parent = parents[choice % len(parents)] if wants and parents else ""
    return f"{parent}.{index}" if parent else f"{seed}:{index}"


WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Guard:
    """Refuses, and remembers, what a reader does to other files or programs while it reads."""

    def __init__(self, folder: Path, allowed: Sequence[str]) -> None:
        self.folder, self.seen, self.active = str(folder.resolve()), "", False
        self.allowed = allowed
        sys.addaudithook(self._hook)

    def _hook(self, event: str, given: tuple[Any, ...]) -> None:
        if not self.active or event in self.allowed:
            return
        kind = ""
        if event == "open":
            writes = isinstance(given[2], int) and bool(given[2] & WRITES)
            writes = writes or (isinstance(given[1], str) and bool(set(given[1]) & set("wax+")))
            kind = "written" if writes and not self._inside(given[0]) else ""
        elif PLACES.fullmatch(event):
            paths = [each for each in given if isinstance(each, str | bytes | os.PathLike)]
            kind = "" if all(map(self._inside, paths)) else "written"
        elif DANGER.fullmatch(event) or (event in ("exec", "compile") and _is_foreign()):
            kind = "executed"
        if kind:
            self.seen = self.seen or f"{kind}: {event} {str(given)[:200]}"
            raise Forbidden(self.seen)

    def _inside(self, path: Any) -> bool:
        known = isinstance(path, int) or path in ("/dev/null", b"/dev/null")
        return known or os.path.realpath(os.fsdecode(path)).startswith(self.folder)


def _is_foreign() -> bool:
    """Whether code is compiled or run by anything but what does so on its own account."""
    frame: FrameType | None = sys._getframe(2)
    for _ in range(4):
        if frame is not None:
            name = frame.f_code.co_filename
            if name.endswith(OURS) or name.startswith("<frozen importlib"):
                return False
            frame = frame.f_back
    return True


class Tracer:
    """Which steps from line to line of the library's own files were taken."""

    def __init__(self) -> None:
        self.steps: set[tuple[int, int, int]] = set()
        self.files: dict[str, bool] = {}

    def __call__(self, frame: FrameType, event: str, given: Any) -> Any:
        """For `sys.settrace`."""
        name = frame.f_code.co_filename
        if not self.files.setdefault(name, f"{os.sep}convattn" in name):
            return None
        code, last = id(frame.f_code), 0

        def step(frame: FrameType, event: str, given: Any) -> Any:
            nonlocal last
            if event == "line":
                self.steps.add((code, last, frame.f_lineno))
                last = frame.f_lineno
            return step

        return step


class Worker:
    """Reads one input after the other in this process.

    Args:
        reader: A `Reader` of `fuzz_readers`.
        folder: Where it may write.
        seconds: Of the processor's time that an input may take.
    """

    def __init__(self, reader: Any, folder: Path, seconds: float) -> None:
        self.reader, self.folder, self.seconds = reader, folder, seconds
        self.tracer, self.messages = Tracer(), Counter[str]()
        self.guard = Guard(folder, reader.allowed)
        self.trusted = set(sys.modules)

    def warm_up(self) -> None:
        """Read the seeds, for what is imported and compiled once, and bound the memory then."""
        for content in self.reader.seeds:
            self._read(content)
            self._emptied()
        self.trusted = set(sys.modules)
        gc.callbacks.clear()  # JAX's prints an error where nested brackets have used up the stack
        status = Path("/proc/self/status").read_text()
        held = int(re.findall(r"VmData:\s+(\d+)", status)[0]) * 1024
        resource.setrlimit(resource.RLIMIT_DATA, (held + MEMORY, held + MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number in (signal.SIGPROF, signal.SIGALRM):
            faulthandler.register(number, 2, all_threads=False, chain=True)

    def judge(self, name: str, content: bytes) -> Finding | None:
        """What is wrong with the way in which an input is read; None if nothing is."""
        self.guard.seen = ""
        signal.setitimer(signal.ITIMER_PROF, self.seconds)
        signal.setitimer(signal.ITIMER_REAL, WAITING * self.seconds)
        self.guard.active = True
        problem = self._read(content)
        self.guard.active = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        left = self._emptied()
        if self.guard.seen:
            kind, _, told = self.guard.seen.partition(": ")
            return Finding(kind, name, told)
        if added := [m for m in set(sys.modules) - self.trusted if not _is_trusted(m)]:
            self.trusted.update(added)
            return Finding("executed", name, f"imported {', '.join(sorted(added))}")
        if printed := self._new_output():
            return Finding("printed", name, printed)
        if problem is None:
            return None
        refused = isinstance(problem, self.reader.refusals)
        if _of_memory(problem):
            return Finding("memory", name, _told(problem))
        if not refused:
            return Finding("exception", name, _told(problem))
        if surplus := [each for each in left if not each.startswith("given")]:
            return Finding("left", name, f"{', '.join(surplus)} after {_told(problem)}")
        message = str(problem)
        self.messages[_pattern(message)] += 1
        if not message.strip() or len(message) > LONGEST_MESSAGE:
            return Finding("message", name, f"{len(message)} characters: {_told(problem)}")
        return None

    def traced(self, name: str, content: bytes) -> tuple[Finding | None, bool]:
        """The same, and whether new lines were reached."""
        known = len(self.tracer.steps)
        sys.settrace(self.tracer)
        try:
            found = self.judge(name, content)
        finally:
            sys.settrace(None)
        return found, len(self.tracer.steps) > known

    def shrunk(self, content: bytes, found: Finding) -> bytes:
        """A smaller content with the same cause; a folder's is left as it is."""
        if self.reader.folder:
            return content

        def fails(shorter: bytes) -> bool:
            again = self.judge(found.name, shorter)
            return again is not None and again.cause == found.cause

        return smaller(content, fails)

    def _read(self, content: bytes) -> BaseException | None:
        try:
            self.reader.call(content, self.folder)
        except KeyboardInterrupt:
            raise
        except BaseException as problem:
            return problem
        return None

    def _emptied(self) -> list[str]:
        """What was in the folder, which is empty now."""
        left = sorted(os.listdir(self.folder))
        for path in (self.folder / each for each in left):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        return left

    def _new_output(self) -> str:
        size = os.lseek(2, 0, os.SEEK_END)
        if not size:
            return ""
        text = os.pread(2, min(size, 2**16), 0).decode(errors="replace")
        os.ftruncate(2, 0)
        found = TRACEBACK.search(text)
        return text[found.start() :][:2000] if found else ""


def _is_trusted(module: str) -> bool:
    place = getattr(sys.modules.get(module), "__file__", None)
    return place is None or place.startswith(TRUSTED)


def _of_memory(problem: BaseException | None) -> bool:
    """Whether memory ended, also where something else was said of it."""
    while problem is not None:
        if isinstance(problem, MemoryError) or "RESOURCE_EXHAUSTED" in str(problem)[:1000]:
            return True
        problem = problem.__cause__ or problem.__context__
    return False


def _told(problem: BaseException) -> str:
    """An exception and the last place in the library where it passed."""
    frames = traceback.extract_tb(problem.__traceback__)
    own = [each for each in frames if f"{os.sep}convattn" in each.filename] or frames[-1:]
    last = f"{Path(own[-1].filename).name}:{own[-1].lineno} {own[-1].name}" if own else "?"
    return f"{type(problem).__name__}: {str(problem)[:300]} at {type(problem).__name__} {last}"


def _pattern(message: str) -> str:
    """A message without what differs from input to input."""
    plain = re.sub(r"'[^']*'|\"[^\"]*\"|[0-9][0-9,.]*", "#", message)
    return re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "(…)", plain)[:160]


def smaller(content: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """A content that fails too, after as many parts were left out as could be.

    >>> smaller(b"abcxdef", lambda content: b"x" in content)
    b'x'
    """
    tries, size = 0, max(1, len(content) // 2)
    while tries < TRIES:
        place, before = 0, len(content)
        while place < len(content) and tries < TRIES:
            tries += 1
            shorter = content[:place] + content[place + size :]
            if fails(shorter):
                content = shorter
            else:
                place += size
        if size == 1 and len(content) == before:
            break
        size = max(1, size // 2)
    return content


def work(given: Namespace) -> None:
    """A worker's process, which says what it found on standard output, a JSON object a line."""
    say = os.fdopen(os.dup(1), "w", buffering=1)
    folder = Path(given.folder)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(folder / "printed", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND), 2)
    scratch = folder / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    os.chdir(scratch)
    if given.guided:
        guided_search(given, scratch, say)
        return
    reader = table(given.table)[given.reader]
    worker = Worker(reader, scratch, given.seconds)
    worker.warm_up()
    if given.files:
        for path in given.files:
            content = path.read_bytes()
            say.write(json.dumps({"begun": str(path)}) + "\n")
            found = worker.judge(str(path), content)
            if found is not None:
                say.write(json.dumps(vars(found)) + "\n")
                if given.shrink:
                    path.write_bytes(worker.shrunk(content, found))
    else:
        search(given, reader, worker, say)
    finish(worker, say)


class Place:
    """Which input is read, kept in a file that outlives this process; and when to end it."""

    def __init__(self, given: Namespace) -> None:
        self.given, self.started_by = given, os.getppid()
        self.most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + GROWN // 1024
        self.file = mmap.mmap(os.open(Path(given.folder) / "place", os.O_RDWR), 8)

    def may_read(self, index: int) -> bool:
        """Note this input, and say whether this process is to read it."""
        self.file[:] = index.to_bytes(8, "little")
        return (
            index < self.given.inputs
            and os.getppid() == self.started_by  # somebody listens
            and time.process_time() <= 60 * self.given.minutes
            and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss <= self.most
        )


def search(given: Namespace, reader: Any, worker: Worker, say: TextIO) -> None:
    """Make and read the inputs from `--start` on."""
    folder, place = Path(given.folder), Place(given)
    names = (folder / "parents").read_text().split()
    parents: dict[str, bytes] = {}
    for name in names:
        parents[name] = made(reader, name, parents)
    index = given.start
    while place.may_read(index):
        name = name_of(reader, given.seed, index, names)
        content = made(reader, name, parents)
        if index < min(GUIDED, given.inputs // 5):
            found, new = worker.traced(name, content)
            if new and found is None:
                parents[name] = content
                names.append(name)
                with (folder / "parents").open("a") as file:
                    file.write(f"{name}\n")
        else:
            found = worker.judge(name, content)
        if found is not None:
            say.write(json.dumps(vars(found)) + "\n")
        index += 1


def guided_search(given: Namespace, scratch: Path, say: TextIO) -> None:
    """The same with Atheris, which keeps as parents what reaches new branches of the library.

    An input is called by the file in which it is kept, `current` while it is read.
    """
    import atheris  # type: ignore[import-untyped]  # no requirement of ours

    with atheris.instrument_imports(include=["convattn", "convattn_check"]):
        reader = table(given.table)[given.reader]
        worker = Worker(reader, scratch, given.seconds)
        worker.warm_up()
    folder, place, index = Path(given.folder), Place(given), given.start
    corpus = folder / "corpus"
    corpus.mkdir(exist_ok=True)
    for number, content in enumerate(reader.seeds):
        (corpus / f"seed-{number}").write_bytes(content)
    current = os.open(folder / "current", os.O_RDWR | os.O_CREAT)

    def read(content: bytes) -> None:
        nonlocal index
        if not place.may_read(index):
            finish(worker, say)
        if index == given.start:
            worker.trusted = set(sys.modules)  # with those of Atheris
        os.ftruncate(current, 0)
        os.pwrite(current, content, 0)
        found = worker.judge(str(folder / f"found-{index}"), content)
        if found is not None:
            Path(found.name).write_bytes(content)
            say.write(json.dumps(vars(found)) + "\n")
        index += 1

    def mutate(content: bytes, most: int, seed: int) -> bytes:
        rng = Random(seed)
        if reader.folder or rng.random() < 0.5:
            changed = mutated(content, reader.seeds, rng, reader.folder)
            return changed if len(changed) <= most else content
        return atheris.Mutate(content, most)

    options = ["-timeout=0", "-rss_limit_mb=0", f"-max_len={2**20}", "-verbosity=0", "-runs=-1"]
    seed = f"-seed={1 + given.seed * 10**6 + given.start}"  # 0 would be drawn
    atheris.Setup([sys.argv[0], *options, seed, str(corpus)], read, custom_mutator=mutate)
    atheris.Fuzz()


def finish(worker: Worker, say: TextIO) -> NoReturn:
    """Say what the refusals were, and end."""
    say.write(json.dumps({"messages": worker.messages}) + "\n")
    say.flush()
    os._exit(0)  # threads of a server may still run
