"""Which small errors in the program nothing notices: mutants, judged by certificates and tests.

    python scripts/reliability/mutation.py src/convattn_check/rank.py  # every mutant
    python scripts/reliability/mutation.py --packages networks --sample 400 --seed 1

`mutants.py` says what a mutant is, `mutation_judge.py` how those of the checker are judged,
`mutation_library.py` how all others are: by tests that call the function. Those outside functions
are judged by the test file that is named after their module and by those of its folder that name
the function or a public one of the module, each time in a fork of its own. A mutant is noticed when
a certificate gets another verdict, or a test fails or takes far longer than usual.

Mutants that no test could notice stand in `equivalent_mutants.toml`, each with the reason. All
others that nothing notices are printed. The results are kept, and what they hold is not run again;
the exit status is 1 if something is left that nothing notices.
"""

import argparse
import contextlib
import hashlib
import importlib
import json
import os
import re
import select
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # no threads before a fork
import pytest
from mutants import Mutant, mutants_of, parameters

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = ROOT / "scripts" / "reliability" / "equivalent_mutants.toml"
CHECKER = "src/convattn_check"
PACKAGES = ("constructions", "bounds", "networks")  # of src/convattn, each with its folder of tests
PACKAGES_OF_TESTS = ("jax.numpy", "flax.nnx", "optax", "hypothesis", "jaxtyping", "beartype")
PASSED = "\0"
MARGIN = 60.0  # seconds beyond four times the usual time
Key = tuple[str, str, str, str, int]


def find_mutants(tree: Path, files: Iterable[Path]) -> list[Mutant]:
    """All mutants of some files, in their order."""
    known = parameters(sorted((tree / CHECKER).rglob("*.py")))
    found = []
    for file in files:
        checker = file.is_relative_to(tree / CHECKER)
        messages = known if checker else {}
        found += mutants_of(str(file.relative_to(tree)), file.read_bytes(), messages)
    return found


def sample(mutants: Iterable[Mutant], size: int, seed: int) -> list[Mutant]:
    """Those whose digests with the seed are the least: a change elsewhere leaves the others in."""
    return sorted(mutants, key=lambda mutant: _digest(seed, mutant))[:size]


def _digest(seed: int, mutant: Mutant) -> bytes:
    return hashlib.sha256(repr((seed, *mutant.key)).encode()).digest()


def equivalents(file: Path) -> dict[Key, str]:
    """The reasons for the mutants that change nothing that can be observed.

    Raises:
        ValueError: If one is listed twice.
    """
    found: dict[Key, str] = {}
    for entry in tomllib.loads(file.read_text("utf-8")).get("equivalent", []):
        for after in entry["after"]:
            where = entry["module"], entry["function"], entry["before"]
            key = (*where, after, entry.get("number", 0))
            if key in found:
                raise ValueError(f"{file.name} has {key} twice, expected it once")
            found[key] = entry["reason"]
    return found


def stale(listed: Iterable[Key], mutants: Iterable[Mutant]) -> list[Key]:
    """The listed ones in the modules of these mutants that are none of them."""
    known = {mutant.key for mutant in mutants}
    modules = {mutant.module for mutant in mutants}
    return [key for key in listed if key[0] in modules and key not in known]


def judge_by_files(
    tree: Path, mutants: Iterable[Mutant], report: Callable[[Mutant, str], None]
) -> None:
    """Judge mutants of the library by test files, in a copy of its sources."""
    usual: dict[tuple[str, ...], float] = {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"  # with the compiled files, which are those of older sources
        shutil.copytree(tree / "src", source)
        for mutant in mutants:
            files = judges(tree, mutant)
            if files not in usual:
                by, usual[files] = run_tests(tree, source, files, None)
                if by:
                    raise RuntimeError(f"without any error in the program: {by}")
            path = Path(folder) / mutant.module
            code = path.read_bytes()
            path.write_bytes(mutant.applied(code))
            try:
                by, _ = run_tests(tree, source, files, 4 * usual[files] + MARGIN)
            finally:
                path.write_bytes(code)
            report(mutant, by)


def run_tests(
    tree: Path, source: Path, files: Sequence[str], limit: float | None
) -> tuple[str, float]:
    """The first test that fails, or "", and the seconds."""
    read, write = os.pipe()
    start = time.monotonic()
    process = os.fork()
    if not process:
        _run_here(tree, source, files, write)
    os.close(write)
    try:
        ready = select.select([read], [], [], limit)[0]
        by = os.read(read, 2**16).decode() if ready else f"no answer in {limit:.0f} seconds"
    finally:
        os.close(read)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
    return (by or f"{files} ended without an answer").removesuffix(PASSED), time.monotonic() - start


def _run_here(tree: Path, source: Path, files: Sequence[str], write: int) -> None:
    """Run the tests in this process, a fork that has loaded the packages, and say so to a pipe."""
    from mutation_judge import forget

    try:
        os.setsid()
        for output in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), output)
        os.chdir(tree)
        sys.path.insert(0, str(source))
        forget("convattn")
        sys.dont_write_bytecode = True
        os.environ.update(PYTHONPATH=str(source), HYPOTHESIS_PROFILE="ci")
        plugin = _FirstFailure()
        code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *files], plugins=[plugin])
        by = plugin.name or (f"pytest ended with {code!r}" if code else PASSED)
        os.write(write, by.encode())
    finally:
        os._exit(0)


class _FirstFailure:
    """A plugin of pytest: the name of the test that fails, with no search for a smaller example."""

    name = ""

    def pytest_collection(self) -> None:
        """Change the profile that tests/conftest.py has loaded."""
        from hypothesis import Phase, settings

        settings.register_profile("mutants", settings(), phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the first name."""
        self.name = self.name or (report.nodeid if report.failed else "")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """The same for a file that cannot be imported."""
        self.name = self.name or (report.nodeid if report.failed else "")


def judges(tree: Path, mutant: Mutant) -> tuple[str, ...]:
    """The test files that judge a mutant of the library.

    Those of its package that are named after its module or name its function; a private one stands
    for all public ones of its module. If there are none, such tests elsewhere, but for those of the
    ledger's proofs; if there are none, all of the package.
    """
    names = {mutant.function.split(".")[0]}
    if not mutant.function or mutant.function.startswith("_"):
        text = (tree / mutant.module).read_text("utf-8")
        names = set(re.findall(r"^(?:def|class) ([a-zA-Z]\w*)", text, re.M))
    mirror = f"test_{Path(mutant.module).stem}"
    near = sorted((tree / "tests" / Path(mutant.module).parts[2]).rglob("test_*.py"))
    proofs = {*(tree / "tests" / "proofs").rglob("*")}
    others = [file for file in sorted((tree / "tests").rglob("test_*.py")) if file not in proofs]
    found: Sequence[Path] = ()
    for files in (near, others):
        found = found or [file for file in files if file.stem == mirror or names & _words(file)]
    found = sorted(found or near, key=lambda file: file.stem != mirror)
    return tuple(str(file.relative_to(tree)) for file in found)


@cache
def _words(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", path.read_text("utf-8")))


def table(mutants: Sequence[Mutant], by: dict[Key, str], listed: dict[Key, str]) -> str:
    """For each module its mutants: noticed, equivalent, open, not judged; and the score."""
    rows = [("module", "mutants", "noticed", "equivalent", "open", "not judged", "score")]
    modules = sorted({mutant.module for mutant in mutants})
    for module in [*modules, "all"]:
        keys = [mutant.key for mutant in mutants if module in (mutant.module, "all")]
        noticed = sum(bool(by.get(key)) for key in keys)
        same = sum(key in listed and not by.get(key) for key in keys)
        left = sum(by.get(key) == "" and key not in listed for key in keys)
        numbers = (len(keys), noticed, same, left, len(keys) - noticed - same - left)
        score = f"{100 * noticed / (noticed + left):.1f} %" if noticed + left else "-"
        rows.append((module, *map(str, numbers), score))  # type: ignore[arg-type]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def read_results(path: Path) -> dict[Key, str]:
    """What noticed each mutant in earlier runs, "" for nothing."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    found = (json.loads(line) for line in lines)
    return {tuple(each["mutant"]): each["by"] for each in found}


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the mutants that the results do not hold yet, and print what is left."""
    options = _parser().parse_args(arguments)
    tree: Path = options.tree.resolve()
    results: Path = options.results.resolve()
    results.parent.mkdir(parents=True, exist_ok=True)

    files = [file.resolve() for file in options.files]
    folders = [tree / "src/convattn" / name for name in options.packages]
    drawn = find_mutants(tree, files)
    for folder in folders:
        every = find_mutants(tree, sorted(folder.rglob("*.py")))
        drawn += sample(every, options.sample or len(every), options.seed)
    listed = equivalents(EQUIVALENT)
    if lost := stale(listed, drawn if not folders else []):
        print(f"{EQUIVALENT.name} lists what is no mutant:", *lost, sep="\n", file=sys.stderr)
        return 2

    by = read_results(results)
    judged = {key for key, noticed in by.items() if noticed or not options.again}
    missing = [m for m in drawn if m.key not in judged and m.key not in listed]

    def report(mutant: Mutant, noticed: str) -> None:
        by[mutant.key] = noticed
        with results.open("a", encoding="utf-8") as file:
            print(json.dumps({"mutant": mutant.key, "by": noticed}), file=file)
        if not noticed:
            print(mutant, flush=True)

    if theirs := [mutant for mutant in missing if not mutant.module.startswith(CHECKER)]:
        for package in PACKAGES_OF_TESTS:  # each fork has them already
            with contextlib.suppress(ImportError):
                importlib.import_module(package)
        from mutation_library import judge_by_calls

        def own(mutant: Mutant) -> Sequence[str]:
            return judges(tree, mutant)

        packages = "-".join(sorted({Path(mutant.module).parts[2] for mutant in theirs}))
        cache = results.with_name(f"measured-{packages}.json")
        judge_by_files(
            tree, judge_by_calls(tree, theirs, report, own, cache, options.seconds), report
        )
    if ours := [mutant for mutant in missing if mutant.module.startswith(CHECKER)]:
        from mutation_judge import judge_checker

        cache = results.with_name("measured.json")
        judge_checker(tree, ours, report, cache, tests=not options.certificates)
    print("\nWhat nothing notices:\n")
    left = [m for m in drawn if by.get(m.key) == "" and m.key not in listed]
    print(*left, table(drawn, by, listed), sep="\n")
    return bool(left)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add: Any = parser.add_argument
    add("files", nargs="*", type=Path, help="modules, all of whose mutants are judged")
    add("--packages", nargs="*", choices=PACKAGES, default=[], help="draw from src/convattn")
    add("--sample", type=int, default=400, help="mutants of each; 0: all (%(default)s)")
    add("--seed", type=int, default=0, help="of what is drawn (%(default)s)")
    add("--tree", type=Path, default=ROOT, help="root of the sources and tests (this one)")
    add(
        "--results",
        type=Path,
        default=ROOT / "build/mutants/results.jsonl",
        help="JSON lines; what they hold is not run again (%(default)s)",
    )
    add("--certificates", action="store_true", help="without tests, for the checker's mutants")
    add("--seconds", type=float, default=20, help="of tests for a mutant (%(default)s)")
    add("--again", action="store_true", help="judge again what nothing noticed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
