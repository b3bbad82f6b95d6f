"""Coq, and compiling the proofs in a folder of their own with the build of ``coq_makefile``.

Make compiles what is older than its source. What a compiled file is of, and its SHA-256, stand in
``compiled.json``, which is written when a build ends; a compiled file that is not recorded there,
or is not the one that is recorded, is removed before the next build.
"""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convattn.files import filename_in_errors, write_file
from convattn_ledger.coq.rules import closure
from convattn_ledger.coq.sources import Failure, Project, digest

PACKAGES = (
    "coq",
    "libcoq-mathcomp-algebra",
    "libcoq-mathcomp-algebra-tactics",
    "libcoq-mathcomp-zify",
    "libcoq-interval",
)
INSTALL = f"apt-get install --no-install-recommends {' '.join(PACKAGES)}"
LIMIT = 600  # seconds of a core for one file; the slowest takes a tenth of that
# What a source requires of each package, and a file of it under Coq's user-contrib/.
_LIBRARIES = {
    "libcoq-mathcomp-algebra": (r"\bmathcomp\b", "mathcomp/algebra/ssralg.vo"),
    "libcoq-mathcomp-algebra-tactics": (
        r"\bmathcomp\b.*\bring\b",
        "mathcomp/algebra_tactics/ring.vo",
    ),
    "libcoq-mathcomp-zify": (r"\bmathcomp\b.*\b(?:zify|ssrZ)\b", "mathcomp/zify/zify.vo"),
    "libcoq-interval": (r"\b(?:Interval|Coquelicot|Flocq)\b", "Interval/Tactic.vo"),
}
_SUFFIXES = frozenset({".v", ".vo", ".vos", ".vok", ".vio", ".glob"})
_TIMED = """#!/bin/sh
ulimit -t {limit}
for file; do case "$file" in *.v) source=$file ;; esac; done
begun=$(date +%s.%N)
"$@" || exit
echo "@ $source $begun $(date +%s.%N)"
"""
_ERROR = re.compile(
    r'^File "(?:\./)?(?P<file>[^"]+)", line (?P<line>\d+), characters .*\n'
    r'(?P<said>Error(?:(?!File "|make|@ ).*\n)+)',
    re.MULTILINE,
)
_STALE = re.compile(r"inconsistent\s+assumptions|Cannot\s+load|bad\s+version\s+number|corrupted")


class NoCoq(Exception):
    """Coq, or a library that the proofs need, is not here; the message says how to install it."""


class ForeignFiles(Exception):
    """The folder for the copies has Coq files that were not put there by a run."""


@dataclass(frozen=True)
class Coq:
    """An installed Coq: its version, and those of the packages that the system knows."""

    version: str
    packages: dict[str, str]


@dataclass(frozen=True)
class Built:
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


def find_coq(project: Project) -> Coq:
    """Find Coq and whatever libraries the sources require.

    Raises:
        NoCoq: If something is missing.
    """
    for name in ("coqc", "coqdep", "coq_makefile", "make"):
        if shutil.which(name) is None:
            raise NoCoq(f"Coq is not installed ({name} is not on PATH); install it: {INSTALL}")
    version, where = (
        re.search(r"version\s+(\S+)", ask("coqc", "--version")),
        ask("coqc", "-where"),
    )
    if version is None or not where:
        raise NoCoq(f"coqc does not say its version and place; install Coq anew: {INSTALL}")
    libraries = Path(where, "user-contrib")
    lines = [
        line
        for file in project.files
        for line in re.findall(r"^.*\bRequire\b.*$", project.text(file), re.MULTILINE)
    ]
    absent = [
        package
        for package, (pattern, file) in _LIBRARIES.items()
        if any(re.search(pattern, line) for line in lines) and not (libraries / file).is_file()
    ]
    if absent:
        raise NoCoq(
            f"Coq {version[1]} is here, but the proofs require {', '.join(absent)}, not found in "
            f"{libraries}; install what is missing: {INSTALL}"
        )
    known = ""
    if shutil.which("dpkg-query"):
        known = ask("dpkg-query", "-W", "-f", "${Package} ${Version}\n", *PACKAGES)
    return Coq(version[1], dict(line.split(" ") for line in known.splitlines() if " " in line))


def build(
    coq: Coq,
    project: Project,
    output: Path,
    jobs: int,
    only: Sequence[str] | None = None,
    finished: Callable[[str, float], None] = lambda file, seconds: None,
) -> Built:
    """Compile a project under ``output/coq/``, where no one else may be at work meanwhile.

    However this is left, no ``coqc`` goes on.

    Args:
        coq: The compiler.
        project: The sources.
        output: Where to.
        jobs: How many files at a time.
        only: The files wanted, with what they require; all of them if ``None``.
        finished: Is told each file that was compiled, and the seconds.

    Raises:
        ForeignFiles: If ``output/coq/`` has Coq files of someone else's.
        OSError: If the disk is full, or may not be written.
    """
    key = digest(json.dumps([coq.version, sorted(coq.packages.items()), project.warnings]).encode())
    requires = closure(project)
    recorded = _prepare(project, output, key, requires)
    targets = project.files
    if only is not None:
        targets = sorted(set(only).union(*(requires[file] for file in only)))
    text, taken = _make(project, output, jobs, targets, finished)
    refuse_unwritten(text, output)
    errors: dict[str, Failure] = {}
    for match in _ERROR.finditer(text):
        words = " ".join(match["said"].split())
        remedy = "correct the statement or the proof"
        if _STALE.search(match["said"]):
            remedy = f"a library has changed since it was compiled: remove {output} and run again"
        problem = f"Coq refuses it: {words[:500]}"
        errors[match["file"]] = Failure(match["file"], int(match["line"]), problem, remedy)
    tree, failures = output / "coq", []
    entries: dict[str, dict[str, Any]] = {}
    for file in sorted(targets, key=lambda file: (len(requires[file]), file)):
        missing = sorted(requires[file] - entries.keys())
        compiled = _digest((tree / file).with_suffix(".vo"))
        if file in requires[file]:
            remedy = "break the circle"
            failures.append(Failure(file, 0, "requires itself in a circle", remedy))
        elif file in errors:
            failures.append(errors[file])
        elif missing:
            problem = f"not compiled, since {missing[0]} does not compile"
            failures.append(Failure(file, 0, problem, "correct that first"))
        elif compiled is None:
            problem = f"coqc ended without a message, or after {LIMIT} s: {text.strip()[-300:]}"
            failures.append(Failure(file, 0, problem, "shorten the proof, or run coqc on it"))
        else:
            seconds = taken.get(file, recorded.get(file, {}).get("seconds", 0.0))
            source = digest(project.sources[file])
            entries[file] = {
                "source": source,
                "requires": sorted(requires[file]),
                "compiled": compiled,
                "seconds": seconds,
            }
    others = {file: entry for file, entry in recorded.items() if file not in targets}
    _record(output, key, others | entries)
    seconds = {file: entry["seconds"] for file, entry in entries.items()}
    return Built(seconds, requires, tuple(failures), len(taken))


def _prepare(
    project: Project, output: Path, key: str, requires: dict[str, frozenset[str]]
) -> dict[str, dict[str, Any]]:
    """Bring the copy of the sources up to date; only compiled files of these sources stay."""
    tree, path = output / "coq", output / "compiled.json"
    try:
        record = json.loads(path.read_text("utf-8"))
        recorded = record["files"] if record["key"] == key else {}
        recorded = {
            file: entry
            for file, entry in recorded.items()
            if file in project.sources
            and entry["source"] == digest(project.sources[file])
            and entry["requires"] == sorted(requires[file])
            and entry["compiled"] == _digest((tree / file).with_suffix(".vo"))
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        recorded = {}
    compiled = {str(Path(file).with_suffix("")) for file in recorded}
    for entry in sorted(tree.rglob("*")):
        name = entry.relative_to(tree)
        if entry.suffix not in _SUFFIXES or (entry.is_dir() and not entry.is_symlink()):
            continue
        if not path.is_file():
            raise ForeignFiles(
                f"{entry} was not put there by convattn prove, which would remove it"
            )
        stays = str(name.with_suffix("")) in compiled or str(name) in project.sources
        if not stays or entry.is_symlink():
            entry.unlink()
    tree.mkdir(parents=True, exist_ok=True)
    _record(output, key, recorded)  # before the copies: it says that they are ours
    for file in project.files:
        copy, content = tree / file, project.sources[file]
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.is_file() or copy.read_bytes() != content:
            with filename_in_errors(copy):
                copy.write_bytes(content)
    return recorded


def _make(
    project: Project,
    output: Path,
    jobs: int,
    targets: Iterable[str],
    finished: Callable[[str, float], None],
) -> tuple[str, dict[str, float]]:
    """Run the build; what it says, and the seconds of each file that was compiled."""
    tree, timed = output / "coq", output / "timed"
    with filename_in_errors(timed):
        timed.write_text(_TIMED.format(limit=LIMIT))
    timed.chmod(0o755)
    environment = clean_environment()
    options = ["-Q", ".", project.prefix, "-arg", "-w", "-arg", project.warnings]
    words = ["coq_makefile", *options, *project.files, "-o", "Makefile.coq"]
    done = subprocess.run(
        words, cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        return done.stderr, {}
    for name in (".Makefile.coq.d", "Makefile.coq.local", "Makefile.coq.local-late"):
        (tree / name).unlink(missing_ok=True)  # make would read them: of another run, or a stranger
    words = ["make", "-f", "Makefile.coq", "--keep-going", f"-j{jobs}", "--output-sync=target"]
    words += ["--no-print-directory", "TIMECMD=../timed"]
    words += [f"{file}o" for file in targets]
    taken: dict[str, float] = {}
    said: list[str] = []
    process = subprocess.Popen(
        words,
        cwd=tree,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        close_fds=False,  # so that make and coqc hold the lock on the folder
        start_new_session=True,
    )
    try:
        for line in process.stdout or ():
            said.append(line)
            if line.startswith("@ "):
                _, file, begun, ended = line.split()
                taken[file] = round(float(ended) - float(begun), 2)
                finished(file, taken[file])
        process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return "".join(said), taken


def refuse_unwritten(said: str, output: Path) -> None:
    """Refuse to go on where Coq could not write: that says nothing of the proofs."""
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS):
        if os.strerror(number) in said:
            reason = f"{os.strerror(number)}: Coq could not write; make room and run again"
            raise OSError(number, reason, str(output))


def _record(output: Path, key: str, entries: dict[str, dict[str, Any]]) -> None:
    content = {"key": key, "files": dict(sorted(entries.items()))}
    write_file(output / "compiled.json", json.dumps(content, indent=1).encode())


def _digest(path: Path) -> str | None:
    try:
        return digest(path.read_bytes())
    except OSError:
        return None


def ask(*command: str) -> str:
    """What a command prints; nothing if it cannot be run."""
    try:
        return subprocess.run(
            command, env=clean_environment(), capture_output=True, text=True, check=False
        ).stdout.strip()
    except OSError:
        return ""


def clean_environment() -> dict[str, str]:
    """What Coq and make are told of the environment: where programs are, and nothing else.

    COQPATH, OCAMLPATH, the folders of XDG and of the home directory can each bring a library, a
    plugin or a start-up file in place of the installed one.
    """
    nowhere = "/nonexistent"
    absent = ("HOME", "XDG_DATA_HOME", "XDG_DATA_DIRS", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS")
    inherited = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    return {"LC_ALL": "C.UTF-8", **dict.fromkeys(absent, nowhere), **inherited}


def not_passed_on() -> list[str]:
    """The variables that are set, would have told Coq where to look, and were not passed on."""
    return [
        name for name in ("COQPATH", "COQLIB", "COQRUNTIMELIB", "OCAMLPATH") if name in os.environ
    ]
