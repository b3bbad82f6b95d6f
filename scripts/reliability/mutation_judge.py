"""What notices a mutant of the checker: certificates with known verdicts first, then its tests.

One process imports the checker and collects its tests; each mutant is judged in a fork of it. Where
an error lies inside a function, the fork exchanges that function's code, and nothing is read again.
It then tries the quick certificates of tests/incorrect, tests/correct and certificates/ in which
the function is called, the tests of its module that call it, and of all others that call it as many
as a few seconds allow, until one does not say what it should. What stands outside functions, or in
a function that is called when the checker is imported, is tried with the checker imported anew: on
the same certificates, and on the tests of its module.

How long certificates and tests take, and what they call, is measured once for each version of the
checker.
"""

import builtins
import contextlib
import gc
import hashlib
import importlib
import importlib.abc
import importlib.util
import json
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings
from mutants import Mutant

PACKAGE, TESTS = Path("src/convattn_check"), Path("tests/convattn_check")
WHOLE_PACKAGE = "import convattn_check$"
OPTIONS = (
    f"--confcutdir={TESTS}",
    "-p",
    "no:cacheprovider",
    "-o",
    "addopts=--import-mode=importlib",
)
# Tests that ask for nothing but the verdicts on the certificates.
REPEATED = ("test_every_falsehood_is_refused_for_its_reason", "test_every_truth_is_accepted")
# Tests that ask for the modules by name when they run, and so look at a checker imported anew.
ANEW = ("test_the_page_has_every_identity_word_for_word",)
MARGIN = 1.0  # seconds of the processor beyond four times the usual time
QUICK = 0.1  # seconds of the processor that a certificate may take to be tried
BUDGET = 3.0  # seconds of the processor for the tests of other modules
PATIENCE = 60.0  # seconds of the processor that the tests of a module may take

# The same examples in every run, and no search for the smallest that fails.
settings.register_profile(
    "mutants",
    max_examples=25,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
)


class Step(NamedTuple):
    """A certificate or a test: how to try it, its usual seconds, and the functions it calls."""

    name: str
    holds: Callable[[], bool]
    seconds: float = 0.0
    calls: frozenset[str] = frozenset()


def judge_checker(
    tree: Path,
    mutants: Iterable[Mutant],
    report: Callable[[Mutant, str], None],
    cache: Path,
    *,
    tests: bool = True,
) -> None:
    """Judge mutants of the checker, and report for each what noticed it, or "".

    Args:
        tree: The root of the tree; it is not changed.
        mutants: What to judge.
        report: Called after each of them.
        cache: A JSON file for what is measured of certificates and tests.
        tests: Whether tests may notice mutants, or certificates alone.
    """
    os.chdir(tree)
    sys.path.insert(0, str(tree / "src"))
    os.environ["PYTHONPATH"] = str(tree / "src")
    settings.load_profile("mutants")
    plugin = _Judge(tree, mutants, report, cache, tests)
    code = pytest.main(["-q", "-s", "--disable-warnings", *OPTIONS, str(TESTS)], plugins=[plugin])
    if code not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise RuntimeError(f"pytest ended with {code!r}, expected that it collects {TESTS}")


class _Judge:
    """A plugin of pytest, which judges mutants where the tests would run."""

    def __init__(
        self,
        tree: Path,
        mutants: Iterable[Mutant],
        report: Callable[[Mutant, str], None],
        cache: Path,
        tests: bool,
    ) -> None:
        self.tree, self.mutants, self.report = tree, mutants, report
        self.cache, self.tests = cache, tests
        self.at_import = set(_in_fork(_called_on_import))

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the place of the tests' run."""
        found = [*_certificates(self.tree), *(_tests(session) if self.tests else ())]
        steps = _measured(self.tree, found, self.cache)
        steps = [step for step in steps if _is_test(step) or step.seconds <= QUICK]
        gc.collect()
        gc.freeze()  # so that no fork looks through, and thereby copies, what it shares
        noticed: dict[str, int] = {}  # when a step last noticed a mutant: it may notice the next
        for number, mutant in enumerate(self.mutants):
            order = sorted(steps, key=lambda step: -noticed.get(step.name, -1))
            try:
                by = self._judged(mutant, order)
            except _BrokenOffError as error:
                by = str(error)
            noticed[by] = number
            self.report(mutant, by)
        return True

    def _judged(self, mutant: Mutant, steps: Sequence[Step]) -> str:
        code = mutant.applied((self.tree / mutant.module).read_bytes())
        name, compiled = _name(mutant), compile(code, self.tree / mutant.module, "exec")
        if mutant.function and name not in self.at_import and _exchange(mutant, compiled, False):
            own = _own_tests(self.tree, mutant)
            chosen = _affordable([step for step in steps if name in step.calls], own)
            return str(_in_fork(lambda: _exchange(mutant, compiled) and _noticed(chosen)))
        quick = [step for step in steps if not _is_test(step) or step.name.endswith(ANEW)]
        files = _own_tests(self.tree, mutant) if self.tests else []

        def work() -> str:
            _import(_dotted(mutant), compiled)
            return _noticed(quick) or _failing(files)

        return str(_in_fork(work))


def _name(mutant: Mutant) -> str:
    return f"{_dotted(mutant)}:{mutant.function}"


def _dotted(mutant: Mutant) -> str:
    parts = Path(mutant.module).with_suffix("").parts[1:]
    return ".".join(parts).removesuffix(".__init__")


def _affordable(steps: Iterable[Step], own: Sequence[str]) -> list[Step]:
    """All certificates and own tests, and of other tests, from the quickest on, a few seconds."""
    chosen, spent = [], 0.0
    for step in sorted(steps, key=lambda step: _is_test(step) + (not _is_own(step, own))):
        if _is_test(step) and not _is_own(step, own):
            spent += step.seconds
        if spent <= BUDGET:
            chosen.append(step)
    return chosen


def _is_test(step: Step) -> bool:
    return "::" in step.name


def _is_own(step: Step, own: Sequence[str]) -> bool:
    return step.name.split("::")[0] in own


class _BrokenOffError(Exception):
    """A fork that has no answer, and why."""


def _in_fork(work: Callable[[], Any]) -> Any:
    """What `work` returns in a fork of this process: something that JSON can hold.

    Raises:
        _BrokenOffError: If it raises something, or the fork is ended.
    """
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.close(read)
            try:
                answer = {"value": work()}
            except BaseException as error:
                answer = {"raised": f"{type(error).__name__}: {error}"[:200]}
            with open(write, "w") as pipe:
                json.dump(answer, pipe)
        finally:
            os._exit(0)
    os.close(write)
    with open(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(process, 0)
    answer = json.loads(text) if text else {"raised": f"the process ended with status {status}"}
    if "raised" in answer:
        raise _BrokenOffError(answer["raised"])
    return answer["value"]


def _noticed(steps: Iterable[Step]) -> str:
    """The first step that does not hold, or that takes too long, which ends this process."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    for step in steps:
        signal.setitimer(signal.ITIMER_PROF, 4 * step.seconds + MARGIN)
        if not step.holds():
            return step.name
    return ""


def forget(package: str) -> None:
    """Let the next import of a package, and of what is in it, read it anew."""
    for loaded in [module for module in sys.modules if module.split(".")[0] == package]:
        del sys.modules[loaded]


def _import(name: str = "", code: CodeType | None = None) -> None:
    """Import the checker anew, the module of this name from the code that is given."""
    forget(PACKAGE.name)
    if code is not None:
        loader = _Loader(name, code)
        sys.meta_path.insert(0, loader)
    importlib.import_module(f"{PACKAGE.name}.checking")


class _Loader(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds one module, whose code is given."""

    def __init__(self, name: str, code: CodeType) -> None:
        self.name, self.code = name, code

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Ourselves for this one module."""
        if name != self.name:
            return None
        package = Path(self.code.co_filename).name == "__init__.py"
        spec = importlib.util.spec_from_loader(
            name, self, origin=self.code.co_filename, is_package=package
        )
        if spec is None:
            return None
        spec.has_location = True
        if package:
            spec.submodule_search_locations = [str(Path(self.code.co_filename).parent)]
        return spec

    def is_package(self, name: str) -> bool:
        """Whether the file says so."""
        return Path(self.code.co_filename).name == "__init__.py"

    def get_source(self, name: str) -> None:
        """Not needed."""

    def get_code(self, name: str) -> CodeType:
        """What is run on import."""
        return self.code


def _exchange(mutant: Mutant, compiled: CodeType, really: bool = True) -> bool:
    """Give a function the code of the mutant; false if that would not do, as for a default.

    Nor for a closure: code that keeps less of it does not fit, and its calls are not measured.
    """
    live: Any = sys.modules.get(_dotted(mutant))
    new: CodeType | None = compiled
    for part in mutant.function.split("."):
        live = vars(live).get(part) if live is not None else None
        found = (
            [c for c in new.co_consts if isinstance(c, CodeType) and c.co_name == part]
            if new
            else []
        )
        new = found[0] if len(found) == 1 else None
    function = _plain(live)
    if function is None or new is None or function.__closure__ or function.__code__ == new:
        return False
    if really:
        function.__code__ = new
    return True


def _own_tests(tree: Path, mutant: Mutant) -> list[str]:
    """The test file of a module, those that import from it, and those that look at all modules."""
    stem = Path(mutant.module).stem
    ways = (rf"from convattn_check import .*\b{stem}\b", f"from {_dotted(mutant)} ", WHOLE_PACKAGE)
    asks = re.compile(f"^({'|'.join(ways)})", re.MULTILINE)
    files = sorted((tree / TESTS).glob("test_*.py"))
    mirror = [file for file in files if file.stem == f"test_check_{stem}"]
    others = [file for file in files if file not in mirror and asks.search(file.read_text())]
    return [str(file.relative_to(tree)) for file in [*mirror, *others]]


class _FirstFailure:
    """A plugin of pytest that keeps the name of a test that fails, and leaves out others."""

    name = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Without the tests that would repeat what was done."""
        items[:] = [item for item in items if item.name not in REPEATED]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the first name."""
        self.name = self.name or (report.nodeid if report.failed else "")


def _failing(files: Sequence[str]) -> str:
    """The first test of these files that fails, all modules read again."""
    if not files:
        return ""
    for name, module in list(sys.modules.items()):
        if str(TESTS) in (getattr(module, "__file__", None) or ""):
            del sys.modules[name]
    plugin = _FirstFailure()
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
        code = pytest.main(["-x", "-q", "-s", *OPTIONS, *files], plugins=[plugin])
    return plugin.name or (f"pytest ended with {code!r}" if code else "")


def _certificates(tree: Path) -> Iterator[Step]:
    for folder in ("tests/incorrect", "tests/correct"):
        listed = json.loads((tree / folder / "manifest.json").read_text())["certificates"]
        for entry in listed:
            if (path := tree / folder / entry["file"]).exists():
                yield Step(f"{folder}/{path.name}", _says(path, entry))
    for path in sorted((tree / "certificates").glob("*.json")):
        yield Step(f"certificates/{path.name}", _says(path, {"reason": ""}))


def _says(path: Path, entry: dict[str, str]) -> Callable[[], bool]:
    """Whether the checker says of a file what its manifest says."""
    content = path.read_bytes()

    def holds() -> bool:
        checking = sys.modules[f"{PACKAGE.name}.checking"]
        verdict = checking.check(content)
        return (
            verdict.accepted == ("code" not in entry)
            and verdict.code == entry.get("code", "")
            and entry["reason"] in verdict.reason
            and (not verdict.accepted or verdict.claim == entry.get("claim", verdict.claim))
        )

    return holds


def _tests(session: pytest.Session) -> Iterator[Step]:
    for item in session.items:
        if item.name not in REPEATED:
            yield Step(item.nodeid, _passes(item))


def _passes(item: pytest.Item) -> Callable[[], bool]:
    def holds() -> bool:
        return not any(report.failed for report in runtestprotocol(item, log=False))

    return holds


def _called_on_import() -> list[str]:
    """The functions of the checker that are called when it is imported."""
    called = set()

    def note(frame: Any, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.split(".")[0] == PACKAGE.name:
            called.add(f"{module}:{frame.f_code.co_qualname.split('.<')[0]}")

    sys.setprofile(note)
    try:
        _import()
    finally:
        sys.setprofile(None)
    return sorted(called)


def _members(prefixes: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """The modules of some packages that were imported, and what they and their classes hold."""
    for dotted in [name for name in sys.modules if name.startswith(prefixes)]:
        for live in list(vars(sys.modules[dotted]).values()):
            for each in [live, *vars(live).values()] if isinstance(live, type) else [live]:
                yield dotted, each


def _functions(prefixes: tuple[str, ...]) -> Iterator[tuple[str, FunctionType]]:
    """The functions and methods of some packages that were imported."""
    for dotted, each in _members(prefixes):
        function = _plain(each)
        if function and function.__module__ == dotted and not function.__closure__:
            yield f"{dotted}:{function.__qualname__}", function


def _plain(live: Any) -> FunctionType | None:
    """The function itself, or that of a property, inside all that decorates it."""
    live = getattr(live, "fget", None) or getattr(live, "func", None) or live
    while hasattr(live, "__wrapped__"):
        live = live.__wrapped__
    return live if isinstance(live, FunctionType) else None


def _measured(tree: Path, steps: Sequence[Step], cache: Path) -> list[Step]:
    """The steps with their seconds and calls, in the order of `_in_turns`.

    Args:
        tree: The root of the tree.
        steps: What to measure.
        cache: Where a JSON file holds what was measured before.
    """
    sources = b"".join(file.read_bytes() for file in sorted((tree / PACKAGE).rglob("*.py")))
    version = hashlib.sha256(sources).hexdigest()
    known = json.loads(cache.read_text()) if cache.exists() else {}
    known = known["steps"] if known.get("version") == version else {}
    new = [step for step in steps if step.name not in known]

    for step, (holds, seconds, calls) in zip(
        new, _in_fork(lambda: _measure(new, (PACKAGE.name,))), strict=True
    ):
        if not holds:
            raise RuntimeError(f"{step.name} fails without any error in the program")
        known[step.name] = seconds, calls
    cache.parent.mkdir(parents=True, exist_ok=True)
    beside = cache.with_name(cache.name + ".part")
    beside.write_text(json.dumps({"version": version, "steps": known}))
    beside.replace(cache)
    measured = []
    for step in steps:
        seconds, calls = known[step.name]
        measured.append(step._replace(seconds=seconds, calls=frozenset(calls)))
    return _in_turns(measured)


def _measure(
    steps: Iterable[Step], prefixes: tuple[str, ...], before: Callable[[], None] = lambda: None
) -> list[tuple[bool, float, list[str]]]:
    """For each step whether it holds, its seconds, and which functions of some packages it calls.

    Each function notes its first call, and then is itself again: what follows costs nothing.

    Args:
        steps: What to measure.
        prefixes: Of the names of modules.
        before: Called before each step.
    """
    codes = {name: (function, function.__code__) for name, function in _functions(prefixes)}
    notes = {name: eval(f"lambda *a, **k: _note({name!r})(*a, **k)").__code__ for name in codes}
    called: list[str] = []

    def note(name: str) -> FunctionType:
        called.append(name)
        function, code = codes[name]
        function.__code__ = code
        return function

    builtins._note = note  # type: ignore[attr-defined]
    found, missing = [], list(codes)
    for step in steps:
        for name in missing:
            codes[name][0].__code__ = notes[name]
        called = []
        before()
        start = time.process_time()
        holds = step.holds()
        found.append((holds, time.process_time() - start, called))
        missing = called
    return found


def _in_turns(steps: Iterable[Step]) -> list[Step]:
    """Certificates first, the quickest of each kind before the second quickest of any."""
    turns: Counter[str] = Counter()
    order = []
    for step in sorted(steps, key=lambda step: step.seconds):
        kind = Path(step.name).name.split("-")[0]
        order.append((turns[kind], step))
        turns[kind] += not _is_test(step)
    return [step for _, step in sorted(order, key=lambda pair: (_is_test(pair[1]), pair[0]))]
