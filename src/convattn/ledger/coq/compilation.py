"""Compiling the proofs in a folder of their own, several at a time, and only what has changed.

What a compiled file depends on is summed up in a key: the digest of its source, the keys and the
digests of the compiled files that it requires, Coq's version, options and libraries. A file is
compiled again if its key has changed.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from convattn.ledger.coq.coqc import Compilers
from convattn.ledger.coq.dependencies import closure, dependencies, ordered
from convattn.ledger.coq.failure import Failure
from convattn.ledger.coq.messages import refused
from convattn.ledger.coq.project import PROJECT, Project, digest
from convattn.ledger.coq.record import Entry, Record, copy
from convattn.ledger.coq.toolchain import Coq


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
    """
    tree = output / "coq"
    copy(project, output)
    record = Record(output, project.files)
    direct, error = dependencies(coq, project, tree)
    failures = [refused(PROJECT, error, output)] if error else []
    requires, circular = closure(direct)
    failures += [
        Failure(file, 0, "requires itself in a circle", "break the circle") for file in circular
    ]
    wanted = set(project.files) if only is None else set(only).union(*(requires[f] for f in only))
    waiting = [file for file in ordered(requires) if file in wanted and file not in circular]
    broken = {*circular}
    entries: dict[str, Entry] = {}
    anew = 0
    compilers = Compilers(coq, project, tree)
    running: dict[Future[tuple[float, str]], tuple[str, str]] = {}
    pool = ThreadPoolExecutor(jobs)
    try:
        while waiting or running:
            for file in list(waiting):
                if below := sorted(direct[file] & broken):
                    found = f"not compiled, since {below[0]} does not compile"
                    failures.append(Failure(file, 0, found, "mend that first"))
                    broken.add(file)
                elif not direct[file] <= entries.keys():
                    continue
                else:
                    beneath = {other: entries[other] for other in direct[file]}
                    key = _key(coq, project, file, beneath)
                    if entry := record.find(file, key):
                        entries[file] = entry
                    else:
                        record.forget(file)
                        running[pool.submit(compilers.compile, file)] = (file, key)
                waiting.remove(file)
            for future in wait(running, return_when=FIRST_COMPLETED).done if running else ():
                file, key = running.pop(future)
                taken, error = future.result()
                if error:
                    failures.append(refused(file, error, output))
                    broken.add(file)
                else:
                    entries[file], anew = record.add(file, key, taken), anew + 1
                    finished(file, taken)
    except BaseException:
        compilers.stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    seconds = {file: entry.seconds for file, entry in entries.items()}
    return Compiled(seconds, requires, tuple(failures), anew)


def _key(coq: Coq, project: Project, file: str, beneath: dict[str, Entry]) -> str:
    """What a file is compiled from."""
    parts: Iterable[object] = [
        coq.version,
        sorted(coq.packages.items()),
        project.options,
        digest(project.sources[file]),
        sorted((other, entry.key, entry.compiled) for other, entry in beneath.items()),
    ]
    return digest(json.dumps(parts).encode())
