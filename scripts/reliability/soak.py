"""Runs the property tests with fresh seeds until the time is over, and prints what fails.

    make soak MINUTES=120

One test file with property tests after another is drawn, and runs in a process of its own with a
seed of its own. The report of a failure has the smallest example and Hypothesis' decorator that
repeats it. Exit status: 0 if nothing failed, 1 if something did, 2 for wrong use.
"""

import argparse
import os
import random
import subprocess
import sys
import time
from pathlib import Path

OPTIONS = ["-q", "-p", "no:cacheprovider", "--tb=short", "-m", "hypothesis and not browser"]
NO_TESTS = 5  # pytest's exit status


def main() -> int:
    """Parse the options, and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, required=True, help="how long")
    parser.add_argument("tests", type=Path, nargs="?", default="tests", help="a folder")
    options = parser.parse_args()
    files = [path for path in options.tests.rglob("test_*.py") if "@given" in path.read_text()]
    if options.minutes <= 0 or not files:
        parser.error("expected minutes above 0, and a folder with tests that have @given")
    end, runs, failed = time.monotonic() + 60 * options.minutes, 0, 0
    while (left := end - time.monotonic()) > 0:
        file, seed = random.choice(files), random.SystemRandom().randrange(2**32)
        command = [sys.executable, "-m", "pytest", *OPTIONS, f"--hypothesis-seed={seed}", str(file)]
        environment = {"HYPOTHESIS_PROFILE": "soak", **os.environ}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=left, env=environment, check=False
            )
        except subprocess.TimeoutExpired:
            break
        runs += 1
        if done.returncode not in (0, NO_TESTS):
            failed += 1
            print(f"{done.stdout}\npytest {file} --hypothesis-seed={seed}", flush=True)
    print(f"{runs} runs of {len(files)} files; {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
