"""Kills commands at many moments, and looks at what they leave behind.

    make crash COMMAND="convert prove" TIMES=200

For each command four kinds of trial, with and without the output of a run before:

calls      killed at each of the calls by which Python changes files, one after the other
moments    killed at random moments, half of them right after a file has changed
processes  the same of whole processes, with the loading of modules; the others are forks
disk       on a full disk of several sizes, and on one that is read-only: an error, exit code 2

What must hold: every file under its final name is whole, what stood there before is there or
replaced, the next run goes on and ends with the result of a run that nothing has ended, and leaves
no other files. Exit status: 0 if all holds, 1 if not, 2 for wrong use.
"""

import argparse
import gc
import importlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # no threads before a fork
from crash_commands import COMMANDS, Command
from crash_disks import full_and_read_only
from crash_trials import HEADING, KINDS, Tally, Trials

PARTS = ("calls", "moments", "processes", "disk")
WHOLE_PROCESSES = 10


def run_parts(trials: Trials, parts: list[str], times: int, most: int | None) -> Iterator[Tally]:
    """All that was asked for."""
    for part in parts:
        tally, began = Tally(trials.name, part), time.monotonic()
        if part == "calls":
            trials.every_call(tally, most)
        elif part == "moments":
            trials.random_moments(tally, times)
        elif part == "processes":
            trials.random_moments(tally, min(times, WHOLE_PROCESSES), processes=True)
        else:
            full_and_read_only(trials, tally, most)
        tally.seconds = time.monotonic() - began
        yield tally


def main(commands: dict[str, Command] = COMMANDS) -> int:
    """Parse the options, and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("commands", nargs="*", help=f"of {', '.join(commands)} (all)")
    add("--times", type=int, default=200, help="kills at random moments (%(default)s)")
    add("--most", type=int, help="so many of the calls, and of the disks, are drawn (all)")
    add("--seed", type=int, default=0, help="of the moments (%(default)s)")
    add("--parts", nargs="+", choices=PARTS, default=PARTS, help="(%(default)s)")
    add("--failures", type=int, default=5, help="so many are printed of each part (%(default)s)")
    given = parser.parse_args()
    unknown = sorted(set(given.commands) - commands.keys())
    if unknown or given.times < 1:
        parser.error(f"expected commands of {', '.join(commands)}, and TIMES above 0")
    chosen = {name: commands[name] for name in given.commands or commands}
    parts = [part for part in given.parts if part != "disk" or os.geteuid() == 0]
    if len(parts) < len(given.parts):
        print("disk: not run, as only root can mount a disk")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="crash-") as folder:
        programs = Path(folder, "programs")
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(programs))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
        for module in {module for command in chosen.values() for module in command.modules}:
            importlib.import_module(module)
        gc.freeze()
        print(HEADING, flush=True)
        for number, (name, command) in enumerate(chosen.items()):
            trials = Trials(name, command, Path(folder, str(number)), given.seed)
            for tally in run_parts(trials, parts, given.times, given.most):
                print(tally, flush=True)
                for line in sorted(tally.said):
                    print(f"  says: {line}", flush=True)
                failed += len(tally.found)
                for kind in KINDS:
                    found = [problem for each, problem in tally.found if each == kind]
                    print(
                        *(f"  {problem}\n" for problem in found[: given.failures]), sep="", end=""
                    )
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
