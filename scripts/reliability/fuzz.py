"""Gives damaged files to the readers of outside data, and reports what is no documented refusal.

    make fuzz READER=npz INPUTS=100000
    python scripts/reliability/fuzz.py npz --again 0:57.1203

A reader of `tests/fuzz/readers.py` may take an input, or refuse it with an exception that it
documents and a message. Reported are every other exception, a message that says nothing, more than
five seconds of processor time or a hundred in all, more than 1 GiB of memory, the end of the
process, a traceback among what is printed, anything written outside the reader's folder, a file
that a refusal leaves there, and whatever runs a program: a process, a connection, code or a module
from the data.

Every input has a name, SEED:INDEX or SEED:PARENT.INDEX, and is made from the seeds (the first) or
from its parent (the second) and from random numbers that its index alone decides, so that `--again`
makes it again, alone. The first inputs are traced, and those that reach new lines become parents.
With `--guided`, Atheris chooses the parents throughout and makes half of the changes; its inputs
have no names, and `--files` reads again what was kept.
"""

import argparse
import json
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fuzz_worker import ROOT, Finding, made, name_of, table, work

TABLE = ROOT / "tests" / "fuzz" / "readers.py"
SHOWN = 60  # patterns of messages
MOST_ALIKE = 3  # findings of one cause that are kept
FAILED, WRONG_USE = 1, 2
ENDED = {signal.SIGPROF: "hang", signal.SIGALRM: "hang", signal.SIGKILL: "memory"}


def started(given: argparse.Namespace, *more: str) -> Iterator[dict[str, Any]]:
    """What a worker says, and in the end its exit code and what it printed last."""
    words = [sys.executable, __file__, given.reader, "--worker", f"--table={given.table}"]
    words += [
        f"--seed={given.seed}",
        f"--seconds={given.seconds}",
        *["--guided"][: given.guided],
        f"--inputs={given.inputs}",
        f"--folder={given.folder}",
        *more,
    ]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "JAX_PLATFORMS": "cpu"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield json.loads(line)
    printed = Path(given.folder, "printed")
    text = printed.read_text(errors="replace") if printed.exists() else ""
    yield {"code": process.returncode, "printed": text[-1500:]}


def minutes_used() -> float:
    """Of the processor, by the workers of this process that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) / 60


def searched(given: argparse.Namespace) -> tuple[list[Finding], Counter[str], int]:
    """The findings, whatever becomes of the workers; the messages' patterns; how many were read."""
    reader, folder = table(given.table)[given.reader], Path(given.folder)
    (folder / "place").write_bytes(bytes(8))
    (folder / "parents").write_text("")
    findings: list[Finding] = []
    messages: Counter[str] = Counter()
    start, until = given.first, minutes_used() + given.minutes
    while start < given.inputs and minutes_used() < until:
        (folder / "place").write_bytes(start.to_bytes(8, "little"))
        for said in started(given, f"--start={start}", f"--minutes={until - minutes_used()}"):
            if "kind" in said:
                findings.append(Finding(**said))
            messages.update(said.get("messages", {}))
        at = int.from_bytes((folder / "place").read_bytes(), "little")
        if said["code"]:
            parents = (folder / "parents").read_text().split()
            name = name_of(reader, given.seed, at, parents)
            if given.guided:
                name = shutil.copy(str(folder / "current"), str(folder / f"found-{at}"))
            findings.append(ended(name, said))
            if at == start and len(findings) > 1 and not said["printed"]:
                raise SystemExit(f"a worker ends as it starts: {said}")
            at += 1
        start = at
    return findings, messages, start - given.first


def ended(name: str, said: dict[str, Any]) -> Finding:
    """The finding of a worker that did not live."""
    kind = ENDED.get(-said["code"], "end")
    places = re.findall(r'File "([^"]+)", line (\d+) in (\S+)', said["printed"])
    own = [each for each in places if f"{os.sep}convattn" in each[0]] or places or [("?", "0", "?")]
    where = f"{Path(own[0][0]).name}:{own[0][1]} {own[0][2]}"
    return Finding(kind, name, f"exit code {said['code']}: {said['printed'][-300:]} at {where}")


def report(given: argparse.Namespace) -> int:
    """Search, keep what was found, and print it."""
    begun, before = time.monotonic(), minutes_used()
    findings, messages, inputs = searched(given)
    seconds, used = time.monotonic() - begun, 60 * (minutes_used() - before)
    reader, kept = table(given.table)[given.reader], Path(given.keep) / given.reader
    causes = Counter(finding.cause for finding in findings)
    alike: Counter[str] = Counter()
    for number, finding in enumerate(findings):
        alike[finding.cause] += 1
        if alike[finding.cause] <= MOST_ALIKE:
            kept.mkdir(parents=True, exist_ok=True)
            path = kept / f"{finding.kind}-{number}"
            content = Path(finding.name) if given.guided else None
            path.write_bytes(content.read_bytes() if content else made(reader, finding.name))
            print(f"{finding.kind}  {finding.name}  {path}\n  {finding.detail.strip()}")
    if given.messages:
        for pattern, count in messages.most_common(SHOWN):
            print(f"{count:7}  {pattern}")
    print(
        f"{given.reader}: {inputs:,} inputs of seed {given.seed} in {seconds:.0f} s ({used:.0f} s "
        f"of the processor), {sum(messages.values()):,} refused in {len(messages)} ways, "
        f"{len(findings)} findings of {len(causes)} causes"
    )
    for cause, count in causes.most_common():
        print(f"{count:7}  {cause}")
    return FAILED if findings else 0


def again(given: argparse.Namespace) -> int:
    """Read single inputs, or files, once more, and make them smaller if that was asked."""
    if given.again:
        path = Path(given.keep) / given.reader / given.again.replace(":", "-")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made(table(given.table)[given.reader], given.again))
        print(path)
        given.files = [path]
    found, last = 0, ""
    shrink = ["--shrink"] if given.shrink else []
    waiting = [str(path.resolve()) for path in given.files]
    while waiting:
        for said in started(given, *shrink, "--files", *waiting):
            if "begun" in said:
                last = said["begun"]
            if "kind" in said:
                found += 1
                print(f"{said['kind']}  {said['name']}\n  {said['detail'].strip()}")
        if said["code"]:
            finding = ended(last, said)
            found += 1
            print(f"{finding.kind}  {last}\n  {finding.detail}")
        waiting = waiting[waiting.index(last) + 1 :] if said["code"] and last else []
    print(f"{given.reader}: {len(given.files)} files read, {found} findings")
    return FAILED if found else 0


def main() -> int:
    """Run it.

    Returns:
        0 if nothing was found, 1 if something was, 2 for wrong use.
    """
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("reader", help="a reader's name, all, or list for their names")
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the first input, to go on")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="of the processor, for each reader"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=5, help="that an input may take")
    parser.add_argument("--again", metavar="NAME", help="read this input alone, and keep it")
    parser.add_argument("--files", type=Path, nargs="+", help="read these files alone")
    parser.add_argument("--shrink", action="store_true", help="make these smaller, in place")
    parser.add_argument("--messages", action="store_true", help="print the refusals' patterns")
    parser.add_argument("--guided", action="store_true", help="by Atheris (pip install atheris)")
    parser.add_argument("--keep", default="build/fuzz", help="where findings are kept")
    parser.add_argument("--table", type=Path, default=TABLE)
    for hidden, kind in (("--folder", str), ("--start", int)):
        parser.add_argument(hidden, type=kind, help=argparse.SUPPRESS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(given)
    readers = table(given.table)
    if given.reader == "all" and not (given.again or given.files):
        codes = []
        for given.reader in readers:
            with tempfile.TemporaryDirectory(prefix="fuzz-") as given.folder:
                codes.append(report(given))
        return max(codes)
    if given.reader not in readers:
        print(", ".join(readers), file=sys.stdout if given.reader == "list" else sys.stderr)
        return 0 if given.reader == "list" else WRONG_USE
    with tempfile.TemporaryDirectory(prefix="fuzz-") as given.folder:
        return again(given) if given.again or given.files else report(given)


if __name__ == "__main__":
    sys.exit(main())
