"""Compiling the proofs in a folder of their own, several at a time, and only what has changed.

What a compiled file depends on is summed up in a key: the digest of its source, the keys of the
files that it requires, Coq's version and options. A file is compiled again if its key has changed.
"""

import json
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convattn.atomic_file import write_file
from convattn.proving.failure import Failure
from convattn.proving.project import PROJECT, Project, digest
from convattn.proving.toolchain import Coq

_PLACE = re.compile(r'^File "(?:\./)?(?P<file>[^"]+)", line (?P<line>\d+)', re.MULTILINE)
_ERROR_LINES = 8
_LIMIT = 600.0  # seconds for one file; the slowest takes a tenth of that


@dataclass(frozen=True)
class Compiled:
    """What became of the files.

    Attributes:
        seconds: For each compiled file, how long that took, when it was done.
        requires: For each file, all files that it requires, directly or not.
        failures: Why the others are not compiled.
        anew: How many were compiled now.
    """

    seconds: dict[str, float]
    requires: dict[str, frozenset[str]]
    failures: tuple[Failure, ...]
    anew: int


def compile_project(
    coq: Coq,
    project: Project,
    output: Path,
    jobs: int,
    only: Sequence[str] | None = None,
    finished: Callable[[str, float], None] = lambda file, seconds: None,
) -> Compiled:
    """Compile a project under ``output/coq/``.

    Args:
        coq: The compiler.
        project: The sources.
        output: Where to.
        jobs: How many files at a time.
        only: The files wanted, with what they require; all of them if ``None``.
        finished: Is told each file that was compiled, and the seconds.
    """
    tree, record_path = output / "coq", output / "compiled.json"
    record = _read_record(record_path)
    _copy(project, tree, record)
    direct, failures = _dependencies(coq, project, tree)
    requires, circular = _closure(direct)
    failures += [
        Failure(file, 0, "requires itself in a circle", "break the circle") for file in circular
    ]
    wanted = set(project.files) if only is None else set(only).union(*(requires[f] for f in only))
    keys: dict[str, str] = {}
    settled = [file for file in _ordered(requires) if file in wanted and file not in circular]
    for file in settled:
        beneath = sorted(keys.get(other, "") for other in direct[file])
        parts = [coq.version, project.options, digest(project.sources[file]), beneath]
        keys[file] = digest(json.dumps(parts).encode())
    seconds: dict[str, float] = {}
    anew = 0
    waiting = list(settled)
    broken = {*circular}
    running: dict[Future[tuple[float, str]], str] = {}
    with ThreadPoolExecutor(jobs) as pool:
        while waiting or running:
            for file in list(waiting):
                entry = record.get(file, {})
                done = entry.get("key") == keys[file] and (tree / file).with_suffix(".vo").is_file()
                if below := sorted(direct[file] & broken):
                    found = f"not compiled, since {below[0]} does not compile"
                    failures.append(Failure(file, 0, found, "mend that first"))
                    broken.add(file)
                elif not direct[file] <= seconds.keys():
                    continue
                elif done:
                    seconds[file] = float(entry["seconds"])
                else:
                    record.pop(file, None)
                    running[pool.submit(_compile, coq, project, tree, file)] = file
                waiting.remove(file)
            if not running:
                continue
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                file = running.pop(future)
                taken, error = future.result()
                if error:
                    failures.append(_failure(file, error))
                    broken.add(file)
                else:
                    seconds[file], anew = taken, anew + 1
                    record[file] = {"key": keys[file], "seconds": taken}
                    finished(file, taken)
                write_file(record_path, json.dumps(record, indent=1).encode())
    return Compiled(seconds, requires, tuple(failures), anew)


def _read_record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _copy(project: Project, tree: Path, record: dict[str, Any]) -> None:
    """Bring the copy up to date; what was copied once and is no longer there is removed."""
    for file in set(record) - set(project.files):
        for suffix in (".v", ".vo", ".vos", ".vok", ".glob"):
            (tree / file).with_suffix(suffix).unlink(missing_ok=True)
        del record[file]
    for file, content in project.sources.items():
        path = tree / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)
    if PROJECT not in project.sources:
        (tree / PROJECT).unlink(missing_ok=True)


def _dependencies(
    coq: Coq, project: Project, tree: Path
) -> tuple[dict[str, set[str]], list[Failure]]:
    """What each file requires of the others."""
    direct: dict[str, set[str]] = {file: set() for file in project.files}
    words = [coq.coqdep, "-Q", ".", project.prefix, *project.files]
    done = subprocess.run(words, cwd=tree, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        targets, _, needed = line.partition(":")
        file = next((t[:-1] for t in targets.split() if t.endswith(".vo")), None)
        if file in direct:
            others = {word.removeprefix("./")[:-1] for word in needed.split() if word[-3:] == ".vo"}
            direct[file] = others & direct.keys()
    if done.returncode:
        return direct, [_failure(PROJECT, done.stderr)]
    return direct, []


def _closure(direct: dict[str, set[str]]) -> tuple[dict[str, frozenset[str]], list[str]]:
    """All that each file requires, and the files that require themselves."""
    requires = {file: set(others) for file, others in direct.items()}
    while True:
        grown = {f: others.union(*(requires[o] for o in others)) for f, others in requires.items()}
        if grown == requires:
            break
        requires = grown
    circular = sorted(file for file, others in requires.items() if file in others)
    return {file: frozenset(others) for file, others in requires.items()}, circular


def _ordered(requires: dict[str, frozenset[str]]) -> list[str]:
    """Every file after those that it requires, the most required first."""
    return sorted(requires, key=lambda file: (len(requires[file]), file))


def _compile(coq: Coq, project: Project, tree: Path, file: str) -> tuple[float, str]:
    """Seconds, and what Coq says against the file."""
    started = time.perf_counter()
    words = [coq.coqc, "-q", *project.options, file]
    try:
        done = subprocess.run(
            words, cwd=tree, capture_output=True, text=True, check=False, timeout=_LIMIT
        )
    except subprocess.TimeoutExpired:
        return _LIMIT, f"it does not compile within {_LIMIT:g} s"
    taken = round(time.perf_counter() - started, 2)
    if not done.returncode:
        return taken, ""
    return taken, done.stderr.strip() or f"coqc ended with exit code {done.returncode}"


def _failure(file: str, said: str) -> Failure:
    """Coq's message as a failure; warnings before the error are left out."""
    places = list(_PLACE.finditer(said))
    if places:
        file, line = places[-1]["file"], int(places[-1]["line"])
        said = said[places[-1].end() :].partition("\n")[2]
    else:
        line = 0
    lines = [text.rstrip() for text in said.strip().splitlines()]
    text = " ".join(" ".join(lines[:_ERROR_LINES]).split()) + " ..." * (len(lines) > _ERROR_LINES)
    return Failure(file, line, f"Coq refuses it: {text}", "mend the statement or the proof")
