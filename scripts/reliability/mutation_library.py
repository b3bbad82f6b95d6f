"""What notices a mutant of the library: the tests that call the function in which it lies.

One process imports the library and collects tests; each mutant is judged in a fork of it that
exchanges the function's code. It then tries the tests that call the function, as many as some
seconds of the processor allow: what noticed another mutant lately, then quick ones, and those of
the files that are named after the module before all others. Tests of other packages are among them
where they import the module. JAX starts in the fork, as its threads would not survive one; a file
of tests that computes while it is read is read there, and so is one that calls the function then.

What stands outside functions, or in a function that is called on import, is left to
`mutation.judge_by_files`, which reads everything anew.

How long tests take, and what they call, is measured once for each version of the library and of
the file of tests.
"""

import gc
import hashlib
import importlib
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import mutation_judge
import pytest
from hypothesis import settings
from mutants import Mutant
from mutation_judge import (
    Step,
    _dotted,
    _exchange,
    _in_fork,
    _measure,
    _members,
    _name,
    _noticed,
    _passes,
    forget,
)

MARGIN = 30.0  # seconds of the processor beyond four times the usual time: programs are compiled
PATIENCE = 900  # seconds for all tests of a mutant: one that waits uses no processor
OF_PROGRAMS = {"cli", "experiments", "page", "proofs", "scripts"}  # folders of tests
REFUSAL = "no fork can use JAX if it starts before"
FLAGS = "--xla_cpu_use_fusion_emitters=false"  # as in tests/conftest.py


def judge_by_calls(
    tree: Path,
    mutants: Sequence[Mutant],
    report: Callable[[Mutant, str], None],
    own: Callable[[Mutant], Sequence[str]],
    cache: Path,
    budget: float,
) -> list[Mutant]:
    """Judge mutants inside functions, and return the others.

    Args:
        tree: The root of the tree; it is not changed.
        mutants: What to judge.
        report: Called after each of them.
        own: The test files that are tried first for a mutant.
        cache: A JSON file for what is measured of tests.
        budget: Seconds of the processor that the tests of a mutant may take; one may in any case.

    Raises:
        RuntimeError: If a test fails without any error in the program.
    """
    read, write = os.pipe()
    process = os.fork()
    if not process:
        os.close(read)
        try:
            _collect(tree, mutants, own, cache, budget, write)
        finally:
            os._exit(0)
    os.close(write)
    left = set(range(len(mutants)))
    done = False
    with open(read) as pipe:
        for line in pipe:
            number, by = json.loads(line)
            done = done or number is None
            if number is None and by:
                raise RuntimeError(by)
            if number is not None:
                left.remove(number)
                report(mutants[number], by)
    os.waitpid(process, 0)
    if not done:
        raise RuntimeError("the judge ended without an answer")
    return [mutants[number] for number in sorted(left)]


def _collect(
    tree: Path,
    mutants: Sequence[Mutant],
    own: Callable[[Mutant], Sequence[str]],
    cache: Path,
    budget: float,
    write: int,
) -> None:
    """Collect the tests in this process, and let `_Judge` run them."""
    with open(write, "w") as pipe, tempfile.TemporaryDirectory() as folder:

        def answer(number: int | None, by: str) -> None:
            print(json.dumps([number, by]), file=pipe, flush=True)

        for output in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), output)
        os.chdir(tree)
        sys.path.insert(0, str(tree / "src"))
        os.environ["PYTHONPATH"] = str(tree / "src")
        forget("convattn")
        files = {file for mutant in mutants for file in own(mutant)}
        for package in {Path(mutant.module).parts[2] for mutant in mutants}:
            near = (tree / "tests" / package).rglob("test_*.py")
            files |= {str(file.relative_to(tree)) for file in near}
        files |= set(_importing(tree, {_dotted(mutant) for mutant in mutants}))
        plugin = _Judge(tree, mutants, own, cache, budget, answer)
        options = ["-q", "-s", "-p", "no:cacheprovider", "--basetemp", f"{folder}/tests"]
        code = pytest.main([*options, *sorted(files)], plugins=[plugin])
        answer(None, plugin.failed or ("" if plugin.done else f"pytest ended with {code!r}"))


def _importing(tree: Path, modules: set[str]) -> Iterable[str]:
    """The test files of any package that import one of the modules, but for those of programs."""
    imported = re.compile(rf"^from ({'|'.join(map(re.escape, sorted(modules)))}) import", re.M)
    for file in (tree / "tests").rglob("test_*.py"):
        name = file.relative_to(tree)
        if name.parts[1] not in OF_PROGRAMS and imported.search(file.read_text("utf-8")):
            yield str(name)


class _Judge:
    """A plugin of pytest, which judges mutants where the tests would run."""

    def __init__(
        self,
        tree: Path,
        mutants: Sequence[Mutant],
        own: Callable[[Mutant], Sequence[str]],
        cache: Path,
        budget: float,
        answer: Callable[[int | None, str], None],
    ) -> None:
        self.tree, self.mutants, self.own = tree, mutants, own
        self.cache, self.budget, self.answer = cache, budget, answer
        self.at_import: set[str] = set()  # functions called while the library is imported
        self.at_reading: dict[str, set[str]] = {}  # and while a file of tests is read
        self.unread: list[str] = []
        self.reading = ""
        self.done, self.failed = False, ""
        self.started = start_jax(False)
        sys.setprofile(self._note)

    def _note(self, frame: Any, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event != "call" or not module.startswith("convattn."):
            return
        name = f"{module}:{frame.f_code.co_qualname.split('.<')[0]}"
        read = self.at_reading.setdefault(self.reading, set())
        if name in read or name in self.at_import:
            return
        while frame and not (frame.f_code.co_name == "<module>" and _of_library(frame)):
            frame = frame.f_back
        (self.at_import if frame else read).add(name)

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        """Note the file."""
        if isinstance(collector, pytest.File):
            self.reading = collector.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note the files that compute while they are read."""
        if report.failed:
            self.unread.append(report.nodeid)
            if REFUSAL not in str(report.longrepr):
                self.failed = f"{report.nodeid} cannot be read: {report.longrepr}"

    def pytest_collection(self) -> None:
        """Change the profile that tests/conftest.py has loaded."""
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the place of the tests' run."""
        sys.setprofile(None)
        if self.started:
            self.started()
        mutation_judge.MARGIN = MARGIN
        gc.collect()
        gc.freeze()
        try:
            steps = [] if self.failed else self._measured(session.items)
        except (RuntimeError, mutation_judge._BrokenOffError) as error:
            self.failed = str(error)
        if self.failed:
            return True
        noticed: dict[str, int] = {}  # when a test last noticed a mutant: it may notice the next
        for number, mutant in enumerate(self.mutants):
            name = _name(mutant)
            if mutant.function and name not in self.at_import:
                order = sorted(steps, key=lambda step: (-noticed.get(step.name, -1), step.seconds))
                by = self._judged(mutant, [step for step in order if self._may_notice(step, name)])
                if by is not None:
                    noticed[by] = number
                    self.answer(number, by)
        self.done = True
        return True

    def _may_notice(self, step: Step, name: str) -> bool:
        """Whether it calls the function, and was not read with the one that is no mutant."""
        file, _, test = step.name.partition("::")
        return name in step.calls and not (test and name in self.at_reading.get(file, ()))

    def _judged(self, mutant: Mutant, steps: Sequence[Step]) -> str | None:
        """What notices a mutant, or None if its function's code cannot be exchanged."""
        code = mutant.applied((self.tree / mutant.module).read_bytes())
        loader: Any = importlib.import_module(_dotted(mutant)).__loader__
        compiled = loader.source_to_code(code, str(self.tree / mutant.module))
        if not steps or not _exchange(mutant, compiled, False):
            return None
        own, spent, chosen = self.own(mutant), 0.0, list[Step]()
        for step in sorted(steps, key=lambda step: step.name.split("::")[0] not in own):
            if spent + step.seconds <= self.budget or not chosen:
                chosen.append(step)
                spent += step.seconds

        def work() -> str:
            signal.alarm(PATIENCE)
            start_jax()
            return str(_exchange(mutant, compiled) and _noticed(chosen))

        try:
            return str(_in_fork(work))
        except mutation_judge._BrokenOffError as error:
            return str(error)

    def _measured(self, items: Sequence[pytest.Item]) -> list[Step]:
        """The tests with their seconds and calls, each file in a fork of its own; then files."""
        text = self.cache.read_text("utf-8") if self.cache.exists() else "{}"
        known, steps = json.loads(text), []
        dotted = {_dotted(mutant).split(".")[1] for mutant in self.mutants}
        packages = tuple(f"convattn.{name}" for name in sorted(dotted))
        sources = sorted((self.tree / "src/convattn").rglob("*.py"))
        version = hashlib.sha256(b"".join(file.read_bytes() for file in sources))
        groups: dict[str, list[Step]] = {}
        for item in items:
            file = str(item.path.relative_to(self.tree))
            groups.setdefault(file, []).append(Step(item.nodeid, _passes(item)))
        groups |= {file: [Step(file, _file_passes(file))] for file in self.unread}
        for file, tests in groups.items():
            key = version.copy()
            key.update((self.tree / file).read_bytes() + str(packages).encode())
            if known.get(file, {}).get("version") != key.hexdigest():
                found = _in_fork(partial(_measure_here, tests, packages))
                if file in self.unread and not found[0][0]:
                    continue  # it cannot be read twice in one process, and judges nothing
                for test, (holds, *_) in zip(tests, found, strict=True):
                    if not holds:
                        raise RuntimeError(f"without any error in the program: {test.name}")
                known[file] = {"version": key.hexdigest(), "tests": found}
                beside = self.cache.with_name(self.cache.name + ".part")
                beside.write_text(json.dumps(known))
                beside.replace(self.cache)
            total = 1.0
            for test, (_, seconds, calls) in zip(tests, known[file]["tests"], strict=True):
                steps.append(test._replace(seconds=seconds, calls=frozenset(calls)))
                total += seconds
            if file not in self.unread:
                read = frozenset(self.at_reading.get(file, ()))
                steps.append(Step(file, _file_passes(file), total, read))
        return steps


def _of_library(frame: Any) -> bool:
    return str(frame.f_globals.get("__name__", "")).split(".")[0] == "convattn"


def _file_passes(file: str) -> Callable[[], bool]:
    """Whether all tests of a file pass, which is read again."""

    def holds() -> bool:
        for name, module in list(sys.modules.items()):
            if (getattr(module, "__file__", None) or "").endswith(file):
                del sys.modules[name]
        plugin = mutation_judge._FirstFailure()
        options = ["-x", "-q", "-s", "-p", "no:cacheprovider", "--import-mode=importlib"]
        code = pytest.main([*options, file], plugins=[plugin, _Profile()])
        return not code and not plugin.name

    return holds


class _Profile:
    """A plugin of pytest, for `_file_passes`."""

    def pytest_collection(self) -> None:
        """Change the profile that tests/conftest.py has loaded."""
        settings.load_profile("mutants")


def start_jax(really: bool = True) -> Callable[[], None] | None:
    """Start it with the flags of the tests, if it is there and has not started.

    Args:
        really: Or keep it from starting, until what is returned is called.
    """
    if "jax" not in sys.modules:
        return None
    import jax
    from jax._src import xla_bridge

    if xla_bridge.backends_are_initialized():
        return None
    if not really:

        def refuse(*_: object) -> None:
            raise RuntimeError(REFUSAL)

        inside: Any = xla_bridge
        devices, start = jax.devices, inside._init_backend
        jax.devices = lambda *_: []
        inside._init_backend = refuse

        def allow() -> None:
            jax.devices, inside._init_backend = devices, start

        return allow
    given = os.environ.pop("XLA_FLAGS", None)
    os.environ["XLA_FLAGS"] = FLAGS
    jax.devices()
    del os.environ["XLA_FLAGS"]
    if given is not None:
        os.environ["XLA_FLAGS"] = given
    return None


def _measure_here(
    tests: Iterable[Step], packages: tuple[str, ...]
) -> list[tuple[bool, float, list[str]]]:
    """For each test whether it passes, its seconds, and the functions it calls."""
    signal.alarm(PATIENCE)
    start_jax()
    return _measure(tests, packages, _forget_results)


def _forget_results() -> None:
    """Empty what keeps its results, which would hide a call."""
    for _, each in _members(("convattn.",)):
        if callable(getattr(each, "cache_clear", None)):
            each.cache_clear()
