"""Measures how many small errors the tests notice, in functions that two versions have in common.

Usage: pip install cosmic-ray==8.7.0, then

    python scripts/mutation_score.py . --with ../earlier --results build/mutants.jsonl

Each package gives `--sample` mutants, the program with one error in it; `mutation_sample.py` says
which, and which test files judge it. It is killed when a test fails, raises, or takes longer than
four times its usual time; the score is the part that is killed. The tree itself is not changed.
"""

import argparse
import difflib
import json
import multiprocessing
import os
import re
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("HYPOTHESIS_PROFILE", "ci")  # the same examples in every run
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
if version("jaxlib") < "0.11":
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")

# What all tests import is imported once: every run of tests is a fork of this process.
import flint  # noqa: F401
import hypothesis.extra.numpy  # noqa: F401
import jax  # noqa: F401
import pytest
import scipy.optimize  # noqa: F401
from mutation_sample import FOLDERS, Mutant, sample

NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", ".*_cache")
PASSED = (0, 5)  # exit codes of pytest: all passed, no test chosen
NO_SUCH_TEST = 4  # another of them, which also says that the tests cannot start
MARGIN = 20.0  # seconds beyond four times the usual time
MEMORY = 8 << 30  # bytes that a run may take
FORK = multiprocessing.get_context("fork")
copy = Path()  # the copy of the tree that this process tests, and puts errors into


def make_copy(tree: Path, copies: Path) -> None:
    """Give this process a copy of the tree of its own; what was compiled in it before stays."""
    global copy
    copy = copies / f"copy-{multiprocessing.current_process().name.split('-')[-1]}"
    shutil.copytree(tree, copy, symlinks=True, ignore=NOT_COPIED, dirs_exist_ok=True)
    forget(copy.rglob("__pycache__/*"))


def forget(compiled: Iterable[Path]) -> None:
    """Remove compiled modules, whose source's time and size need not tell that it is another."""
    for path in compiled:
        path.unlink()


def run_tests(arguments: list[str], limit: float | None = None) -> tuple[int, float]:
    """Pytest's exit code (-1 beyond the time limit) and its seconds, in a fork of this process."""

    def child() -> None:
        os.setsid()
        os.chdir(copy)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        log = os.open("mutant.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1), os.dup2(log, 2)
        sys.path.insert(0, str(copy / "src"))
        os.environ["PYTHONPATH"] = str(copy / "src")
        code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *arguments])
        sys.stdout.flush()
        os._exit(code)

    start, process = time.monotonic(), FORK.Process(target=child)
    process.start()
    process.join(limit)
    code = process.exitcode
    if code is None and process.pid is not None:
        os.killpg(process.pid, signal.SIGKILL)
        process.join()
    return -1 if code is None else code, time.monotonic() - start


def usual_time(file: str) -> dict[str, Any]:
    """A result that holds the seconds of a test file when there is no error, which must pass."""
    code, seconds = run_tests([file])
    if code:
        raise RuntimeError(f"{file} fails without any error: {(copy / 'mutant.log').read_text()}")
    return {"file": file, "seconds": round(seconds, 1)}


def judge(mutant: Mutant, usual: float, first: list[str]) -> dict[str, Any]:
    """A result: the mutant, its difference, and whether it was killed or survived.

    Args:
        mutant: The error.
        usual: Seconds that its judges take without it.
        first: Tests of its judges that are likely to kill it, run alone before the rest.
    """
    path, seconds, code = copy / mutant.module, 0.0, (copy / mutant.module).read_text()
    text = mutant.mutated(code) or code
    slow = any("mark.slow" in (copy / file).read_text() for file in mutant.judges)
    stages = [["-m", "not slow", *mutant.judges], ["-m", "slow", *mutant.judges]]
    stages = [first] * bool(first) + (stages if slow else [[*mutant.judges]])
    try:
        path.write_text(text)
        for stage in stages:
            forget(path.parent.glob(f"__pycache__/{path.stem}.*"))
            exit_code, taken = run_tests(stage, 4 * usual + MARGIN)
            seconds += taken
            if exit_code not in PASSED and not (stage is first and exit_code == NO_SUCH_TEST):
                break
    finally:
        path.write_text(code)
        forget(path.parent.glob(f"__pycache__/{path.stem}.*"))
    log = (copy / "mutant.log").read_text(errors="replace")
    lines = difflib.unified_diff(code.splitlines(), text.splitlines(), n=0, lineterm="")
    return asdict(mutant) | {
        "key": mutant.key,
        "outcome": "survived" if exit_code in PASSED else "killed",
        "by": re.findall(r"^(?:FAILED|ERROR) (\S+)", log, re.M)[:1],
        "seconds": round(seconds, 1),
        "difference": [line for line in lines if line[:3] not in ("---", "+++")],
    }


def read_results(path: Path | None) -> list[dict[str, Any]]:
    """The results of earlier runs, if there are any."""
    return [json.loads(x) for x in path.read_text().splitlines()] if path and path.exists() else []


def main() -> None:
    """Judge the mutants that the results do not hold yet, and print the scores."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("tree", type=Path, help="root of the version to judge; it is copied, not changed")
    add("--with", dest="other", type=Path, help="root of the version to compare with")
    add("--packages", nargs="+", choices=FOLDERS, default=list(FOLDERS))
    add("--sample", type=int, default=100, help="mutants of each package (%(default)s)")
    add("--seed", type=int, default=0, help="%(default)s")
    add("--workers", type=int, default=1, help="copies tested at a time (%(default)s)")
    add("--results", type=Path, required=True, help="JSON lines; what they hold is not run again")
    add(
        "--first",
        type=Path,
        help="results of another version: what killed a mutant there runs first",
    )
    options = parser.parse_args()
    options.results.parent.mkdir(parents=True, exist_ok=True)

    tree = options.tree.resolve()
    drawn = [
        list(sample(tree, name, options.other or tree, options.seed, options.sample))
        for name in options.packages
    ]
    turns = sorted(
        (turn, mutant.package, mutant) for part in drawn for turn, mutant in enumerate(part)
    )
    mutants = [mutant for _, _, mutant in turns]
    results = read_results(options.results)
    killers = {r["key"]: r["by"] for r in read_results(options.first) if "key" in r}

    def keep(result: dict[str, Any]) -> None:
        results.append(result)
        with options.results.open("a") as file:
            print(json.dumps(result), file=file)

    copies = options.results.resolve().with_suffix("")
    with ProcessPoolExecutor(options.workers, FORK, make_copy, (tree, copies)) as pool:
        timed = {result.get("file") for result in results}
        files = sorted({file for mutant in mutants for file in mutant.judges} - timed)
        for result in pool.map(usual_time, files):
            keep(result)
        usual = {r["file"]: r["seconds"] for r in results if "file" in r}
        done = {result.get("key") for result in results}
        missing = [
            replace(mutant, judges=sorted(mutant.judges, key=usual.__getitem__))
            for mutant in mutants
            if mutant.key not in done
        ]
        seconds = [sum(usual[file] for file in mutant.judges) for mutant in missing]
        first = [
            [t for t in killers.get(m.key, []) if t.split("::")[0] in m.judges] for m in missing
        ]
        for result in pool.map(judge, missing, seconds, first):
            keep(result)
            print(result["outcome"], result["key"], f"{result['seconds']:.0f} s", flush=True)
    for name in options.packages:
        keys = {mutant.key for mutant in mutants if mutant.package == name}
        outcomes = [result["outcome"] for result in results if result.get("key") in keys]
        print(f"{name}: {outcomes.count('killed')} of {len(outcomes)} killed")


if __name__ == "__main__":
    main()
