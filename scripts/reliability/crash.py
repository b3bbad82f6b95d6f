"""Kills a writer at each call by which it changes files, and looks at what is on the disk.

    make crash

The writer is `convattn.files.write_file`, by which all commands write. Each call gets a trial, with
the file of an earlier run and without it. What must hold: the file under its final name is whole;
what stood there before is there or replaced; the next run goes on, ends with the same files as one
that nothing has ended, and leaves no others. `make crash` then kills training runs at random
moments, for their checkpoints: tests/lab/training/test_killed_runs.py. Exit status: 0 if all holds,
1 if not.
"""

import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

FORK = multiprocessing.get_context("fork")
CHANGES = re.compile(r"os\.(rename|remove|rmdir|mkdir|chmod|truncate|link|symlink)")
OPENING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
Writer = Callable[[Path, bytes], None]


class Calls:
    """Counts the calls that change files below a folder, and kills this process at one of them.

    Of a file that is opened to be written there are two moments: before, and when it is empty.

    Args:
        folder: Where files are changed.
        count: A number that this process and the one that waits for it share.
        stop: At which call it ends; 0: at none.
    """

    def __init__(self, folder: Path, count: Any, stop: int) -> None:
        self.folder, self.count, self.stop, self.ending = str(folder), count, stop, False

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        """An audit hook."""
        opens = event == "open" and int(args[2] or 0) & OPENING
        if self.ending or not (opens or CHANGES.fullmatch(event)) or isinstance(args[0], int):
            return
        if not os.path.abspath(os.fsdecode(args[0])).startswith(self.folder):
            return
        self._moment()
        if opens:
            self._moment(lambda: os.open(args[0], args[2], 0o666))

    def _moment(self, act: Callable[[], object] = lambda: None) -> None:
        self.count.value += 1
        if self.count.value == self.stop:
            self.ending = True
            act()
            os.kill(os.getpid(), signal.SIGKILL)


def run(write: Writer, folder: Path, content: object, stop: int = 0) -> int:
    """Write in a process of its own, which is killed at a call, or at none (0).

    Returns:
        How many calls there were.

    Raises:
        RuntimeError: If it ends in any other way.
    """
    count = FORK.Value("i", 0)

    def work() -> None:
        sys.addaudithook(Calls(folder, count, stop))
        write(folder / "a.json", json.dumps([content] * 10_000).encode())

    process = FORK.Process(target=work)
    process.start()
    process.join()
    expected = -signal.SIGKILL if stop else 0
    if process.exitcode != expected:
        raise RuntimeError(f"exit code {process.exitcode}, expected {expected}")
    return int(count.value)


def contents(folder: Path) -> dict[str, Any]:
    """What the files hold that are not hidden, and the names of the others.

    Raises:
        ValueError: If a file is not whole.
    """
    return {
        path.name: None if path.name.startswith(".") else json.loads(path.read_bytes())
        for path in folder.iterdir()
    }


def trials(write: Writer, folder: Path) -> tuple[int, list[str]]:
    """How many kills there were, and what went wrong."""
    kills, problems = 0, list[str]()
    for earlier in (False, True):
        origin, complete = folder / f"origin-{earlier}", folder / f"whole-{earlier}"
        target = folder / "trial"
        origin.mkdir()
        if earlier:
            run(write, origin, "before")
        shutil.copytree(origin, complete)
        calls = run(write, complete, "now")
        before, after = contents(origin), contents(complete)
        for stop in range(1, calls + 1):
            where = f"[call {stop} of {calls}, {'with' if earlier else 'without'} an earlier file]"
            shutil.copytree(origin, target)
            try:
                run(write, target, "now", stop)
                kills += 1
                if contents(target).get("a.json") not in (before.get("a.json"), after["a.json"]):
                    problems.append(f"lost: a.json {where}")
                run(write, target, "now")
                result = contents(target)
                problems += [f"left over: {name} {where}" for name in result.keys() - after.keys()]
                if result.get("a.json") != after["a.json"]:
                    problems.append(f"not resumed: a.json {where}")
            except ValueError as error:
                problems.append(f"damaged: {error} {where}")
            except RuntimeError as error:
                problems.append(f"not resumed: {error} {where}")
            shutil.rmtree(target)
    return kills, problems


def main() -> int:
    """Run the trials of the writer."""
    from convattn.files import write_file

    with tempfile.TemporaryDirectory(prefix="crash-") as folder:
        kills, problems = trials(write_file, Path(folder))
    print(f"{kills} kills, {len(problems)} problems", *problems, sep="\n  ")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
