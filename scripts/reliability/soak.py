"""Runs the property tests with fresh seeds until the time is over, and prints what fails.

    make soak MINUTES=120

A round takes every test file that has property tests, in random order, each in a process of its own
with a seed of its own. A failure is printed once, as the example to paste above the test; the seed
finds it again. Exit status: 0 if nothing failed, 1 if something did, 2 for wrong use.
"""

import argparse
import ast
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

NO_TESTS = 5  # pytest's exit status
FAILED = re.compile(r"^FAILED (\S+::.+?)(?: - .*)?$", re.MULTILINE)
EXAMPLE = re.compile(
    r"(?:Falsifying example|Failing test case): \w+(\((?:.|\n)*?^ *\))", re.MULTILINE
)
SECTION = re.compile(r"^_{3,} (.+?) _{3,}$", re.MULTILINE)


@dataclass(frozen=True)
class Failure:
    """A test that failed.

    Attributes:
        test: Its name for pytest.
        seed: With `--hypothesis-seed` it fails again.
        report: What pytest printed of it.
    """

    test: str
    seed: int
    report: str

    def __str__(self) -> str:
        """The command, and the example as decorators; the whole report where there is none."""
        again = f"pytest '{self.test}' --hypothesis-seed={self.seed}  # HYPOTHESIS_PROFILE=soak"
        found = "\n".join(decorators(self.report)) or self.report.strip()
        return f"FAILED {self.test}\n{again}\n{found}\n"


def decorators(report: str) -> list[str]:
    """The lines to paste above a test, of pytest's report of its failure.

    The example itself, where Python can read what Hypothesis prints of it, and Hypothesis' own
    encoding of it.
    """
    text = re.sub(r"^(?:E|\|) ? ?", "", report, flags=re.MULTILINE)
    found = []
    for match in re.finditer(EXAMPLE, text):
        example = re.sub(r"^ +", "    ", f"@example{match[1]}", flags=re.MULTILINE)
        example = re.sub(r"^ +\)$", ")", example, flags=re.MULTILINE)
        try:
            ast.parse(f"{example}\ndef test(): ...")
        except SyntaxError:
            continue
        found.append(example)
    found += [match[0] for match in re.finditer(r"@reproduce_failure\(.*?\)(?= as)", text)]
    return list(dict.fromkeys(found))


def failures(output: str, seed: int) -> Iterator[Failure]:
    """The failures that a run of pytest printed."""
    pieces = SECTION.split(output)
    reports = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    for test in FAILED.findall(output):
        name = test.partition("::")[2].replace("::", ".")
        yield Failure(test, seed, reports.get(name, "").partition("\n====")[0])


def property_tests(root: Path) -> list[Path]:
    """The test files that have property tests."""
    return [path for path in sorted(root.rglob("test_*.py")) if "@given" in path.read_text()]


class Soak:
    """Runs of test files until a deadline; what still runs then is stopped."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.lock, self.seen, self.runs = threading.Lock(), set[str](), 0

    def run(self, file: Path) -> None:
        """One run of a file's property tests; what fails for the first time is printed."""
        seed, left = random.SystemRandom().randrange(2**32), self.deadline - time.monotonic()
        if left <= 0:
            return
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)]
        command += ["-m", "hypothesis and not browser", f"--hypothesis-seed={seed}", "--tb=short"]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={"HYPOTHESIS_PROFILE": "soak"} | os.environ,
        )
        try:
            output, _ = process.communicate(timeout=left)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return
        found = list(failures(output, seed))
        if process.returncode not in (0, NO_TESTS) and not found:
            found = [Failure(str(file), seed, output)]
        with self.lock:
            self.runs += 1
            for failure in found:
                if failure.test not in self.seen:
                    print(failure, flush=True)
            self.seen |= {failure.test for failure in found}


def main() -> int:
    """Parse the options, and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--minutes", type=float, required=True, help="how long")
    add("--workers", type=int, default=os.cpu_count() or 1, help="processes (%(default)s)")
    add("tests", type=Path, nargs="*", default=[Path("tests")], help="folders (tests)")
    given = parser.parse_args()
    files = [file for folder in given.tests for file in property_tests(folder)]
    if given.minutes <= 0 or given.workers < 1 or not files:
        parser.error("expected minutes above 0, at least one worker, and a folder with @given")
    soak = Soak(time.monotonic() + 60 * given.minutes)
    with ThreadPoolExecutor(given.workers) as pool:
        while time.monotonic() < soak.deadline:
            random.shuffle(files)
            list(pool.map(soak.run, files))
    print(f"{soak.runs} runs of {len(files)} files; {len(soak.seen)} tests failed")
    return int(bool(soak.seen))


if __name__ == "__main__":
    sys.exit(main())
