"""Gives damaged files to the readers of outside data, and reports what is no documented refusal.

    make fuzz READER=npz INPUTS=100000 SEED=0
    python scripts/reliability/fuzz.py npz --files build/fuzz/npz

tests/fuzz/readers.py has the readers, tests/fuzz/damage.py how their files are damaged, and
tests/fuzz/watch.py what is a finding; so are more than 1 GiB of memory and the end of the process.
Hypothesis draws the inputs, the same for the same seed, and makes the first finding of a reader
smaller, which is kept as build/fuzz/READER; what is worth keeping goes to tests/fuzz/found/.
Exit status: 0 if nothing was found, 1 if something was, 2 for wrong use.
"""

import argparse
import contextlib
import os
import re
import resource
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from hypothesis import HealthCheck, Phase, given, seed, settings

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
MEMORY = 2**30  # bytes beyond what the process holds after the seeds


def search(reader: Any, options: argparse.Namespace) -> NoReturn:
    """Read the files, or what Hypothesis draws, up to the first finding, and end this process."""
    damaged = import_module("fuzz.damage").damaged
    options.keep.mkdir(parents=True, exist_ok=True)
    current = options.keep / reader.name
    descriptor = os.open(current, os.O_RDWR | os.O_CREAT)
    watch = import_module("fuzz.watch").Watch(
        reader, Path(tempfile.mkdtemp(prefix="fuzz-", dir=options.folder))
    )
    for content in reader.seeds:  # what is imported and compiled once
        with contextlib.suppress(*reader.refusals):
            reader.call(content, watch.folder)
        watch.emptied()
    resident = int(re.findall(r"VmData:\s+(\d+)", Path("/proc/self/status").read_text())[0]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (resident + MEMORY, resident + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    @seed(options.seed)
    @settings(
        max_examples=options.inputs,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(damaged(reader.seeds, reader.folder))
    def takes_or_refuses(content: bytes) -> None:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, content, 0)  # it is there whatever ends the process
        watch(content)

    if options.files:
        for path in options.files:
            watch(path.read_bytes())
    else:
        takes_or_refuses()
        current.unlink()
    os._exit(0)  # threads of a server may still run


def main(readers: dict[str, Any] | None = None) -> int:
    """Run it, each reader in a process of its own."""
    known: dict[str, Any] = readers or import_module("fuzz.readers").READERS
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("reader", choices=[*known, "all"], metavar="READER", help=f"all, {', '.join(known)}")
    add("--inputs", type=int, default=10_000, help="how many (%(default)s)")
    add("--seed", type=int, default=0, help="of what is drawn (%(default)s)")
    add("--files", type=Path, nargs="+", help="read these files alone")
    add("--keep", type=Path, default=ROOT / "build/fuzz", help="for findings (%(default)s)")
    add("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        search(known[options.reader], options)
    failures = 0
    for name in known if options.reader == "all" else [options.reader]:
        words = [sys.executable, *sys.argv]
        words[words.index(options.reader, 2)] = name
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
            done = subprocess.run([*words, f"--folder={folder}"], env=environment, check=False)
        failures += done.returncode != 0
        what = "files" if options.files else f"{options.inputs:,} inputs of seed {options.seed}"
        failure = f"exit code {done.returncode}, see {options.keep / name}"
        print(f"{name}: {what}: {failure if done.returncode else 'nothing found'}", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
